"""What a switch knows after the packets: counters, registers and entries."""

from typing import Any

from differential.commands import Session
from differential.program import Json, Program, Table
from differential.thrift import Refused, Value, i32, text

INDICES_MAX = 48  # of an array that are read: the first ones and the last one
METERS_MAX = 16  # of an array of which the rates are read
VALUES_MAX = 4096  # of a register
WIDTH_MAX = 63  # of registers that are read, see known.WIDE_REGISTERS


def read_state(session: Session, program: Program) -> Json:
    """The state by name. Raises OSError."""
    state: Json = {}
    for register in program.registers:
        if register.size <= VALUES_MAX and register.width <= WIDTH_MAX:
            state[f"register {register.name}"] = _ask(session, "bm_register_read_all", text(register.name))
    for counter in program.counters:
        for index in sorted({*range(min(counter.size, INDICES_MAX)), counter.size - 1}):
            state[f"counter {counter.name}[{index}]"] = _ask(
                session, "bm_counter_read", text(counter.name), i32(index)
            )
    for table in program.tables:
        if not table.keys:
            continue
        name = text(table.name)
        state[f"number of entries of {table.name}"] = _ask(session, "bm_mt_get_num_entries", name)
        read = _ask(session, "bm_mt_get_default_entry", name)
        state[f"default entry of {table.name}"] = _named(session, table, read)
        entries = _ask(session, "bm_mt_get_entries", name)
        state[f"entries of {table.name}"] = (
            entries if isinstance(entries, str) else _in_order(session, entries, table)
        )
        if table.meter:
            for at, handle in enumerate(session.entries.get(table.name, [])):
                if handle is not None:
                    read = _ask(session, "bm_mt_get_meter_rates", name, i32(handle))
                    state[f"rates of entry {at} of {table.name}"] = _rates(read)
        if table.counters:
            for at, handle in enumerate(session.entries.get(table.name, [])):
                if handle is not None:
                    read = _ask(session, "bm_mt_read_counter", name, i32(handle))
                    state[f"counter of entry {at} of {table.name}"] = read
    for profile in program.profile_actions():
        state |= _profile(session, profile)
    for meter in program.meters:
        for index in range(min(meter.size, METERS_MAX)):
            read = _ask(session, "bm_meter_get_rates", text(meter.name), i32(index))
            state[f"rates of {meter.name}[{index}]"] = _rates(read)
    for value_set in program.value_sets:
        read = _ask(session, "bm_parse_vset_get", text(value_set))
        state[f"value set {value_set}"] = read if isinstance(read, str) else sorted(read)
    return state


def _profile(session: Session, profile: str) -> Json:
    """Members and groups by when they were made: each switch has handles of its own after some
    were taken away."""
    members = {handle: at for at, handle in enumerate(session.members.get(profile, []))}
    groups = {handle: at for at, handle in enumerate(session.groups.get(profile, []))}
    found: Json = {}
    read = _ask(session, "bm_mt_act_prof_get_members", text(profile))
    for one in [] if isinstance(read, str) else read:
        found[f"member {members.get(one[1])} of {profile}"] = [one.get(2), one.get(3)]
    read = _ask(session, "bm_mt_act_prof_get_groups", text(profile))
    for one in [] if isinstance(read, str) else read:
        found[f"group {groups.get(one[1])} of {profile}"] = sorted(
            str(members.get(m)) for m in one.get(2, [])
        )
    return found


def _rates(read: Any) -> Any:
    """Rates in whole units a second (known.SLOW_RATES)."""
    return read if isinstance(read, str) else [(round(one[1] * 1e6), one[2]) for one in read]


def _in_order(session: Session, entries: list[dict[int, Any]], table: Table) -> list[str]:
    """Entries without their handles, which each switch counts in its own way, and ages."""
    options, action, life = 2, 4, 5
    found = []
    for entry in entries:
        key = [compared(part, of.width) for part, of in zip(entry[1], table.keys, strict=True)]
        timeout = entry.get(life, {}).get(1)
        found.append(str([key, entry.get(options), _named(session, table, entry.get(action)), timeout]))
    return sorted(found)


def _named(session: Session, table: Table, action: Any) -> Any:
    """What an entry does, with members and groups by when they were made."""
    if not isinstance(action, dict):
        return action
    profile, named = table.profile or "", dict(action)
    for number, added in ((4, session.members), (5, session.groups)):
        if named.get(number, -1) in added.get(profile, []):
            named[number] = added[profile].index(named[number])
    return named


def compared(part: dict[int, Any], width: int) -> Any:
    """A part of a key without bits past its prefix or outside its mask (known.UNCOMPARED)."""
    lpm, ternary = 3, 4
    if lpm in part:
        value, prefix = int.from_bytes(part[lpm][1], "big"), part[lpm][2]
        return ["lpm", value >> width - prefix, prefix]
    if ternary in part:
        value, mask = (int.from_bytes(part[ternary][number], "big") for number in (1, 2))
        return ["ternary", value & mask, mask]
    return part


def _ask(session: Session, method: str, *arguments: Value) -> Any:
    try:
        return session.call(method, *arguments)
    except Refused as refused:
        return f"refused: {refused.code}"
