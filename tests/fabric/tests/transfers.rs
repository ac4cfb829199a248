//! What the controller is told of files that a host sends. Where nobody receives, agents take the messages (sink groups), so
//! how many they took says who has a file.

use bytes::Bytes;
use std::collections::BTreeSet;
use wormcast_agent_core::agent::Agent;
use wormcast_agent_core::api::{GroupSelector, MemberOutcome, NumberedRequest, Request};
use wormcast_agent_core::clients::ConnectionId;
use wormcast_agent_core::figures::Figures;
use wormcast_agent_core::transfers::{TransferEnd, TransferReport};
use wormcast_agent_core::transit::TransitLimits;
use wormcast_fabric_tests::controller::{self, Controller, schemes};
use wormcast_fabric_tests::link::Damage;
use wormcast_fabric_tests::scenario::{GROUP, Scenario, engine_config, link};
use wormcast_planner::{Group, GroupScheme, NOT_LIVE};
use wormcast_protocol::Instant;
use wormcast_routing::generate;
use wormcast_routing::routes::Algorithm;
use wormcast_wire::HostId;

const SECOND_US: u64 = 1_000_000;
const SENDER: ConnectionId = ConnectionId(900);
/// The first handle of a connection.
const HANDLE: u32 = 1;
const OTHERS: [u16; 7] = [1, 2, 3, 4, 5, 6, 7];
const AWAY: u16 = 4;
const LARGE: usize = 900_000;

fn fabric(group: Group, damage: Damage, seed: u64) -> Scenario {
    let topology = generate::from_spec("testbed").expect("a known shape");
    let controller = Controller::new(vec![group], Algorithm::Osud);
    let config = engine_config(seed);
    let mut scenario = Scenario::with(topology, controller, link(damage), config, seed);
    scenario.programs_read = false;
    for host in scenario.fabric.hosts.values_mut() {
        host.program.groups.clear();
    }
    // Agents start anew, so that the receivers of before are closed.
    (scenario.fabric).set_memory(TransitLimits::default(), 256 << 10);
    scenario
}

fn sink(scheme: impl Into<GroupScheme>) -> Group {
    Group {
        sink: true,
        ..controller::group(GROUP, scheme, 0..8)
    }
}

fn file(name: &str, size: usize) -> Vec<u8> {
    let header = format!(r#"{{"name": "{name}", "size": {size}}}"#);
    let mut file = b"WCFILE1\n".to_vec();
    file.extend_from_slice(&(header.len() as u32).to_be_bytes());
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + size + 32, 7);
    file
}

/// At the agent of the origin.
fn act(scenario: &mut Scenario, does: impl FnOnce(&mut Agent, Instant)) {
    let now = Instant::from_micros(scenario.fabric.now_us());
    does(
        scenario.fabric.host(0).agent.as_mut().expect("it runs"),
        now,
    );
    scenario.fabric.run_host(0);
}

fn ask(scenario: &mut Scenario, request: Request) {
    let request = NumberedRequest { id: 1, request };
    act(scenario, |agent, now| agent.request(SENDER, request, now));
}

fn open(scenario: &mut Scenario) {
    act(scenario, |agent, _| {
        agent.connect(SENDER, "a test".to_owned())
    });
    let group = GroupSelector::from(GROUP);
    ask(
        scenario,
        Request::OpenSender {
            group,
            progress_ms: 0,
            rate_bits: None,
        },
    );
}

fn write(scenario: &mut Scenario, bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    act(scenario, |agent, now| {
        agent.data(SENDER, HANDLE, bytes, now)
    });
}

fn send(scenario: &mut Scenario, bytes: &[u8]) {
    write(scenario, bytes);
    ask(scenario, Request::EndMessage { handle: HANDLE });
}

/// What was told of the transfers that have ended, once there are so many.
fn ended(scenario: &mut Scenario, count: usize) -> Vec<TransferReport> {
    let until_us = scenario.fabric.now_us() + 300 * SECOND_US;
    let told = |fabric: &wormcast_fabric_tests::fabric::Fabric| fabric.hosts[&0].transfers.len();
    let done = scenario
        .fabric
        .run_until(until_us, |fabric| told(fabric) >= count);
    assert!(done, "{}", scenario.report());
    scenario.fabric.host(0).transfers.clone()
}

fn counter(scenario: &mut Scenario, host: u16, name: &str) -> u64 {
    let mut figures = Figures::default();
    let agent = scenario.fabric.host(host).agent.as_ref().expect("it runs");
    agent.fill(&mut figures, false, Instant::ZERO);
    let found = figures.figures.iter().find(|one| one.name == name);
    found.expect("agents count it").value
}

fn missed(outcomes: &[MemberOutcome]) -> Vec<(u16, &str, bool)> {
    let missed = outcomes.iter().filter(|one| !one.delivered);
    let reason = |one: &'_ MemberOutcome| one.reason.clone().expect("a reason");
    missed
        .map(|one| (one.host, &*reason(one).leak(), one.left_out))
        .collect()
}

