"""What the generator needs to know of a program: BMv2's JSON, read into types."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from differential.guards import guarded
from differential.stale import cleaned

Json = dict[str, Any]
FieldName = tuple[str, str]
Spots = dict[FieldName, tuple[int, int]]  # where each field is: its first bit and its width
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
DROP_PORT = 511  # of both switches unless they are told otherwise


@dataclass(frozen=True)
class Action:
    """An action and its parameters."""

    number: int
    name: str
    widths: tuple[int, ...]
    ports: frozenset[int]  # parameters that become the egress port
    groups: frozenset[int]  # that become the multicast group
    sessions: frozenset[int]  # that are a clone session
    targets: tuple[tuple[int, FieldName], ...] = ()  # fields that parameters are assigned to


@dataclass(frozen=True)
class Key:
    """One key of a table. `field` ends in `$valid$` for the validity of a header."""

    kind: str
    field: FieldName
    width: int


@dataclass(frozen=True)
class Table:
    name: str
    kind: str  # simple, indirect or indirect_ws
    match: str
    keys: tuple[Key, ...]
    actions: tuple[int, ...]
    profile: str | None
    size: int
    counters: bool
    meter: bool
    constant_entries: bool
    constant_default: bool
    timeouts: bool


@dataclass(frozen=True)
class Array:
    """Counters, meters or registers."""

    name: str
    size: int
    width: int = 0


@dataclass
class Program:
    """A program. `json` is what the switches get."""

    name: str
    json: Json
    changed: bool = False  # by mutate.py: a bound that the program has may be another
    headers: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    varbit_max: dict[str, int] = field(default_factory=dict)
    stacks: dict[str, list[str]] = field(default_factory=dict)
    unions: dict[str, list[str]] = field(default_factory=dict)
    union_stacks: dict[str, list[str]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)  # names in the unions of a stack
    widths: dict[FieldName, int] = field(default_factory=dict)
    actions: dict[int, Action] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    registers: list[Array] = field(default_factory=list)
    counters: list[Array] = field(default_factory=list)
    meters: list[Array] = field(default_factory=list)
    value_sets: dict[str, int] = field(default_factory=dict)
    constants: list[int] = field(default_factory=list)
    compared: dict[FieldName, list[int]] = field(default_factory=dict)  # what fields are compared with
    selecting: set[str] = field(default_factory=set)  # action profiles that have groups
    profile_sizes: dict[str, int] = field(default_factory=dict)
    primitives: set[str] = field(default_factory=set)
    egress_primitives: set[str] = field(default_factory=set)

    @cached_property
    def text(self) -> bytes:
        """The program as a file."""
        return json.dumps(self.json).encode()

    @cached_property
    def cleaned_text(self) -> bytes:
        """The program as a file, as BMv2 gets it."""
        return json.dumps(cleaned(guarded(self.json))).encode()

    @property
    def parser(self) -> Json | None:
        """The parser; v1model has one."""
        parsers = self.json.get("parsers") or []
        return parsers[0] if parsers else None

    @property
    def paced(self) -> bool:
        """Whether packets that are under way together may meet, so that each must have left
        before the next one comes: copies that come again, and state kept in egress. (BMv2
        runs ingress, and the egress of a port, in the order of packets; the two beside each
        other.)"""
        again = {"resubmit", "recirculate", "clone_egress_pkt_to_egress", "clone_egress_to_egress"}
        keeps = {"register_read", "register_write", "execute_meter"}
        return bool(self.primitives & again or self.egress_primitives & keeps)

    def profile_actions(self) -> dict[str, tuple[int, ...]]:
        """The actions that members of each profile may have."""
        return {table.profile: table.actions for table in self.tables if table.profile}

    def literals(self, primitive: str, at: int) -> list[int]:
        """The constants that are given to a primitive in one place."""
        found = []
        for action in self.json["actions"]:
            for call in action["primitives"]:
                if call["op"] == primitive and len(call["parameters"]) > at:
                    value = hexadecimal(call["parameters"][at])
                    if value is not None:
                        found.append(value)
        return found

    def assigned(self, name: str) -> list[int]:
        """The constants that are assigned to fields of a name."""
        found = []
        for action in self.json["actions"]:
            for call in action["primitives"]:
                if call["op"] != "assign" or _target(call)[-1] != name:
                    continue
                value = hexadecimal(call["parameters"][1])
                if value is not None:
                    found.append(value)
        return found


def load(path: Path) -> Program:
    """Reads a program. Raises OSError, ValueError."""
    source = json.loads(path.read_text())
    if not isinstance(source, dict):
        raise ValueError(f"{path} is no program of BMv2: {type(source).__name__} instead of an object")
    return read(path.stem, source)


def hexadecimal(node: Any) -> int | None:
    """The number that a node stands for, if it is one."""
    while isinstance(node, dict) and node.get("type") == "expression":
        node = node.get("value")
    if isinstance(node, dict) and node.get("type") == "hexstr":
        return int(str(node["value"]), 16)
    return None


def walk(node: Any) -> Iterator[Json]:
    """Every object inside a JSON value."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def read(name: str, source: Json) -> Program:
    """A program out of its JSON. Raises ValueError where it is none."""
    try:
        return _read(name, source)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{name} is no program of BMv2: {type(error).__name__} {error}") from error


