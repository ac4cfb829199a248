"""The plan, held against a model of the switches: every member once, no loop, routes that arrive."""

from __future__ import annotations

import ipaddress
import random

import pytest
from controller_lab.fabrics import damage, random_groups, random_topology
from controller_lab.model import Walker
from wormcast.fabric.class_d import fabric_members
from wormcast.fabric.groups import Group, Parameters, Scheme
from wormcast.fabric.ids import GROUP_BROADCAST, GroupId, HostId, PortId, SwitchId
from wormcast.fabric.pathfinder import RoutingPathfinder
from wormcast.fabric.planner import CUT_OFF, NOT_LIVE, NOT_LOCATED, PLAIN, plan
from wormcast.fabric.replication import allocate_mgids
from wormcast.fabric.state import FabricState, digest_agents
from wormcast.fabric.topology import Host, Link, Switch, Topology

SEEDS = range(60)
PATHFINDER = RoutingPathfinder()


def plan_all(topology: Topology, groups: list[Group]) -> FabricState:
    everyone = frozenset(h.id for h in topology.hosts)
    return plan(topology, groups, everyone, everyone, PATHFINDER)


def random_case(seed: int) -> tuple[random.Random, Topology, list[Group], FabricState]:
    rng = random.Random(seed)
    topology = random_topology(rng)
    groups = random_groups(rng, topology)
    if seed % 2:
        topology = damage(rng, topology)
    return rng, topology, groups, plan_all(topology, groups)


@pytest.mark.parametrize("seed", SEEDS)
def test_group_worms_reach_every_member_once_from_anywhere(seed: int) -> None:
    _, topology, groups, state = random_case(seed)
    walker = Walker(topology, state.switches)
    for part in topology.components():
        here = {h.id for h in part.hosts}
        for sender in part.hosts:
            for number, members in fabric_members(groups).items():
                expected = dict.fromkeys((here & set(members)) - {sender.id}, 1)
                assert walker.send_group(sender, number) == expected, f"group {number} from {sender}"
            everyone = dict.fromkeys(here - {sender.id}, 1)
            assert walker.send_group(sender, GROUP_BROADCAST) == everyone


@pytest.mark.parametrize("seed", SEEDS)
def test_group_worms_cross_no_link_that_leads_to_no_member(seed: int) -> None:
    _, topology, groups, state = random_case(seed)
    walker = Walker(topology, state.switches)
    for part in topology.components():
        here = {h.id for h in part.hosts}
        for sender in part.hosts:
            routes = dict(state.agents[sender.id].tree_routes)
            for number, members in fabric_members(groups).items():
                walker.crossed.clear()
                walker.send_group(sender, number)
                crossed = set(walker.crossed)
                walker.crossed.clear()
                for member in (here & set(members)) - {sender.id}:
                    assert walker.send_unicast(sender, routes[member]) == member
                assert crossed == walker.crossed, "the copies keep to the tree routes to the members"


