"""Bring a fabric up and keep it until Ctrl-C, or run one command on one host of it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import sandbox

STATE = Path("out/run/fabric.json")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="mininet/run.py",
        description=__doc__,
        epilog="Examples: run.py --topology torus:3 --cli    run.py -- h3 wormcast status    "
        "While it runs, in another terminal: mininet/on h0 wormcast send FILE --group 1",
    )
    parser.add_argument("--switch", choices=["wormcast", "bmv2"], default="wormcast")
    parser.add_argument(
        "--topology",
        default="testbed",
        help="testbed, torus:K, irregular:S:SEED, line:S, star:S or FILE.json",
    )
    parser.add_argument("--rate", default="100", help="of every link, Mb/s, or none")
    parser.add_argument("--impair", help="impairments of every switch port, e.g. loss=0.01,corrupt=0.001")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=STATE.parent, help="logs and state")
    parser.add_argument("--cli", action="store_true", help="Mininet's prompt")
    parser.add_argument("command", nargs="*", metavar="HOST COMMAND", help="run this on a host, then end")
    return parser.parse_args()


def main() -> int:
    """Return the command's exit code, or 0 after Ctrl-C."""
    options = arguments()
    out = options.out.resolve()
    try:
        if not sandbox.inside():
            return sandbox.enter([__file__, *sys.argv[1:]], out / "sandbox.json")
        sandbox.prepare()
        return serve(options, out)
    except (sandbox.SandboxError, ValueError, OSError) as error:
        print(f"run: {error}", file=sys.stderr)
        return 2


def serve(options: argparse.Namespace, out: Path) -> int:
    """Inside the sandbox: fabric up, then the command, the prompt, or a wait."""
    import fabric as fabrics
    import topologies
    from mininet.cli import CLI

    topology = topologies.load_topology(options.topology)
    rate = fabrics.parse_rate_mbps(options.rate)
    settings = fabrics.Options(topology, options.switch, rate, options.impair, options.seed)
    names = {f"h{h['id']}": h["id"] for h in topology["hosts"]}
    if options.command and options.command[0] not in names:
        raise ValueError(f"host {options.command[0]!r} is not one of: {', '.join(names)}")
    state = out / "fabric.json"
    try:
        with fabrics.Fabric(settings, out) as fabric:
            fabric.wait_ready()
            if options.command:
                process = fabric.popen(
                    names[options.command[0]], options.command[1:], stdin=None, stdout=None, stderr=None
                )
                return int(process.wait())
            state.write_text(json.dumps(fabric.describe(), indent=1) + "\n")
            print(
                f"fabric up: {len(topology['switches'])} switches, {len(names)} hosts; logs in {fabric.logs}",
                flush=True,
            )
            if options.cli:
                CLI(fabric.net)
                return 0
            print("mininet/on HOST COMMAND runs a command on a host; Ctrl-C ends the fabric", flush=True)
            while True:
                fabric.check_alive()
                time.sleep(1)
    except KeyboardInterrupt:
        return 0
    except fabrics.FabricError as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    finally:
        state.unlink(missing_ok=True)


def on(argv: list[str]) -> int:
    """`mininet/on HOST COMMAND…`: run a command on a host of the fabric that run.py keeps up."""
    directory = STATE.resolve().parent
    if len(argv) < 2:
        print("usage: mininet/on HOST COMMAND [ARG …]", file=sys.stderr)
        return 2
    try:
        fabric = json.loads((directory / "fabric.json").read_text())
        unshare_pid = json.loads((directory / "sandbox.json").read_text())["unshare_pid"]
    except OSError:
        print(
            f"on: no fabric runs here ({directory}/fabric.json is not there); start one with mininet/run.py",
            file=sys.stderr,
        )
        return 2
    first = sandbox.first_process(unshare_pid)
    if first is None:
        print(f"on: the fabric of {directory} has ended; start one with mininet/run.py", file=sys.stderr)
        return 2
    if argv[0] not in fabric["hosts"]:
        print(f"on: host {argv[0]!r} is not one of: {', '.join(fabric['hosts'])}", file=sys.stderr)
        return 2
    here = Path(__file__).resolve().parent.parent / ".venv" / "bin"
    enter = [
        "nsenter",
        "--target",
        str(first),
        "--net",
        "--mount",
        "--pid",
        "--wd=.",
        "mnexec",
        "-a",
        str(fabric["hosts"][argv[0]]),
    ]
    environment = [f"WORMCAST_SOCKET={fabric['sockets'][argv[0]]}", f"WORMCAST_API={fabric['api']}"]
    return subprocess.run(
        [*enter, "env", f"PATH={here}:/usr/sbin:/usr/bin:/sbin:/bin", *environment, *argv[1:]]
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