def _read(name: str, source: Json) -> Program:
    program = Program(name, source)
    types = {one["name"]: one for one in source["header_types"]}
    by_id = {}
    for header in source["headers"]:
        kind = types[header["header_type"]]
        by_id[header["id"]] = header["name"]
        fields = [(one[0], -1 if one[1] == "*" else int(one[1])) for one in kind["fields"]]
        program.headers[header["name"]] = fields
        for field_name, width in fields:
            program.widths[(header["name"], field_name)] = width
        program.varbit_max[header["name"]] = 8 * (kind.get("max_length") or 256)
    for stack in source.get("header_stacks", []):
        program.stacks[stack["name"]] = [by_id[number] for number in stack["header_ids"]]
    union_names = {}
    members = {
        kind["name"]: [name for name, _ in kind["headers"]] for kind in source.get("header_union_types", [])
    }
    for union in source.get("header_unions", []):
        program.unions[union["name"]] = [by_id[number] for number in union["header_ids"]]
        union_names[union["id"]] = union["name"]
    for stack in source.get("header_union_stacks", []):
        program.union_stacks[stack["name"]] = [union_names[n] for n in stack["header_union_ids"]]
        program.members[stack["name"]] = members[stack["union_type"]]
    for action in source["actions"]:
        program.actions[action["id"]] = _action(action)
        program.primitives |= {call["op"] for call in action["primitives"]}
    for state in (state for parser in source["parsers"] for state in parser["parse_states"]):
        for op in state["parser_ops"]:
            if op["op"] == "primitive":
                program.primitives.add(op["parameters"][0]["op"])
    for pipeline in source["pipelines"]:
        used = {number for table in pipeline["tables"] for number in table.get("action_ids", [])}
        used |= {one["action_id"] for one in pipeline.get("action_calls", [])}
        if pipeline["name"] == "egress":
            for number in used:
                calls = next(one for one in source["actions"] if one["id"] == number)["primitives"]
                program.egress_primitives |= {call["op"] for call in calls}
        for profile in pipeline.get("action_profiles", []):
            program.profile_sizes[profile["name"]] = profile["max_size"]
            if "selector" in profile:
                program.selecting.add(profile["name"])
        program.tables += [_table(table, program) for table in pipeline["tables"]]
    for array in source.get("register_arrays", []):
        program.registers.append(Array(array["name"], array["size"], array["bitwidth"]))
    for array in source.get("counter_arrays", []):
        if not array.get("is_direct"):
            program.counters.append(Array(array["name"], array["size"]))
    for array in source.get("meter_arrays", []):
        if not array.get("is_direct"):
            program.meters.append(Array(array["name"], array["size"]))
    for value_set in source.get("parse_vsets", []):
        program.value_sets[value_set["name"]] = value_set["compressed_bitwidth"]
    program.constants = sorted(set(_constants(source)))
    program.compared = _compared(source)
    return program


def _compared(source: Json) -> dict[FieldName, list[int]]:
    """The constants that each field is compared with somewhere."""
    found: dict[FieldName, list[int]] = {}
    for node in walk([source["actions"], source["pipelines"], source["parsers"]]):
        if node.get("op") not in COMPARISONS:
            continue
        for side, other in (("left", "right"), ("right", "left")):
            value = hexadecimal(node.get(side))
            fields = [one for one in walk(node.get(other)) if one.get("type") == "field"]
            if value is not None and value >= 0 and len(fields) == 1:
                name = (fields[0]["value"][0], fields[0]["value"][1])
                found.setdefault(name, []).append(value)
    return found


def _constants(source: Json) -> Iterator[int]:
    for part in ("parsers", "actions", "pipelines"):
        for node in walk(source[part]):
            value = hexadecimal(node) if node.get("type") == "hexstr" else None
            if value is not None and value >= 0:
                yield value
            key = node.get("key")
            if node.get("type") == "exact" and isinstance(key, str):
                yield int(key, 16)


def _action(source: Json) -> Action:
    ports, groups, sessions = set(), set(), set()
    targets = []
    for call in source["primitives"]:
        parameters = call["parameters"]
        if call["op"] == "assign":
            given, to = _runtime(parameters[1]), _target(call)[-1]
            targets += [(parameter, _target(call)) for parameter in sorted(given)]
            if to in ("egress_spec", "egress_port"):
                ports |= given
            if to == "mcast_grp":
                groups |= given
        if call["op"].startswith("clone_"):
            sessions |= _runtime(parameters[0])
    widths = tuple(one["bitwidth"] for one in source["runtime_data"])
    sets = (frozenset(ports), frozenset(groups), frozenset(sessions))
    return Action(source["id"], source["name"], widths, *sets, tuple(targets))


def _target(call: Json) -> FieldName:
    """The field that an assignment changes; no name where it is part of a stack."""
    target = call["parameters"][0]
    return (target["value"][0], target["value"][1]) if target["type"] == "field" else ("", "")


def _runtime(node: Any) -> set[int]:
    return {one["value"] for one in walk(node) if one.get("type") in ("runtime_data", "local")}


def _table(source: Json, program: Program) -> Table:
    keys = []
    for key in source["key"]:
        target = key["target"]
        name = (target, "$valid$") if isinstance(target, str) else (target[0], target[1])
        valid = name[1] == "$valid$"
        keys.append(Key(key["match_type"], name, 1 if valid else program.widths[name]))
    default = source.get("default_entry") or {}
    return Table(
        name=source["name"],
        kind=source["type"],
        match=source["match_type"],
        keys=tuple(keys),
        actions=tuple(source["action_ids"]),
        profile=source.get("action_profile"),
        size=source["max_size"],
        counters=bool(source.get("with_counters")),
        meter=bool(source.get("direct_meters")),
        constant_entries=bool(source.get("entries")),
        constant_default=bool(default.get("action_const")),
        timeouts=bool(source.get("support_timeout")),
    )
