"""Other people's tables and paths, read a second time for the check of certificates.

Shares nothing with the reader of the native library, and is not as strict: what this one
does not understand the other one has refused.
"""

from __future__ import annotations

import csv
import io
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_NODE = re.compile(r'^(Switch|Ca|Hca|Rt|Router)\s+\d+\s+"([^"]+)"\s*(?:#\s*"([^"]*)"(.*))?$')
_PORT = re.compile(r'^\[(\d+)\](?:\([0-9a-fA-F]+\))?\s*"[^"]+"\[\d+\][^#]*#\s*lid (\d+) lmc (\d+)')
_ROW = re.compile(r"^\s*(SW|CA|RT)\s+(\d+)\s+(\d+)\s+0x([0-9a-fA-F]{16})\b.*?(?:\( |\s)'(.*?)'")
"""A port in a report of ports (ibnetdiscover -p)."""
_TABLE = re.compile(r"^(?:Unicast lids .* guid |.*dump_ucast_routes: Switch )0x([0-9a-fA-F]+)")
_ENTRY = re.compile(r"^0x([0-9a-fA-F]+)\s+(?::\s+)?(\d+|UNREACHABLE)\b")
_SIGNS = re.compile(r"->|→|>|;|\||,")
NO_PORT = 255

Port = tuple[str, str | None]
"""A node, and the port by which it is left; hosts have none."""


class Path(NamedTuple):
    """The nodes of a path, and how each but the last is left."""

    line: int
    nodes: list[str]
    ports: list[str | None]
    vcs: list[str]


