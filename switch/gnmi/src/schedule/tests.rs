//! What is sent when.

use super::*;
use crate::path::Selection;
use crate::reading::State;
use crate::reading::tests::reading;
use crate::schema::{Kind, Leaf};

const SECOND: Duration = Duration::from_secs(1);

fn wanted(interface: Option<&str>, leaves: LeafSet) -> Wanted {
    let mut wanted = Wanted::default();
    let selection = Selection {
        interface: interface.map(str::to_owned),
        leaves,
        depth: None,
    };
    wanted.add(&selection, LeafSet::all());
    wanted
}

fn oper_status() -> LeafSet {
    LeafSet::of(|leaf| leaf == Leaf::OperStatus)
}

fn on_change(wanted: Wanted, heartbeat: Option<Duration>, first: &Reading) -> Schedule {
    let timing = Timing {
        trigger: Trigger::Change,
        heartbeat,
    };
    Schedule::new(timing, wanted, Arc::new(first.clone()))
}

fn sampled(suppress_redundant: bool, heartbeat: Option<Duration>, first: &Reading) -> Schedule {
    let timing = Timing {
        trigger: Trigger::Sample {
            interval: SECOND,
            suppress_redundant,
        },
        heartbeat,
    };
    let wanted = wanted(None, LeafSet::of_kind(Kind::Counter));
    Schedule::new(timing, wanted, Arc::new(first.clone()))
}

/// Leaves sent, by interface; none: it is gone.
fn told(schedule: &mut Schedule, at: Duration, reading: &Reading) -> Vec<(String, Option<usize>)> {
    let news = schedule.look(at, &Arc::new(reading.clone()));
    let told = news.into_iter().map(|news| match news.what {
        What::Leaves(leaves) => (news.interface, Some(leaves.len())),
        What::Gone => (news.interface, None),
    });
    told.collect()
}

fn one(name: &str, leaves: usize) -> Vec<(String, Option<usize>)> {
    vec![(name.to_owned(), Some(leaves))]
}

#[test]
fn a_port_that_goes_down_is_told_once_with_its_time() {
    let mut now = reading(&[1, 2]);
    let mut schedule = on_change(wanted(None, oper_status()), None, &now);
    assert_eq!(schedule.due(), None);
    assert_eq!(told(&mut schedule, SECOND, &now), []);
    let port = now.interfaces.get_mut("eth2").unwrap();
    port.state = State::Down;
    port.changed_unix_us = 1_000;
    port.incoming.packets += 1;
    now.unix_us = 1_500;
    let news = schedule.look(SECOND, &Arc::new(now.clone()));
    let down = Some(Value::Text("DOWN".to_owned()));
    assert_eq!(
        news,
        [News {
            interface: "eth2".to_owned(),
            unix_us: 1_000,
            what: What::Leaves(vec![(Leaf::OperStatus, down)]),
        }]
    );
    assert_eq!(told(&mut schedule, SECOND, &now), []);
}

#[test]
fn ports_come_and_go() {
    let state = LeafSet::of_kind(Kind::Event);
    let mut schedule = on_change(wanted(Some("eth2"), state), None, &reading(&[1]));
    assert_eq!(told(&mut schedule, SECOND, &reading(&[1, 3])), []);
    let there = told(&mut schedule, SECOND, &reading(&[1, 2]));
    assert_eq!(there, one("eth2", state.iter().count()));
    let gone = told(&mut schedule, SECOND, &reading(&[1]));
    assert_eq!(gone, [("eth2".to_owned(), None)]);
}

#[test]
fn a_leaf_without_a_value_is_told_once() {
    let mut now = reading(&[1]);
    let mut schedule = on_change(wanted(None, LeafSet::all()), Some(SECOND), &now);
    now.interfaces.get_mut("eth1").unwrap().mtu = None;
    let news = schedule.look(Duration::ZERO, &Arc::new(now.clone()));
    assert_eq!(news[0].what, What::Leaves(vec![(Leaf::Mtu, None)]));
    // All but this leaf at the heartbeat.
    let leaves = LeafSet::all().iter().count() - 1;
    assert_eq!(told(&mut schedule, SECOND, &now), one("eth1", leaves));
}

#[test]
fn heartbeats_repeat_what_has_not_changed() {
    let now = reading(&[1]);
    let mut schedule = on_change(wanted(None, oper_status()), Some(10 * SECOND), &now);
    assert_eq!(schedule.due(), Some(10 * SECOND));
    assert_eq!(told(&mut schedule, 9 * SECOND, &now), []);
    assert_eq!(told(&mut schedule, 10 * SECOND, &now), one("eth1", 1));
    assert_eq!(schedule.due(), Some(20 * SECOND));
    // A reader that was slow gets one, not all that were due.
    assert_eq!(told(&mut schedule, 45 * SECOND, &now), one("eth1", 1));
    assert_eq!(schedule.due(), Some(50 * SECOND));
}

#[test]
fn samples_come_in_steps_of_their_interval() {
    let now = reading(&[1]);
    let mut schedule = sampled(false, None, &now);
    assert_eq!(schedule.due(), Some(SECOND));
    assert_eq!(told(&mut schedule, SECOND / 2, &now), []);
    let at = SECOND + SECOND / 10;
    assert_eq!(told(&mut schedule, at, &now), one("eth1", 8));
    assert_eq!(schedule.due(), Some(2 * SECOND));
    assert_eq!(told(&mut schedule, 5 * SECOND, &now), one("eth1", 8));
    assert_eq!(schedule.due(), Some(6 * SECOND));
}

#[test]
fn suppressed_samples_have_what_is_new() {
    let mut now = reading(&[1]);
    let mut schedule = sampled(true, Some(3 * SECOND), &now);
    assert_eq!(told(&mut schedule, SECOND, &now), []);
    now.interfaces.get_mut("eth1").unwrap().incoming.packets += 1;
    // Between samples nothing is sent or forgotten.
    assert_eq!(told(&mut schedule, SECOND + SECOND / 2, &now), []);
    assert_eq!(told(&mut schedule, 2 * SECOND, &now), one("eth1", 1));
    assert_eq!(
        told(&mut schedule, 3 * SECOND, &now),
        one("eth1", 8),
        "the heartbeat"
    );
    assert_eq!(schedule.due(), Some(4 * SECOND));
}

#[test]
fn overlapping_paths_are_told_once() {
    let now = reading(&[1, 2]);
    let mut wanted = wanted(Some("eth1"), oper_status());
    for leaves in [oper_status(), LeafSet::of(|leaf| leaf == Leaf::Mtu)] {
        let selection = Selection {
            interface: None,
            leaves,
            depth: None,
        };
        wanted.add(&selection, oper_status());
    }
    let news = all(&wanted, &now);
    let counts: Vec<usize> = news
        .iter()
        .map(|news| match &news.what {
            What::Leaves(leaves) => leaves.len(),
            What::Gone => 0,
        })
        .collect();
    assert_eq!(counts, [1, 1]);
}
