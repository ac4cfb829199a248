"""What is written into a switch before its packets come: commands, the same for both.

A command is JSON, so that a finding keeps it; `text` gives what simple_switch_CLI calls it.
Entries of tables are named by when they were added to their table, members and groups by when they
were added to their profile, nodes of multicast groups by when they were made.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from differential.thrift import (
    STRING,
    STRUCT,
    Connection,
    Refused,
    Value,
    boolean,
    double,
    i16,
    i32,
    i64,
    list_of,
    struct_of,
    text,
)

Json = dict[str, Any]
STANDARD, PRE, SIMPLE = "standard", "simple_pre_lag", "simple_switch"
KINDS = {"exact": 0, "lpm": 1, "ternary": 2, "optional": 2, "valid": 3, "range": 4}
MAP_BITS = 256  # of ports and link aggregation groups
NO_HANDLE = 1 << 20  # that nothing has
CONTEXT = i32(0)
TAKES_AWAY = {
    "act_prof_delete_member": "member",
    "act_prof_delete_group": "group",
    "mc_node_destroy": "node",
}


@dataclass
class Session:
    """A connection, and the handles of what was added over it."""

    connection: Connection
    entries: dict[str, list[int | None]] = field(default_factory=dict)
    members: dict[str, list[int | None]] = field(default_factory=dict)
    groups: dict[str, list[int | None]] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)  # of tables
    nodes: list[int | None] = field(default_factory=list)

    def send(self, command: Json) -> str:
        """Does a command; gives `done` or why not. Raises OSError where the switch is gone."""
        try:
            answer = _DO[command["do"]](self, command)
            if command["do"] in TAKES_AWAY:
                self._forget(command, TAKES_AWAY[command["do"]])
            return answer
        except Refused as refused:
            added = self._added(command)
            if added is not None:
                added.append(None)
            return f"refused: {refused.code}"

    def call(self, method: str, *arguments: Value, service: str = STANDARD) -> Any:
        """A call, in the only context there is where the service has contexts."""
        context = () if service == SIMPLE else (CONTEXT,)
        return self.connection.call(service, method, *context, *arguments)

    def _forget(self, command: Json, what: str) -> None:
        """Its handle is given to another one: what each switch gives to which is its own."""
        lists = {"member": self.members, "group": self.groups}
        added = lists[what][command["profile"]] if what in lists else self.nodes
        added[command[what]] = None

    def _added(self, command: Json) -> list[int | None] | None:
        """Where the handle goes that a command gives; None for one that gives none."""
        if "key" in command:
            return self.entries.setdefault(command["table"], [])
        if command["do"] == "act_prof_create_member":
            return self.members.setdefault(command["profile"], [])
        if command["do"] == "act_prof_create_group":
            return self.groups.setdefault(command["profile"], [])
        return self.nodes if command["do"] == "mc_node_create" else None

    def keep(self, command: Json, handle: int) -> str:
        added = self._added(command)
        if added is not None:
            added.append(handle)
        return "done"

    def handle(self, command: Json, what: str = "entry") -> int:
        """The handle of the entry, member, group or node that a command names; one that nothing
        has for those that could not be added."""
        profile = command.get("profile") or self.profiles.get(command.get("table", ""), "")
        added = {
            "entry": self.entries.get(command.get("table", ""), []),
            "member": self.members.get(profile, []),
            "group": self.groups.get(profile, []),
            "node": self.nodes,
        }[what]
        at = command[what]
        found = added[at] if at < len(added) else None
        return NO_HANDLE if found is None else found


Do = Callable[[Session, Json], str]


def whole_bytes(value: int, width: int) -> bytes:
    """A value as the interface has it: as many bytes as its width takes."""
    return value.to_bytes((width + 7) // 8, "big")


def _key(key: list[Json]) -> Value:
    parts = []
    for one in key:
        kind, width = one["kind"], one.get("width", 1)
        forms: list[Value | None] = [None] * 5
        at = KINDS[kind]
        if kind == "valid":
            forms[at] = struct_of(boolean(bool(one["value"])))
        elif kind == "range":
            forms[at] = struct_of(*(text(whole_bytes(one[end], width)) for end in ("low", "high")))
        else:
            value = text(whole_bytes(one["value"], width))
            more = {0: [], 1: [i32(one.get("length", 0))], 2: [text(whole_bytes(one.get("mask", 0), width))]}
            forms[at] = struct_of(value, *more[at])
        parts.append(struct_of(i32(at), *forms))
    return list_of(STRUCT, parts)


def _data(command: Json) -> Value:
    return list_of(STRING, [text(whole_bytes(value, width)) for value, width in command["data"]])


def _options(command: Json) -> Value:
    priority = command.get("priority")
    return struct_of(None if priority is None else i32(priority))


def _rates(command: Json) -> Value:
    rates = [struct_of(double(rate), i32(burst)) for rate, burst in command["rates"]]
    return list_of(STRUCT, rates)


def _table_add(session: Session, command: Json) -> str:
    arguments = (text(command["table"]), _key(command["key"]))
    action = (text(command["action"]), _data(command))
    return session.keep(command, session.call("bm_mt_add_entry", *arguments, *action, _options(command)))


def _indirect_add(session: Session, command: Json) -> str:
    group = "group" in command
    method = "bm_mt_indirect_ws_add_entry" if group else "bm_mt_indirect_add_entry"
    to = i32(session.handle(command, "group" if group else "member"))
    key = _key(command["key"])
    return session.keep(command, session.call(method, text(command["table"]), key, to, _options(command)))


def _simple(method: str, service: str, *fields: str) -> Do:
    """A command whose arguments are numbers and names."""

    def do(session: Session, command: Json) -> str:
        arguments: list[Value] = []
        for name in fields:
            value = session.handle(command, name) if name in HANDLES else command[name]
            arguments.append(i32(value) if isinstance(value, int) else text(value))
        session.call(method, *arguments, service=service)
        return "done"

    return do


HANDLES = ("entry", "member", "node")


def _with_entry(method: str, *, action: bool = False, rates: bool = False, count: bool = False) -> Do:
    def do(session: Session, command: Json) -> str:
        arguments = [text(command["table"]), i32(session.handle(command))]
        if count:
            arguments.append(_count(command))
        if action:
            arguments += [text(command["action"]), _data(command)]
        if rates:
            arguments.append(_rates(command))
        session.call(method, *arguments)
        return "done"

    return do


def _with_action(method: str, name: str) -> Do:
    def do(session: Session, command: Json) -> str:
        session.call(method, text(command[name]), text(command["action"]), _data(command))
        return "done"

    return do


def _map(bits: list[int]) -> Value:
    """Ports or groups as a text of digits, the last one that of number 0."""
    return text("".join("1" if bit in bits else "0" for bit in reversed(range(MAP_BITS))).lstrip("0") or "0")


def _node_create(session: Session, command: Json) -> str:
    maps = (_map(command["ports"]), _map(command.get("lags", [])))
    node = session.call("bm_mc_node_create", i32(command["rid"]), *maps, service=PRE)
    session.keep(command, node)
    try:
        session.call("bm_mc_node_associate", i32(command["group"]), i32(node), service=PRE)
    except Refused as refused:
        return f"made, and refused: {refused.code}"
    return "done"


def _node_update(session: Session, command: Json) -> str:
    maps = (_map(command["ports"]), _map(command.get("lags", [])))
    session.call("bm_mc_node_update", i32(session.handle(command, "node")), *maps, service=PRE)
    return "done"


def _lag(session: Session, command: Json) -> str:
    ports = _map(command["ports"])
    session.call("bm_mc_set_lag_membership", i16(command["lag"]), ports, service=PRE)
    return "done"


def _create(method: str) -> Do:
    """A command that gives a member or a group of a profile."""

    def do(session: Session, command: Json) -> str:
        action = (text(command["action"]), _data(command)) if "action" in command else ()
        return session.keep(command, session.call(method, text(command["profile"]), *action))

    return do


def _modify_member(session: Session, command: Json) -> str:
    member = i32(session.handle(command, "member"))
    action = (text(command["action"]), _data(command))
    session.call("bm_mt_act_prof_modify_member", text(command["profile"]), member, *action)
    return "done"


def _with_profile_group(method: str, *, member: bool = False) -> Do:
    def do(session: Session, command: Json) -> str:
        handles = [i32(session.handle(command, "group"))]
        if member:
            handles.insert(0, i32(session.handle(command, "member")))
        session.call(method, text(command["profile"]), *handles)
        return "done"

    return do


def _indirect_modify_group(session: Session, command: Json) -> str:
    handles = [i32(session.handle(command, what)) for what in ("entry", "group")]
    session.call("bm_mt_indirect_ws_modify_entry", text(command["table"]), *handles)
    return "done"


def _table_clear(session: Session, command: Json) -> str:
    session.call("bm_mt_clear_entries", text(command["table"]), boolean(False))
    return "done"


def _count(command: Json) -> Value:
    """Bytes and packets."""
    return struct_of(i64(command["value"] * 64), i64(command["value"]))


def _counter_write(session: Session, command: Json) -> str:
    session.call("bm_counter_write", text(command["counter"]), i32(command["index"]), _count(command))
    return "done"


def _register_range(session: Session, command: Json) -> str:
    ends = (i32(command["start"]), i32(command["end"]))
    session.call("bm_register_write_range", text(command["register"]), *ends, i64(command["value"]))
    return "done"


def _meter_cell(session: Session, command: Json) -> str:
    session.call("bm_meter_set_rates", text(command["meter"]), i32(command["index"]), _rates(command))
    return "done"


def _mirroring_add(session: Session, command: Json) -> str:
    port, group = command.get("port"), command.get("group")
    config = struct_of(None if port is None else i32(port), None if group is None else i32(group))
    session.call("mirroring_session_add", i32(command["session"]), config, service=SIMPLE)
    return "done"


def _register_write(session: Session, command: Json) -> str:
    place = (text(command["register"]), i32(command["index"]))
    session.call("bm_register_write", *place, i64(command["value"]))
    return "done"


def _meter(session: Session, command: Json) -> str:
    session.call("bm_meter_array_set_rates", text(command["meter"]), _rates(command))
    return "done"


def _value_set(method: str) -> Do:
    def do(session: Session, command: Json) -> str:
        value = whole_bytes(command["value"], command["width"])
        session.call(method, text(command["value_set"]), text(value))
        return "done"

    return do


_DO: dict[str, Do] = {
    "table_add": _table_add,
    "table_indirect_add": _indirect_add,
    "table_indirect_add_with_group": _indirect_add,
    "table_modify": _with_entry("bm_mt_modify_entry", action=True),
    "table_delete": _with_entry("bm_mt_delete_entry"),
    "table_set_meter_rates": _with_entry("bm_mt_set_meter_rates", rates=True),
    "table_set_default": _with_action("bm_mt_set_default_action", "table"),
    "table_reset_default": _simple("bm_mt_reset_default_entry", STANDARD, "table"),
    "table_clear": _table_clear,
    "table_set_timeout": _simple("bm_mt_set_entry_ttl", STANDARD, "table", "entry", "value"),
    "table_write_counter": _with_entry("bm_mt_write_counter", count=True),
    "table_reset_counters": _simple("bm_mt_reset_counters", STANDARD, "table"),
    "table_indirect_modify": _simple("bm_mt_indirect_modify_entry", STANDARD, "table", "entry", "member"),
    "table_indirect_modify_with_group": _indirect_modify_group,
    "table_indirect_delete": _with_entry("bm_mt_indirect_delete_entry"),
    "table_indirect_set_timeout": _simple(
        "bm_mt_indirect_set_entry_ttl", STANDARD, "table", "entry", "value"
    ),
    "table_indirect_set_default": _simple("bm_mt_indirect_set_default_member", STANDARD, "table", "member"),
    "table_indirect_reset_default": _simple("bm_mt_indirect_reset_default_entry", STANDARD, "table"),
    "act_prof_create_member": _create("bm_mt_act_prof_add_member"),
    "act_prof_modify_member": _modify_member,
    "act_prof_delete_member": _simple("bm_mt_act_prof_delete_member", STANDARD, "profile", "member"),
    "act_prof_create_group": _create("bm_mt_act_prof_create_group"),
    "act_prof_delete_group": _with_profile_group("bm_mt_act_prof_delete_group"),
    "act_prof_add_member_to_group": _with_profile_group("bm_mt_act_prof_add_member_to_group", member=True),
    "act_prof_remove_member_from_group": _with_profile_group(
        "bm_mt_act_prof_remove_member_from_group", member=True
    ),
    "mc_mgrp_create": _simple("bm_mc_mgrp_create", PRE, "group"),
    "mc_mgrp_destroy": _simple("bm_mc_mgrp_destroy", PRE, "group"),
    "mc_node_create": _node_create,
    "mc_node_update": _node_update,
    "mc_node_dissociate": _simple("bm_mc_node_dissociate", PRE, "group", "node"),
    "mc_node_destroy": _simple("bm_mc_node_destroy", PRE, "node"),
    "mc_set_lag_membership": _lag,
    "mirroring_add": _mirroring_add,
    "mirroring_delete": _simple("mirroring_session_delete", SIMPLE, "session"),
    "register_write": _register_write,
    "register_write_range": _register_range,
    "register_reset": _simple("bm_register_reset", STANDARD, "register"),
    "counter_write": _counter_write,
    "counter_reset": _simple("bm_counter_reset_all", STANDARD, "counter"),
    "meter_array_set_rates": _meter,
    "meter_set_rates": _meter_cell,
    "parse_value_set_add": _value_set("bm_parse_vset_add"),
    "parse_value_set_remove": _value_set("bm_parse_vset_remove"),
    "parse_value_set_clear": _simple("bm_parse_vset_clear", STANDARD, "value_set"),
    "set_queue_depth": _simple("set_all_egress_queue_depths", SIMPLE, "depth"),
}


def _key_text(one: Json) -> str:
    kind = one["kind"]
    if kind == "range":
        return f"{one['low']:#x}->{one['high']:#x}"
    if kind == "lpm":
        return f"{one['value']:#x}/{one['length']}"
    if kind in ("ternary", "optional"):
        return f"{one['value']:#x}&&&{one['mask']:#x}"
    return f"{one['value']:#x}"


def as_text(command: Json) -> str:
    """A command in the words of simple_switch_CLI, but for two that are one command here."""
    words: list[str] = [command["do"]]
    for name in ("table", "profile", "register", "counter", "meter", "value_set"):
        if name in command:
            words.append(command[name])
    for name in ("action", "entry", "session", "index", "start", "end", "lag", "node"):
        if name in command and not (name == "action" and "key" not in command and "entry" in command):
            words.append(str(command[name]))
    words += [_key_text(one) for one in command.get("key", [])]
    if "key" in command:
        words.append("=>")
    words += [f"{value:#x}" for value, _ in command.get("data", [])]
    words += [str(command[name]) for name in ("member", "group", "rid", "port", "value") if name in command]
    words += [str(port) for port in command.get("ports", [])]
    words += ["|", *(str(lag) for lag in command["lags"])] if command.get("lags") else []
    words += [f"{rate}:{burst}" for rate, burst in command.get("rates", [])]
    if command.get("priority") is not None:
        words.append(str(command["priority"]))
    if command.get("after"):
        words.append(f"# after {command['after']} packets")
    return " ".join(words)
