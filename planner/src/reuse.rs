//! What of a plan can be built on for the next.

use std::collections::BTreeSet;

use wormcast_routing::topology::{Host, Switch, Topology};

/// What of a plan before can be built on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Nothing,
    /// What switches have: only who re-injects worms is other than before.
    Switches,
    All,
}

/// Whether a topology is another with some of it gone, or some hosts re-injecting no more, and
/// nothing come.
pub(crate) fn is_left_of(left: &Topology, whole: &Topology) -> bool {
    let mut switches = left.switches().iter();
    let mut hosts = left.hosts().iter();
    let was_host = |is: &Host| {
        let same = |was: Host| (was.switch, was.port) == (is.switch, is.port);
        let found = whole.host(is.id);
        found.is_ok_and(|was| same(was) && (was.transit || !is.transit))
    };
    let was = |switch: &Switch| {
        let found = whole.switch_index(switch.id);
        found.is_ok_and(|at| whole.switches()[at as usize] == *switch)
    };
    let links: BTreeSet<_> = whole.links().iter().collect();
    switches.all(was) && hosts.all(was_host) && left.links().iter().all(|link| links.contains(link))
}

/// What of a plan for these topologies, what is up and what is known, serves for others.
pub(crate) fn reusable(
    before: Option<&(Topology, Topology)>,
    now: (&Topology, &Topology),
) -> Reuse {
    let Some((up, known)) = before else {
        return Reuse::Nothing;
    };
    if (up, known) == now {
        return Reuse::All;
    }
    let is_wired_alike =
        |a: &Topology, b: &Topology| a.with_transit(|_| true) == b.with_transit(|_| true);
    if is_wired_alike(up, now.0) && is_wired_alike(known, now.1) {
        Reuse::Switches
    } else {
        Reuse::Nothing
    }
}

/// Whether what is up joins all hosts that are known. If not, some routes lead over links that are
/// away.
pub(crate) fn joins_hosts(up: &Topology, known: &Topology) -> bool {
    let part = |host: &Host| up.switch_index(host.switch).map(|at| up.component_of(at));
    let mut parts = known.hosts().iter().map(part);
    match parts.next() {
        Some(Ok(first)) => parts.all(|part| part == Ok(first)),
        Some(Err(_)) => false,
        None => true,
    }
}
