//! Packet mode and wormhole mode: what switches hold, and in which order they get it.

use crate::lab;
use crate::messages::{change, whole};

use std::sync::Arc;

use lab::{
    CIRCUIT, Random, SWITCH, all_live, damage, follow, group, host_ids, random_groups,
    random_topology,
};
use wormcast_agent_proto as proto;
use wormcast_planner::{
    ClassDNumbers, Copies, Entity, FabricState, Group, INSTANCE_PLAIN, MGID_HOLD, MGID_INTERRUPT,
    MGID_TREE_ALL, Mgid, Operation, Place, Planner, PortSet, Replica, Stage, SwitchState,
    Switching, TRAIN_FRAMES, WormholeScheme, dependencies, difference, digest_agents, execute,
};
use wormcast_routing::group::{Scheme, SwitchMode, SwitchParameters};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::Topology;
use wormcast_verify::deadlock::Verdict;
use wormcast_wire::{HostId, PortId, SwitchId};

const PLAIN: Switching = Switching::Wormhole(WormholeScheme::Plain);
const FLUSH: Switching = Switching::Wormhole(WormholeScheme::Flush);
const INTERRUPT: Switching = Switching::Wormhole(WormholeScheme::Interrupt);
const UNICAST: Switching = Switching::Wormhole(WormholeScheme::Unicast);
const TABLE: &str = "ingress.wormhole";

fn network() -> Topology {
    wormcast_routing::generate::from_spec("ring:4").unwrap()
}

fn plan(planner: &mut Planner) -> FabricState {
    let network = network();
    let hosts = all_live(&network);
    planner.plan(&network, &network, &[], &hosts, &ClassDNumbers::default())
}

fn planned(switching: Switching) -> FabricState {
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    planner.set_switching(switching, false);
    plan(&mut planner)
}

fn is_hold(mgid: Mgid) -> bool {
    (MGID_HOLD..MGID_HOLD + 256).contains(&mgid.0)
}

fn first(state: &FabricState) -> &Arc<SwitchState> {
    state.switches.values().next().expect("a switch")
}

