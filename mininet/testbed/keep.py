"""Bring a fabric up and keep it until Ctrl-C, or run one command on one host of it."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wormcast.counted import counted
from wormcast.exits import Exit
from wormcast.mininet import doors, sandbox
from wormcast.mininet.choice import STATE_FILE, name_all

if TYPE_CHECKING:
    from wormcast.mininet.fabric import Fabric

NAME_DEFAULT = "run"
OUT = Path("out")
ON = "WORMCAST_ON"
"""Variable of the environment: what users type for `wormcast on`, where that is another command."""
REST, P4RUNTIME = "WORMCAST_REST", "WORMCAST_P4RUNTIME"
"""The same: where users reach REST and P4Runtime, where that is another place than the fabric listens at."""
LOOK_EVERY_SECONDS = 1.0
PROGRESS_EVERY_SECONDS = 10.0
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Wanted:
    """A fabric as a command line says it: see the options of `wormcast up`."""

    switch: str
    topology: str
    rate: str
    mtu: str | None
    fabric_mtu: str | None
    impair: str | None
    seed: int
    switching: str | None
    name: str | None
    out: Path | None
    wait: str | None
    prompt: bool
    rest: str | None
    p4runtime: str | None
    command: tuple[str, ...]


def run(wanted: Wanted) -> int:
    """Bring a fabric up in a sandbox. Return the exit code of its command, 0 where Ctrl-C ends it, 130 if before it is up.

    Raises `SandboxError`, ValueError, OSError for what was asked for wrongly.
    """
    if sandbox.inside():
        sandbox.prepare(lambda: sandbox.leave(Exit.INTERRUPTED))
        return serve(wanted, sandbox.fabric_directory())
    sandbox.check_machine()
    name, directory = place(wanted.name, wanted.out)
    return sandbox.enter(name=name, directory=directory, through=open_doors(wanted))


def open_doors(wanted: Wanted) -> list[doors.Door]:
    """Those that were asked for: for REST, and for P4Runtime of each process of switches."""
    names: list[str] = []
    if wanted.p4runtime is not None:
        from wormcast.mininet import fabric, topologies

        topology = topologies.load_topology(wanted.topology, wanted.seed)
        names = [f"s{switch['id']}" for switch in topology["switches"]]
        if fabric.share_a_process(wanted.switch, topology):
            names = names[:1]
    return doors.open_doors(wanted.rest, wanted.p4runtime, names)


def place(name: str | None, out: Path | None) -> tuple[str, Path]:
    """Name and directory of a new fabric, claimed for it. Raises ValueError where one runs already."""
    if name is not None and not NAME.fullmatch(name):
        raise ValueError(f"name {name!r} is not 1 to 64 letters, digits, dots, dashes and underscores")
    if name is None and out is None:
        names = (NAME_DEFAULT if n == 1 else f"{NAME_DEFAULT}-{n}" for n in itertools.count(1))
        free = next(name for name in names if sandbox.claim((OUT / name).resolve()))
        return free, (OUT / free).resolve()
    directory = (out if out is not None else OUT / str(name)).resolve()
    if not sandbox.claim(directory):
        raise ValueError(f"a fabric runs in {directory}; give this one another --name or --out")
    return name or directory.name, directory


def serve(wanted: Wanted, directory: Path) -> int:
    """Inside the sandbox: fabric up, then the command, the prompt, or a wait."""
    from wormcast.mininet import control, topologies
    from wormcast.mininet import fabric as fabrics

    topology = topologies.load_topology(wanted.topology, wanted.seed, topologies.tell)
    settings = fabrics.Options(
        topology,
        wanted.switch,
        fabrics.parse_rate_mbps(wanted.rate),
        fabrics.parse_impair(wanted.impair, wanted.switch),
        wanted.seed,
        mtus=fabrics.parse_mtus(wanted.mtu, wanted.fabric_mtu),
        switching=wanted.switching,
    )
    wait_seconds = fabrics.parse_wait(wanted.wait)
    names = {f"h{h['id']}": h["id"] for h in topology["hosts"]}
    if wanted.command and wanted.command[0] not in names:
        raise ValueError(
            f"{wanted.command[0]!r} is neither a host ({name_all(list(names))}) nor start, stop, cut or mend"
        )
    if wanted.command and len(wanted.command) < 2:
        raise ValueError(
            f"no command for {wanted.command[0]}; for example: wormcast up -- h0 wormcast status"
        )
    state = directory / STATE_FILE
    state.unlink(missing_ok=True)
    sandbox.remove_at_end(state)
    # The fabric is not taken down part by part: it ends with this process.
    fabric = fabrics.Fabric(settings, directory)
    try:
        size = f"{counted(len(topology['switches']), 'switch')}, {counted(len(names), 'host')}"
        if not wanted.command:
            print(f"starting {size}", flush=True)
        fabric.start()
        fabric.wait_ready(wait_seconds, _show_progress())
        for problem in fabric.get("status")["mtu_problems"]:
            print(f"wormcast: {problem}", file=sys.stderr, flush=True)
        if late := how_late(fabric.get("status")["late"]):
            print(f"wormcast: {late}", file=sys.stderr, flush=True)
        threading.Thread(target=_report_ended, args=(fabric,), daemon=True).start()
        targets = {f"s{switch.id}": switch.address for switch in fabric.switches.values()}
        doors.serve({**targets, "rest": fabric.api_address})
        control.serve(fabric)
        state.write_text(json.dumps(fabric.describe(), indent=1) + "\n")
        if wanted.command:
            code = fabric.popen(
                names[wanted.command[0]], wanted.command[1:], stdin=None, stdout=None, stderr=None
            ).wait()
            return code if code >= 0 else 128 - code
        # From here on it is how the fabric ends.
        sandbox.call_on_interrupt(lambda: sandbox.leave(Exit.DONE))
        print(f"fabric up: {size}; logs in {fabric.logs}", flush=True)
        if wanted.rest is not None:
            rest = os.environ.get(REST) or doors.show(*doors.parse_address("--rest", wanted.rest))
            print(f"REST at http://{rest}/v1, described at http://{rest}/v1/openapi.json", flush=True)
        if wanted.p4runtime is not None:
            first = doors.show(*doors.parse_address("--p4runtime", wanted.p4runtime))
            p4runtime = os.environ.get(P4RUNTIME, f"{first} and the ports above")
            print(f"P4Runtime of the switches at {p4runtime}", flush=True)
        return keep(fabric, wanted.prompt)
    except fabrics.FabricError as error:
        print(f"wormcast: {error}", file=sys.stderr)
        return Exit.NO
    finally:
        state.unlink(missing_ok=True)


def keep(fabric: Fabric, prompt: bool) -> int:
    """Mininet's prompt until its end, or nothing until Ctrl-C."""
    if not prompt:
        on = os.environ.get(ON, "wormcast on")
        print(f"commands on hosts: `{on} h0 wormcast status`; Ctrl-C ends the fabric", flush=True)
        threading.Event().wait()
    from wormcast.mininet.prompt import Prompt

    # At the prompt Ctrl-C is for what runs there.
    sandbox.call_on_interrupt(lambda: None)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Prompt(fabric)
    return 0


