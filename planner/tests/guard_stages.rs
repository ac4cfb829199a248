//! The guard of one switch from stage to stage: it admits what it did and what it is to, until all agents
//! follow the new plan.

use crate::lab;

use std::sync::Arc;

use lab::model::write;
use wormcast_planner::{
    Action, Entity, KeyFields, MatchValue, Operation, PortRate, Stage, SwitchState, Update,
    difference,
};
use wormcast_wire::PortId;

fn entry(table: &'static str, fields: &[(&'static str, u128)]) -> Arc<KeyFields> {
    let matches = fields
        .iter()
        .map(|(field, value)| ((*field).into(), MatchValue::Exact(*value)));
    Arc::new(KeyFields {
        table: table.into(),
        matches: matches.collect(),
        priority: 0,
    })
}

fn does(name: &'static str, parameters: &[(&'static str, u128)]) -> Arc<Action> {
    let parameters = parameters
        .iter()
        .map(|(name, value)| ((*name).into(), *value));
    Arc::new(Action {
        name: name.into(),
        parameters: parameters.collect(),
    })
}

fn admits(host: u128, kinds: u128, route_max: u128, transit: u128) -> Arc<Action> {
    let all = [
        ("host", host),
        ("kinds", kinds),
        ("route_max", route_max),
        ("transit", transit),
        ("tree_max", 2 * route_max + 1),
    ];
    does("ingress.admit_host", &all)
}

/// What an entry is from stage to stage, on the way from one state to another of a guard that is on or off.
fn stages(
    key: &Arc<KeyFields>,
    (before, was_on): (Option<Arc<Action>>, bool),
    (after, is_on): (Option<Arc<Action>>, bool),
) -> Vec<Option<Arc<Action>>> {
    let state = |action: Option<Arc<Action>>, on: bool| {
        let mut state = SwitchState::default();
        state
            .entries
            .extend(action.map(|action| (key.clone(), action)));
        if on {
            state
                .defaults
                .insert("ingress.guard".into(), does("ingress.refuse_port", &[]));
        }
        state
    };
    let (mut actual, desired) = (state(before, was_on), state(after, is_on));
    let mut found = Vec::new();
    for stage in Stage::ALL {
        let updates = difference(&desired, &actual, None);
        for update in updates.iter().filter(|update| update.stage == stage) {
            write(&mut actual, update);
        }
        found.push(actual.entries.get(key).cloned());
    }
    assert_eq!(actual, desired);
    found.dedup();
    found
}

#[test]
fn a_port_lets_in_what_it_did_and_what_it_is_to_until_the_last_stage() {
    let port = entry("ingress.guard", &[("standard_metadata.ingress_port", 3)]);
    let trusts = does("ingress.trust_port", &[]);
    let link = |back| {
        does(
            "ingress.link_port",
            &[("high", back & 0b1000), ("low", back)],
        )
    };
    let (up, down, neither) = (link(0b1011), link(0b1101), link(0b1001));
    let (old, new) = (admits(7, 0b0011, 16, 0), admits(7, 0b1001, 8, 1));
    let both = admits(7, 0b1011, 16, 1);
    let other = admits(8, 0b0001, 8, 0);
    for (what, before, after, between) in [
        (
            "other needs",
            (Some(&old), true),
            (Some(&new), true),
            Some(&both),
        ),
        (
            "more needs",
            (Some(&old), true),
            (Some(&both), true),
            Some(&both),
        ),
        (
            "less needs",
            (Some(&both), true),
            (Some(&old), true),
            Some(&both),
        ),
        (
            "another host",
            (Some(&old), true),
            (Some(&other), true),
            Some(&other),
        ),
        ("a host comes", (None, true), (Some(&new), true), Some(&new)),
        ("a host goes", (Some(&new), true), (None, true), Some(&new)),
        (
            "a link where a host was",
            (Some(&old), true),
            (Some(&up), true),
            Some(&trusts),
        ),
        (
            "a host where a link was",
            (Some(&up), true),
            (Some(&new), true),
            Some(&trusts),
        ),
        (
            "a link to another switch",
            (Some(&up), true),
            (Some(&down), true),
            Some(&neither),
        ),
        (
            "the guard goes on",
            (None, false),
            (Some(&new), true),
            Some(&trusts),
        ),
        (
            "the guard goes off",
            (Some(&new), true),
            (None, false),
            None,
        ),
    ] {
        let path = |(action, on): (Option<&Arc<Action>>, bool)| (action.cloned(), on);
        let mut expected = vec![between.cloned(), after.0.cloned()];
        expected.dedup();
        assert_eq!(stages(&port, path(before), path(after)), expected, "{what}");
    }
}

/// A group that is closed now is closed when all know it; one that is opened is open at once. So it is with members.
#[test]
fn groups_are_closed_last_and_opened_first() {
    let group = entry("ingress.open_groups", &[("group", 9)]);
    let port = ("standard_metadata.ingress_port", 3);
    let sender = entry("ingress.group_senders", &[port, ("group", 9)]);
    for (key, action) in [
        (group, "ingress.group_open"),
        (sender, "ingress.sender_known"),
    ] {
        let there = Some(does(action, &[]));
        let path = [there.clone(), None];
        assert_eq!(stages(&key, (None, true), (there.clone(), true)), path[..1]);
        assert_eq!(stages(&key, (there, true), (None, true)), path);
    }
}

/// A switch polices what a host keeps to already: a lower rate comes when all agents follow the plan, a higher one before
/// any hears of it.
#[test]
fn a_rate_falls_last_and_rises_first() {
    let port = PortId::new(3).unwrap();
    let state = |rate: Option<u64>| SwitchState {
        rates: rate.map(|rate| (port, rate)).into_iter().collect(),
        ..SwitchState::default()
    };
    for (before, after, stage) in [
        (None, Some(9), Stage::Revoke),
        (Some(9), Some(5), Stage::Revoke),
        (Some(5), Some(9), Stage::Permit),
        (Some(5), None, Stage::Permit),
    ] {
        let updates = difference(&state(after), &state(before), None);
        let rate = Entity::Rate(PortRate { port, bytes: after });
        let expected = Update {
            stage,
            operation: Operation::Modify,
            entity: rate,
        };
        assert_eq!(updates, [expected], "{before:?} to {after:?}");
    }
    assert_eq!(difference(&state(Some(5)), &state(Some(5)), None), []);
}
