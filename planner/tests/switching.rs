//! Packet mode and wormhole mode: what switches hold, and in which order they get it.

mod lab;

use std::sync::Arc;

use lab::all_live;
use wormcast_planner::{
    ClassDNumbers, Copies, Entity, FabricState, INSTANCE_PLAIN, MGID_HOLD, MGID_INTERRUPT,
    MGID_TREE_ALL, Mgid, Operation, Place, Planner, PortSet, Replica, Stage, SwitchState,
    Switching, TRAIN_FRAMES, WormholeScheme, difference, digest_agents, execute,
};
use wormcast_routing::routes::{Algorithm, Setting};
use wormcast_routing::topology::Topology;
use wormcast_wire::PortId;

const PLAIN: Switching = Switching::Wormhole(WormholeScheme::Plain);
const FLUSH: Switching = Switching::Wormhole(WormholeScheme::Flush);
const INTERRUPT: Switching = Switching::Wormhole(WormholeScheme::Interrupt);
const TABLE: &str = "ingress.wormhole";

fn network() -> Topology {
    wormcast_routing::generate::from_spec("ring:4").unwrap()
}

fn plan(planner: &mut Planner) -> FabricState {
    let network = network();
    let hosts = all_live(&network);
    planner.plan(&network, &network, &[], &hosts, &ClassDNumbers::default())
}

/// By a new planner.
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
    // Said again, it changes nothing.
    planner.set_switching(FLUSH, false);
    let again = plan(&mut planner).touched.expect("it is known");
    assert!(again.values().all(Vec::is_empty));
}

/// Trains are told to agents alone, and are in their messages.
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
        // Field 8 of Plan, 11 of PlanChange (agent.proto), which has the route to the root, field 7,
        // whether it is another or not.
        let told = |field: u8| [field << 3, TRAIN_FRAMES as u8];
        let root = plan.root_route.as_ref().expect("a tree");
        let root = [&[7 << 3 | 2, root.len() as u8], &root[..]].concat();
        assert!(plan.encode_routes().ends_with(&told(8)));
        assert!(!old.encode_routes().ends_with(&told(8)));
        let change = plan.encode_route_change(old).expect("it can be told");
        assert_eq!(change, [&root[..], &told(11)].concat(), "and routes stay");
        let back = old.encode_route_change(plan).expect("it can be told");
        assert_eq!(back, root, "no frames of trains: none");
    }
    planner.set_switching(PLAIN, false);
    assert_eq!(self::plan(&mut planner).agents, before.agents);
}
/// How long TREE routes may be is told to agents alone, and is in their messages.
#[test]
fn the_limit_of_tree_routes_touches_agents_and_no_switch() {
    let mut planner = Planner::new(Setting::plain(Algorithm::Osud));
    let before = plan(&mut planner);
    planner.set_tree_route_max(Some(127));
    let after = plan(&mut planner);
    assert_eq!(after.switches, before.switches);
    // Field 20 of Plan and of PlanChange (agent.proto).
    let told = [0xA0, 1, 127];
    for (host, plan) in &after.agents {
        let old = &before.agents[host];
        assert_eq!((old.tree_route_max, plan.tree_route_max), (255, 127));
        assert_ne!(plan, old);
        assert!(plan.encode_routes().ends_with(&told));
        assert!(!old.encode_routes().ends_with(&told));
        let change = plan.encode_route_change(old).expect("it can be told");
        assert!(change.ends_with(&told));
        let back = old.encode_route_change(plan).expect("it can be told");
        assert!(
            !back.ends_with(&told),
            "none: as many as any route may have"
        );
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
        ("wormhole", Some("tree"), None),
    ] {
        assert_eq!(Switching::named(mode, scheme), expected);
    }
}

#[test]
fn the_port_of_frames_that_go_round_is_none_of_a_link() {
    assert_eq!(PortId::new(PortId::RECIRCULATE.get()), None);
}
