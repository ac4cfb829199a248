"""The controller's state in SQLite: switches, links, hosts, groups, epoch of the agent plans.

Every change is one transaction. A crash of the controller loses nothing. A crash of the machine
may lose what was found in the last moments, and nothing that was reported as kept.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import TypeVar

from wormcast_planner import ClassDNumbers

from wormcast.discovery.hosts import HostRecord
from wormcast.guard.state import Guard
from wormcast.network.groups import Group
from wormcast.network.ids import Epoch, GroupId, HostId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.topology import Grid, Link
from wormcast.sockets import refusal_of
from wormcast.store import rows
from wormcast.store.mark import ACCEPT, StateMark, StoreError, Written, identity, is_same
from wormcast.store.rows import GATHER_EPOCHS_END, SwitchSpec
from wormcast.wormhole.switching import Switching

__all__ = ["EPOCH_REPORTED_MAX", "GATHER_EPOCHS_END", "Database", "StoreError", "SwitchSpec", "first_epoch"]

SCHEMA_VERSION = 3
_SCHEMA_1 = """
CREATE TABLE switches (id INTEGER PRIMARY KEY, address TEXT NOT NULL, device_id INTEGER NOT NULL,
                       ports INTEGER NOT NULL, up INTEGER NOT NULL DEFAULT 0);
CREATE TABLE links (a INTEGER, a_port INTEGER, b INTEGER, b_port INTEGER, PRIMARY KEY (a, a_port, b, b_port));
CREATE TABLE hosts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, mac BLOB NOT NULL, mtu_bytes INTEGER NOT NULL,
                    version TEXT NOT NULL, agent INTEGER NOT NULL, declared INTEGER NOT NULL,
                    switch INTEGER, port INTEGER, attached INTEGER NOT NULL, silent TEXT NOT NULL);
CREATE TABLE groups (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, scheme TEXT NOT NULL, members TEXT NOT NULL,
                     parameters TEXT NOT NULL, class_d TEXT);
CREATE TABLE agent_plan (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, digest TEXT NOT NULL);
"""
_ADDED_IN_2 = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE class_d (address TEXT PRIMARY KEY, number INTEGER NOT NULL);
"""

_ADDED_IN_3 = """
ALTER TABLE groups ADD COLUMN gather INTEGER NOT NULL DEFAULT 0;
"""

_COUNTED_AT = "switch %d is counted at"


EPOCH_MAX = (1 << 63) - (1 << 32)
"""Epochs stay below; SQLite keeps integers below 2^63."""
EPOCH_REPORTED_MAX = 1 << 62
"""Greatest epoch that an agent's word is taken for, unless this controller was there already."""

TEXT_MAX = 500
"""Characters shown of what is wrong with a row."""

LOG = logging.getLogger("wormcast.store")
Row = TypeVar("Row")


def first_epoch() -> Epoch:
    """Seconds since 1970: should the state file be lost, a new one does not repeat its epochs."""
    return Epoch(int(time.time()))


