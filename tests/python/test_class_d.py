"""Class D addresses to group numbers: unions, numbers of their own, exhaustion, restarts."""

from __future__ import annotations

import contextlib
import ipaddress
import random
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from controller_lab.fabrics import random_groups, random_topology
from controller_lab.model import Walker
from wormcast.control.errors import RequestError
from wormcast.control.group_book import GroupBook, GroupRequest
from wormcast.discovery.hosts import HostRegistry
from wormcast.fabric import class_d
from wormcast.fabric.class_d import (
    HASHED_FIRST,
    NARROW,
    OWN_MAX,
    ClassDMode,
    ClassDNumbers,
    assign,
    fabric_members,
    hashed,
)
from wormcast.fabric.groups import Group, Scheme
from wormcast.fabric.ids import GroupId, HostId, PortId, SwitchId
from wormcast.fabric.pathfinder import RoutingPathfinder
from wormcast.fabric.planner import plan
from wormcast.fabric.switch_entries import class_d_entries
from wormcast.store.database import Database
from wormcast.wire import CLASS_D_SIZE, GROUP_BROADCAST

WIDE = ClassDMode.WIDE


def ip(text: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(text)


def group(number: int, address: str | None, *members: int) -> Group:
    hosts = tuple(HostId(m) for m in members or (0,))
    return Group(
        GroupId(number), f"g{number}", Scheme.SWITCH, hosts, class_d=None if address is None else ip(address)
    )


def looked_up(address: ipaddress.IPv4Address, groups: Iterable[Group], numbers: ClassDNumbers) -> int | None:
    """What a switch's ternary table makes of an address."""
    hits = []
    for entry in class_d_entries(groups, numbers):
        value = entry.match[0][1]
        assert isinstance(value, tuple)
        if int(address) & value[1] == value[0]:
            hits.append(entry)
    return dict(max(hits, key=lambda entry: entry.priority).parameters)["group"] if hits else None


def test_narrow_numbers_are_the_low_eight_bits() -> None:
    for low in range(256):
        assert NARROW.number(ip(f"239.77.3.{low}")) == low
        assert NARROW.number(ip(f"224.1.0.{low}")) == low
    groups = [group(1000, "239.1.1.7", 1, 2), group(1001, "238.9.9.7", 2, 3), group(7, None, 4)]
    members = fabric_members(groups, NARROW)
    assert members[GroupId(7)] == (1, 2, 3, 4), "the union of all that share number 7"
    assert members[GroupId(1000)] == (1, 2)
    assert len(class_d_entries(groups, NARROW)) == 1
    assert looked_up(ip("239.1.1.7"), groups, NARROW) == looked_up(ip("238.9.9.7"), groups, NARROW) == 7


def test_narrow_255_is_broadcast() -> None:
    groups = [group(1, "239.1.1.255", 1, 2)]
    assert looked_up(ip("239.1.1.255"), groups, NARROW) == GROUP_BROADCAST
    assert GROUP_BROADCAST not in fabric_members(groups, NARROW), "its members are all hosts"


def test_wide_addresses_share_nothing() -> None:
    addresses = ["239.1.1.7", "238.9.9.7", "239.1.1.255", "225.0.0.7"]
    groups = [group(n, address, n) for n, address in enumerate(addresses)]
    numbers = assign(WIDE, groups)
    for one in groups:
        assert one.class_d is not None
        assert looked_up(one.class_d, groups, numbers) == numbers.number(one.class_d) == one.id
        assert fabric_members(groups, numbers)[one.id] == one.members
    assert looked_up(ip("239.2.2.7"), groups, numbers) is None, "an address that no group carries is unknown"


def test_wide_groups_with_one_address_share_its_number_for_as_long_as_one_is_there() -> None:
    first, second = group(3, "239.1.1.7", 1), group(9, "239.1.1.7", 2)
    numbers = assign(WIDE, [second, first])
    assert numbers.number(ip("239.1.1.7")) == 3
    assert fabric_members([first, second], numbers)[GroupId(3)] == (1, 2)
    left = assign(WIDE, [second], numbers)
    assert left.number(ip("239.1.1.7")) == 3, "it keeps its number"
    assert fabric_members([second], left) == {3: (2,), 9: (2,)}
    assert assign(WIDE, [], left).assigned == ()


def test_wide_numbers_never_meet_the_id_of_another_group() -> None:
    # Number 3 stays with the address though group 3 has gone; a new group 3 needs another.
    kept = assign(WIDE, [group(3, "239.1.1.7"), group(9, "239.1.1.7")])
    groups = [group(9, "239.1.1.7"), group(3, "239.1.1.8"), group(HASHED_FIRST - 1, None)]
    numbers = assign(WIDE, groups, kept)
    assert numbers.number(ip("239.1.1.7")) == 3
    assert numbers.number(ip("239.1.1.8")) == HASHED_FIRST - 2
    # Of an id among the numbers of hashes the same holds.
    assert assign(WIDE, [group(0xFF07, "239.1.1.7")]).number(ip("239.1.1.7")) == HASHED_FIRST - 1


def test_all_room_taken_means_hashes_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_d, "OWN_MAX", 3)
    groups = [group(n, f"239.{n}.0.{n % 2}", n) for n in range(7)]
    numbers = assign(WIDE, groups)
    got = [numbers.number(one.class_d) for one in groups if one.class_d is not None]
    assert got == [0, 1, 2, 0xFF01, 0xFF00, 0xFF01, 0xFF00]
    members = fabric_members(groups, numbers)
    assert members[GroupId(0xFF00)] == (4, 6)
    assert members[GroupId(0xFF01)] == (3, 5)
    for one, number in zip(groups, got, strict=True):
        assert one.class_d is not None
        assert looked_up(one.class_d, groups, numbers) == number
    # Room that comes free is for new addresses; who is there keeps its number.
    rest = [*groups[1:], group(0, "239.200.0.1", 0)]
    later = assign(WIDE, rest, numbers)
    assert [later.number(g.class_d) for g in groups[1:] if g.class_d is not None] == got[1:]
    assert later.number(ip("239.200.0.1")) == 0


