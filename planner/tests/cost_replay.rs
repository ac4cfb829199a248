//! The replay against closed forms, bounds, and itself without short cuts.

use proptest::prelude::*;
use wormcast_planner::cost::{Channel, CostModel, Costs, Message, Traffic, estimate};
use wormcast_planner::replay::{ChannelUse, Replay, replay, replay_in_full};
use wormcast_routing::generate::from_spec;
use wormcast_routing::group::{
    Delivery, GroupPlan, GroupRequest, Order, Scheme, SwitchParameters, plan_group, plan_structure,
};
use wormcast_routing::routes::{Algorithm, Routes};
use wormcast_routing::structure::{CircuitVariant, Edge, TreeVariant, k_binomial};
use wormcast_routing::topology::Topology;
use wormcast_wire::{BufferClass, HostId};

fn request(scheme: Scheme, source: u16, members: impl IntoIterator<Item = u16>) -> GroupRequest {
    GroupRequest::new(
        scheme,
        HostId(source),
        members.into_iter().map(HostId).collect(),
    )
}

#[derive(Debug)]
struct Case {
    topology: Topology,
    costs: Costs,
    request: GroupRequest,
}

impl Case {
    fn run<T>(&self, work: impl FnOnce(&CostModel<'_, '_>, &GroupPlan, &Traffic) -> T) -> T {
        let routes = Routes::plan(&self.topology, Algorithm::Osud, None).unwrap();
        let model = CostModel::new(&routes, self.costs.clone()).unwrap();
        let plan = plan_group(&routes, &self.request).unwrap();
        let traffic = Traffic::new(&model, &plan).unwrap();
        work(&model, &plan, &traffic)
    }

    fn replay(&self, bytes: u64, packets: u64) -> Replay {
        self.run(|model, _, traffic| replay(model, traffic, Message { bytes, packets }))
    }

    fn estimate(&self, bytes: u64, packets: u64) -> f64 {
        let message = Message { bytes, packets };
        self.run(|model, _, traffic| estimate(model, traffic, message).completion_ns)
    }
}

fn close(found: f64, wanted: f64) {
    assert!(
        (found - wanted).abs() <= 1e-6 * wanted.abs() + 0.01,
        "{found} instead of {wanted}"
    );
}

/// A gigabit: 8 ns a byte.
fn gigabit() -> Costs {
    Costs::free(1_000_000_000)
}

#[test]
fn one_packet_over_a_line_of_two_takes_the_sum_of_its_parts() {
    let mut costs = gigabit();
    costs.packet_send_ns = 1_000.0;
    costs.send_ns_per_byte = 1.0;
    costs.packet_receive_ns = 500.0;
    costs.receive_ns_per_byte = 2.0;
    costs.message_send_ns = 10_000.0;
    costs.message_receive_ns = 20_000.0;
    costs.message_copy_ns = 300.0;
    costs.acknowledgement_ns = 40.0;
    costs.switch_hop_ns = 100.0;
    costs.wire_ns = 7.0;
    costs.link_bits_per_s = 500_000_000;
    costs.packet_header_bytes = 48;
    costs.route_bytes_per_hop = 1;
    let mut case = Case {
        topology: from_spec("line:2").unwrap(),
        costs,
        request: request(Scheme::Repeat, 0, [0, 1]),
    };
    // 50, 49 and 48 bytes of header and route on the three channels.
    let fixed = 10_000.0 + 300.0 + 1_000.0 + 150.0 + 40.0 + 3.0 * 7.0 + 2.0 * 100.0;
    let receiver = 500.0 + 2.0 * 148.0 + 20_000.0;
    let links = 8.0 * 150.0 + 16.0 * 149.0 + 8.0 * 148.0;
    close(case.replay(100, 1).completion_ns, fixed + links + receiver);
    // Cut through, the link between the switches is the slow one; before it only the
    // header is waited for, and after it the tail.
    case.costs.cut_through = true;
    let links = 8.0 * 50.0 + 16.0 * 149.0;
    close(case.replay(100, 1).completion_ns, fixed + links + receiver);
}