fn hosts(outcomes: &[MemberOutcome]) -> Vec<u16> {
    outcomes.iter().map(|one| one.host).collect()
}

#[test]
fn a_file_is_told_once_with_who_has_it_and_other_messages_are_not() {
    for (seed, damage) in [(1, Damage::default()), (2, Damage::rough())] {
        for scheme in schemes() {
            for ordered in [false, true] {
                let mut group = sink(scheme);
                group.ordered = ordered;
                let mut scenario = fabric(group, damage, seed);
                open(&mut scenario);
                send(&mut scenario, &[1; 64]);
                send(&mut scenario, &file("dir/a.bin", 200_000));
                send(&mut scenario, b"WCFILE1\n");
                let told = ended(&mut scenario, 1);
                scenario.run_for(SECOND_US);
                assert_eq!(scenario.fabric.host(0).transfers, told, "{scheme:?}");
                let [report] = &told[..] else {
                    panic!("{told:?}")
                };
                assert_eq!((report.number, report.origin.0), (1, 0));
                assert_eq!((report.group.0, &*report.name), (GROUP, "a.bin"));
                assert_eq!(report.bytes, Some(200_000));
                assert!(report.lasted_us > 10_000, "{}", report.lasted_us);
                let sent_again = report.retransmissions.expect("the stream is there");
                assert!(sent_again > 0 || seed == 1, "{scheme:?}");
                let outcomes = report.end.outcomes();
                assert!(matches!(report.end, TransferEnd::Stable(_)));
                assert_eq!(hosts(outcomes), OTHERS);
                assert!(!report.end.is_failure());
                for one in outcomes {
                    assert!(one.delivered, "{scheme:?} {outcomes:?}");
                    let taken = counter(&mut scenario, one.host, "applications.sunk_messages");
                    // In an ordered group agents take what says the order, too.
                    assert!(taken == 3 || ordered && taken > 3, "{taken}");
                }
            }
        }
    }
}

#[test]
fn who_is_away_and_who_dies_has_not_got_it() {
    for scheme in schemes() {
        let mut scenario = fabric(sink(scheme), Damage::default(), 3);
        scenario.fabric.stop_agent(AWAY);
        scenario.controller.damage.hosts.insert(HostId(AWAY));
        scenario.replan();
        open(&mut scenario);
        write(&mut scenario, &file("a", LARGE)[..LARGE / 2]);
        scenario.run_for(20_000);
        scenario.fabric.stop_agent(6);
        write(&mut scenario, &file("a", LARGE)[LARGE / 2..]);
        ask(&mut scenario, Request::EndMessage { handle: HANDLE });
        scenario.run_for(2 * SECOND_US);
        scenario.fabric.run_host(0);
        let list = |agent: &mut Agent| agent.list_transfers();
        let under_way = list(scenario.fabric.host(0).agent.as_mut().unwrap());
        assert_eq!(
            (under_way.begun, under_way.count),
            (1, 1),
            "silence is no failure"
        );
        assert_eq!(under_way.named[0].end, TransferEnd::UnderWay);
        assert_eq!(under_way.named[0].bytes, Some(LARGE as u64));
        assert!(under_way.named[0].lasted_us >= 2 * SECOND_US);
        assert!(scenario.fabric.host(0).transfers.is_empty());
        scenario.controller.damage.hosts.insert(HostId(6));
        scenario.replan();
        let told = ended(&mut scenario, 1);
        let outcomes = told[0].end.outcomes();
        assert_eq!(hosts(outcomes), OTHERS);
        let missed = missed(outcomes);
        assert_eq!(
            missed.iter().map(|one| (one.0, one.2)).collect::<Vec<_>>(),
            [(AWAY, true), (6, false)],
            "{scheme:?} {missed:?}"
        );
        assert_eq!(missed[0].1, NOT_LIVE);
        assert!(!told[0].end.is_failure());
        let under_way = list(scenario.fabric.host(0).agent.as_mut().unwrap());
        assert_eq!((under_way.begun, under_way.count), (1, 0));
    }
}

/// Nobody receives, and agents do not take it either.
#[test]
fn where_no_member_takes_it_all_have_failed() {
    let group = controller::group(GROUP, schemes()[0], 0..8);
    let mut scenario = fabric(group, Damage::default(), 4);
    open(&mut scenario);
    send(&mut scenario, &file("a", 50_000));
    let told = ended(&mut scenario, 1);
    assert!(told[0].end.is_failure());
    assert!(told[0].lasted_us >= 10 * SECOND_US, "as agents wait");
    let missed = missed(told[0].end.outcomes());
    assert_eq!(missed.len(), 7);
    assert!(
        missed.iter().all(|one| one.1 == "application gave up"),
        "{missed:?}"
    );
}