def test_the_table_of_a_switch_holds_the_fullest_mapping() -> None:
    groups = [group(n, f"239.{n >> 8}.{n & 0xFF}.{n * 7 & 0xFF}") for n in range(OWN_MAX + 600) if n != 255]
    for mode, most in ((ClassDMode.NARROW, 256), (WIDE, CLASS_D_SIZE)):
        entries = class_d_entries(groups, assign(mode, groups))
        assert len({entry.match for entry in entries}) == len(entries) == most
    numbers = assign(WIDE, groups)
    own = [n for address, n in numbers.assigned if n != hashed(address)]
    assert len(own) == len(set(own)) == OWN_MAX


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("room", [2, OWN_MAX])
def test_packets_reach_those_who_share_the_number(
    seed: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_d, "OWN_MAX", room)
    rng = random.Random(seed)
    topology = random_topology(rng)
    groups = random_groups(rng, topology)
    numbers = assign(WIDE, groups)
    everyone = frozenset(h.id for h in topology.hosts)
    state = plan(topology, groups, everyone, everyone, RoutingPathfinder(), numbers)
    walker = Walker(topology, state.switches)
    carrying = [g for g in groups if g.class_d is not None]
    for part in topology.components():
        here = {h.id for h in part.hosts}
        for one in carrying:
            assert one.class_d is not None
            sharing = [
                g for g in carrying if g.class_d and numbers.number(g.class_d) == numbers.number(one.class_d)
            ]
            if room == OWN_MAX:
                assert all(g.class_d == one.class_d for g in sharing)
            wanted = {m for g in sharing for m in g.members} & here
            for sender in part.hosts:
                got = walker.send_class_d(sender, int(one.class_d))
                assert got == dict.fromkeys(wanted - {sender.id}, 1)


