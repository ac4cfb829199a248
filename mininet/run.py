"""Bring a fabric up and keep it until Ctrl-C, or run one command on one host of it."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import sandbox

if TYPE_CHECKING:
    from fabric import Fabric

NAME_DEFAULT = "run"
OUT = Path("out")
STATE_FILE = "fabric.json"
LOOK_EVERY_SECONDS = 1.0
PROGRESS_EVERY_SECONDS = 10.0
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="mininet/run.py",
        description=__doc__,
        epilog="Examples: run.py --topology torus:3 --cli    run.py -- h3 wormcast status    "
        "While it runs, in another terminal: mininet/on h0 wormcast send FILE --group 0",
    )
    parser.add_argument("--switch", choices=["wormcast", "bmv2"], default="wormcast")
    parser.add_argument(
        "--topology",
        default="testbed",
        help="testbed, torus:K, irregular:S[:SEED], line:S, star:S or FILE.json",
    )
    parser.add_argument("--rate", default="100", help="rate of every link in Mb/s, or none")
    parser.add_argument("--mtu", help="MTU of the hosts in bytes (1500)")
    parser.add_argument(
        "--fabric-mtu", help="MTU of the links between switches in bytes (that of the hosts and 100)"
    )
    parser.add_argument("--impair", help="impairments of every switch port, e.g. loss=0.01,corrupt=0.001")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--name", help=f"name of the fabric for mininet/on ({NAME_DEFAULT})")
    parser.add_argument("--out", type=Path, help=f"directory of logs and state ({OUT}/NAME)")
    parser.add_argument(
        "--wait", metavar="SECONDS", help="seconds to wait at most until the fabric is up (600)"
    )
    parser.add_argument("--cli", action="store_true", help="open Mininet's prompt")
    parser.add_argument("command", nargs="*", metavar="HOST COMMAND", help="run this on a host, then end")
    return parser.parse_args()


def main() -> int:
    """Return the command's exit code, or 0 after Ctrl-C."""
    options = arguments()
    try:
        if sandbox.inside():
            sandbox.prepare(lambda: sandbox.leave(0))
            return serve(options, sandbox.fabric_directory())
        sandbox.check_machine()
        name, directory = place(options.name, options.out)
        return sandbox.enter([__file__, *sys.argv[1:]], name=name, directory=directory)
    except (sandbox.SandboxError, ValueError, OSError) as error:
        print(f"run: {error}", file=sys.stderr)
        return 2


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


def serve(options: argparse.Namespace, directory: Path) -> int:
    """Inside the sandbox: fabric up, then the command, the prompt, or a wait."""
    import fabric as fabrics
    import topologies

    topology = topologies.load_topology(options.topology, options.seed)
    settings = fabrics.Options(
        topology,
        options.switch,
        fabrics.parse_rate_mbps(options.rate),
        options.impair,
        options.seed,
        mtus=fabrics.parse_mtus(options.mtu, options.fabric_mtu),
    )
    wait_seconds = fabrics.parse_wait(options.wait)
    names = {f"h{h['id']}": h["id"] for h in topology["hosts"]}
    if options.command and options.command[0] not in names:
        raise ValueError(f"host {options.command[0]!r} is not one of: {', '.join(names)}")
    if options.command and len(options.command) < 2:
        raise ValueError(f"no command for {options.command[0]}; for example: run.py -- h0 wormcast status")
    state = directory / STATE_FILE
    state.unlink(missing_ok=True)
    sandbox.remove_at_end(state)
    # The fabric is not taken down part by part: it ends with this process.
    fabric = fabrics.Fabric(settings, directory)
    try:
        fabric.start()
        fabric.wait_ready(wait_seconds, _tell_progress())
        for problem in fabric.get("status")["mtu_problems"]:
            print(f"run: {problem}", file=sys.stderr, flush=True)
        threading.Thread(target=_tell_ended, args=(fabric,), daemon=True).start()
        if options.command:
            code = fabric.popen(
                names[options.command[0]], options.command[1:], stdin=None, stdout=None, stderr=None
            ).wait()
            return code if code >= 0 else 128 - code
        state.write_text(json.dumps(fabric.describe(), indent=1) + "\n")
        print(
            f"fabric up: {len(topology['switches'])} switches, {len(names)} hosts; logs in {fabric.logs}",
            flush=True,
        )
        return keep(fabric, options.cli)
    except fabrics.FabricError as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    finally:
        state.unlink(missing_ok=True)


def keep(fabric: Fabric, cli: bool) -> int:
    """Mininet's prompt until its end, or nothing until Ctrl-C."""
    if not cli:
        print("mininet/on HOST COMMAND runs a command on a host; Ctrl-C ends the fabric", flush=True)
        threading.Event().wait()
    import prompt

    # At the prompt Ctrl-C is for what runs there.
    sandbox.call_on_interrupt(lambda: None)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prompt.Prompt(fabric)
    return 0


def _tell_ended(fabric: Fabric) -> None:
    """Say which daemon has ended, once each; the fabric stays up."""
    told: set[int] = set()
    while True:
        for pid, text in fabric.ended().items():
            if pid not in told:
                told.add(pid)
                print(f"run: {text}; the fabric stays up", file=sys.stderr, flush=True)
        time.sleep(LOOK_EVERY_SECONDS)


def _tell_progress() -> Callable[[str], None]:
    """What says now and then how far the fabric is, on the way up."""
    told_at = time.monotonic()

    def tell(text: str) -> None:
        nonlocal told_at
        if time.monotonic() - told_at >= PROGRESS_EVERY_SECONDS:
            told_at = time.monotonic()
            print(f"run: not up yet: {text}", file=sys.stderr, flush=True)

    return tell


if __name__ == "__main__":
    sys.exit(main())