#[test]
fn a_file_that_breaks_off_is_cancelled_and_one_that_is_written_goes_on() {
    for gives_up in [true, false] {
        let mut scenario = fabric(sink(schemes()[0]), Damage::default(), 5);
        open(&mut scenario);
        send(&mut scenario, &file("whole", LARGE / 3));
        write(&mut scenario, &file("half", LARGE)[..LARGE / 3]);
        scenario.run_for(300_000);
        if gives_up {
            ask(&mut scenario, Request::CancelMessage { handle: HANDLE });
        } else {
            act(&mut scenario, |agent, now| agent.disconnect(SENDER, now));
        }
        let told = ended(&mut scenario, 2);
        assert_eq!(told[0].name, "whole");
        assert!(told[0].end.outcomes().iter().all(|one| one.delivered));
        let TransferEnd::Cancelled { reason, outcomes } = &told[1].end else {
            panic!("{told:?}");
        };
        let expected = ["its program ended before its end", "its program gave it up"];
        assert_eq!(reason, expected[usize::from(gives_up)]);
        assert_eq!((told[1].number, &*told[1].name), (2, "half"));
        assert_eq!(told[1].bytes, Some(LARGE as u64));
        assert_eq!(hosts(outcomes), OTHERS);
        assert!(missed(outcomes).iter().all(|one| one.1 == "cancelled"));
        assert!(!told[1].end.is_failure());
        for host in OTHERS {
            let taken = counter(&mut scenario, host, "applications.sunk_messages");
            assert_eq!(taken, 1);
        }
    }
    // Its program leaves as soon as it has written all, and nobody waits.
    let mut scenario = fabric(sink(schemes()[0]), Damage::default(), 6);
    open(&mut scenario);
    scenario.fabric.stop_agent(AWAY);
    send(&mut scenario, &file("left", LARGE / 3));
    scenario.run_for(SECOND_US);
    act(&mut scenario, |agent, now| agent.disconnect(SENDER, now));
    scenario.controller.damage.hosts.insert(HostId(AWAY));
    scenario.replan();
    let told = ended(&mut scenario, 1);
    let missed = missed(told[0].end.outcomes());
    assert_eq!(missed, [(AWAY, NOT_LIVE, false)]);
}

#[test]
fn what_became_of_it_nobody_knows_once_its_group_is_gone() {
    let mut scenario = fabric(sink(schemes()[0]), Damage::default(), 7);
    open(&mut scenario);
    scenario.fabric.stop_agent(AWAY);
    send(&mut scenario, &file("a", LARGE));
    scenario.run_for(SECOND_US);
    scenario.set_members(&OTHERS);
    scenario.replan();
    let told = ended(&mut scenario, 1);
    let TransferEnd::StreamEnded { reason, members } = &told[0].end else {
        panic!("{told:?}");
    };
    assert!(
        reason.contains("was removed, or this host left it"),
        "{reason}"
    );
    assert_eq!(*members, OTHERS.map(HostId));
    assert!(told[0].end.outcomes().is_empty());
}

#[test]
fn of_a_burst_so_many_are_told_and_the_others_counted() {
    const COUNT: u64 = 1_000;
    let mut scenario = fabric(sink(schemes()[0]), Damage::default(), 8);
    open(&mut scenario);
    let began_us = scenario.fabric.now_us();
    let small = file("small", 100);
    for _ in 0..COUNT {
        send(&mut scenario, &small);
        scenario.run_for(2_000);
    }
    scenario.run_for(SECOND_US);
    let seconds = (scenario.fabric.now_us() - began_us) / SECOND_US;
    let told = scenario.fabric.host(0).transfers.clone();
    let left_out = counter(&mut scenario, 0, "transfers.left_out");
    assert_eq!(counter(&mut scenario, 0, "transfers.begun"), COUNT);
    assert_eq!(told.len() as u64 + left_out, COUNT);
    let most = 64 + 8 * (seconds + 1);
    assert!(
        (64..=most).contains(&(told.len() as u64)),
        "{} of {most}",
        told.len()
    );
    let numbers: BTreeSet<u64> = told.iter().map(|one| one.number).collect();
    assert_eq!(numbers.len(), told.len());
    // One that was named while it was under way is told in any case.
    scenario.fabric.stop_agent(AWAY);
    for _ in 0..40 {
        send(&mut scenario, &small);
    }
    scenario.run_for(SECOND_US);
    let agent = scenario.fabric.host(0).agent.as_mut().expect("it runs");
    let under_way = agent.list_transfers();
    assert_eq!((under_way.begun, under_way.count), (COUNT + 40, 40));
    let named: Vec<u64> = under_way.named.iter().map(|one| one.number).collect();
    assert_eq!(named, (COUNT + 1..=COUNT + 16).collect::<Vec<u64>>());
    scenario.controller.damage.hosts.insert(HostId(AWAY));
    scenario.replan();
    scenario.run_for(10 * SECOND_US);
    let told: BTreeSet<u64> = (scenario
        .fabric
        .host(0)
        .transfers
        .iter()
        .map(|one| one.number))
    .collect();
    assert!(named.iter().all(|number| told.contains(number)));
    let left_out = counter(&mut scenario, 0, "transfers.left_out");
    assert_eq!(told.len() as u64 + left_out, COUNT + 40);
}