def book(database: Database, mode: ClassDMode | None = None) -> GroupBook:
    hosts = HostRegistry()
    for n in range(4):
        hosts.declare(f"h{n}", (SwitchId(0), PortId(n)), n, 0.0)
    return GroupBook(database, hosts, mode)


def test_a_restart_keeps_mode_and_numbers(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    database = Database(state)
    groups = book(database, WIDE)
    for number, address in ((5, "239.1.1.7"), (6, "239.1.1.7"), (7, "239.2.2.7")):
        groups.create(GroupRequest("switch", (number - 5,), number, class_d=address))
    groups.delete(5)
    before = groups.class_d
    assert before.assigned == ((ip("239.1.1.7"), 5), (ip("239.2.2.7"), 7))
    database.close()
    database = Database(state)
    again = book(database)
    assert again.class_d == before
    assert again.create(GroupRequest("switch", (3,), class_d="239.3.3.7")).id == 0
    again.delete(6)
    assert [address for address, _ in again.class_d.assigned] == [ip("239.2.2.7"), ip("239.3.3.7")]
    database.close()
    # The other mode, when it is asked for, and back: numbers are given anew.
    database = Database(state)
    assert book(database, ClassDMode.NARROW).class_d == NARROW
    database.close()
    database = Database(state)
    assert book(database).class_d.mode is ClassDMode.NARROW
    assert book(database, WIDE).class_d.number(ip("239.3.3.7")) == 0
    database.close()


def test_a_state_file_of_the_first_schema_is_taken_over(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    database = Database(state)
    book(database).create(GroupRequest("switch", (1, 2), class_d="239.1.1.7"))
    database.close()
    with contextlib.closing(sqlite3.connect(state)) as sql:
        sql.executescript("DROP TABLE settings; DROP TABLE class_d; PRAGMA user_version=1;")
    database = Database(state)
    groups = book(database)
    assert [g.id for g in groups.groups()] == [7]
    assert groups.class_d == NARROW
    database.close()


def test_narrow_groups_take_the_number_of_their_address_as_id() -> None:
    groups = book(Database(None))
    assert groups.create(GroupRequest("switch", (0,), class_d="239.1.1.7")).id == 7
    assert groups.create(GroupRequest("switch", (0,), class_d="239.2.2.7")).id == 0
    assert groups.create(GroupRequest("switch", (0,), class_d="239.2.2.255")).id == 1


def test_ids_that_would_be_shared_are_refused_in_wide_mode() -> None:
    groups = book(Database(None), WIDE)
    groups.create(GroupRequest("switch", (0,), 5, class_d="239.1.1.7"))
    groups.create(GroupRequest("switch", (1,), 6, class_d="239.1.1.7"))
    groups.delete(5)
    with pytest.raises(RequestError, match=r"5 is the number of class D address 239\.1\.1\.7"):
        groups.create(GroupRequest("switch", (2,), 5, "other"))
    with pytest.raises(RequestError, match="group id 65290 is kept for class D addresses") as refused:
        groups.create(GroupRequest("switch", (2,), 65290))
    assert refused.value.bound == "0 to 65279, not 255"
    assert groups.create(GroupRequest("switch", (2,), 5, "back", class_d="239.1.1.7")).id == 5
    free = [groups.create(GroupRequest("switch", (2,))).id for _ in range(6)]
    assert free == [0, 1, 2, 3, 4, 7], "the lowest that neither group nor address has"


def test_a_changed_group_keeps_its_number() -> None:
    groups = book(Database(None), WIDE)
    made = groups.create(GroupRequest("switch", (0,), 40, class_d="239.1.1.7"))
    assert groups.add(40, [1, 2]).members == (0, 1, 2)
    assert groups.class_d.number(ip("239.1.1.7")) == 40
    assert replace(made, members=(HostId(0), HostId(1), HostId(2))) == groups.get(40)
