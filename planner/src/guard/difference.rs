//! Updates of the guard: what a change permits comes before all else, what it takes away after all else.
//!
//! Between the two a port admits whatever it admitted before or is to admit, so agents may use their old
//! and their new plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use wormcast_wire::PortId;

use crate::difference::update::{Entity, Operation, PortRate, Stage, Update};
use crate::guard::groups::is_of_groups;
use crate::guard::{
    ACTION_ADMIT, ACTION_LINK, ACTION_TRUST, TABLE_GUARD, TABLE_SOURCES, default, is_on,
};
use crate::model::state::{Action, EntryKey, SwitchState, TableEntry, action};

/// Whether an entry belongs to the guard.
pub(crate) fn is_of_guard(key: &EntryKey) -> bool {
    [TABLE_GUARD, TABLE_SOURCES].contains(&&*key.table) || is_of_groups(&key.table)
}

/// Updates of the stages PERMIT and REVOKE at these entries and rates of ports, and of the default action.
pub(crate) fn updates(
    desired: &SwitchState,
    actual: &SwitchState,
    entries: &BTreeSet<&EntryKey>,
    rates: &BTreeSet<PortId>,
) -> (Vec<Update>, Vec<Update>) {
    let (mut permit, mut revoke) = (Vec::new(), Vec::new());
    let (was_on, is_on) = (is_on(actual), is_on(desired));
    let turn = |stage| Update {
        stage,
        operation: Operation::Modify,
        entity: Entity::Default(default(is_on)),
    };
    if was_on && !is_on {
        permit.push(turn(Stage::Permit));
    }
    for &key in entries.iter().filter(|key| is_of_guard(key)) {
        let (there, wanted) = (actual.entries.get(key), desired.entries.get(key));
        let between = match &*key.table {
            TABLE_GUARD => port_between(there, wanted, (was_on, is_on)),
            _ => wanted.or(there).cloned(),
        };
        step(&mut permit, Stage::Permit, key, there, between.as_ref());
        step(&mut revoke, Stage::Revoke, key, between.as_ref(), wanted);
    }
    for &port in rates {
        let of = |state: &SwitchState| state.rates.get(&port).copied();
        let (there, wanted) = (of(actual), of(desired));
        if there == wanted {
            continue;
        }
        // A lower rate comes when the agent keeps to it.
        let lower = wanted.is_some_and(|wanted| there.is_none_or(|there| wanted < there));
        let (updates, stage) = if lower {
            (&mut revoke, Stage::Revoke)
        } else {
            (&mut permit, Stage::Permit)
        };
        updates.push(Update {
            stage,
            operation: Operation::Modify,
            entity: Entity::Rate(PortRate {
                port,
                bytes: wanted,
            }),
        });
    }
    if is_on && !was_on {
        revoke.push(turn(Stage::Revoke));
    }
    (permit, revoke)
}

fn step(
    updates: &mut Vec<Update>,
    stage: Stage,
    key: &EntryKey,
    there: Option<&Arc<Action>>,
    wanted: Option<&Arc<Action>>,
) {
    let (operation, action) = match (there, wanted) {
        (there, wanted) if there == wanted => return,
        (None, Some(wanted)) => (Operation::Insert, wanted),
        (Some(_), Some(wanted)) => (Operation::Modify, wanted),
        (Some(there), None) => (Operation::Delete, there),
        (None, None) => return,
    };
    let entry = TableEntry {
        key: key.clone(),
        action: action.clone(),
    };
    updates.push(Update {
        stage,
        operation,
        entity: Entity::Entry(entry),
    });
}

/// The entry of a port that admits what it admitted, and what it is to admit.
fn port_between(
    there: Option<&Arc<Action>>,
    wanted: Option<&Arc<Action>>,
    (was_on, is_on): (bool, bool),
) -> Option<Arc<Action>> {
    let trusts = |entry: Option<&Arc<Action>>, on: bool| match entry {
        Some(action) => action.name == ACTION_TRUST,
        None => !on,
    };
    if trusts(there, was_on) || trusts(wanted, is_on) {
        // A switch without guard needs no entries. One that gets a guard has all before its default turns.
        return is_on.then(|| action(ACTION_TRUST, &[]));
    }
    match (there, wanted) {
        (Some(there), Some(wanted)) => Some(joined(there, wanted)),
        (there, wanted) => there.or(wanted).cloned(),
    }
}

/// What either admits. Two hosts cannot be at one port: it is the new one's. By a link, what may not go on by either.
fn joined(there: &Arc<Action>, wanted: &Arc<Action>) -> Arc<Action> {
    let of = |action: &Action, name: &str| {
        let found = action.parameters.iter().find(|(own, _)| own == name);
        found.map_or(0, |(_, value)| *value)
    };
    if there.name == ACTION_LINK && wanted.name == ACTION_LINK {
        let back = ["high", "low"].map(|name| (name, of(there, name) & of(wanted, name)));
        return action(ACTION_LINK, &back);
    }
    if there.name == ACTION_LINK || wanted.name == ACTION_LINK {
        return action(ACTION_TRUST, &[]);
    }
    let admits = |action: &Action| action.name == ACTION_ADMIT;
    if !admits(there) || !admits(wanted) || of(there, "host") != of(wanted, "host") {
        return wanted.clone();
    }
    let most = |name: &str| of(there, name).max(of(wanted, name));
    let parameters = [
        ("host", of(wanted, "host")),
        ("kinds", of(there, "kinds") | of(wanted, "kinds")),
        ("route_max", most("route_max")),
        ("transit", most("transit")),
        ("tree_max", most("tree_max")),
    ];
    action(ACTION_ADMIT, &parameters)
}
