"""What a switch knows after the packets: counters, registers and entries."""

from typing import Any

from differential.commands import Session
from differential.program import Json, Program, Table
from differential.thrift import Refused, Value, i32, text

INDICES_MAX = 48  # of an array that are read: the first ones and the last one
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
        state[f"default entry of {table.name}"] = _ask(session, "bm_mt_get_default_entry", name)
        entries = _ask(session, "bm_mt_get_entries", name)
        state[f"entries of {table.name}"] = entries if isinstance(entries, str) else _in_order(entries, table)
        if table.counters:
            for at, handle in enumerate(session.entries.get(table.name, [])):
                if handle is not None:
                    read = _ask(session, "bm_mt_read_counter", name, i32(handle))
                    state[f"counter of entry {at} of {table.name}"] = read
    return state


def _in_order(entries: list[dict[int, Any]], table: Table) -> list[str]:
    """Entries without their handles, which each switch counts in its own way, and ages."""
    options, action = 2, 4
    found = []
    for entry in entries:
        key = [compared(part, of.width) for part, of in zip(entry[1], table.keys, strict=True)]
        found.append(str([key, entry.get(options), entry.get(action)]))
    return sorted(found)


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