#[test]
fn each_port_has_a_group_for_stop_and_go_in_wormhole_mode_alone() {
    let network = network();
    for (switching, scheme) in [
        (Switching::Packet, None),
        (PLAIN, Some(1)),
        (FLUSH, Some(2)),
    ] {
        let state = planned(switching);
        for switch in network.switches() {
            let state = &state.switches[&switch.id];
            let action = &state.defaults[TABLE];
            let found = action.parameters.iter().find(|(name, _)| name == "scheme");
            assert_eq!(found.map(|(_, value)| *value), scheme);
            let holds = state.multicast.iter().filter(|(mgid, _)| is_hold(**mgid));
            let found: Vec<(u16, Vec<(u8, u16)>)> = holds
                .map(|(mgid, copies)| {
                    let copies = copies.iter().map(|copy| (copy.port.get(), copy.instance));
                    (mgid.0 - MGID_HOLD, copies.collect())
                })
                .collect();
            let ports = scheme.map_or(0, |_| switch.ports);
            let expected = (0..ports).map(|port| (port, vec![(port as u8, 1), (254, 1)]));
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}

/// Where multicasts are interrupted, one switch of each part is the root, and all have a group for what ends a fragment.
#[test]
fn interrupted_multicasts_have_a_root_and_a_group() {
    let state = planned(INTERRUPT);
    let scheme = |id| {
        let action = &state.switches[&id].defaults[TABLE];
        let found = action.parameters.iter().find(|(name, _)| name == "scheme");
        found.map(|(_, value)| *value)
    };
    for switch in network().switches() {
        let expected = if state.roots.contains(&switch.id) {
            4
        } else {
            3
        };
        assert_eq!(scheme(switch.id), Some(expected), "{}", switch.id);
        let groups = &state.switches[&switch.id].multicast;
        let round = Replica {
            port: PortId::RECIRCULATE,
            instance: INSTANCE_PLAIN,
            backups: PortSet::default(),
        };
        let all = groups[&MGID_TREE_ALL].iter().copied();
        assert_eq!(
            groups[&MGID_INTERRUPT],
            Copies::new(all.chain([round])),
            "{}",
            switch.id
        );
    }
    assert_eq!(state.roots.len(), 1);
    for other in [Switching::Packet, PLAIN, FLUSH] {
        let has = |state: &SwitchState| state.multicast.contains_key(&MGID_INTERRUPT);
        assert!(!planned(other).switches.values().any(|state| has(state)));
    }
}

/// TREE worms of every host go up to the root of its part by one way, and branch on the way down alone.
fn check_by_root(up: &Topology, known: &Topology, state: &FabricState) -> usize {
    let mut checked = 0;
    for (&from, plan) in &state.agents {
        let climb = plan.root_route.as_deref().expect("a way to the root");
        let whole = if up.host(from).is_ok() { up } else { known };
        for route in &plan.tree_routes.0 {
            let to = route.to;
            assert!(route.ports.starts_with(climb), "{from} to {to}");
            let way = follow(whole, from, to, &route.ports).expect("it leads there");
            checked += 1;
            if up.host(from).is_err() {
                continue; // its switch is away
            }
            let (_, down) = way.switches.split_at(climb.len());
            assert!(state.roots.contains(&down[0]), "{from} to {to}");
            // The way down is the way of the other host up, the other way round.
            let back = &state.agents[&to].tree_routes.0;
            let back = back.iter().find(|back| back.to == from);
            let back = follow(up, to, from, &back.expect("a way back").ports);
            let mut back = back.expect("it leads back").switches;
            back.truncate(down.len());
            back.reverse();
            assert_eq!(back, down, "{from} to {to}");
        }
        let mut served: Vec<HostId> = plan.tree_routes.0.iter().map(|route| route.to).collect();
        served.sort_unstable();
        assert_eq!(served, others_with(whole, from), "{from}");
        assert!(plan.groups.iter().all(|group| group.trees.is_none()));
    }
    checked
}

/// The other hosts of a part.
fn others_with(topology: &Topology, host: HostId) -> Vec<HostId> {
    let parts = topology.split();
    let part = parts.iter().find(|part| part.host(host).is_ok());
    let hosts = part.expect("its own").hosts().iter().map(|host| host.id);
    let mut others: Vec<HostId> = hosts.filter(|other| *other != host).collect();
    others.sort_unstable();
    others
}

/// Groups with trees of their own too, and whatever fails and comes back.
#[test]
fn interrupted_multicasts_go_by_the_root() {
    let (mut routes, mut moved) = (0, 0);
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let known = random_topology(&mut random);
        let groups = random_groups(&mut random, &known, 6);
        let hosts = all_live(&known);
        let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
        let plan = |planner: &mut Planner, up: &Topology| {
            let state = planner.plan(up, &known, &groups, &hosts, &ClassDNumbers::default());
            planner.settle();
            state
        };
        let before = plan(&mut planner, &known);
        planner.set_switching(INTERRUPT, true);
        let mut up = known.clone();
        let mut roots: Vec<SwitchId> = Vec::new();
        for step in 0..4 {
            let state = plan(&mut planner, &up);
            routes += check_by_root(&up, &known, &state);
            moved += usize::from(step > 0 && state.roots != roots);
            roots = state.roots;
            up = match step {
                0 | 1 => damage(&mut random, &up),
                _ => known.clone(),
            };
        }
        planner.set_switching(Switching::Packet, false);
        let after = plan(&mut planner, &known);
        let has_trees = |state: &FabricState| {
            let groups = state.agents.values().flat_map(|plan| &plan.groups);
            groups.filter(|group| group.trees.is_some()).count()
        };
        assert_eq!(has_trees(&after), has_trees(&before), "seed {seed}");
    }
    assert!(
        routes > 10_000 && moved > 10,
        "{routes} routes, {moved} other roots"
    );
}

/// A frame that waits where there is no group for STOP would be lost.
#[test]
fn the_groups_are_there_whenever_the_mode_is() {
    for (before, after) in [
        (Switching::Packet, PLAIN),
        (PLAIN, Switching::Packet),
        (PLAIN, FLUSH),
        (FLUSH, Switching::Packet),
        (Switching::Packet, INTERRUPT),
        (INTERRUPT, PLAIN),
        (INTERRUPT, Switching::Packet),
    ] {
        let (before, after) = (planned(before), planned(after));
        let (mut actual, desired) = ((**first(&before)).clone(), first(&after));
        let updates = difference(desired, &actual, None);
        let mut stages: Vec<Stage> = updates.iter().map(|update| update.stage).collect();
        assert!(stages.is_sorted());
        stages.dedup();
        for update in &updates {
            // What one Write brings may come in any order: groups and defaults never share one.
            let is_default = matches!(update.entity, Entity::Default(_));
            assert!(
                is_default || matches!(update.entity, Entity::Group(_)),
                "{update:?}"
            );
            assert_eq!(is_default, update.operation == Operation::Modify);
            execute(update, &mut actual);
            let is_wormhole = actual.defaults[TABLE].name == "ingress.wormhole_mode";
            let holds = actual.multicast.keys().filter(|mgid| is_hold(**mgid));
            let ports = usize::from(network().switches()[0].ports);
            assert!(!is_wormhole || holds.count() == ports, "after {update:?}");
            let parameters = &actual.defaults[TABLE].parameters;
            let interrupts = parameters
                .iter()
                .any(|(name, value)| name == "scheme" && *value >= 3);
            let has = actual.multicast.contains_key(&MGID_INTERRUPT);
            assert!(!interrupts || has, "after {update:?}");
        }
        assert_eq!(actual, **desired);
        assert!(!updates.is_empty());
        if desired.defaults[TABLE].name == "ingress.packet_mode" {
            let late = |update: &&wormcast_planner::Update| update.stage == Stage::Retire;
            assert_eq!(updates.iter().filter(late).count(), updates.len() - 1);
        }
    }
}

#[test]
fn another_mode_touches_switches_and_no_agent() {
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let before = plan(&mut planner);
    planner.set_switching(FLUSH, false);
    let after = plan(&mut planner);
    assert_eq!(after.agents, before.agents);
    assert_eq!(after.switches, planned(FLUSH).switches);
    let touched = after.touched.expect("it is known");
    for (switch, places) in &touched {
        let (wanted, there) = (&after.switches[switch], &before.switches[switch]);
        let within = difference(wanted, there, Some(places));
        assert_eq!(within, difference(wanted, there, None));
        assert!(places.contains(&Place::Default(TABLE.into())));
    }
    assert_eq!(touched.len(), after.switches.len());
    // Set again, it changes nothing.
    planner.set_switching(FLUSH, false);
    let again = plan(&mut planner).touched.expect("it is known");
    assert!(again.values().all(Vec::is_empty));
}

/// Trains are set at agents alone, and are in their messages.
#[test]
fn trains_touch_agents_and_no_switch() {
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    planner.set_switching(PLAIN, false);
    let before = plan(&mut planner);
    planner.set_switching(PLAIN, true);
    let after = plan(&mut planner);
    assert_eq!(after.switches, before.switches);
    for (host, plan) in &after.agents {
        let old = &before.agents[host];
        assert_eq!((old.train_frames, plan.train_frames), (1, TRAIN_FRAMES));
        assert_ne!(plan, old);
        assert!(plan.root_route.is_some());
        assert_eq!(whole(plan, 1).train_frames, u32::from(TRAIN_FRAMES));
        assert_eq!(whole(old, 1).train_frames, 0);
        let to_trains = change(plan, old).expect("the change can be encoded");
        let back = change(old, plan).expect("the change can be encoded");
        let only = |train_frames| proto::PlanChange {
            base: 1,
            epoch: 2,
            root_route: plan.root_route.as_deref().map(<[u8]>::to_vec),
            train_frames,
            ..proto::PlanChange::default()
        };
        assert_eq!(to_trains, only(TRAIN_FRAMES.into()), "and routes stay");
        assert_eq!(back, only(0), "no frames of trains: none");
    }
    planner.set_switching(PLAIN, false);
    assert_eq!(self::plan(&mut planner).agents, before.agents);
}

/// Where UNICAST alone holds channels: switches wait plainly and have nobody to tell STOP, and agents send no other trains.
#[test]
fn unicast_alone_may_be_trains() {
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let packet = plan(&mut planner);
    planner.set_switching(UNICAST, false);
    let before = plan(&mut planner);
    assert_eq!(before.agents, packet.agents);
    for (id, state) in &before.switches {
        let scheme = state.defaults[TABLE].parameters.iter();
        let scheme = scheme.filter(|(name, _)| name == "scheme");
        assert_eq!(scheme.map(|(_, value)| *value).collect::<Vec<_>>(), [1]);
        assert_eq!(state.multicast, packet.switches[id].multicast);
    }
    planner.set_switching(UNICAST, true);
    let after = plan(&mut planner);
    assert_eq!(after.switches, before.switches);
    let frames = u32::from(TRAIN_FRAMES);
    for (host, plan) in &after.agents {
        let old = &before.agents[host];
        assert_eq!((plan.train_frames, old.train_frames), (1, 1));
        assert_eq!(
            (old.unicast_train_frames, plan.unicast_train_frames),
            (1, TRAIN_FRAMES)
        );
        assert_ne!(plan, old);
        let with_trains = proto::Plan {
            unicast_train_frames: frames,
            ..whole(old, 1)
        };
        assert_eq!(whole(plan, 1), with_trains, "and none of any kind");
        let unicast = |to, from| {
            change(to, from)
                .expect("the change can be encoded")
                .unicast_train_frames
        };
        assert_eq!(unicast(plan, old), frames);
        assert_eq!(unicast(old, plan), 0, "none: no trains");
    }
    let digests = [&before, &after].map(|state| digest_agents(&state.agents));
    assert_ne!(digests[0], digests[1]);
    // Trains of all kinds are other plans again.
    planner.set_switching(PLAIN, true);
    let all = plan(&mut planner);
    assert_ne!(digest_agents(&all.agents), digests[1]);
    let plan = all.agents.values().next().expect("an agent");
    assert_eq!(
        (plan.train_frames, plan.unicast_train_frames),
        (TRAIN_FRAMES, TRAIN_FRAMES)
    );
    let sent = whole(plan, 1);
    assert_eq!((sent.train_frames, sent.unicast_train_frames), (frames, 0));
}

/// How long TREE routes may be is set at agents alone, and is in their messages.
#[test]
fn the_limit_of_tree_routes_touches_agents_and_no_switch() {
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let before = plan(&mut planner);
    planner.set_tree_route_max(Some(127));
    let after = plan(&mut planner);
    assert_eq!(after.switches, before.switches);
    for (host, plan) in &after.agents {
        let old = &before.agents[host];
        assert_eq!((old.tree_route_max, plan.tree_route_max), (255, 127));
        assert_ne!(plan, old);
        let most = [plan, old].map(|plan| whole(plan, 1).tree_route_max);
        assert_eq!(most, [127, 0], "none: as many as any route may have");
        let most = |to, from| {
            change(to, from)
                .expect("the change can be encoded")
                .tree_route_max
        };
        assert_eq!((most(plan, old), most(old, plan)), (127, 0));
    }
    let digests = [&before, &after].map(|state| digest_agents(&state.agents));
    assert_ne!(digests[0], digests[1]);
    planner.set_tree_route_max(None);
    assert_eq!(self::plan(&mut planner).agents, before.agents);
}

#[test]
fn names_are_those_of_rest() {
    for (mode, scheme, expected) in [
        ("packet", None, Some(Switching::Packet)),
        ("wormhole", Some("plain"), Some(PLAIN)),
        ("wormhole", Some("flush"), Some(FLUSH)),
        ("packet", Some("plain"), None),
        ("wormhole", None, None),
        ("wormhole", Some("interrupt"), Some(INTERRUPT)),
        ("wormhole", Some("unicast"), Some(UNICAST)),
        ("wormhole", Some("tree"), None),
    ] {
        assert_eq!(Switching::named(mode, scheme), expected);
    }
}

#[test]
fn the_port_of_frames_that_go_round_is_none_of_a_link() {
    assert_eq!(PortId::new(PortId::RECIRCULATE.get()), None);
}

/// What is in force where switches pass worms on in this way, judged by that.
fn judged(
    network: &Topology,
    algorithm: Algorithm,
    switching: Switching,
    groups: &[Arc<Group>],
) -> Verdict {
    let mut planner = Planner::new(Setting::plain(algorithm));
    planner.set_switching(switching, false);
    let hosts = all_live(network);
    let state = planner.plan(network, network, groups, &hosts, &ClassDNumbers::default());
    let way = (state.switching, &*state.roots);
    let graph = dependencies(network, &state.switches, &[&state.agents], way).expect("ways");
    graph.check()
}

#[test]
fn what_is_in_force_is_judged_by_the_mode() {
    let network = wormcast_routing::generate::from_spec("testbed").unwrap();
    let members = host_ids(&network);
    let table = Scheme::Switch(SwitchParameters::new(
        SwitchMode::Table,
        wormcast_routing::group::Guard::A,
    ));
    let own = |guard| Scheme::Switch(SwitchParameters::new(SwitchMode::Tree, guard));
    use wormcast_routing::group::Guard::{B, C};
    let all = |scheme| vec![Arc::new(group(1, scheme, &members))];
    let pair = vec![Arc::new(group(1, SWITCH, &[HostId(0), HostId(5)]))];
    for algorithm in [Algorithm::Osud, Algorithm::TreeOnly] {
        let free = |switching, groups: &[Arc<Group>]| {
            judged(&network, algorithm, switching, groups).is_deadlock_free()
        };
        for switching in [Switching::Packet, UNICAST, INTERRUPT] {
            for scheme in [SWITCH, own(B), own(C), table, CIRCUIT] {
                assert!(free(switching, &all(scheme)), "{switching:?} {scheme:?}");
            }
        }
        for switching in [PLAIN, FLUSH] {
            assert!(free(switching, &[]) && free(switching, &pair));
            // Members are common to the multicasts of all of them.
            for scheme in [SWITCH, own(B), own(C)] {
                assert!(!free(switching, &all(scheme)), "{switching:?} {scheme:?}");
            }
            // Hosts copy, or the worms hold no channel.
            for scheme in [CIRCUIT, table] {
                assert!(free(switching, &all(scheme)), "{switching:?} {scheme:?}");
            }
        }
    }
}

/// Where multicasts take turns at the root nobody waits in a circle, nor in packet mode, whatever the groups are.
#[test]
fn turns_at_the_root_are_free_of_deadlock() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let network = random_topology(&mut random);
        let groups = random_groups(&mut random, &network, 4);
        for switching in [Switching::Packet, INTERRUPT] {
            let verdict = judged(&network, Algorithm::Osud, switching, &groups);
            assert!(verdict.is_deadlock_free(), "seed {seed}: {verdict:?}");
        }
        judged(&network, Algorithm::Osud, PLAIN, &groups);
    }
}
