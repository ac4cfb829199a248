"""The planner as the controller has it: what crosses the binding, and what stays the same object."""

from __future__ import annotations

from dataclasses import replace

import pytest
from controller_lab.model import FakeSwitch
from controller_lab.plans import decoded
from wormcast import routing
from wormcast.network.groups import SCHEMES, Group
from wormcast.network.ids import GroupId, HostId, PortId, SwitchId
from wormcast.network.topology import Grid, Host, Link, Switch, Topology
from wormcast.p4rt.session import BATCH_UPDATES_MAX, split_batches
from wormcast.reconcile.agent_status import Capacity
from wormcast_planner import (
    NOT_LIVE,
    ClassDNumbers,
    FabricState,
    MulticastGroup,
    Planner,
    RoutingError,
    SwitchState,
    TableEntry,
    difference,
)


def topology(kind: str) -> Topology:
    made = routing.make(kind)
    return Topology(
        tuple(Switch(s["id"], s["ports"]) for s in made["switches"]),
        tuple(Host(h["id"], h["switch"], h["port"]) for h in made["hosts"]),
        tuple(Link.between((x["a"], x["a_port"]), (x["b"], x["b_port"])) for x in made["links"]),
        Grid.from_json(made["grid"]) if "grid" in made else None,
    )


NETWORK = topology("torus:3x3:2")
EVERYONE = frozenset(host.id for host in NETWORK.hosts)


def group(number: int, scheme: str, *members: int) -> Group:
    return Group(GroupId(number), f"g{number}", scheme, tuple(map(HostId, members)))


def plan(planner: Planner, groups: list[Group], network: Topology = NETWORK) -> FabricState:
    return planner.plan(network, network, groups, EVERYONE, EVERYONE, {}, ClassDNumbers())


GROUPS = [group(n, scheme, 0, 3, n, 17) for n, scheme in enumerate(SCHEMES, 4)]


def test_plans_say_what_agents_and_switches_must_have() -> None:
    planner = Planner("osud")
    # Long TREE routes are too dear for long messages, so that auto has something to choose.
    planner.set_costs('{"tree_bytes_per_branch": 100}')
    state = plan(planner, GROUPS)
    assert state.switches.keys() == {switch.id for switch in NETWORK.switches}
    assert state.agents.keys() == EVERYONE
    assert state.parts == [frozenset(range(9))]
    assert state.touched is None
    assert (state.failures, state.shortfall_count) == ([], 0)
    planned = state.agents[HostId(17)]
    told = decoded(planned)
    numbers = [4 + at for at, _ in enumerate(SCHEMES)]
    assert [found.id for found in told.groups] == numbers
    assert [found.structures[0].scheme for found in told.groups[:-1]] == list(SCHEMES[:-1])
    several = planned.groups[-1].structures
    assert [one.bytes_most for one in told.groups[-1].structures] == [one.bytes_most for one in several]
    bounds = [structure.bytes_most for structure in several]
    assert len(several) > 1
    assert bounds[:-1] == sorted(bounds[:-1])
    assert bounds[-1] == 0, "the last is for any"
    assert all(structure.expected for structure in several)
    assert all(list(found.members) == [0, 3, found.id, 17] for found in told.groups)
    assert sorted(edge.child for edge in told.groups[2].structures[0].tree_edges) == [3, 6, 17]
    routes = {(r["src"], r["dst"]): bytes(r["ports"]) for r in routing.routes(NETWORK.to_json())["routes"]}
    assert {route.host: route.ports for route in told.routes} == {
        dst: ports for (src, dst), ports in routes.items() if src == 17
    }
    entries = [entry for entry in state.switches[SwitchId(0)].entries() if entry.table == "ingress.groups"]
    table = numbers[SCHEMES.index("table")]
    assert [entry.match for entry in entries] == [[("group", n)] for n in (table, 255)]
    assert {entry.action for entry in entries} == {"ingress.replicate"}
    assert [entry.mgid for entry in entries] == [0x4000 + n for n in (table, 255)]
    assert [found.number for found in told.groups if found.HasField("number")] == [table]
    assert told.HasField("root_route")


def test_what_a_change_does_not_concern_stays_the_same_object() -> None:
    planner = Planner("osud")
    before = plan(planner, GROUPS)
    new = group(700, "circuit", 2, 4)
    after = plan(planner, [*GROUPS, new])
    assert {h for h in EVERYONE if after.agents[h] is not before.agents[h]} == {2, 4}
    assert after.agents[HostId(17)].groups[0] == before.agents[HostId(0)].groups[0]
    assert decoded(after.agents[HostId(4)]).routes == decoded(before.agents[HostId(4)]).routes
    assert after.digest != before.digest
    assert plan(planner, [*GROUPS, new]).touched == {}
    assert plan(Planner("osud"), [*GROUPS, new]).digest == after.digest, (
        "it does not depend on what was before"
    )
    less = replace(NETWORK, links=NETWORK.links[1:])
    assert plan(planner, [*GROUPS, new], less).agents[HostId(4)].groups == after.agents[HostId(4)].groups