class Database:
    """One open state file."""

    def __init__(self, path: Path | None, accept_older: bool = False) -> None:
        """Opens or creates the file; None keeps the state in memory. One that is older than what was written, or is
        gone, is refused unless it is to be accepted. Raises `StoreError`."""
        self._path = path
        self._mark: StateMark | None = None
        self._files: dict[Path, tuple[int, int]] = {}
        """The files that SQLite has open, and which they are."""
        try:
            self._open(path, accept_older)
        except BaseException:
            if self._mark is not None:
                self._mark.close()
            raise

    def _open(self, path: Path | None, accept_older: bool) -> None:
        try:
            if path is not None:
                if path.is_dir():
                    raise StoreError(
                        f"state file {path} is a directory; name a file in it, as {path / 'controller.db'}"
                    )
                if path.exists() and not path.is_file():
                    raise StoreError(f"state file {path} is a device or a pipe; name a file")
                path.parent.mkdir(parents=True, exist_ok=True)
                self._mark = StateMark(path)
                self._mark.check(accept_older)
                path.touch(mode=0o600)
                with contextlib.suppress(PermissionError):  # another user's
                    path.chmod(0o600)  # it has the secrets of agents
            self._sql = sqlite3.connect(":memory:" if path is None else path, timeout=0, isolation_level=None)
            # One controller a file: the lock goes with the process, however it ends.
            self._sql.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._sql.execute("PRAGMA journal_mode=WAL")
            self._migrate()
            self._begin()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StoreError(f"state file {path} is in use by another controller") from error
            raise StoreError(f"state file {path}: {error}; choose another with --state") from error
        except sqlite3.Error as error:
            raise StoreError(f"state file {path}: {error}; choose another with --state") from error
        except OSError as error:
            where = "" if error.filename in (None, str(path)) else f"{error.filename}: "
            raise StoreError(f"state file {path}: {where}{refusal_of(error)}") from error

    def _migrate(self) -> None:
        self._sql.execute("BEGIN EXCLUSIVE")
        (version,) = self._sql.execute("PRAGMA user_version").fetchone()
        self._sql.execute("COMMIT")
        if version == 0:
            first = f"INSERT INTO agent_plan VALUES (1, {first_epoch()}, '');"
            self._sql.executescript(
                f"BEGIN; {_SCHEMA_1} {_ADDED_IN_2} {_ADDED_IN_3} {first} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;"
            )
        elif version in (1, 2):
            added = f"{_ADDED_IN_2 if version == 1 else ''} {_ADDED_IN_3}"
            self._sql.executescript(f"BEGIN; {added} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")
        elif version != SCHEMA_VERSION:
            raise StoreError(
                f"state file {self._path} has schema {version}; this version reads 1 to {SCHEMA_VERSION}"
            )

    def _begin(self) -> None:
        """Goes on from what has been written."""
        found = self._sql.execute("SELECT value FROM settings WHERE name='written'").fetchone()
        try:
            self._written = Written.from_json(found[0]) if found else Written(secrets.token_hex(8), 0, 0)
        except ValueError as error:
            raise StoreError(f"state file {self._path}: how much was written: {error}") from error
        with self._change(kept=False):
            pass
        if self._path is not None:
            files = [Path(f"{self._path}{ending}") for ending in ("", "-wal")]
            self._files = {file: identity(file) for file in files}

    def problem(self) -> str | None:
        """Why nothing can be kept any more, which SQLite does not notice; None: it can."""
        lost = [str(file) for file, known in self._files.items() if not is_same(file, known)]
        if not lost:
            return None
        return (
            f"{' and '.join(lost)} of the state was deleted or replaced while in use. Put back what was there, or start "
            f"the controller anew, with {ACCEPT} if the state is to be empty"
        )

    @contextlib.contextmanager
    def _change(self, kept: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction: done as a whole or, with a `StoreError`, not at all. `kept`: somebody is notified that it is."""
        if (problem := self.problem()) is not None:
            raise StoreError(problem)
        before = self._written
        written = Written(before.state, before.kept + kept, before.seen + (not kept))
        try:
            # Without that the last moments may be lost, and nobody waits for the disk.
            self._sql.execute(f"PRAGMA synchronous={'FULL' if kept else 'NORMAL'}")
            self._sql.execute("BEGIN")
            try:
                yield self._sql
                self._sql.execute(
                    "INSERT OR REPLACE INTO settings VALUES ('written', ?)", (written.to_json(),)
                )
            except BaseException:
                self._sql.execute("ROLLBACK")
                raise
            self._sql.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(f"state file {self._path}: {error}") from error
        self._written = written
        if self._mark is not None:
            self._mark.write(written)

    def _read(self, table: str, rest: str, make: Callable[..., Row]) -> list[Row]:
        """Rows as `make` makes them; raises `StoreError`, which names a row that cannot be."""
        found = []
        row: tuple[object, ...] = ()
        try:
            for row in self._sql.execute(f"SELECT {rest.format(table=table)}"):
                found.append(make(*row))
        except sqlite3.Error as error:
            raise StoreError(f"state file {self._path}, table {table}: {error}") from error
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            text = f"row {str(row[0])[:64]} of table {table}: {str(error)[:TEXT_MAX]}"
            raise StoreError(f"state file {self._path}: {text}") from error
        return found

    def close(self) -> None:
        self._sql.close()
        if self._mark is not None:
            self._mark.close()

    def switches(self) -> list[SwitchSpec]:
        """All switches by id."""
        specs = self._read(
            "switches", "id, address, device_id, ports FROM {table} ORDER BY id", rows.read_switch
        )
        return [self._with_port_sources(spec) for spec in specs]

    def _with_port_sources(self, spec: SwitchSpec) -> SwitchSpec:
        columns = f"value FROM {{table}} WHERE name='{_COUNTED_AT % spec.id}'"
        found = self._read("settings", columns, rows.read_port_sources)
        if not found:
            return spec
        interfaces, metrics, device_ports = found[0]
        return replace(spec, interfaces=interfaces, metrics=metrics, device_ports=device_ports)

    def switches_up(self) -> frozenset[SwitchId]:
        """Switches that were up when last seen."""
        return frozenset(self._read("switches", "id FROM {table} WHERE up", SwitchId))

    def put_switches(self, specs: Iterable[SwitchSpec]) -> None:
        """Adds or replaces switches. Raises `StoreError`, as all changes do."""
        specs = list(specs)
        with self._change() as sql:
            sql.executemany(
                "INSERT INTO switches (id, address, device_id, ports) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
                "SET address=excluded.address, device_id=excluded.device_id, ports=excluded.ports",
                [(s.id, s.address, rows.signed(s.device_id), s.ports) for s in specs],
            )
            sql.executemany(
                "INSERT OR REPLACE INTO settings VALUES (?, ?)",
                [(_COUNTED_AT % s.id, rows.port_sources_text(s)) for s in specs],
            )

    def remove_switch(self, switch: SwitchId) -> None:
        with self._change() as sql:
            sql.execute("DELETE FROM switches WHERE id=?", (switch,))
            sql.execute("DELETE FROM settings WHERE name=?", (_COUNTED_AT % switch,))

    def links(self) -> list[Link]:
        """Links that were up when last seen."""
        return self._read("links", "a, a_port, b, b_port FROM {table} ORDER BY a, a_port", rows.read_link)

    def put_network(
        self,
        up: Iterable[SwitchId],
        links: Iterable[Link],
        hosts: Iterable[tuple[HostRecord, bool]],
        suspected: tuple[Iterable[SwitchId], Iterable[Link]],
    ) -> None:
        """Replaces what was discovered; with each host whether it is present, that is, not gone."""
        suspects = {"switches": sorted(suspected[0]), "links": [astuple(x) for x in sorted(suspected[1])]}
        hosts = list(hosts)
        no_transit = [host.id for host, _ in hosts if not host.transit]
        away = {host.id: host.away_since for host, _ in hosts if host.away_since is not None}
        with self._change(kept=False) as sql:
            sql.execute("UPDATE switches SET up=0")
            sql.executemany("UPDATE switches SET up=1 WHERE id=?", [(i,) for i in up])
            sql.execute("DELETE FROM links")
            sql.executemany(
                "INSERT INTO links VALUES (?, ?, ?, ?)", [(x.a, x.a_port, x.b, x.b_port) for x in links]
            )
            sql.execute("DELETE FROM hosts")
            sql.executemany(
                "INSERT INTO hosts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [rows.host_row(host, present) for host, present in hosts],
            )
            sql.executemany(
                "INSERT OR REPLACE INTO settings VALUES (?, ?)",
                [
                    ("suspected", json.dumps(suspects)),
                    ("no_transit", json.dumps(no_transit)),
                    ("away", json.dumps(away)),
                ],
            )

    def suspected(self) -> tuple[list[SwitchId], list[Link]]:
        """Switches and links that were known and not up when last seen."""
        found = self._read("settings", "value FROM {table} WHERE name='suspected'", rows.read_suspected)
        return found[0] if found else ([], [])

    def hosts(self) -> list[HostRecord]:
        """All hosts by id."""
        columns = "id, name, mac, mtu_bytes, version, agent, declared, switch, port, silent"
        found = self._read("hosts", f"{columns} FROM {{table}} ORDER BY id", rows.read_host)
        opted_out = self._read("settings", "value FROM {table} WHERE name='no_transit'", rows.read_host_ids)
        known = dict(
            self._read(
                "settings",
                f"name, value FROM {{table}} WHERE name LIKE '{rows.SECRET_OF}%'",
                rows.read_secret,
            )
        )
        away = self._read("settings", "value FROM {table} WHERE name='away'", rows.read_times)
        for host in found:
            host.transit = not (opted_out and host.id in opted_out[0])
            host.secret = known.get(host.name, b"")
            host.away_since = away[0].get(host.id) if away else None
        return found

    def put_secret(self, name: str, secret: bytes) -> None:
        """Keeps the secret of the agent of this name."""
        self._put("INSERT OR REPLACE INTO settings VALUES (?, ?)", (rows.SECRET_OF + name, secret.hex()))

    def remove_secret(self, name: str) -> None:
        self._put("DELETE FROM settings WHERE name=?", (rows.SECRET_OF + name,))

    def hosts_present(self) -> frozenset[HostId]:
        """Hosts that were not gone when last seen."""
        return frozenset(self._read("hosts", "id FROM {table} WHERE attached", HostId))

    def groups(self) -> list[Group]:
        """All groups by id."""
        columns = "id, name, scheme, members, parameters, class_d, gather"
        return self._read("groups", f"{columns} FROM {{table}} ORDER BY id", rows.read_group)

    def change_groups(
        self, put: Iterable[Group], removed: Iterable[GroupId], class_d: ClassDNumbers | None
    ) -> None:
        """Adds or replaces groups and removes others; with the numbers of all class D addresses if they change."""
        with self._change() as sql:
            sql.executemany("DELETE FROM groups WHERE id=?", [(group,) for group in removed])
            sql.executemany(
                "INSERT OR REPLACE INTO groups VALUES (?, ?, ?, ?, ?, ?, ?)",
                [rows.group_row(group) for group in put],
            )
            if class_d is not None:
                rows.put_class_d(sql, class_d)

    def grid(self) -> Grid | None:
        """Coordinates of the switches; None: there are none."""
        found = self._read("settings", "value FROM {table} WHERE name='grid'", rows.read_grid)
        return found[0] if found else None

    def put_grid(self, grid: Grid) -> None:
        self._put("INSERT OR REPLACE INTO settings VALUES ('grid', ?)", (json.dumps(grid.to_json()),))

    def costs(self) -> str | None:
        """By which groups of scheme auto choose, a costs file; None: by the default."""
        found = self._read("settings", "value FROM {table} WHERE name='costs'", str)
        return found[0] if found else None

    def put_costs(self, costs: str) -> None:
        self._put("INSERT OR REPLACE INTO settings VALUES ('costs', ?)", (costs,))

    def guard(self) -> Guard:
        """What the operator asks of the guard; off if nobody ever set it."""
        found = self._read("settings", "value FROM {table} WHERE name='guard'", rows.read_guard)
        return found[0] if found else Guard()

    def put_guard(self, guard: Guard) -> None:
        """Replaces what the operator asks of the guard."""
        value = json.dumps(guard.to_json())
        self._put("INSERT OR REPLACE INTO settings VALUES ('guard', ?)", (value,))

    def switching(self) -> Switching:
        """How switches are to pass worms on; packet mode if nobody ever set it."""
        found = self._read("settings", "value FROM {table} WHERE name='switching'", rows.read_switching)
        return found[0] if found else Switching()

    def put_switching(self, switching: Switching) -> None:
        """Replaces how switches are to pass worms on."""
        value = json.dumps(switching.to_json())
        self._put("INSERT OR REPLACE INTO settings VALUES ('switching', ?)", (value,))

    def trains(self) -> Switching | None:
        """The wormhole mode in which agents may send trains; None: they send none."""
        found = self._read("settings", "value FROM {table} WHERE name='trains'", rows.read_switching)
        return found[0] if found else None

    def put_trains(self, switching: Switching | None) -> None:
        """Remembers it; call before any agent is asked to send trains, and when all have stopped."""
        if switching is None:
            self._put("DELETE FROM settings WHERE name=?", ("trains",))
        else:
            value = json.dumps(switching.to_json())
            self._put("INSERT OR REPLACE INTO settings VALUES ('trains', ?)", (value,))

    def keep_routing(self, given: Routing | None) -> Routing:
        """The unicast routes that are asked for now, else those that were last."""
        if given is None:
            return self.routing() or Routing()
        self.put_routing(given)
        return given

    def routing(self) -> Routing | None:
        """The routes that the operator wants; None if nobody ever set it."""
        found = self._read("settings", "value FROM {table} WHERE name='routing'", rows.read_routing)
        return found[0] if found else None

    def put_routing(self, routing: Routing) -> None:
        """Replaces the routes that the operator wants."""
        value = json.dumps(routing.to_json())
        self._put("INSERT OR REPLACE INTO settings VALUES ('routing', ?)", (value,))

    def route_order(self) -> str | None:
        """The order of switches that worms in flight may keep to, as the planner wrote it; None if there is none."""
        found = self._read("settings", "value FROM {table} WHERE name='route_order'", str)
        return found[0] if found else None

    def put_route_order(self, order: str) -> None:
        """Remembers the order of switches; call before any agent is sent routes that keep to it."""
        self._put("INSERT OR REPLACE INTO settings VALUES ('route_order', ?)", (order,), kept=False)

    def gather_epochs(self) -> int:
        """Epochs of gathered ACKs below it may have been taken."""
        found = self._read(
            "settings", "value FROM {table} WHERE name='gather_epochs'", rows.read_gather_epochs
        )
        return found[0] if found else 0

    def put_gather_epochs(self, end: int) -> None:
        """Remembers that all below may be taken from now on; call before any is."""
        self._put("INSERT OR REPLACE INTO settings VALUES ('gather_epochs', ?)", (str(end),))

    def class_d(self) -> ClassDNumbers:
        """Mode and numbers of class D addresses; narrow if none was ever set."""
        numbers = self._read("settings", "value FROM {table} WHERE name='class_d'", ClassDNumbers)
        assigned = self._read("class_d", "address, number FROM {table}", rows.read_class_d_number)
        return ClassDNumbers((numbers[0] if numbers else ClassDNumbers()).mode, assigned)

    def put_class_d(self, class_d: ClassDNumbers) -> None:
        """Replaces mode and numbers of class D addresses."""
        with self._change() as sql:
            rows.put_class_d(sql, class_d)

    def agent_plan(self) -> tuple[Epoch, str]:
        """Epoch and digest of the last agent plans; an epoch beyond all use is replaced by a first one."""
        row = self._sql.execute("SELECT epoch, digest FROM agent_plan").fetchone()
        epoch, digest = row if row is not None else (None, "")
        if not isinstance(epoch, int) or not 0 <= epoch < EPOCH_MAX or not isinstance(digest, str):
            LOG.warning("state file %s: epoch %r is not valid; starting with a new one", self._path, epoch)
            return first_epoch(), ""
        return Epoch(epoch), digest

    @staticmethod
    def next_epoch(epoch: Epoch) -> Epoch:
        """The one after; after the last that can be kept, a first one."""
        return Epoch(epoch + 1) if epoch + 1 < EPOCH_MAX else first_epoch()

    def put_agent_plan(self, epoch: Epoch, digest: str) -> None:
        """Remembers the agent plans by their digest; call before any agent is sent one."""
        self._put("UPDATE agent_plan SET epoch=?, digest=?", (epoch, digest), kept=False)

    def _put(self, statement: str, values: tuple[object, ...], kept: bool = True) -> None:
        with self._change(kept) as sql:
            sql.execute(statement, values)
