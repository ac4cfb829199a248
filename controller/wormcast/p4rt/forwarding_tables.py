"""What the tables of a switch do with destinations, from the entities that it was asked for.

Of our own program the trees of groups and broadcasts; of any other the table that is named.
A destination is a match field of kind exact or lpm, or ternary with masks that are prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

GROUPS_TABLE = "ingress.groups"
MGID_BROADCAST = 1
"""p4src/CONTRACT.md."""
PORT_MAX = 255
"""Ports above lead to no link: the controller, or a drop port."""


class UnfitTableError(Exception):
    """Nothing sound can be said of a table; the text says why, and what would do."""


@dataclass(frozen=True)
class Wanted:
    """A table of somebody's program: its name, the match field that is the destination (None: the only one
    that entries use), and the parameter that is the egress port."""

    table: str
    key: str | None
    port_parameter: str


@dataclass
class SwitchEntities:
    """What one switch answered: its P4Info, and the entities of the table that is wanted."""

    p4info: Any
    entries: list[Any] = field(default_factory=list)
    members: dict[int, Any] = field(default_factory=dict)
    """Actions of members of the table's action profile."""
    groups: dict[int, list[int]] = field(default_factory=dict)
    """Members of its groups."""
    multicast: dict[int, list[int]] = field(default_factory=dict)
    """Ports of multicast groups."""


@dataclass(frozen=True)
class SwitchRows:
    """Entries of a switch as a tables file has them, and how many bits keys have."""

    bits: int
    entries: list[dict[str, Any]]


def find_table(p4info: Any, name: str) -> Any:
    """A table by its name or alias; raises `UnfitTableError` that names those there are."""
    for table in p4info.tables:
        if name in (table.preamble.name, table.preamble.alias):
            return table
    known = ", ".join(table.preamble.name for table in p4info.tables) or "none"
    raise UnfitTableError(f"the program has no table {name!r}; its tables are {known}")


def own_rows(entities: SwitchEntities) -> tuple[SwitchRows, SwitchRows]:
    """Of our own program: ports by group number, and the ports of broadcasts."""
    rows = []
    for entry in _plain(entities.entries):
        number = int.from_bytes(entry.match[0].exact.value)
        mgid = int.from_bytes(entry.action.action.params[0].value)
        rows.append({"key": str(number), "ports": _ports(entities.multicast.get(mgid, []))})
    broadcast = _ports(entities.multicast.get(MGID_BROADCAST, []))
    return SwitchRows(16, rows), SwitchRows(1, [{"key": "0/0", "ports": broadcast}])


def rows_of(entities: SwitchEntities, wanted: Wanted) -> SwitchRows:
    """Of any program. Raises `UnfitTableError`."""
    table = find_table(entities.p4info, wanted.table)
    entries = list(_plain(entities.entries))
    key = _key_field(table, entries, wanted.key)
    rows: dict[tuple[int, int], tuple[int, list[int]]] = {}
    for entry in entries:
        value, length = _prefix(table, entry, key)
        ports = _ports(_ports_of(entities, table, entry, wanted.port_parameter))
        known = rows.get((value, length))
        if known is None or entry.priority > known[0]:
            rows[value, length] = (entry.priority, ports)
        elif entry.priority == known[0]:
            raise UnfitTableError(f"table {table.preamble.name} has two entries for {value:#x}/{length}")
    for entry in entities.entries:
        # One that drops is as no entry at all: whoever sends there loses its packets.
        is_default = entry.is_default_action and (0, 0) not in rows
        if is_default and (ports := _ports(_ports_of(entities, table, entry, wanted.port_parameter))):
            rows[0, 0] = (0, ports)
    found = [
        {"key": f"{value:#x}/{length}", "ports": ports}
        for (value, length), (_, ports) in sorted(rows.items())
    ]
    _refuse_ranks(table, key.bitwidth, rows)
    return SwitchRows(key.bitwidth, found)