def test_members_that_cannot_take_part_are_told_by_group() -> None:
    live = EVERYONE - {HostId(3)}
    capacities = {HostId(17): Capacity(99, 9, {GroupId(6): "too dear"})}
    state = Planner("osud").plan(NETWORK, NETWORK, GROUPS, EVERYONE, live, capacities, ClassDNumbers())
    assert state.shortfall_count == len(state.shortfalls()) == len(SCHEMES) + 1
    assert state.shortfalls(1) == [(4, 3, NOT_LIVE)]
    assert state.shortfalls_of(6) == {3: NOT_LIVE, 17: "its agent refuses the group: too dear"}
    assert state.shortfalls_of(99) == {}


@pytest.mark.parametrize("algorithm", routing.algorithms())
@pytest.mark.parametrize("root", [None, 7])
def test_an_agent_is_given_all_routes_with_their_shares(algorithm: str, root: int | None) -> None:
    file = routing.routes(NETWORK.to_json(), algorithm, root)
    wanted = [
        (route["dst"], round(route.get("share", 1) * 12_600), bytes(route["ports"]))
        for route in file["routes"]
        if route["src"] == 5
    ]
    state = plan(Planner(algorithm, root), [])
    sent = decoded(state.agents[HostId(5)])
    assert [(route.host, route.share, route.ports) for route in sent.routes] == wanted
    assert sent.routes_at_random == (algorithm in ("rmit", "pit"))
    assert state.roots == [file["root"]]


def test_routes_go_around_hosts_that_do_not_re_inject() -> None:
    planner, network = Planner("rmit"), topology("irregular:9:2:2:3")
    assert plan(planner, [], network).lengthened == 0
    hosts = tuple(Host(host.id, host.switch, host.port, transit=False) for host in network.hosts)
    none = Topology(network.switches, hosts, network.links)
    around = plan(planner, [], none)
    assert around.lengthened == routing.route_summary(none.to_json(), "rmit")["lengthened_pairs"] > 0
    assert around.digest != plan(planner, [], network).digest
    planner.set_routing("osud", None, True)
    assert plan(planner, [], none).digest == plan(planner, [], network).digest


def test_what_is_no_network_or_algorithm_is_refused() -> None:
    with pytest.raises(RoutingError, match="nonsense"):
        Planner("nonsense")
    twice = replace(NETWORK, hosts=(*NETWORK.hosts, NETWORK.hosts[0]))
    planner = Planner("osud")
    with pytest.raises(RoutingError, match="host id 0 is given twice"):
        plan(planner, GROUPS, twice)
    assert plan(planner, GROUPS).agents.keys() == EVERYONE
    far = Host(HostId(99), SwitchId(0), PortId(254))
    with pytest.raises(RoutingError, match="port 254 is outside 0 to 253"):
        plan(planner, GROUPS, replace(NETWORK, hosts=(*NETWORK.hosts, far)))


def test_updates_lead_to_the_state_that_is_planned() -> None:
    planner = Planner("osud")
    fakes = {switch: FakeSwitch() for switch in plan(planner, []).switches}
    table = SCHEMES.index("table")
    for groups in ([], GROUPS, GROUPS[table + 1 :]):
        state = plan(planner, groups)
        for switch, wanted in state.switches.items():
            for update in difference(wanted, fakes[switch].state):
                fakes[switch].write(update)
            assert fakes[switch].state == wanted
            assert difference(wanted, fakes[switch].state) == []
    assert state.touched is not None
    places = {update.place for update in difference(state.switches[SwitchId(0)], SwitchState())}
    assert set(state.touched[SwitchId(0)]) - places, "places of groups that are gone are named too"


def test_a_write_request_never_mixes_groups_and_entries() -> None:
    planner = Planner("osud")
    old, new = plan(planner, GROUPS), plan(planner, GROUPS[2:])
    for switch, wanted in new.switches.items():
        for before in (old.switches[switch], SwitchState()):
            updates = difference(wanted, before)
            batches = split_batches(updates)
            assert [u for batch in batches for u in batch] == updates
            for batch in batches:
                assert len(batch) <= BATCH_UPDATES_MAX
                assert len({(type(u.entity), u.operation) for u in batch}) == 1


def test_entries_read_from_a_switch_equal_those_that_were_planned() -> None:
    planned = plan(Planner("osud"), GROUPS).switches[SwitchId(0)]
    read = SwitchState()
    for entry in planned.entries():
        copy = TableEntry(entry.table, entry.match, entry.action, entry.parameters, entry.priority)
        assert copy == entry
        assert hash(copy) == hash(entry)
        read.put_entry(copy)
    for group in planned.multicast():
        copy = MulticastGroup(group.mgid, group.replicas)
        assert copy == group
        assert copy.ports == {port for port, _, _ in group.replicas}
        read.put_group(copy)
    assert [update.is_default for update in difference(planned, read)] == [True, True, True]
    assert read.copy() == read != planned
    assert read.counts() == planned.counts()
    table = 4 + SCHEMES.index("table")
    assert read.number_of(0x4000 + table) == table
    assert read.number_of(2) is None
