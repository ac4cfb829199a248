"""The deadlock check of routes that others made: forwarding tables and paths, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import wormcast_planner as native

LOST_SHOWN_MAX = 10
"""Lost packets that are shown to people; the file has more."""
LIDS_READ_AT_ONCE = 64
"""A block of a switch's table, as infiniband-diags reads it; if the last LID begins a block, it is not read."""


def verify_tables(
    topology: str, tables: Sequence[str], ends: str = "hosts", records: str | None = None
) -> dict[str, Any]:
    """The verify file for forwarding tables: texts that `dump_lfts`, `ibroute` or OpenSM
    wrote, or tables files. `topology` is the text of a topology file of any format;
    InfiniBand's tables need the one that ibnetdiscover prints, with its LIDs. `ends`:
    "hosts" for packets between hosts, "all" for those of switches too. `records` is what
    `saquery PR` prints: with it each packet uses the virtual lane of its service level.

    Raises `RoutingError`; its `text` is the number of the text that is wrong, None for
    the topology.
    """
    verdict: dict[str, Any] = json.loads(native.verify_tables(topology, list(tables), ends, records))
    return verdict


def verify_paths(paths: str, topology: str | None = None) -> dict[str, Any]:
    """The verify file for the paths in a CSV file, on a topology file of any format if
    there is one. Raises `RoutingError` as `verify_tables`."""
    verdict: dict[str, Any] = json.loads(native.verify_paths(paths, topology))
    return verdict


def channel_name(channel: Mapping[str, Any]) -> str:
    """A channel of named nodes, for people."""
    vc = f" vc {channel['vc']}" if "vc" in channel else ""
    return f"{_end(channel['from'])} → {_end(channel['to'])}{vc}"


def packet_name(packet: Mapping[str, Any]) -> str:
    """A packet, for people."""
    target = packet.get("dst")
    name = f"{packet['src']} → {target or packet['to']}"
    if target and "to" in packet:
        name += f" ({packet['to']})"
    return name + (f", line {packet['line']}" if "line" in packet else "")


def checked_lines(verdict: Mapping[str, Any]) -> list[str]:
    """What was read, and which packets do not arrive."""
    lines = []
    count = verdict["lost_count"]
    if count:
        lines.append(f"{count} {'destination is' if count == 1 else 'times a destination is'} not reached:")
        lines += [f"  {_lost(entry)}" for entry in verdict["lost"][:LOST_SHOWN_MAX]]
        if count > LOST_SHOWN_MAX:
            lines.append(f"  and {count - LOST_SHOWN_MAX} more (--json shows them)")
        lines += _left_out(verdict["lost"])
    counts = [f"{number} {name.replace('_', ' ')}" for name, number in verdict["checked"].items()]
    return [*lines, f"checked: {', '.join(counts)}"]


def _left_out(lost: Sequence[Mapping[str, Any]]) -> list[str]:
    """What to know of lost LIDs for which not the tables but the programs that print them may be to blame."""
    missing = {entry["packet"].get("to", "") for entry in lost if entry["kind"] == "no-entry"}
    lids = sorted(int(name.removeprefix("LID ")) for name in missing if name.startswith("LID "))
    return [
        f"dump_lfts, dump_fts and ibroute leave out the last LID where it is a multiple of {LIDS_READ_AT_ONCE}, "
        f"as {lid} is; OpenSM's opensm-lfts.dump has it"
        for lid in lids
        if lid % LIDS_READ_AT_ONCE == 0
    ]


def _lost(entry: Mapping[str, Any]) -> str:
    switch, port, packet = entry["switch"], entry.get("port"), entry["packet"]
    target = packet.get("to", packet.get("dst"))
    if "to" in packet and "dst" in packet:
        target = f"{packet['to']} ({packet['dst']})"
    if entry["kind"] == "loop":
        way = " → ".join(f"{step['node']}:{step['port']}" for step in entry["path"])
        return f"{target} goes round for ever: {way} → {entry['path'][0]['node']}; from {packet['src']}"
    what = {
        "no-entry": f"{switch} has no entry for {target}",
        "no-link": f"{switch} sends {target} by port {port}, on which nothing is",
        "kept-by-switch": f"{switch} takes {target} for its own",
        "wrong-host": f"{switch} sends {target} by port {port}, to another host",
    }
    return f"{what[entry['kind']]}; from {packet['src']}"


def _end(end: Mapping[str, Any]) -> str:
    return str(end["node"]) + (f":{end['port']}" if "port" in end else "")