def _refuse_ranks(table: Any, bits: int, rows: Mapping[tuple[int, int], tuple[int, list[int]]]) -> None:
    """Ternary entries must be ranked as their prefixes are, so that the longest counts."""
    lengths = sorted({length for _, length in rows})
    for (value, length), (priority, _) in rows.items():
        for shorter in (one for one in lengths if one < length):
            around = (value >> (bits - shorter) << (bits - shorter), shorter)
            rank = rows[around][0] if around in rows else 0
            if rank and priority <= rank:
                text = f"an entry of /{shorter} comes before one of /{length} in it"
                name = table.preamble.name
                raise UnfitTableError(f"table {name} does not go by the longest prefix: {text}")


def _plain(entries: Iterable[Any]) -> Iterator[Any]:
    return (entry for entry in entries if not entry.is_default_action)


def _key_field(table: Any, entries: list[Any], name: str | None) -> Any:
    used = {match.field_id for entry in entries for match in entry.match}
    in_use = [one for one in table.match_fields if one.id in used] or list(table.match_fields)
    names = ", ".join(one.name for one in table.match_fields)
    found = [one for one in table.match_fields if one.name == name] if name else in_use
    if name is not None and not found:
        raise UnfitTableError(f"table {table.preamble.name} has no match field {name!r}; it has {names}")
    others = [one.name for one in in_use if one not in found[:1]]
    if len(found) != 1 or others:
        text = f"its entries match {', '.join(one.name for one in in_use) or 'nothing'}"
        raise UnfitTableError(
            f"table {table.preamble.name} does not forward by one destination: {text}; "
            "only tables whose entries match one field can be followed"
        )
    if found[0].match_type not in (found[0].EXACT, found[0].LPM, found[0].TERNARY):
        raise UnfitTableError(f"match field {found[0].name} is neither exact, lpm nor ternary")
    if not 1 <= found[0].bitwidth <= 128:
        raise UnfitTableError(f"match field {found[0].name} has {found[0].bitwidth} bits; 1 to 128 will do")
    return found[0]


def _prefix(table: Any, entry: Any, key: Any) -> tuple[int, int]:
    match = next((one for one in entry.match if one.field_id == key.id), None)
    if match is None:
        return 0, 0  # left out: any value (P4Runtime §9.1.1)
    kind = match.WhichOneof("field_match_type")
    if kind == "exact":
        return int.from_bytes(match.exact.value), key.bitwidth
    if kind == "lpm":
        return int.from_bytes(match.lpm.value), match.lpm.prefix_len
    mask = int.from_bytes(match.ternary.mask)
    length = mask.bit_count()
    if mask != ((1 << length) - 1) << (key.bitwidth - length):
        raise UnfitTableError(
            f"table {table.preamble.name} has an entry with mask {mask:#x}, which is no prefix; "
            "only prefixes can be followed"
        )
    return int.from_bytes(match.ternary.value), length


def _ports_of(entities: SwitchEntities, table: Any, entry: Any, parameter: str) -> list[int]:
    """The egress ports that an entry may choose; none if it drops."""
    kind = entry.action.WhichOneof("type")
    if kind is None:
        return []
    if kind == "action":
        actions = [entry.action.action]
    elif kind == "action_profile_action_set":
        actions = [one.action for one in entry.action.action_profile_action_set.action_profile_actions]
    elif kind == "action_profile_member_id":
        actions = [entities.members[entry.action.action_profile_member_id]]
    else:
        members = entities.groups[entry.action.action_profile_group_id]
        actions = [entities.members[member] for member in members]
    return [port for action in actions for port in _port_of(entities.p4info, table, action, parameter)]


def _port_of(p4info: Any, table: Any, action: Any, parameter: str) -> list[int]:
    about = next(one for one in p4info.actions if one.preamble.id == action.action_id)
    named = next((one for one in about.params if one.name == parameter), None)
    if named is not None:
        value = next(one.value for one in action.params if one.param_id == named.id)
        return [int.from_bytes(value)]
    if about.params:
        names = ", ".join(one.name for one in about.params)
        raise UnfitTableError(
            f"action {about.preamble.name} of table {table.preamble.name} has no parameter {parameter!r}; it has "
            f"{names}, so nobody knows where it sends; name the port with --port-parameter"
        )
    return []  # without parameters: drop, or to the controller


def _ports(ports: Iterable[int]) -> list[int]:
    return sorted({port for port in ports if 0 <= port <= PORT_MAX})
