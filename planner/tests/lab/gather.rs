//! Gathered ACKs, from p4src/CONTRACT.md alone: switch by switch, as switches read their entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wormcast_planner::{
    Action, EntryKey, FabricState, GATHER_BRANCHES_MAX, GATHER_SLOTS, GATHER_SOURCE_FIRST,
    Gathered, Group, GroupScheme, Hosts, KeyFields, MatchValue, SwitchState, TABLE_GATHER,
    dependencies,
};
use wormcast_routing::group::{Guard, Scheme, SwitchMode, SwitchParameters};
use wormcast_routing::routes::Route;
use wormcast_routing::topology::{Attachment, Topology};
use wormcast_verify::deadlock::{Branching, ChannelGraph};
use wormcast_wire::{GroupId, HostId, PortId, SWITCHES_CROSSED_MAX, SwitchId};

use super::model::parameter;
use super::{Random, follow};

/// Entries of the table, by switch.
pub type Entries = BTreeMap<(SwitchId, EntryKey), Arc<Action>>;

pub fn entries(state: &SwitchState) -> impl Iterator<Item = (&EntryKey, &Arc<Action>)> {
    let all = state.entries.iter();
    all.filter(|(key, _)| key.table == TABLE_GATHER)
}

pub fn all_entries(state: &FabricState) -> Entries {
    let of = |(switch, state): (&SwitchId, &Arc<SwitchState>)| {
        let own = entries(state);
        own.map(|(key, action)| ((*switch, key.clone()), action.clone()))
            .collect::<Vec<_>>()
    };
    state.switches.iter().flat_map(of).collect()
}

pub fn key(group: GroupId, origin: HostId, port: PortId) -> EntryKey {
    let matches = [
        ("group", group.0),
        ("origin", origin.0),
        ("port", port.get().into()),
    ];
    let matches = matches.map(|(name, value)| (name.into(), MatchValue::Exact(value.into())));
    Arc::new(KeyFields {
        table: TABLE_GATHER.into(),
        matches: matches.into(),
        priority: 0,
    })
}

pub fn of_key(key: &EntryKey) -> (GroupId, HostId) {
    let [
        (_, MatchValue::Exact(group)),
        (_, MatchValue::Exact(origin)),
        _,
    ] = key.matches[..]
    else {
        panic!("{key:?}");
    };
    (GroupId(group as u16), HostId(origin as u16))
}