@pytest.mark.parametrize("seed", SEEDS)
def test_class_d_packets_reach_the_union_of_groups_that_share_low_bits(seed: int) -> None:
    _, topology, groups, state = random_case(seed)
    walker = Walker(topology, state.switches)
    for part in topology.components():
        here = {h.id for h in part.hosts}
        for sender in part.hosts:
            for group in (g for g in groups if g.class_d is not None):
                assert group.class_d is not None
                number = int(group.class_d) & 0xFF
                members = set(fabric_members(groups)[GroupId(number)])
                got = walker.send_class_d(sender, int(group.class_d))
                assert set(group.members) <= members
                assert got == dict.fromkeys((here & members) - {sender.id}, 1)
            for unknown in ("239.1.1.200", "239.1.1.129", "223.1.1.1"):
                assert walker.send_class_d(sender, int(ipaddress.IPv4Address(unknown))) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_broadcast_from_the_root_reaches_every_host_once(seed: int) -> None:
    _, topology, _, state = random_case(seed)
    walker = Walker(topology, state.switches)
    for part in topology.components():
        tree = PATHFINDER.spanning_tree(part)
        assert walker.send_broadcast(tree.root) == dict.fromkeys([h.id for h in part.hosts], 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_agents_have_routes_to_every_host_they_can_reach(seed: int) -> None:
    _, topology, _, state = random_case(seed)
    walker = Walker(topology, state.switches)
    for part in topology.components():
        tree_ports = {
            end for link in PATHFINDER.spanning_tree(part).links for end in (link.parent, link.child)
        }
        hosts = {h.id: h for h in part.hosts}
        for host in part.hosts:
            told = state.agents[host.id]
            for routes in (told.routes, told.tree_routes):
                assert [other for other, _ in routes] == sorted(hosts.keys() - {host.id})
                for other, route in routes:
                    assert walker.send_unicast(host, route) == other
            for _, route in told.tree_routes:
                switch = host.switch
                for port in route[:-1]:
                    assert (switch, port) in tree_ports
                    link = next(x for x in part.links if (switch, port) in x.ends())
                    switch = next(end for end in link.ends() if end != (switch, port))[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_of_agents_hang_together(seed: int) -> None:
    _, _, groups, state = random_case(seed)
    by_id = {g.id: g for g in groups}
    short = {(s.group, s.host) for s in state.shortfalls}
    for host, told in state.agents.items():
        for group in told.groups:
            wanted = by_id[group.id]
            assert host in group.members
            assert set(group.members) == {m for m in wanted.members if (group.id, m) not in short}
            assert list(group.members) == sorted(group.members)
            assert sorted(group.order) == list(group.members)
            assert all(told == state.agents[m] or group in state.agents[m].groups for m in group.members)
            if wanted.scheme is Scheme.TREE:
                children = [child for _, child in group.tree_edges]
                assert sorted(children) == list(group.members[1:]), "every member but the root has one parent"
                assert all(parent < child for parent, child in group.tree_edges)
            else:
                assert not group.tree_edges
    for wanted in groups:
        told_to = [h for h, told in state.agents.items() if any(g.id == wanted.id for g in told.groups)]
        assert sorted(told_to) == [m for m in wanted.members if (wanted.id, m) not in short]


def test_the_same_input_gives_the_same_plan() -> None:
    for seed in SEEDS:
        _, topology, groups, state = random_case(seed)
        again = plan_all(topology, list(reversed(groups)))
        assert again.switches == state.switches
        assert digest_agents(again.agents) == digest_agents(state.agents)


def line(*hosts: int, cut: bool = False) -> Topology:
    """A host on each of as many switches in a row; with `cut` the last link is missing."""
    switches = tuple(Switch(SwitchId(n), 4) for n in range(len(hosts)))
    links = [Link(SwitchId(n), PortId(1), SwitchId(n + 1), PortId(2)) for n in range(len(hosts) - 1)]
    placed = tuple(Host(HostId(h), SwitchId(n), PortId(0)) for n, h in enumerate(hosts))
    return Topology(switches, placed, tuple(links[:-1] if cut else links))


def a_group(*members: int, scheme: Scheme = Scheme.CIRCUIT) -> Group:
    return Group(GroupId(1), "g", scheme, tuple(HostId(m) for m in members), Parameters())


def shortfalls(state: FabricState) -> dict[int, str]:
    return {s.host: s.reason for s in state.shortfalls}


def test_members_that_cannot_take_part_are_named_with_the_reason() -> None:
    topology = line(1, 2, 3, 4, cut=True)
    agents = frozenset(map(HostId, [1, 2, 4]))
    state = plan(topology, [a_group(1, 2, 3, 4, 9)], agents, agents - {HostId(2)}, PATHFINDER)
    assert shortfalls(state) == {9: NOT_LOCATED, 3: PLAIN, 2: NOT_LIVE, 4: CUT_OFF}
    assert [g.members for g in state.agents[HostId(1)].groups] == [(1,)]
    assert state.agents[HostId(4)].groups == ()
    assert [g.members for g in state.agents[HostId(2)].groups] == [(1, 2)], "once back, it is a member"
    assert dict(state.agents[HostId(2)].routes).keys() == {1, 3}, "an agent that is not live still has routes"


def test_a_divided_group_stays_where_most_members_are() -> None:
    state = plan_all(line(5, 6, 1, cut=True), [a_group(1, 5, 6)])
    assert shortfalls(state) == {1: CUT_OFF}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_suspected_moves_routes_and_costs_nobody_a_membership(seed: int) -> None:
    rng = random.Random(seed)
    known = random_topology(rng)
    groups = random_groups(rng, known)
    up = damage(rng, known)
    everyone = frozenset(h.id for h in known.hosts)
    state = plan(up, groups, everyone, everyone, PATHFINDER, known=known)
    whole = plan_all(known, groups)
    assert {h: told.groups for h, told in state.agents.items()} == {
        h: told.groups for h, told in whole.agents.items()
    }
    assert state.shortfalls == whole.shortfalls
    assert state.switches.keys() == {s.id for s in up.switches}, "a suspected switch keeps what it has"
    assert state.switches == plan_all(up, groups).switches
    part_of = {h.id: n for n, part in enumerate(up.components()) for h in part.hosts}
    standing, everything = Walker(up, state.switches), Walker(known, whole.switches)
    for host in known.hosts:
        told = state.agents[host.id]
        for routes in (told.routes, told.tree_routes):
            assert [other for other, _ in routes] == [other for other, _ in whole.agents[host.id].routes]
            for other, route in routes:
                same = part_of.get(host.id, -1) == part_of.get(other, -2)
                assert (standing if same else everything).send_unicast(host, route) == other


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_agents_are_told_nothing_new_when_everything_is_suspected(seed: int) -> None:
    rng = random.Random(seed)
    known = random_topology(rng)
    groups = random_groups(rng, known)
    everyone = frozenset(h.id for h in known.hosts)
    state = plan(Topology(), groups, everyone, everyone, PATHFINDER, known=known)
    assert state.agents == plan_all(known, groups).agents
    assert not state.switches


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_a_gone_member_is_told_of_its_groups_and_nobody_of_it(seed: int) -> None:
    rng = random.Random(seed)
    topology = random_topology(rng)
    groups = random_groups(rng, topology)
    everyone = frozenset(h.id for h in topology.hosts)
    live = frozenset(h for h in everyone if rng.random() < 0.7)
    state = plan(topology, groups, everyone, live, PATHFINDER)
    before = plan_all(topology, groups)
    for host, told in state.agents.items():
        if host not in live:
            assert told.groups == before.agents[host].groups, "who comes back finds itself where it was"
        else:
            assert all(set(group.members) <= live for group in told.groups)


def test_replication_groups_keep_their_number_while_others_come_and_go() -> None:
    rng = random.Random(7)
    numbers = {GroupId(n) for n in rng.sample(range(0x4000), 500)}
    before = allocate_mgids(numbers)
    gone = set(rng.sample(sorted(numbers), 100))
    after = allocate_mgids(numbers - gone)
    assert all(after[n] == before[n] for n in numbers - gone)
    crowded = allocate_mgids([GroupId(5), GroupId(5 + 0x4000), GroupId(6), GroupId(5 + 0x8000)])
    assert len(set(crowded.values())) == 4
    assert all(0x4000 <= m <= 0x7FFF for m in crowded.values())