class Network:
    """What is wired to what, by name; ports are numbered as the topology's own file does."""

    def __init__(self, topology: Mapping[str, Any], text: str = "") -> None:
        """`topology` is a topology file; `text` the one it was read from."""
        self.nodes: dict[str, str] = {}
        """Every name, also s3 and h3, and what the node is called."""
        self.switches: list[str] = []
        self.home: dict[str, tuple[str, str]] = {}
        """Hosts, and the switch and port on which they are."""
        self.behind: dict[Port, str] = {}
        self.arrives_by: dict[Port, str] = {}
        """For each port towards another switch the port there."""
        self.lids: dict[int, str] = {}
        self.guids: dict[int, str] = {}
        is_net_list = any(_NODE.match(line) for line in text.splitlines())
        is_report = any(_ROW.match(line) for line in text.splitlines())
        self._name_all(topology)
        self._wire(topology, 1 if is_net_list or is_report else 0)
        if is_net_list:
            self._read_addresses(topology, text)
        elif is_report:
            self._read_report(topology, text)

    def _name_all(self, topology: Mapping[str, Any]) -> None:
        self._names: dict[tuple[str, int], str] = {}
        for letter, rows in (("s", topology["switches"]), ("h", topology["hosts"])):
            for row in sorted(rows, key=lambda row: row["id"]):
                choices = [row["name"]] if "name" in row else []
                choices += [f"{letter}{row['id']}", *(f"{letter}{row['id']}#{more}" for more in range(2, 99))]
                name = next(choice for choice in choices if choice not in self.nodes)
                self.nodes[name] = self._names[letter, row["id"]] = name
        for (letter, number), name in self._names.items():
            self.nodes.setdefault(f"{letter}{number}", name)
        self.switches = [name for (letter, _), name in self._names.items() if letter == "s"]

    def _wire(self, topology: Mapping[str, Any], first: int) -> None:
        for link in topology["links"]:
            a, b = self._names["s", link["a"]], self._names["s", link["b"]]
            a_port, b_port = str(link["a_port"] + first), str(link["b_port"] + first)
            self.behind[a, a_port], self.behind[b, b_port] = b, a
            self.arrives_by[a, a_port], self.arrives_by[b, b_port] = b_port, a_port
        for host in topology["hosts"]:
            switch, name = self._names["s", host["switch"]], self._names["h", host["id"]]
            self.home[name] = (switch, str(host["port"] + first))
            self.behind[self.home[name]] = name
            self.behind[name, None] = switch

    def _read_addresses(self, topology: Mapping[str, Any], text: str) -> None:
        ids = {("s", row.get("name")): row["id"] for row in topology["switches"]}
        ids |= {("h", row.get("name")): row["id"] for row in topology["hosts"]}
        node: tuple[str, str, str] = ("", "", "")
        for line in text.splitlines():
            if match := _NODE.match(line):
                letter = "s" if match[1] == "Switch" else "h"
                node = (letter, match[2], match[3] or "")
                if letter == "s":
                    name = self._find(ids, node, "")
                    self.guids[int(match[2][2:], 16)] = name
                    if lid := re.search(r"\blid (\d+)(?: lmc (\d+))?", match[4] or ""):
                        self._add_lids(name, int(lid[1]), int(lid[2] or 0))
            elif (match := _PORT.match(line)) and node[0] == "h":
                self._add_lids(self._find(ids, node, match[1]), int(match[2]), int(match[3]))

    def _read_report(self, topology: Mapping[str, Any], text: str) -> None:
        """As `_read_addresses`; adapters have the GUIDs of their ports."""
        ids = {("s", row.get("name")): row["id"] for row in topology["switches"]}
        ids |= {("h", row.get("name")): row["id"] for row in topology["hosts"]}
        for match in filter(None, map(_ROW.match, text.splitlines())):
            kind, lid, port, guid, described = match.groups()
            letter = "s" if kind == "SW" else "h"
            if letter == "h" and " - " not in match.string:
                continue
            name = self._find(ids, (letter, f"0x{guid}", described), port)
            if letter == "s":
                self.guids[int(guid, 16)] = name
            self._add_lids(name, int(lid), 0)

    def _find(self, ids: Mapping[tuple[str, str | None], int], node: tuple[str, str, str], port: str) -> str:
        """The name of a node of a net list: its description if no other has it, else its GUID."""
        letter, guid, described = node
        for called in (described, guid):
            for name in (called, f"{called}/{port}"):
                if (letter, name) in ids:
                    return self._names[letter, ids[letter, name]]
        if match := re.fullmatch(r"(?:switch|host) (\d+)", described):
            return self._names[letter, int(match[1])]
        raise ValueError(f"{guid} of the net list is not in the topology")

    def _add_lids(self, name: str, first: int, lmc: int) -> None:
        for lid in range(first, first + (1 << lmc)):
            if lid:
                self.lids[lid] = name


class Table(NamedTuple):
    """What switches do with packets to destinations."""

    name: str
    ports: Mapping[str, Mapping[str, Sequence[str]]]
    """For each switch and destination."""
    owners: Mapping[str, str | None]
    """For each destination the node that is meant, if it is known."""
    never_back: bool


def read_tables(network: Network, texts: Sequence[str]) -> Iterator[Table]:
    """The tables in texts: those of InfiniBand together, then each of a tables file."""
    net_lists = [text for text in texts if not text.lstrip("\ufeff \t\r\n").startswith("{")]
    if net_lists:
        yield _read_lfts(network, net_lists)
    for text in texts:
        if text not in net_lists:
            for table in json.loads(text)["tables"]:
                yield _read_prefixes(network, table)


def _read_lfts(network: Network, texts: Sequence[str]) -> Table:
    ports: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        row: dict[str, list[str]] = {}
        for line in text.splitlines():
            if match := _TABLE.match(line.strip()):
                row = ports.setdefault(network.guids[int(match[1], 16)], {})
            elif (match := _ENTRY.match(line.strip())) and match[2] not in ("UNREACHABLE", str(NO_PORT)):
                row[f"LID {int(match[1], 16)}"] = [str(int(match[2]))]
    return Table("", ports, {f"LID {lid}": name for lid, name in network.lids.items()}, never_back=False)


