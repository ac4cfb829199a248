"""Exercise 1 of ngsdn-tutorial on wormcast-switch: its topology, the P4Runtime shell, two hosts that reach each other."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.one_line import change_line
from labs.report import Report
from labs.rig import L2_PROGRAM, ROOT, LabError
from labs.shell import Shell, check_installed
from labs.typed import MininetScript

PYTHON = ROOT / "switch" / "labs" / "ngsdn" / "python"
EXERCISE_1 = "topo-v6.py"
"""The topology of exercise 1; the others are only started."""
IMAGE = "wormcast"
"""Any image of this repository in which switch/labs/ngsdn/python is /usr/bin/python."""
IMAGE_LINE = "    image: opennetworking/ngsdn-tutorial:stratum_bmv2"
LEAF_PORT = 50001
GRPC_PORTS = {"leaf1": 50001, "leaf2": 50002, "spine1": 50003, "spine2": 50004}
HOSTS = {"h1a": ("2001:1:1::a", "00:00:00:00:00:1A", 3), "h1b": ("2001:1:1::b", "00:00:00:00:00:1B", 4)}
"""Two hosts of leaf1: address, MAC address, port."""
LOSS = re.compile(r"(\d+(?:\.\d+)?)% packet loss")


@dataclass(frozen=True)
class Names:
    """What a program calls its table of exact Ethernet addresses."""

    table: str
    field: str
    action: str
    parameter: str


TUTORIAL = Names(
    "IngressPipeImpl.l2_exact_table", "hdr.ethernet.dst_addr", "IngressPipeImpl.set_egress_port", "port_num"
)
OURS = Names("ingress.addresses", "hdr.ethernet.dst", "ingress.forward", "port")


def run(
    report: Report, clone: Path, topology: str, *, compiled: tuple[Path, Path] | None, lines: Sequence[str]
) -> None:
    """Run the exercise with the topology of a clone. Raises LabError for what is no such clone."""
    script = clone / "mininet" / topology
    compose = clone / "docker-compose.yml"
    if not script.is_file() or not compose.is_file():
        there = sorted(path.name for path in (clone / "mininet").glob("topo-*.py"))
        raise LabError(
            f"{clone} has no docker-compose.yml and mininet/{topology}, as ngsdn-tutorial has; "
            f"topologies there: {', '.join(there) or 'none'}"
        )
    check_installed()
    changed = change_line(
        compose, report.directory / compose.name, IMAGE_LINE, f"    image: {IMAGE}", compose.name
    )
    report.check("one line of docker-compose.yml changes", changed.splitlines()[-1], True)
    variables = {"STRATUM_TMP": str(report.directory / "tmp")}
    mininet = MininetScript([str(PYTHON), str(script)], report.directory, variables)
    try:
        started = sorted(re.findall(r"^(\w+) wormcast-switch @ (\d+)", mininet.transcript, re.MULTILINE))
        report.check(
            "the topology, unchanged, starts four switches on the ports of the tutorial",
            ", ".join(f"{name} @ {port}" for name, port in started),
            dict(started) == {name: str(port) for name, port in GRPC_PORTS.items()},
        )
        if topology == EXERCISE_1:
            _bridge(report, mininet, *_program(report, clone, compiled))
        for line in lines:
            report.check(f"what {line!r} says", mininet.type(line).strip()[-300:], None)
        code = mininet.close("exit\n")
        report.check("Mininet ends in order", f"exit code {code}", code == 0)
    finally:
        mininet.kill()
        (report.directory / "transcript.txt").write_text(mininet.transcript)
    report.draw_text(changed + "\n" + mininet.transcript, "exercises")
    report.figures["difference"] = changed


def _program(report: Report, clone: Path, compiled: tuple[Path, Path] | None) -> tuple[Path, Path, Names]:
    """The tutorial's program where it is compiled; else one of ours that bridges, too."""
    build = clone / "p4src" / "build"
    program, p4info = compiled or (build / "bmv2.json", build / "p4info.txt")
    if program.is_file() and p4info.is_file():
        return program, p4info, TUTORIAL
    report.skip(
        f"the tutorial's own P4 program: {build}/bmv2.json is not there (make p4-build makes it), and no --program is "
        f"given; leaf1 bridges with {(L2_PROGRAM / 'l2.p4').relative_to(ROOT)} instead"
    )
    return L2_PROGRAM / "l2.json", L2_PROGRAM / "l2.p4info.txtpb", OURS


def _bridge(report: Report, mininet: MininetScript, program: Path, p4info: Path, names: Names) -> None:
    """Steps 4 and 5 of EXERCISE-1.md: entries for two hosts of leaf1, typed into p4runtime-shell."""
    (a, b) = HOSTS
    for host, other in ((a, b), (b, a)):
        address, mac, _ = HOSTS[other]
        mininet.type(f"{host} ip -6 neigh replace {address} lladdr {mac} dev {host}-eth0")
    before = LOSS.search(mininet.type(f"{a} ping -c 2 -W 1 {HOSTS[b][0]}"))
    directory = report.directory
    for path, copy in ((program, "program.json"), (p4info, "p4info.txt")):
        shutil.copyfile(path, directory / copy)
    shell = Shell(
        f"127.0.0.1:{LEAF_PORT}", 1, directory / "p4info.txt", directory / "program.json", directory
    )
    try:
        for _, mac, port in HOSTS.values():
            shell.type_all(
                [
                    f'te = table_entry["{names.table}"](action="{names.action}")',
                    f'te.match["{names.field}"] = "{mac}"',
                    f'te.action["{names.parameter}"] = "{port}"',
                    "te.insert()",
                ]
            )
        after = LOSS.search(mininet.type(f"{a} ping -c 3 -W 5 {HOSTS[b][0]}"))
    finally:
        shell.close()
        (directory / "shell.txt").write_text(shell.transcript)
    report.check(
        f"{a} does not reach {b} before leaf1 has entries",
        f"{before[0] if before else 'no answer of ping'}",
        before is not None and float(before[1]) == 100.0,
    )
    report.check(
        f"{a} reaches {b} after two entries in {names.table}, typed into p4runtime-shell",
        f"{after[0] if after else 'no answer of ping'}",
        after is not None and float(after[1]) < 100.0,
    )
