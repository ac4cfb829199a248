"""The controller's state in SQLite: switches, links, hosts, groups, epoch of the agent plans.

Every change is one transaction. With write-ahead logging a crash of the
controller loses nothing; a crash of the machine may lose the last moments.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from wormcast_planner import GROUP_ID_MAX, HOST_ID_MAX, PORT_ID_MAX, SWITCH_ID_MAX, ClassDNumbers

from wormcast.discovery.hosts import HostRecord, check_name
from wormcast.network.groups import Group, Parameters, parse_scheme
from wormcast.network.guard import Guard
from wormcast.network.ids import Epoch, GroupId, HostId, PortId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.switching import Switching
from wormcast.network.topology import Grid, Link

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
_SECRET_OF = "secret of host "


_DEVICE_MAX = (1 << 64) - 1
"""P4Runtime's device ids have 64 bits without a sign, SQLite's integers 64 with one."""
EPOCH_MAX = (1 << 63) - (1 << 32)
"""Epochs stay below; SQLite keeps integers below 2^63."""
GATHER_EPOCHS_END = (1 << 32) - 1
"""Epochs of gathered ACKs are below: they have 32 bits."""
EPOCH_TOLD_MAX = 1 << 62
"""Greatest epoch that an agent's word is taken for, unless this controller was there already."""

TEXT_MAX = 500
"""Characters shown of what is wrong with a row."""

LOG = logging.getLogger("wormcast.store")
Row = TypeVar("Row")


def first_epoch() -> Epoch:
    """Seconds since 1970: should the state file be lost, a new one does not repeat its epochs."""
    return Epoch(int(time.time()))


class StoreError(Exception):
    """A database that cannot be used; the text names the file and the reason."""


@dataclass(frozen=True, order=True)
class SwitchSpec:
    """How to reach a switch and what it has."""

    id: SwitchId
    address: str
    """`host:port` or `unix:/path` of its P4Runtime server."""
    device_id: int
    ports: int
    interfaces: tuple[tuple[int, str], ...] = field(default=(), compare=False)
    """Port and name of the interfaces its ports are, where they are in the controller's network namespace."""
    metrics: str | None = field(default=None, compare=False)
    """`host:port` of its page of metrics, if it is wormcast-switch and has one."""
    device_ports: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """Port and device port, where it is a chip that has numbers of its own for its ports."""