#[test]
fn packets_over_a_line_are_pipelined() {
    let mut case = Case {
        topology: from_spec("line:5").unwrap(),
        costs: gigabit(),
        request: request(Scheme::Repeat, 0, [0, 4]),
    };
    // Six channels of 8 µs; a packet each 8 µs after that.
    let found = case.replay(100_000, 100);
    close(found.completion_ns, (6.0 + 99.0) * 8_000.0);
    assert!(found.packets_replayed < 50, "{}", found.packets_replayed);
    assert_eq!(found.channels.len(), 6);
    for used in &found.channels {
        close(used.busy_ns, 800_000.0);
    }
    // Half of one channel is taken: it is the bottleneck then.
    case.costs = Costs::from_json(r#"{"channels":[{"switch":2,"port":2,"utilisation":0.5}]}"#)
        .map(|read| Costs {
            channels: read.channels,
            ..gigabit()
        })
        .unwrap();
    close(
        case.replay(100_000, 100).completion_ns,
        5.0 * 8_000.0 + 100.0 * 16_000.0,
    );
}

#[test]
fn a_rested_link_passes_its_burst_in_no_time() {
    let mut costs = gigabit();
    costs.link_burst_bytes = 10_000;
    let mut case = Case {
        topology: from_spec("line:3").unwrap(),
        costs,
        request: request(Scheme::Repeat, 0, [0, 2]),
    };
    close(case.replay(5_000, 5).completion_ns, 0.0);
    // What is beyond it crosses the first of four channels at its rate, and the others one behind the other.
    close(case.replay(50_000, 50).completion_ns, 43_000.0 * 8.0);
    close(case.estimate(50_000, 50), 43_000.0 * 8.0);
    close(case.estimate(5_000, 5), 0.0);
    // Of the copies of one packet, those that find it used up.
    case.topology = from_spec("star:4").unwrap();
    case.costs.link_burst_bytes = 2_000;
    case.request = request(Scheme::Repeat, 0, 0..4);
    close(case.replay(1_000, 1).completion_ns, 8_000.0);
    close(case.estimate(1_000, 1), 8_000.0);
}

#[test]
fn confirmations_and_shared_processors_add_to_what_a_message_takes() {
    let mut costs = gigabit();
    costs.message_confirm_ns = 500.0;
    let mut case = Case {
        topology: from_spec("star:4").unwrap(),
        costs,
        request: request(Scheme::Switch(SwitchParameters::default()), 0, 0..4),
    };
    case.costs.tree_bytes_per_branch = 0;
    // Ten packets out of the host and the last one on the links to its three neighbours, with a marker of one byte
    // each, and then in at all three.
    let confirmed = 10.0 * 8_008.0 + 8_008.0 + 8_000.0 + 3.0 * 500.0;
    close(case.replay(10_000, 10).completion_ns, confirmed);
    close(case.estimate(10_000, 10), confirmed);
    // Ten packets on seven channels.
    case.costs.shared_crossing_ns = 3_000.0;
    let both = confirmed.hypot(70.0 * 3_000.0);
    close(case.replay(10_000, 10).completion_ns, both);
    close(case.estimate(10_000, 10), both);
}

#[test]
fn confirmations_come_up_a_tree_where_switches_copy_to_many() {
    let mut costs = gigabit();
    costs.message_confirm_ns = 500.0;
    costs.forward_packet_ns = 100_000.0;
    costs.acknowledgement_ns = 2_000.0;
    let mut case = Case {
        topology: from_spec("star:16").unwrap(),
        costs,
        request: request(Scheme::Switch(SwitchParameters::default()), 0, 0..16),
    };
    case.costs.tree_bytes_per_branch = 0;
    // Two levels of four, and an ACK of 36 bytes between them. The source takes four ACKs of the packet, not fifteen.
    assert_eq!(case.costs.ack_fan_in(16), 4);
    let tree = 2.0 * 4.0 * 500.0 + 100_000.0 + 36.0 * 8.0;
    let sent = 4.0 * 2_000.0 + 2.0 * 8_008.0 + 8_000.0;
    close(case.replay(1_000, 1).completion_ns, sent + tree);
    close(case.estimate(1_000, 1), sent + tree);
    // Where it sends to each, each confirms to it.
    case.request = request(Scheme::Repeat, 0, 0..16);
    let each = 2_000.0 + 15.0 * 500.0 + 17.0 * 8_000.0;
    close(case.replay(1_000, 1).completion_ns, each);
}

#[test]
fn a_window_of_host_buffers_holds_the_sender_back() {
    let mut costs = gigabit();
    costs.packet_receive_ns = 100_000.0;
    costs.host_buffer_packets = 3;
    let mut case = Case {
        topology: from_spec("star:3").unwrap(),
        costs,
        request: request(Scheme::Repeat, 1, [1, 2]),
    };
    // Packet p leaves when packet p−3 has been taken: the receiver is never idle.
    let found = case.replay(50_000, 50);
    close(found.completion_ns, 4.0 * 8_000.0 + 50.0 * 100_000.0);
    assert!(found.backlog_bytes_max() <= 2_000, "{found:?}");
    // With room for one, each packet waits for the one before to be received.
    case.costs.host_buffer_packets = 1;
    close(
        case.replay(50_000, 50).completion_ns,
        50.0 * (4.0 * 8_000.0 + 100_000.0),
    );
}

/// Links that take no time, so that only what hosts do counts: one step is 1 µs.
fn stepping() -> Costs {
    Costs {
        packet_send_ns: 1_000.0,
        host_buffer_packets: 1 << 16,
        ..Costs::free(1_000_000_000_000_000)
    }
}

#[test]
fn k_binomial_trees_take_t1_and_k_a_packet() {
    for hosts in [2u16, 3, 5, 8, 16, 23, 48, 64] {
        for k in 1..=6u32 {
            for packets in [1u32, 2, 3, 8, 40] {
                let case = Case {
                    topology: from_spec("torus:8").unwrap(),
                    costs: stepping(),
                    request: request(Scheme::KBinomial { k: Some(k) }, 0, 0..hosts),
                };
                let found = case.replay(packets.into(), packets.into()).completion_ns;
                let routes = Routes::plan(&case.topology, Algorithm::Osud, None).unwrap();
                let structure = plan_structure(&routes, &case.request).unwrap().unwrap();
                let steps = structure.steps(packets);
                close(found, 1e3 * steps as f64);
                let children = structure.role_of(HostId(0)).unwrap().children.len() as u32;
                if children == k {
                    assert_eq!(steps, k_binomial::steps(hosts.into(), packets, k));
                }
            }
        }
    }
}

#[test]
fn repeat_and_circuit_take_their_steps() {
    for (scheme, steps) in [
        (Scheme::Repeat, 6 * 15),
        (Scheme::Circuit(CircuitVariant::OmitLast), 15 + 5),
    ] {
        let case = Case {
            topology: from_spec("torus:4").unwrap(),
            costs: stepping(),
            request: request(scheme, 5, 0..16),
        };
        close(case.replay(6, 6).completion_ns, 1e3 * f64::from(steps));
    }
}

#[test]
fn ordered_schemes_begin_at_their_first_host() {
    // Host 5 submits to host 0; the circuit 0, 1, 2, … 5 … then takes a step a host.
    let mut case = Case {
        topology: from_spec("star:8").unwrap(),
        costs: stepping(),
        request: request(Scheme::Circuit(CircuitVariant::Ordered), 5, 0..8),
    };
    close(case.replay(1, 1).completion_ns, 1e3 * 8.0);
    case.request.scheme = Scheme::Tree {
        variant: TreeVariant::Ordered,
        fan_out: 7,
    };
    // Source to root, root to all seven; the source's copy is not waited for, but sent.
    close(case.replay(1, 1).completion_ns, 1e3 * 8.0);
    let found = case.replay(1, 1);
    assert_eq!(found.members.len(), 7);
    assert!(found.members.iter().all(|(member, _)| *member != HostId(5)));
}

#[test]
fn models_of_the_torus_paper() {
    // TORUS eq. 12 and 6, with links that hardly count beside 2·o and t_process.
    let bytes = 128u64;
    let mut costs = Costs::named("torus").unwrap();
    costs.route_bytes_per_hop = 0;
    costs.switch_hop_ns = 0.0;
    costs.wire_ns = 0.0;
    costs.link_bits_per_s = 1_000_000_000_000_000;
    costs.host_link_bits_per_s = 1_000_000_000_000_000;
    costs.message_copy_ns = 0.0;
    let o = 1994.0;
    for group in [4u16, 9, 16] {
        let mut case = Case {
            topology: from_spec("torus:4").unwrap(),
            costs: costs.clone(),
            request: request(Scheme::Circuit(CircuitVariant::OmitLast), 0, 0..group),
        };
        let relays = f64::from(group) - 2.0;
        close(
            case.replay(bytes, 1).completion_ns,
            2.0 * o + relays * (265_000.0 + 2.0 * o),
        );
        case.request.scheme = Scheme::Repeat;
        case.costs.message_copy_ns = 7_000.0;
        close(
            case.replay(bytes, 1).completion_ns,
            (f64::from(group) - 1.0) * (o + 7_000.0) + o,
        );
    }
}

#[test]
fn switches_replicate_once_a_link_and_headers_shrink() {
    let mut costs = gigabit();
    costs.tree_bytes_per_branch = 2;
    costs.switch_hop_ns = 100.0;
    costs.switch_copy_ns = 10.0;
    let case = Case {
        topology: from_spec("line:3").unwrap(),
        costs,
        request: request(Scheme::Switch(SwitchParameters::default()), 0, 0..3),
    };
    // Branches: to switch 1, there to host 1 and switch 2, there to host 2.
    let found = case.replay(1_000, 1);
    let bytes: Vec<f64> = found
        .channels
        .iter()
        .map(|used| used.busy_ns / 8.0)
        .collect();
    let mut sorted = bytes.clone();
    sorted.sort_by(f64::total_cmp);
    // To the hosts no route; on the links those of 1 and 3 branches; from the host 4.
    assert_eq!(sorted, [1_000.0, 1_000.0, 1_003.0, 1_007.0, 1_009.0]);
    // Host 1 is on port 0, so the copy to switch 2 leaves 10 ns after the one to it.
    let path = 1_009.0 + 1_007.0 + 1_003.0 + 1_000.0;
    close(found.completion_ns, path * 8.0 + 3.0 * 100.0 + 10.0);
    assert_eq!(found.start_up_ns, 1_009.0 * 8.0);
}

#[test]
fn a_channel_that_two_sends_share_serves_one_after_the_other() {
    // Hosts 0 and 1 on switch 0 send to 2 and 3 on switch 1 over the one link between.
    let topology = from_spec("line:2:2").unwrap();
    let routes = Routes::plan(&topology, Algorithm::Osud, None).unwrap();
    let model = CostModel::new(&routes, gigabit()).unwrap();
    let edge = |step, from, to| Edge {
        step,
        from: HostId(from),
        to: HostId(to),
        class: BufferClass::One,
    };
    let edges = [edge(1, 0, 1), edge(2, 0, 2), edge(2, 1, 3)];
    let traffic = Traffic::from_edges(&model, "tree", HostId(0), &edges).unwrap();
    let message = Message {
        bytes: 1_000,
        packets: 1,
    };
    let found = replay(&model, &traffic, message);
    // Each transmission is 8 µs. Both packets reach the link after 16 µs or 24 µs: the one
    // of host 0 is on it until 24 µs, that of host 1 enters then; nothing is lost to it.
    let at = |host| {
        found
            .members
            .iter()
            .find(|(member, _)| *member == HostId(host))
            .unwrap()
            .1
    };
    assert_eq!([at(1), at(2), at(3)], [16_000.0, 32_000.0, 40_000.0]);
    let between = |found: &Replay| {
        let port = |used: &&ChannelUse| matches!(used.channel, Channel::Port(switch, port) if (switch.0, port.get()) == (0, 2));
        *found.channels.iter().find(port).unwrap()
    };
    assert_eq!(between(&found).busy_ns, 16_000.0);
    assert_eq!(between(&found).backlog_bytes_max, 1_000);
    // With a link of half the speed the second waits 8 µs, 500 bytes of the first.
    let costs = Costs {
        link_bits_per_s: 500_000_000,
        ..gigabit()
    };
    let model = CostModel::new(&routes, costs).unwrap();
    let found = replay(&model, &traffic, message);
    assert_eq!(found.completion_ns, 16_000.0 + 2.0 * 16_000.0 + 8_000.0);
    assert_eq!(between(&found).backlog_bytes_max, 1_500);
    // An edge from a host that has nothing is refused.
    let error = Traffic::from_edges(&model, "tree", HostId(0), &edges[2..]).unwrap_err();
    assert!(error.to_string().contains("host 1"), "{error}");
}

/// Time on the bottleneck and along the path, below which nothing can be.
fn physical_bound(case: &Case, found: &Replay, plan: &GroupPlan, message: Message) -> f64 {
    let busiest = found
        .channels
        .iter()
        .map(|used| used.busy_ns)
        .fold(0.0, f64::max);
    let routes = Routes::plan(&case.topology, Algorithm::Osud, None).unwrap();
    let slowest = case
        .costs
        .link_bits_per_s
        .max(case.costs.host_link_bits_per_s) as f64;
    let farthest = plan
        .request
        .members
        .iter()
        .filter_map(|&member| routes.distance(plan.request.source, member).unwrap())
        .max()
        .unwrap_or(0);
    // The last packet is behind all others on a link, and crosses every switch.
    let bytes = message.bytes as f64 * 8e9 / slowest;
    let path = bytes + f64::from(farthest) * case.costs.switch_hop_ns;
    busiest.max(path) + case.costs.packet_send_ns + case.costs.packet_receive_ns
}

fn any_case() -> impl Strategy<Value = (Case, Message)> {
    let topologies = prop::sample::select(vec![
        "torus:4",
        "irregular:8:1",
        "irregular:16:3",
        "fat-tree:4",
        "line:3:3",
        "star:5:2",
    ]);
    let schemes = prop::sample::select(vec![
        Scheme::Repeat,
        Scheme::Circuit(CircuitVariant::OmitLast),
        Scheme::Circuit(CircuitVariant::Return),
        Scheme::Circuit(CircuitVariant::Ordered),
        Scheme::Tree {
            variant: TreeVariant::Unordered,
            fan_out: 3,
        },
        Scheme::Tree {
            variant: TreeVariant::Ordered,
            fan_out: 2,
        },
        Scheme::KBinomial { k: Some(1) },
        Scheme::KBinomial { k: Some(2) },
        Scheme::KBinomial { k: Some(4) },
        Scheme::Switch(SwitchParameters::default()),
    ]);
    let times = prop::array::uniform6(0.0..5_000.0f64);
    (
        topologies,
        schemes,
        times,
        any::<u64>(),
        2usize..12,
        1u64..200,
        any::<bool>(),
        1u32..20,
    )
        .prop_map(
            |(spec, scheme, times, seed, size, packets, cut_through, buffer)| {
                let topology = from_spec(spec).unwrap();
                let hosts = topology.hosts().len() as u64;
                let mut members: Vec<u16> = Vec::new();
                let mut state = seed;
                while members.len() < size.min(hosts as usize) {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let host = ((state >> 33) % hosts) as u16;
                    if !members.contains(&host) {
                        members.push(host);
                    }
                }
                let mut request = request(scheme, members[0], members.clone());
                if matches!(scheme, Scheme::KBinomial { .. }) {
                    request.order = Some(Order::Id);
                }
                let costs = Costs {
                    packet_send_ns: times[0],
                    packet_receive_ns: times[1],
                    send_gap_ns: times[2],
                    forward_packet_ns: times[3],
                    switch_hop_ns: times[4],
                    message_send_ns: times[5],
                    cut_through,
                    host_buffer_packets: buffer,
                    packet_header_bytes: 40,
                    route_bytes_per_hop: 1,
                    tree_bytes_per_branch: 2,
                    link_bits_per_s: 1_000_000_000 + seed % 3 * 500_000_000,
                    ..gigabit()
                };
                let message = Message {
                    bytes: packets * 500 - 77,
                    packets,
                };
                (
                    Case {
                        topology,
                        costs,
                        request,
                    },
                    message,
                )
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every member gets every packet, not below the physical bound, and skipping periods
    /// changes nothing that is reported.
    #[test]
    fn skipping_changes_nothing_and_bounds_hold((case, message) in any_case()) {
        case.run(|model, plan, traffic| {
            let short = replay(model, traffic, message);
            let full = replay_in_full(model, traffic, message);
            prop_assert_eq!(full.packets_replayed, message.packets);
            prop_assert_eq!(short.completion_ns, full.completion_ns);
            prop_assert_eq!(short.start_up_ns, full.start_up_ns);
            prop_assert_eq!(&short.members, &full.members);
            prop_assert_eq!(&short.channels, &full.channels);
            prop_assert_eq!(full.members.len(), plan.request.members.len() - 1);
            prop_assert!(full.members.iter().all(|(_, at)| *at > 0.0));
            let bound = physical_bound(&case, &full, plan, message);
            prop_assert!(full.completion_ns >= bound - 1.0, "{} < {bound}", full.completion_ns);
            if let Delivery::Hosts { edges } = &plan.delivery {
                prop_assert_eq!(
                    full.channels.iter().any(|used| used.backlog_bytes_max > 0),
                    !edges.is_empty()
                );
            }
            Ok(())
        })?;
    }
}
