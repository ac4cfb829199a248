"""Counters of one switch, from its P4 program, from itself and from the kernel."""

from __future__ import annotations

import asyncio
from typing import Any

import finsy

from wormcast.counters.kernel import read_mtus
from wormcast.counters.ports import read_ports
from wormcast.p4rt.session import SwitchSession
from wormcast.wire import DropReason, Kind, TrainEvent

READ_TIMEOUT_S = 30.0
DROP_NAMES = {int(reason): reason.name.lower() for reason in DropReason}
TRAIN_NAMES = {int(event): event.name.lower() for event in TrainEvent}
KIND_NAMES = {int(kind): kind.name.lower() for kind in Kind}
PROGRAM_COUNTERS = ("drops", "filtered", "kinds", "trains", "ingress_ports", "egress_ports")

ProgramCounters = dict[str, dict[int, tuple[int, int]]]


async def read_program(session: SwitchSession, timeout_s: float) -> ProgramCounters:
    """Cells that are not zero of every counter of the P4 program. Raises `OSError`."""
    if not session.connected:
        raise OSError(f"no session: {session.last_error}")
    try:
        async with asyncio.timeout(timeout_s):
            return {name: await session.read_counter(name) for name in PROGRAM_COUNTERS}
    except TimeoutError:
        raise OSError(f"the program's counters were not read within {timeout_s:g} s") from None
    except finsy.P4ClientError as error:
        raise OSError(f"the program's counters: {error.message or error.code.name}") from error


async def show_counters(session: SwitchSession) -> dict[str, Any]:
    """The answer of `/v1/switches/{id}/counters`."""
    spec = session.spec
    program: ProgramCounters = {name: {} for name in PROGRAM_COUNTERS}
    readings = await read_ports([spec])
    missing = list(readings.missing[spec.id])
    try:
        program = await read_program(session, READ_TIMEOUT_S)
    except OSError as error:
        missing.append(str(error))
    names = dict(spec.interfaces)
    mtus = read_mtus(set(names.values()))
    drops = readings.drops[spec.id]
    used = set(names) | set(drops) | set(program["ingress_ports"]) | set(program["egress_ports"])

    def crossed(counter: str, port: int) -> dict[str, int]:
        packets, octets = program[counter].get(port, (0, 0))
        return {"packets": packets, "bytes": octets}

    return {
        "switch": spec.id,
        "drops": {DROP_NAMES.get(i, str(i)): n for i, (n, _) in sorted(program["drops"].items())},
        "filtered": {KIND_NAMES.get(i, str(i)): n for i, (n, _) in sorted(program["filtered"].items())},
        "kinds": {KIND_NAMES.get(i, str(i)): n for i, (n, _) in sorted(program["kinds"].items())},
        "trains": {TRAIN_NAMES.get(i, str(i)): n for i, (n, _) in sorted(program["trains"].items())},
        "ports": [
            {
                "port": port,
                "interface": names.get(port),
                "mtu": mtus.get(names.get(port, "")),
                "ingress": crossed("ingress_ports", port),
                "egress": crossed("egress_ports", port),
                "drops": drops.get(port, {}),
            }
            for port in sorted(used)
        ],
        "missing": missing,
    }