/// What gathers for one group and origin at a switch: its branches, and all numbers but those of a branch.
#[derive(Default)]
struct Gathers {
    branches: BTreeMap<u128, BTreeSet<Attached>>,
    used: BTreeSet<u128>,
    common: BTreeSet<[u128; 4]>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Attached {
    Switch(SwitchId),
    Host(HostId),
}

/// Follows the ACK of a member to the origin; gives its way. Where it comes in by another of parallel links, the
/// entry there is alike.
fn climb(
    network: &Topology,
    state: &FabricState,
    (group, gathered, origin): (GroupId, &Gathered, HostId),
    member: HostId,
    used: &mut BTreeMap<SwitchId, Gathers>,
) -> Route {
    let place = network.host(member).expect("a member is somewhere");
    let (mut at, mut port, mut source) = (place.switch, place.port, u128::from(member.0));
    let mut way = Route {
        src: member,
        dst: origin,
        switches: Vec::new(),
        ports: Vec::new(),
        in_transit: Vec::new(),
    };
    while way.ports.len() < SWITCHES_CROSSED_MAX {
        let found = state.switches[&at].entries.get(&key(group, origin, port));
        let entry = found.unwrap_or_else(|| panic!("{at} has no entry for {origin} at {port}"));
        let number = |name| parameter(entry, name);
        assert_eq!(number("from"), source, "behind port {port} of {at}");
        assert_eq!(number("epoch"), u128::from(gathered.epoch));
        let gathers = used.get_mut(&at).expect("its entries");
        gathers.used.insert(number("branch"));
        source = number("as");
        let up = PortId::new(number("up") as u8).expect("a port");
        way.switches.push(at);
        way.ports.push(up.get());
        match network.attachment(at, up).expect("a port that leads on") {
            Attachment::Host(host) => {
                assert_eq!(host, origin);
                assert_eq!(u128::from(gathered.origins[&origin]), source);
                return way;
            }
            Attachment::Switch(next, into) => (at, port) = (next, into),
        }
    }
    panic!("the ACK of {member} goes round");
}

/// Checks all gathered ACKs of a plan; gives how many ACKs came to their origins.
pub fn check(
    up: &Topology,
    network: &Topology,
    state: &FabricState,
    groups: &[Arc<Group>],
    hosts: &Hosts,
) -> usize {
    let mut graph = ChannelGraph::new(network, Branching::Independent);
    let mut known = BTreeSet::new();
    let mut slots = BTreeSet::new();
    let mut acknowledged = 0;
    for group in groups {
        let sent = (group.members.iter())
            .filter(|member| hosts.live.contains(member))
            .filter_map(|member| state.agents.get(member)?.group(group.id))
            .find(|sent| sent.gathered.is_some());
        let alone: BTreeMap<HostId, &str> = (state.by_hosts.iter())
            .filter(|short| short.group == group.id)
            .map(|short| (short.host, &*short.reason))
            .collect();
        let Some(sent) = sent else {
            continue;
        };
        assert!(group.gather);
        for member in &sent.members {
            let own = state.agents[member].group(group.id).expect("a member");
            assert_eq!(own.gathered, sent.gathered, "all members are told the same");
        }
        let gathered = sent.gathered.as_ref().expect("it is gathered");
        let all: BTreeSet<HostId> = gathered
            .origins
            .keys()
            .chain(alone.keys())
            .copied()
            .collect();
        assert!(all.iter().eq(&sent.members), "{all:?} {sent:?}");
        assert_eq!(all.len(), gathered.origins.len() + alone.len());
        for &origin in gathered.origins.keys() {
            known.insert((group.id, origin));
            let mut gatherers: BTreeMap<SwitchId, Gathers> = BTreeMap::new();
            for (&switch, state) in &state.switches {
                for (key, action) in entries(state) {
                    if of_key(key) != (group.id, origin) {
                        continue;
                    }
                    let Some((_, MatchValue::Exact(port))) = key.matches.get(2) else {
                        panic!("{key:?}");
                    };
                    let port = PortId::new(*port as u8).expect("a port");
                    let behind = match up.attachment(switch, port).expect("a port that leads on") {
                        Attachment::Switch(next, _) => Attached::Switch(next),
                        Attachment::Host(host) => Attached::Host(host),
                    };
                    let gathers = gatherers.entry(switch).or_default();
                    let branch = parameter(action, "branch");
                    gathers.branches.entry(branch).or_default().insert(behind);
                    let common = ["slot", "last", "up", "as"].map(|name| parameter(action, name));
                    gathers.common.insert(common);
                    assert!(common[1] < GATHER_BRANCHES_MAX as u128);
                }
            }
            for &member in sent.members.iter().filter(|member| **member != origin) {
                let of = (group.id, gathered, origin);
                let way = climb(network, state, of, member, &mut gatherers);
                graph.add_route(&way).expect("a way");
                acknowledged += 1;
            }
            for (switch, gathers) in gatherers {
                assert_eq!(gathers.common.len(), 1, "{:?}", gathers.common);
                let [slot, last, _, named] = *gathers.common.first().expect("one");
                assert!(gathers.branches.keys().copied().eq(0..=last));
                // One neighbour is behind a branch, and behind each other one another.
                let behind: BTreeSet<&Attached> = gathers.branches.values().flatten().collect();
                assert_eq!(behind.len(), gathers.branches.len());
                assert!(gathers.branches.values().all(|ends| ends.len() == 1));
                // A branch from which nothing comes would keep the tree silent.
                assert!(gathers.used.iter().eq(gathers.branches.keys()));
                assert!(slot < GATHER_SLOTS.into() && slots.insert((switch, slot)));
                assert_eq!(
                    named,
                    u128::from(GATHER_SOURCE_FIRST) + u128::from(switch.0)
                );
            }
        }
    }
    for ((switch, key), _) in all_entries(state) {
        assert!(known.contains(&of_key(&key)), "{switch} has {key:?}");
    }
    // Parallel links: whichever an ACK comes by, it is the same branch.
    for link in up.links() {
        let beside = up
            .links()
            .iter()
            .filter(|other| (other.a, other.b) == (link.a, link.b));
        for other in beside {
            for &(group, origin) in &known {
                for (at, one, two) in [
                    (link.a, link.a_port, other.a_port),
                    (link.b, link.b_port, other.b_port),
                ] {
                    let find = |port| state.switches[&at].entries.get(&key(group, origin, port));
                    assert_eq!(find(one), find(two));
                }
            }
        }
    }
    let packet = (state.switching, &*state.roots);
    let verdict = dependencies(network, &state.switches, &[&state.agents], packet).expect("ways");
    assert!(verdict.check().is_deadlock_free());
    for (&from, plan) in &state.agents {
        for route in plan.tree_routes.0.iter().chain(&plan.routes.0) {
            if let Some(route) = follow(network, from, route.to, &route.ports) {
                graph.add_route(&route).expect("a way");
            }
        }
    }
    assert!(
        graph.check().is_deadlock_free(),
        "ACKs with all other worms"
    );
    acknowledged
}

pub fn switch_mode(mode: SwitchMode) -> Scheme {
    Scheme::Switch(SwitchParameters::new(mode, Guard::A))
}

/// What a group must not have twice under one epoch.
pub type Life = (Vec<HostId>, Vec<((SwitchId, EntryKey), Arc<Action>)>);

pub fn lives(state: &FabricState, groups: &[Arc<Group>]) -> BTreeMap<(GroupId, u32), Life> {
    let all = all_entries(state);
    let mut lives = BTreeMap::new();
    for group in groups {
        let sent = state
            .agents
            .values()
            .filter_map(|plan| plan.group(group.id));
        for sent in sent {
            let Some(gathered) = &sent.gathered else {
                continue;
            };
            let own = all.iter().filter(|((_, key), _)| of_key(key).0 == group.id);
            let own = own.map(|(at, action)| (at.clone(), action.clone()));
            lives.insert(
                (group.id, gathered.epoch),
                (sent.members.clone(), own.collect()),
            );
        }
    }
    lives
}

pub fn slots(state: &FabricState) -> BTreeMap<(SwitchId, GroupId, HostId), u128> {
    let all = all_entries(state).into_iter();
    all.map(|((switch, key), action)| {
        let (group, origin) = of_key(&key);
        ((switch, group, origin), parameter(&action, "slot"))
    })
    .collect()
}

/// Groups of which most gather.
pub fn gathering(random: &mut Random, groups: Vec<Arc<Group>>) -> Vec<Arc<Group>> {
    let gathers = |mut group: Arc<Group>| {
        let own = Arc::make_mut(&mut group);
        own.gather |= random.chance(40);
        if random.chance(20) && !own.gather {
            let modes = [SwitchMode::Tree, SwitchMode::Table, SwitchMode::Broadcast];
            own.scheme = switch_mode(*random.choose(&modes)).into();
            own.gather = true;
        }
        if random.chance(5) {
            own.scheme = GroupScheme::Auto;
        }
        group
    };
    groups.into_iter().map(gathers).collect()
}
