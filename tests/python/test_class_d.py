"""Class D addresses of groups: numbers of their own, ids that they take, restarts."""

from __future__ import annotations

import contextlib
import ipaddress
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from controller_lab.small import make_group
from wormcast.discovery.hosts import HostRegistry
from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.group_registry import GroupRegistry
from wormcast.store.database import Database
from wormcast_planner import ClassDNumbers

WIDE = "wide"
NARROW = ClassDNumbers()


def ip(text: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(text)


def registry(database: Database, mode: str | None = None) -> GroupRegistry:
    hosts = HostRegistry()
    for n in range(4):
        hosts.declare(f"h{n}", (SwitchId(0), PortId(n)), n, 0.0)
    return GroupRegistry(database, hosts, mode)


def test_a_restart_keeps_mode_and_numbers(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    database = Database(state)
    groups = registry(database, WIDE)
    for number, address in ((5, "239.1.1.7"), (6, "239.1.1.7"), (7, "239.2.2.7")):
        make_group(groups, "switch", (number - 5,), number, class_d=address)
    groups.delete(5)
    before = groups.class_d
    assert before.assigned == [(ip("239.1.1.7"), 5), (ip("239.2.2.7"), 7)]
    database.close()
    database = Database(state)
    again = registry(database)
    assert again.class_d == before
    assert make_group(again, "switch", (3,), class_d="239.3.3.7").id == 0
    again.delete(6)
    assert [address for address, _ in again.class_d.assigned] == [ip("239.2.2.7"), ip("239.3.3.7")]
    database.close()
    # The other mode, when it is asked for, and back: numbers are given anew.
    database = Database(state)
    assert registry(database, "narrow").class_d == NARROW
    database.close()
    database = Database(state)
    assert registry(database).class_d.mode == "narrow"
    assert registry(database, WIDE).class_d.number(ip("239.3.3.7")) == 0
    database.close()


def test_a_state_file_of_the_first_schema_is_taken_over(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    database = Database(state)
    make_group(registry(database), "switch", (1, 2), class_d="239.1.1.7")
    database.close()
    with contextlib.closing(sqlite3.connect(state)) as sql:
        sql.executescript(
            "DROP TABLE settings; DROP TABLE class_d; ALTER TABLE groups DROP COLUMN gather; PRAGMA user_version=1;"
        )
    (tmp_path / "state.db-mark").unlink()  # versions of that time wrote none
    database = Database(state)
    groups = registry(database)
    assert [g.id for g in groups.groups()] == [7]
    assert groups.class_d == NARROW
    database.close()


def test_narrow_groups_take_the_number_of_their_address_as_id() -> None:
    groups = registry(Database(None))
    assert make_group(groups, "switch", (0,), class_d="239.1.1.7").id == 7
    assert make_group(groups, "switch", (0,), class_d="239.2.2.7").id == 0
    assert make_group(groups, "switch", (0,), class_d="239.2.2.255").id == 1


def test_ids_that_would_be_shared_are_refused_in_wide_mode() -> None:
    groups = registry(Database(None), WIDE)
    make_group(groups, "switch", (0,), 5, class_d="239.1.1.7")
    make_group(groups, "switch", (1,), 6, class_d="239.1.1.7")
    groups.delete(5)
    with pytest.raises(RequestError, match=r"5 is the number of class D address 239\.1\.1\.7"):
        make_group(groups, "switch", (2,), 5, "other")
    with pytest.raises(RequestError, match="group id 65290 is reserved for class D addresses") as refused:
        make_group(groups, "switch", (2,), 65290)
    assert refused.value.bound == "0 to 65279, not 255"
    assert make_group(groups, "switch", (2,), 5, "back", class_d="239.1.1.7").id == 5
    free = [make_group(groups, "switch", (2,)).id for _ in range(6)]
    assert free == [0, 1, 2, 3, 4, 7], "the lowest that neither group nor address has"


def test_a_changed_group_keeps_its_number() -> None:
    groups = registry(Database(None), WIDE)
    made = make_group(groups, "switch", (0,), 40, class_d="239.1.1.7")
    assert groups.add(40, [1, 2]).members == (0, 1, 2)
    assert groups.class_d.number(ip("239.1.1.7")) == 40
    assert replace(made, members=(HostId(0), HostId(1), HostId(2))) == groups.get(40)