def read_levels(network: Network, text: str) -> dict[tuple[str, str], set[str]]:
    """Service levels in path records, by the node that sends and the LID that receives."""
    levels: dict[tuple[str, str], set[str]] = {}
    for record in text.split("PathRecord dump:")[1:]:
        values = {name: int(value, 0) for name, value in re.findall(r"\b(slid|dlid|sl)\.+(\w+)", record)}
        if values["slid"] in network.lids:
            pair = (network.lids[values["slid"]], f"LID {values['dlid']}")
            levels.setdefault(pair, set()).add(str(values["sl"]))
    return levels


def _read_prefixes(network: Network, table: Mapping[str, Any]) -> Table:
    """Every value at which some prefix begins, or behind which one ends, stands for all up to the next."""
    bits = table["bits"]
    by_switch: dict[str, dict[tuple[int, int], list[str]]] = {}
    starts: set[int] = set()
    for row in table["switches"]:
        name = row["switch"] if isinstance(row["switch"], str) else f"s{row['switch']}"
        own = by_switch.setdefault(network.nodes[name], {})
        for entry in row["entries"]:
            value, length = _key(entry["key"], bits)
            own[length, value >> (bits - length)] = [str(port) for port in entry["ports"]]
            starts |= {value, value + (1 << (bits - length))}
    starts = {start for start in starts if start < 1 << bits}
    ports: dict[str, dict[str, Sequence[str]]] = {}
    for switch, own in by_switch.items():
        lengths = sorted({length for length, _ in own}, reverse=True)
        for start in starts:
            keys = ((length, start >> (bits - length)) for length in lengths)
            found = next((own[key] for key in keys if key in own), None)
            if found is not None:
                ports.setdefault(switch, {})[str(start)] = found
    known = {start for row in ports.values() for start in row}
    return Table(table["name"], ports, dict.fromkeys(known), table.get("never_back", False))


def _key(key: str, bits: int) -> tuple[int, int]:
    value, _, length = key.partition("/")
    number = (
        int(ipaddress.IPv4Address(value))
        if "." in value
        else int(value, 16 if value.startswith("0x") else 10)
    )
    return number, int(length) if length else bits


def read_paths(network: Network | None, text: str) -> Iterator[Path]:
    """The paths of a CSV file, by the names of the network if there is one."""
    rows = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""))
    head: list[str] | None = None
    before = 0
    for row in rows:
        line, before = before + 1, rows.line_num
        if not any(cell.strip() for cell in row) and len(row) < 2:
            continue
        if head is None:
            head = [cell.strip().lower() for cell in row]
            continue
        cells = dict(zip(head, (cell.strip() for cell in row), strict=True))
        elements = [_element(network, piece) for piece in _pieces(cells["path"])]
        called = network.nodes if network else {}
        for column, place in (("src", 0), ("dst", -1)):
            if (end := called.get(cells.get(column, ""), cells.get(column, ""))) and (
                not elements or elements[place][0] != end
            ):
                elements.insert(0 if place == 0 else len(elements), (end, None, None))
        vc = cells.get("vc") or "0"
        nodes, ports, vcs = (list(column) for column in zip(*elements, strict=True))
        yield Path(line, nodes, ports[:-1], [own or vc for own in vcs[:-1]])


def _pieces(field: str) -> list[str]:
    return [piece.strip() for piece in _SIGNS.split(field)] if _SIGNS.search(field) else field.split()


def _element(network: Network | None, piece: str) -> tuple[str, str | None, str | None]:
    known = network.nodes if network else {}
    if piece in known:
        return known[piece], None, None
    front, at, vc = piece.rpartition("@")
    front = front if at else piece
    if front in known:
        return known[front], None, vc
    node, colon, port = front.rpartition(":")
    node = node if colon else front
    return known.get(node, node), port if colon else None, vc if at else None
