"""Differences lead to the plan, one safe step after another, on switches as strict as P4Runtime."""

from __future__ import annotations

import random

import pytest
from controller_lab.fabrics import damage, random_groups, random_topology
from controller_lab.model import FakeSwitch, Walker
from wormcast.fabric.class_d import fabric_members
from wormcast.fabric.difference import MulticastGroup, Operation, Stage, diff
from wormcast.fabric.ids import Mgid, PortId, SwitchId
from wormcast.fabric.pathfinder import RoutingPathfinder
from wormcast.fabric.planner import plan
from wormcast.fabric.state import FabricState, SwitchState, TableEntry
from wormcast.p4rt.session import BATCH_UPDATES_MAX, split_batches

SEEDS = range(60)
PATHFINDER = RoutingPathfinder()


def two_plans(seed: int) -> tuple[random.Random, FabricState, FabricState, Walker]:
    """Plans of one fabric before and after damage and a change of groups; the walker knows all links."""
    rng = random.Random(seed)
    topology = random_topology(rng)
    before = damage(rng, topology)
    after = damage(rng, topology)
    everyone = frozenset(h.id for h in topology.hosts)
    groups = random_groups(rng, topology)
    later = [*groups[1:], *random_groups(rng, topology, 1)]
    later = list({g.id: g for g in later}.values())
    old = plan(before, groups, everyone, everyone, PATHFINDER)
    new = plan(after, later, everyone, everyone, PATHFINDER)
    return rng, old, new, Walker(topology, {})


@pytest.mark.parametrize("seed", SEEDS)
def test_updates_lead_to_the_desired_state_and_then_nothing_differs(seed: int) -> None:
    _, old, new, _ = two_plans(seed)
    for switch, desired in new.switches.items():
        fake = FakeSwitch(old.switches.get(switch, SwitchState()).copy())
        for update in diff(desired, fake.state):
            fake.write(update)
        assert fake.state == desired
        assert diff(desired, fake.state) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_stages_come_in_order_and_can_be_taken_one_by_one(seed: int) -> None:
    _, old, new, _ = two_plans(seed)
    for switch, desired in new.switches.items():
        at_once = diff(desired, old.switches.get(switch, SwitchState()))
        assert [u.stage for u in at_once] == sorted(u.stage for u in at_once)
        fake = FakeSwitch(old.switches.get(switch, SwitchState()).copy())
        for stage in Stage:
            for update in [u for u in diff(desired, fake.state) if u.stage <= stage]:
                fake.write(update)
        assert fake.executed == at_once


@pytest.mark.parametrize("seed", SEEDS)
def test_no_worm_loops_or_arrives_twice_while_switches_change_one_after_another(seed: int) -> None:
    rng, old, new, walker = two_plans(seed)
    switches = sorted(new.switches)  # the others are dead
    fakes = {s: FakeSwitch(old.switches.get(s, SwitchState()).copy()) for s in switches}
    walker.states = {s: fake.state for s, fake in fakes.items()}
    senders = rng.sample(walker.topology.hosts, min(4, len(walker.topology.hosts)))
    numbers = [
        255,
        *{
            e.match[0][1]
            for s in old.switches.values()
            for e in s.entries.values()
            if e.table == "ingress.groups"
        },
    ]
    for stage in (Stage.SHRINK, Stage.GROW):
        for switch in rng.sample(switches, len(switches)):
            for update in diff(new.switches[switch], fakes[switch].state):
                if update.stage == stage:
                    fakes[switch].write(update)
            for sender in senders:
                for number in numbers:
                    assert isinstance(number, int)
                    got = walker.send_group(sender, number)
                    assert all(count == 1 for count in got.values()), f"{stage.name} at {switch}"


def test_an_unrelated_change_touches_nothing_else() -> None:
    rng = random.Random(3)
    topology = random_topology(rng)
    everyone = frozenset(h.id for h in topology.hosts)
    groups = random_groups(rng, topology, 5)
    before = plan(topology, groups, everyone, everyone, PATHFINDER)
    after = plan(topology, groups[:-1], everyone, everyone, PATHFINDER)
    gone = groups[-1]
    rest = fabric_members(groups[:-1])
    for switch, desired in after.switches.items():
        for update in diff(desired, before.switches[switch]):
            entity = update.entity
            if isinstance(entity, TableEntry) and entity.table == "ingress.groups":
                assert update.operation is Operation.DELETE
                assert entity.match[0][1] not in rest
                assert gone.id == entity.match[0][1] or gone.class_d is not None


def state_with(mgid: int, *ports: int) -> SwitchState:
    state = SwitchState(multicast={Mgid(mgid): frozenset(map(PortId, ports))})
    state.add(TableEntry("ingress.groups", (("group", 1),), "ingress.replicate", (("mgid", mgid),)))
    return state


def test_a_group_keeps_common_ports_while_it_changes() -> None:
    updates = diff(state_with(0x4001, 2, 3), state_with(0x4001, 1, 2))
    assert [(u.stage, u.operation, u.entity) for u in updates] == [
        (Stage.SHRINK, Operation.MODIFY, MulticastGroup(Mgid(0x4001), frozenset({PortId(2)}))),
        (Stage.GROW, Operation.MODIFY, MulticastGroup(Mgid(0x4001), frozenset({PortId(2), PortId(3)}))),
    ]


def test_a_group_without_common_ports_is_out_of_use_while_it_changes() -> None:
    updates = diff(state_with(0x4001, 3), state_with(0x4001, 1))
    assert [(u.stage, u.operation) for u in updates] == [
        (Stage.SHRINK, Operation.DELETE),
        (Stage.GROW, Operation.MODIFY),
        (Stage.GROW, Operation.INSERT),
    ]


def test_a_write_request_never_mixes_groups_and_entries() -> None:
    _, old, new, _ = two_plans(4)
    for switch in new.switches:
        updates = diff(new.switches[switch], old.switches.get(SwitchId(switch), SwitchState()))
        batches = split_batches(updates)
        assert [u for batch in batches for u in batch] == updates
        for batch in batches:
            assert len(batch) <= BATCH_UPDATES_MAX
            assert len({(type(u.entity), u.operation) for u in batch}) == 1