def how_late(late: dict[str, Any]) -> str | None:
    """That the machine does not keep up with the fabric, what is late and by how much; None where it does."""
    parts = []
    if late["controller_ms"]:
        parts.append(f"the controller by up to {late['controller_ms'] / 1000:.1f} s")
    if late["agents"]:
        parts.append(f"{late['agents']} agents by up to {late['agents_ms'] / 1000:.1f} s")
    if not parts:
        return None
    return (
        f"this machine does not keep up: late in the last {late['seconds']:.0f} s were {' and '.join(parts)}"
    )


def _report_ended(fabric: Fabric) -> None:
    """Say which daemon has ended, once each; the fabric stays up."""
    reported: set[int] = set()
    while True:
        with fabric.changing:
            ended = fabric.ended()
        for pid, text in ended.items():
            if pid not in reported:
                reported.add(pid)
                print(f"wormcast: {text}; the fabric stays up", file=sys.stderr, flush=True)
        time.sleep(LOOK_EVERY_SECONDS)


def _show_progress() -> Callable[[str], None]:
    """What says now and then how far the fabric is, on the way up."""
    shown_at = time.monotonic()

    def tell(text: str) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= PROGRESS_EVERY_SECONDS:
            shown_at = time.monotonic()
            print(f"wormcast: not up yet: {text}", file=sys.stderr, flush=True)

    return tell