class Database:
    """One open state file."""

    def __init__(self, path: Path | None) -> None:
        """Opens or creates the file; None keeps the state in memory. Raises `StoreError`."""
        self._path = path
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)
                with contextlib.suppress(PermissionError):  # another user's
                    path.chmod(0o600)  # it has the secrets of agents
            self._sql = sqlite3.connect(":memory:" if path is None else path, timeout=0, isolation_level=None)
            # One controller a file: the lock goes with the process, however it ends.
            self._sql.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._sql.execute("PRAGMA journal_mode=WAL")
            self._sql.execute("PRAGMA synchronous=NORMAL")
            self._migrate()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StoreError(f"state file {path} is in use by another controller") from error
            raise StoreError(f"state file {path}: {error}") from error
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"state file {path}: {error}") from error

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

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One transaction: done as a whole or, with a `StoreError`, not at all."""
        try:
            self._sql.execute("BEGIN")
            try:
                yield self._sql
            except BaseException:
                self._sql.execute("ROLLBACK")
                raise
            self._sql.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(f"state file {self._path}: {error}") from error

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
        """Closes the file."""
        self._sql.close()

    def switches(self) -> list[SwitchSpec]:
        """All switches by id."""
        specs = self._read("switches", "id, address, device_id, ports FROM {table} ORDER BY id", _switch)
        return [self._with_port_sources(spec) for spec in specs]

    def _with_port_sources(self, spec: SwitchSpec) -> SwitchSpec:
        columns = f"value FROM {{table}} WHERE name='{_COUNTED_AT % spec.id}'"
        found = self._read("settings", columns, _port_sources)
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
                [(s.id, s.address, _signed(s.device_id), s.ports) for s in specs],
            )
            sql.executemany(
                "INSERT OR REPLACE INTO settings VALUES (?, ?)",
                [(_COUNTED_AT % s.id, _said_of_ports(s)) for s in specs],
            )

    def remove_switch(self, switch: SwitchId) -> None:
        """Removes a switch."""
        with self._change() as sql:
            sql.execute("DELETE FROM switches WHERE id=?", (switch,))
            sql.execute("DELETE FROM settings WHERE name=?", (_COUNTED_AT % switch,))

    def links(self) -> list[Link]:
        """Links that were up when last seen."""
        return self._read("links", "a, a_port, b, b_port FROM {table} ORDER BY a, a_port", _link)

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
        with self._change() as sql:
            sql.execute("UPDATE switches SET up=0")
            sql.executemany("UPDATE switches SET up=1 WHERE id=?", [(i,) for i in up])
            sql.execute("DELETE FROM links")
            sql.executemany(
                "INSERT INTO links VALUES (?, ?, ?, ?)", [(x.a, x.a_port, x.b, x.b_port) for x in links]
            )
            sql.execute("DELETE FROM hosts")
            sql.executemany(
                "INSERT INTO hosts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_host_row(host, present) for host, present in hosts],
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
        found = self._read("settings", "value FROM {table} WHERE name='suspected'", _suspected)
        return found[0] if found else ([], [])

    def hosts(self) -> list[HostRecord]:
        """All hosts by id."""
        columns = "id, name, mac, mtu_bytes, version, agent, declared, switch, port, silent"
        found = self._read("hosts", f"{columns} FROM {{table}} ORDER BY id", _host)
        opted_out = self._read("settings", "value FROM {table} WHERE name='no_transit'", _host_ids)
        known = dict(
            self._read("settings", f"name, value FROM {{table}} WHERE name LIKE '{_SECRET_OF}%'", _secret)
        )
        away = self._read("settings", "value FROM {table} WHERE name='away'", _times)
        for host in found:
            host.transit = not (opted_out and host.id in opted_out[0])
            host.secret = known.get(host.name, b"")
            host.away_since = away[0].get(host.id) if away else None
        return found

    def put_secret(self, name: str, secret: bytes) -> None:
        """Keeps the secret of the agent of this name."""
        self._put("INSERT OR REPLACE INTO settings VALUES (?, ?)", (_SECRET_OF + name, secret.hex()))

    def remove_secret(self, name: str) -> None:
        """Forgets it."""
        self._put("DELETE FROM settings WHERE name=?", (_SECRET_OF + name,))

    def hosts_present(self) -> frozenset[HostId]:
        """Hosts that were not gone when last seen."""
        return frozenset(self._read("hosts", "id FROM {table} WHERE attached", HostId))

    def groups(self) -> list[Group]:
        """All groups by id."""
        columns = "id, name, scheme, members, parameters, class_d, gather"
        return self._read("groups", f"{columns} FROM {{table}} ORDER BY id", _group)

    def change_groups(
        self, put: Iterable[Group], removed: Iterable[GroupId], class_d: ClassDNumbers | None
    ) -> None:
        """Adds or replaces groups and removes others; with the numbers of all class D addresses if they change."""
        with self._change() as sql:
            sql.executemany("DELETE FROM groups WHERE id=?", [(group,) for group in removed])
            sql.executemany(
                "INSERT OR REPLACE INTO groups VALUES (?, ?, ?, ?, ?, ?, ?)",
                [_group_row(group) for group in put],
            )
            if class_d is not None:
                _put_class_d(sql, class_d)

    def grid(self) -> Grid | None:
        """Coordinates of the switches; None: there are none."""
        found = self._read("settings", "value FROM {table} WHERE name='grid'", _grid)
        return found[0] if found else None

    def put_grid(self, grid: Grid) -> None:
        """Keeps coordinates."""
        self._put("INSERT OR REPLACE INTO settings VALUES ('grid', ?)", (json.dumps(grid.to_json()),))

    def costs(self) -> str | None:
        """By which groups of scheme auto choose, a costs file; None: by the default."""
        found = self._read("settings", "value FROM {table} WHERE name='costs'", str)
        return found[0] if found else None

    def put_costs(self, costs: str) -> None:
        """Keeps costs."""
        self._put("INSERT OR REPLACE INTO settings VALUES ('costs', ?)", (costs,))

    def guard(self) -> Guard:
        """What the operator asks of the guard; off if nobody ever said."""
        found = self._read("settings", "value FROM {table} WHERE name='guard'", _guard)
        return found[0] if found else Guard()

    def put_guard(self, guard: Guard) -> None:
        """Replaces what the operator asks of the guard."""
        value = json.dumps(guard.to_json())
        self._put("INSERT OR REPLACE INTO settings VALUES ('guard', ?)", (value,))

    def switching(self) -> Switching:
        """How switches are to pass worms on; packet mode if nobody ever said."""
        found = self._read("settings", "value FROM {table} WHERE name='switching'", _switching)
        return found[0] if found else Switching()

    def put_switching(self, switching: Switching) -> None:
        """Replaces how switches are to pass worms on."""
        value = json.dumps(switching.to_json())
        self._put("INSERT OR REPLACE INTO settings VALUES ('switching', ?)", (value,))

    def trains(self) -> Switching | None:
        """The wormhole mode in which agents may send trains; None: they send none."""
        found = self._read("settings", "value FROM {table} WHERE name='trains'", _switching)
        return found[0] if found else None

    def put_trains(self, switching: Switching | None) -> None:
        """Remembers it; call before any agent is told to send trains, and when all have stopped."""
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
        """The routes that the operator wants; None if nobody ever said."""
        found = self._read("settings", "value FROM {table} WHERE name='routing'", _routing)
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
        """Remembers the order of switches; call before any agent is told of routes that keep to it."""
        self._put("INSERT OR REPLACE INTO settings VALUES ('route_order', ?)", (order,))

    def gather_epochs(self) -> int:
        """Epochs of gathered ACKs below it may have been taken."""
        found = self._read("settings", "value FROM {table} WHERE name='gather_epochs'", _gather_epochs)
        return found[0] if found else 0

    def put_gather_epochs(self, end: int) -> None:
        """Remembers that all below may be taken from now on; call before any is."""
        self._put("INSERT OR REPLACE INTO settings VALUES ('gather_epochs', ?)", (str(end),))

    def class_d(self) -> ClassDNumbers:
        """Mode and numbers of class D addresses; narrow if none was ever set."""
        numbers = self._read("settings", "value FROM {table} WHERE name='class_d'", ClassDNumbers)
        assigned = self._read("class_d", "address, number FROM {table}", _class_d_number)
        return ClassDNumbers((numbers[0] if numbers else ClassDNumbers()).mode, assigned)

    def put_class_d(self, class_d: ClassDNumbers) -> None:
        """Replaces mode and numbers of class D addresses."""
        with self._change() as sql:
            _put_class_d(sql, class_d)

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
        """Remembers the agent plans by their digest; call before any agent is told."""
        self._put("UPDATE agent_plan SET epoch=?, digest=?", (epoch, digest))

    def _put(self, statement: str, values: tuple[object, ...]) -> None:
        with self._change() as sql:
            sql.execute(statement, values)


def _within(what: str, value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what} is {value!r}; possible: {low} to {high}")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is {value!r}, not text")
    return value


def _switch(number: object, address: object, device: object, ports: object) -> SwitchSpec:
    return SwitchSpec(
        SwitchId(_within("id", number, 0, SWITCH_ID_MAX)),
        _text("address", address),
        _within("device_id", device, -1 << 63, _DEVICE_MAX) & _DEVICE_MAX,
        _within("ports", ports, 1, PORT_ID_MAX + 1),
    )


def _link(a: object, a_port: object, b: object, b_port: object) -> Link:
    return Link(
        SwitchId(_within("a", a, 0, SWITCH_ID_MAX)),
        PortId(_within("a_port", a_port, 0, PORT_ID_MAX)),
        SwitchId(_within("b", b, 0, SWITCH_ID_MAX)),
        PortId(_within("b_port", b_port, 0, PORT_ID_MAX)),
    )


def _said_of_ports(spec: SwitchSpec) -> str:
    return json.dumps(
        {"interfaces": spec.interfaces, "metrics": spec.metrics, "device_ports": spec.device_ports}
    )


def _port_sources(text: str) -> tuple[tuple[tuple[int, str], ...], str | None, tuple[tuple[int, int], ...]]:
    value = json.loads(text)
    metrics = None if value["metrics"] is None else str(value["metrics"])
    interfaces = tuple((int(port), str(name)) for port, name in value["interfaces"])
    # Files of versions before have none.
    devices = tuple((int(port), int(device)) for port, device in value.get("device_ports", ()))
    return interfaces, metrics, devices


def _suspected(text: str) -> tuple[list[SwitchId], list[Link]]:
    value = json.loads(text)
    switches = [SwitchId(_within("switch", switch, 0, SWITCH_ID_MAX)) for switch in value["switches"]]
    return switches, [_link(*link) for link in value["links"]]


def _gather_epochs(text: str) -> int:
    return _within("gather_epochs", int(text), 0, GATHER_EPOCHS_END)


def _grid(text: str) -> Grid:
    return Grid.from_json(json.loads(text))


def _routing(text: str) -> Routing:
    return Routing.from_json(json.loads(text))


def _switching(text: str) -> Switching:
    return Switching.from_json(json.loads(text))


def _guard(text: str) -> Guard:
    return Guard.from_json(json.loads(text))


def _secret(name: str, value: str) -> tuple[str, bytes]:
    return name.removeprefix(_SECRET_OF), bytes.fromhex(value)


def _host_ids(text: str) -> frozenset[HostId]:
    return frozenset(HostId(_within("host", host, 0, HOST_ID_MAX)) for host in json.loads(text))


def _times(text: str) -> dict[HostId, float]:
    """Of hosts, in seconds since 1970; `datetime` takes four digits of years."""
    times = json.loads(text)
    return {
        HostId(int(host)): float(_within("time", int(at), 0, 253_402_300_799)) for host, at in times.items()
    }


def _host(
    number: object,
    name: object,
    mac: object,
    mtu: object,
    version: object,
    agent: object,
    declared: object,
    switch: object,
    port: object,
    silent: object,
) -> HostRecord:
    check_name(_text("name", name))
    if not isinstance(mac, bytes) or len(mac) not in (0, 6):
        raise ValueError(f"mac is {mac!r}; possible: 6 bytes")
    place = None
    if switch is not None:
        place = (
            SwitchId(_within("switch", switch, 0, SWITCH_ID_MAX)),
            PortId(_within("port", port, 0, PORT_ID_MAX)),
        )
    return HostRecord(
        HostId(_within("id", number, 0, HOST_ID_MAX)),
        _text("name", name),
        mac,
        _within("mtu_bytes", mtu, 0, (1 << 32) - 1),
        _text("version", version),
        bool(agent),
        bool(declared),
        place,
        silent=_text("silent", silent),
    )


def _group(
    number: object,
    name: object,
    scheme: str,
    members: str,
    parameters: str,
    class_d: str | None,
    gather: object,
) -> Group:
    return Group(
        GroupId(_within("id", number, 0, GROUP_ID_MAX)),
        _text("name", name),
        parse_scheme(scheme),
        tuple(HostId(_within("a member", m, 0, HOST_ID_MAX)) for m in json.loads(members)),
        Parameters.from_json(json.loads(parameters)),
        None if class_d is None else ipaddress.IPv4Address(class_d),
        gather=bool(_within("gather", gather, 0, 1)),
    )


def _class_d_number(address: str, number: object) -> tuple[ipaddress.IPv4Address, GroupId]:
    return ipaddress.IPv4Address(address), GroupId(_within("number", number, 0, GROUP_ID_MAX))


def _signed(device: int) -> int:
    return device - (1 << 64) if device >= 1 << 63 else device


def _put_class_d(sql: sqlite3.Connection, class_d: ClassDNumbers) -> None:
    sql.execute("INSERT OR REPLACE INTO settings VALUES ('class_d', ?)", (class_d.mode,))
    kept: dict[str, int] = dict(sql.execute("SELECT address, number FROM class_d").fetchall())
    wanted = {str(address): int(number) for address, number in class_d.assigned}
    sql.executemany("DELETE FROM class_d WHERE address=?", [(a,) for a in kept.keys() - wanted.keys()])
    changed = [(a, n) for a, n in wanted.items() if kept.get(a) != n]
    sql.executemany("INSERT OR REPLACE INTO class_d VALUES (?, ?)", changed)


def _group_row(group: Group) -> tuple[object, ...]:
    return (
        group.id,
        group.name,
        group.scheme,
        json.dumps(group.members),
        json.dumps(group.parameters.to_json()),
        None if group.class_d is None else str(group.class_d),
        group.gather,
    )


def _host_row(host: HostRecord, present: bool) -> tuple[object, ...]:
    switch, port = (None, None) if host.place is None else host.place
    return (
        host.id,
        host.name,
        host.mac,
        host.mtu_bytes,
        host.version,
        host.agent,
        host.declared,
        switch,
        port,
        present,
        host.silent,
    )
