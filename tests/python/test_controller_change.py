"""Plans that follow from plans: the same as made anew, and every mixture of old and new is safe."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from controller_lab.fabrics import damage, random_groups, random_topology
from controller_lab.model import FakeSwitch, Walker
from wormcast import routing
from wormcast.fabric.agent_plan import Capacity, GroupShape, Hosts
from wormcast.fabric.class_d import NARROW, ClassDMode, assign
from wormcast.fabric.difference import Stage, diff
from wormcast.fabric.groups import Group, Parameters, Scheme
from wormcast.fabric.ids import GroupId, HostId, Mgid, PortId, SwitchId
from wormcast.fabric.pathfinder import RoutingPathfinder
from wormcast.fabric.planner import Planner
from wormcast.fabric.state import FabricState, SwitchState
from wormcast.fabric.topology import Host, Link, Switch, Topology

SEEDS = range(40)
PATHFINDER = RoutingPathfinder()


def change_groups(rng: random.Random, topology: Topology, groups: list[Group]) -> list[Group]:
    """Some groups go, some come, some have other members."""
    hosts = [host.id for host in topology.hosts]
    kept = [group for group in groups if rng.random() < 0.7]
    changed = []
    for group in kept:
        if rng.random() < 0.3:
            members = tuple(sorted(rng.sample(hosts, rng.randint(1, len(hosts)))))
            group = Group(group.id, group.name, group.scheme, members, group.parameters, group.class_d)
        changed.append(group)
    used = {group.id for group in changed}
    return changed + [g for g in random_groups(rng, topology, rng.randint(0, 2)) if g.id not in used]


@pytest.mark.parametrize("mode", list(ClassDMode))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_that_follows_from_another_is_the_plan_made_anew(seed: int, mode: ClassDMode) -> None:
    rng = random.Random(seed)
    topology = known = random_topology(rng)
    if not topology.hosts:
        return
    everyone = frozenset(h.id for h in topology.hosts)
    planner, groups, class_d = Planner(PATHFINDER), random_groups(rng, topology), NARROW
    hosts = Hosts(everyone, everyone)
    last: FabricState | None = None
    for _ in range(8):
        groups = change_groups(rng, known, groups)
        class_d = assign(mode, groups, class_d)
        if rng.random() < 0.2:
            topology = damage(rng, known)
        if rng.random() < 0.3:
            live = frozenset(h for h in everyone if rng.random() < 0.8)
            few = {h: Capacity(rng.randint(0, 3), 1024) for h in everyone if rng.random() < 0.2}
            hosts = Hosts(everyone, live, few)
        found = planner.plan(topology, groups, hosts, class_d, known)
        anew = Planner(PATHFINDER).plan(topology, groups, hosts, class_d, known)
        assert found.switches == anew.switches
        assert found.agents == anew.agents
        assert found.shortfalls == anew.shortfalls
        assert found.parts == anew.parts
        if last is not None and found.touched is not None:
            for switch, state in found.switches.items():
                whole = diff(state, last.switches[switch])
                named = diff(state, last.switches[switch], found.touched.get(switch, ()))
                assert Counter(map(repr, named)) == Counter(map(repr, whole)), "a change was not named"
        last = found


def test_the_change_of_one_group_makes_nothing_else_anew() -> None:
    rng = random.Random(5)
    topology = random_topology(rng, 12)
    everyone = frozenset(h.id for h in topology.hosts)
    groups = random_groups(rng, topology, 20)
    planner, hosts = Planner(PATHFINDER), Hosts(everyone, everyone)
    before = planner.plan(topology, groups, hosts)
    two = tuple(sorted(rng.sample(sorted(everyone), 2)))
    new = Group(GroupId(700), "new", Scheme.CIRCUIT, two)
    after = planner.plan(topology, [*groups, new], hosts)
    assert {h for h in everyone if after.agents[h] is not before.agents[h]} == set(two)
    old = {id(group) for plan in before.agents.values() for group in plan.groups}
    fresh = [g for plan in after.agents.values() for g in plan.groups if id(g) not in old]
    assert {group.id for group in fresh} == {700}
    assert planner.plan(topology, [*groups, new], hosts).touched == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_some_hosts_is_that_of_all_with_the_others_left_out(seed: int) -> None:
    rng = random.Random(seed)
    for part in random_topology(rng).components():
        hosts = [host.id for host in part.hosts]
        if hosts:
            members = tuple(sorted(rng.sample(hosts, rng.randint(1, len(hosts)))))
            shape = PATHFINDER.group_shape(part, Scheme.K_BINOMIAL, members, Parameters())
            assert list(shape.order) == routing.order(part.to_json(), list(members), kind="cco")


class BrokenFinder(RoutingPathfinder):
    """Cannot plan groups of one scheme."""

    def group_shape(
        self, part: Topology, scheme: Scheme, members: tuple[HostId, ...], parameters: Parameters
    ) -> GroupShape:
        if scheme is Scheme.TREE:
            raise RuntimeError("no tree today")
        return super().group_shape(part, scheme, members, parameters)


def test_a_group_that_cannot_be_planned_is_named_and_holds_up_no_other() -> None:
    topology = pair_of_pairs()
    everyone = frozenset(h.id for h in topology.hosts)
    good = Group(GroupId(1), "good", Scheme.CIRCUIT, tuple(sorted(everyone)))
    bad = Group(GroupId(2), "bad", Scheme.TREE, tuple(sorted(everyone)))
    state = Planner(BrokenFinder()).plan(topology, [good, bad], Hosts(everyone, everyone))
    assert [str(f) for f in state.failures] == ["group 2: it cannot be planned: no tree today"]
    assert {g.id for plan in state.agents.values() for g in plan.groups} == {1}
    assert {s.host for s in state.shortfalls if s.group == 2} == everyone
    assert all("no tree today" in s.reason for s in state.shortfalls)


def test_an_agent_that_takes_few_groups_or_refuses_one_is_left_out_of_the_others() -> None:
    topology = pair_of_pairs()
    everyone = frozenset(h.id for h in topology.hosts)
    one, two = sorted(everyone)[:2]
    groups = [Group(GroupId(n), f"g{n}", Scheme.CIRCUIT, tuple(sorted(everyone))) for n in range(5)]
    capacities = {one: Capacity(3, 1024), two: Capacity(100, 1024, {GroupId(0): "not this one"})}
    planner = Planner(PATHFINDER)
    state = planner.plan(topology, groups, Hosts(everyone, everyone, capacities))
    assert [g.id for g in state.agents[one].groups] == [0, 1, 2]
    assert [g.id for g in state.agents[two].groups] == [1, 2, 3, 4]
    reasons = {(s.group, s.host): s.reason for s in state.shortfalls}
    assert reasons == {
        (3, one): "its agent takes at most 3 groups",
        (4, one): "its agent takes at most 3 groups",
        (0, two): "its agent refuses the group: not this one",
    }
    state = planner.plan(topology, groups[1:], Hosts(everyone, everyone, capacities))
    assert [g.id for g in state.agents[one].groups] == [1, 2, 3], "there is room for another again"


def pair_of_pairs() -> Topology:
    """Two switches with two hosts each."""
    switches = tuple(Switch(SwitchId(n), 4) for n in range(2))
    hosts = tuple(Host(HostId(2 * n + p), SwitchId(n), PortId(p)) for n in range(2) for p in range(2))
    return Topology(switches, hosts, (Link(SwitchId(0), PortId(3), SwitchId(1), PortId(3)),))


def numbers_in(*states: FabricState) -> list[int]:
    """Every group number that some switch knows."""
    found = {
        entry.match[0][1]
        for state in states
        for switch in state.switches.values()
        for entry in switch.entries.values()
        if entry.table == "ingress.groups"
    }
    return sorted(number for number in found if isinstance(number, int))


def check_worms(
    rng: random.Random, walker: Walker, numbers: list[int], stale: set[SwitchId], when: str
) -> None:
    """No GROUP worm of some hosts, and no BROADCAST worm from any switch, loops or arrives twice.

    What enters at a switch that was out of reach while plans changed may arrive twice, and does not loop.
    """
    hosts = walker.topology.hosts
    for sender in rng.sample(hosts, min(3, len(hosts))):
        for number in numbers:
            got = walker.send_group(sender, number)
            once = sender.switch in stale or all(count == 1 for count in got.values())
            assert once, f"GROUP {number} from {sender}, {when}"
    for switch in walker.states:
        got = walker.send_broadcast(switch)
        assert switch in stale or all(n == 1 for n in got.values()), f"BROADCAST from {switch}, {when}"


@pytest.mark.parametrize("seed", range(80))
def test_every_mixture_of_old_and_new_is_safe(seed: int) -> None:
    """Updates of all switches in any order within a stage; the next plan may come while they grow.

    Switches that are not in a plan are dead, or out of reach and forward by what they hold.
    """
    rng = random.Random(seed)
    topology = random_topology(rng)
    if not topology.hosts:
        return
    everyone = frozenset(h.id for h in topology.hosts)
    planner, hosts = Planner(PATHFINDER), Hosts(everyone, everyone)
    groups = random_groups(rng, topology, 6)
    old = planner.plan(damage(rng, topology), groups, hosts, known=topology)
    fakes = {s.id: FakeSwitch() for s in topology.switches}
    for switch, state in old.switches.items():
        fakes[switch] = FakeSwitch(state.copy())
    walker = Walker(topology, {s: fake.state for s, fake in fakes.items()})
    stale: set[SwitchId] = set()
    for _ in range(4):
        groups = change_groups(rng, topology, groups)
        up = damage(rng, topology)
        new = planner.plan(up, groups, hosts, known=topology)
        for switch in sorted(fakes.keys() - new.switches.keys()):
            if rng.random() < 0.5:
                fakes[switch] = FakeSwitch()  # dead; when it is back it is empty
        walker.states = {s: fake.state for s, fake in fakes.items()}
        stale |= fakes.keys() - new.switches.keys()
        numbers = numbers_in(old, new)
        ends_early = rng.random() < 0.4
        for stage in Stage:
            due = {
                switch: [u for u in diff(state, fakes[switch].state) if u.stage <= stage]
                for switch, state in new.switches.items()
            }
            turns = [switch for switch, updates in due.items() for _ in updates]
            rng.shuffle(turns)
            if ends_early and stage is Stage.GROW:
                turns = turns[: len(turns) // 2]  # the next plan is due already
            for n, switch in enumerate(turns):
                fakes[switch].write(due[switch].pop(0))
                if n % 7 == 0:
                    check_worms(rng, walker, numbers, stale, f"stage {stage.name} at switch {switch}")
            stale -= new.switches.keys()  # all have shrunk
            check_worms(rng, walker, numbers, stale, f"after stage {stage.name}")
            if ends_early and stage is Stage.GROW:
                break
        old = new


def test_a_broadcast_tree_that_turns_round_is_taken_away_before_the_new_one_grows() -> None:
    up = SwitchState(multicast={Mgid(1): frozenset({PortId(1)})})
    down = SwitchState(multicast={Mgid(1): frozenset({PortId(2)})})
    updates = diff(down, up)
    assert [(u.stage, u.operation.value) for u in updates] == [
        (Stage.SHRINK, "delete"),
        (Stage.GROW, "insert"),
    ]
