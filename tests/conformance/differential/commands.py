"""What is written into a switch before its packets come: commands, the same for both.

A command is JSON, so that a finding keeps it; `text` gives what simple_switch_CLI calls it.
Entries of tables are named by when they were added to their table, members and groups by the
handles that both switches give them.
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
    i32,
    i64,
    list_of,
    struct_of,
    text,
)

Json = dict[str, Any]
STANDARD, PRE, SIMPLE = "standard", "simple_pre_lag", "simple_switch"
KINDS = {"exact": 0, "lpm": 1, "ternary": 2, "optional": 2, "valid": 3, "range": 4}
PORT_MAP_BITS = 256
CONTEXT = i32(0)


@dataclass
class Session:
    """A connection, and the handles of what was added over it."""

    connection: Connection
    entries: dict[str, list[int | None]] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=list)

    def send(self, command: Json) -> str:
        """Does a command; gives `done` or why not. Raises OSError where the switch is gone."""
        try:
            return _DO[command["do"]](self, command)
        except Refused as refused:
            if command["do"] in ("table_add", "table_indirect_add", "table_indirect_add_with_group"):
                self.entries.setdefault(command["table"], []).append(None)
            return f"refused: {refused.code}"

    def call(self, method: str, *arguments: Value, service: str = STANDARD) -> Any:
        """A call, in the only context there is where the service has contexts."""
        context = () if service == SIMPLE else (CONTEXT,)
        return self.connection.call(service, method, *context, *arguments)

    def handle(self, command: Json) -> int:
        """The handle of the entry that a command names; one that no entry has for those that
        could not be added."""
        added = self.entries.get(command["table"], [])
        at = command["entry"]
        found = added[at] if at < len(added) else None
        return 1 << 20 if found is None else found


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


def _added(session: Session, command: Json, handle: int) -> str:
    session.entries.setdefault(command["table"], []).append(handle)
    return "done"


def _table_add(session: Session, command: Json) -> str:
    arguments = (text(command["table"]), _key(command["key"]))
    action = (text(command["action"]), _data(command))
    return _added(session, command, session.call("bm_mt_add_entry", *arguments, *action, _options(command)))


def _indirect_add(session: Session, command: Json) -> str:
    group = "group" in command
    method = "bm_mt_indirect_ws_add_entry" if group else "bm_mt_indirect_add_entry"
    to = i32(command["group"] if group else command["member"])
    key = _key(command["key"])
    return _added(session, command, session.call(method, text(command["table"]), key, to, _options(command)))


def _simple(method: str, service: str, *fields: str) -> Do:
    """A command whose arguments are numbers and names."""

    def do(session: Session, command: Json) -> str:
        values = [command[name] for name in fields]
        arguments = [i32(value) if isinstance(value, int) else text(value) for value in values]
        session.call(method, *arguments, service=service)
        return "done"

    return do


def _with_entry(method: str, *, action: bool = False, rates: bool = False) -> Do:
    def do(session: Session, command: Json) -> str:
        arguments = [text(command["table"]), i32(session.handle(command))]
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


def _node_create(session: Session, command: Json) -> str:
    ports = "".join("1" if port in command["ports"] else "0" for port in range(PORT_MAP_BITS))
    ports = ports[::-1].lstrip("0") or "0"
    node = session.call("bm_mc_node_create", i32(command["rid"]), text(ports), text(""), service=PRE)
    session.nodes.append(node)
    session.call("bm_mc_node_associate", i32(command["group"]), i32(node), service=PRE)
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


def _value_set_add(session: Session, command: Json) -> str:
    value = whole_bytes(command["value"], command["width"])
    session.call("bm_parse_vset_add", text(command["value_set"]), text(value))
    return "done"


_DO: dict[str, Do] = {
    "table_add": _table_add,
    "table_indirect_add": _indirect_add,
    "table_indirect_add_with_group": _indirect_add,
    "table_modify": _with_entry("bm_mt_modify_entry", action=True),
    "table_delete": _with_entry("bm_mt_delete_entry"),
    "table_set_meter_rates": _with_entry("bm_mt_set_meter_rates", rates=True),
    "table_set_default": _with_action("bm_mt_set_default_action", "table"),
    "act_prof_create_member": _with_action("bm_mt_act_prof_add_member", "profile"),
    "act_prof_create_group": _simple("bm_mt_act_prof_create_group", STANDARD, "profile"),
    "act_prof_add_member_to_group": _simple(
        "bm_mt_act_prof_add_member_to_group", STANDARD, "profile", "member", "group"
    ),
    "mc_mgrp_create": _simple("bm_mc_mgrp_create", PRE, "group"),
    "mc_node_create": _node_create,
    "mirroring_add": _mirroring_add,
    "register_write": _register_write,
    "meter_array_set_rates": _meter,
    "parse_value_set_add": _value_set_add,
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
    for name in ("table", "profile", "register", "meter", "value_set"):
        if name in command:
            words.append(command[name])
    for name in ("action", "entry", "session", "index"):
        if name in command and not (name == "action" and "key" not in command and "entry" in command):
            words.append(str(command[name]))
    words += [_key_text(one) for one in command.get("key", [])]
    if "key" in command:
        words.append("=>")
    words += [f"{value:#x}" for value, _ in command.get("data", [])]
    words += [str(command[name]) for name in ("member", "group", "rid", "port", "value") if name in command]
    words += [str(port) for port in command.get("ports", [])]
    words += [f"{rate}:{burst}" for rate, burst in command.get("rates", [])]
    if command.get("priority") is not None:
        words.append(str(command["priority"]))
    return " ".join(words)
