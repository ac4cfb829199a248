"""200 files are sent at once, with receivers at a part of the members: whoever is said to have one has it.

A third of the senders are `wormcast send`, the others programs with the client library. Who receives, and what is
sent where, is drawn from a seed that is printed; SEED draws it again.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import sha256_of

HOSTS = range(8)
SENDS = 200
COMMANDS = 64
"""Of the sends, those that are `wormcast send`."""
GROUPS: list[dict[str, Any]] = [
    {"scheme": "switch"},
    {"scheme": "k-binomial"},
    {"scheme": "auto", "parameters": {"ordered": True}},
]
RATES_MBPS = {"wormcast": 50.0, "bmv2": 5.0}
END_SECONDS_MAX = 600.0
"""Only against hanging for ever."""


@dataclass(frozen=True)
class Send:
    """A file, and where it goes from."""

    origin: int
    group: int
    path: Path
    sha256: str

    @property
    def name(self) -> str:
        """As receivers see it."""
        return self.path.name


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    patience = ("--receiver-wait", "3")
    return make_fabric("testbed", switch=switch, rate_mbps=RATES_MBPS[switch], agent_arguments=patience)


@pytest.fixture
def groups(fabric: Fabric) -> Iterator[list[int]]:
    """All hosts are in all of them."""
    made = [fabric.post("groups", {**group, "members": list(HOSTS)})["id"] for group in GROUPS]
    for group in made:
        fabric.wait_group(group)
    yield made
    for group in made:
        fabric.delete(f"groups/{group}")


def draw_sends(draw: random.Random, groups: list[int], directory: Path) -> list[Send]:
    """Files from 0 to 30,000 bytes, few of them large; as many from each host, since an agent serves 32 programs at once."""
    sends = []
    directory.mkdir()
    origins = list(HOSTS) * (SENDS // len(HOSTS))
    draw.shuffle(origins)
    for number, origin in enumerate(origins):
        group = draw.choice(groups)
        path = directory / f"file-{number}"
        path.write_bytes(draw.randbytes(draw.choice([0, 1, 500, 1_500, draw.randrange(30_000)])))
        sends.append(Send(origin, group, path, sha256_of(path)))
    return sends


def receive(fabric: Fabric, host: int, group: int, out: Path) -> subprocess.Popen[str]:
    out.mkdir()
    argv = ["wormcast", "recv", "--group", str(group), "--output", str(out), "--json"]
    return fabric.popen(host, argv, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def run_sends(fabric: Fabric, sends: list[Send], directory: Path) -> dict[str, dict[int, str | None]]:
    """All at once. What was said of each: by member none, or why it does not have the file."""
    commands, of_programs = sends[:COMMANDS], sends[COMMANDS:]
    pipes: dict[str, Any] = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    programs = []
    for host in HOSTS:
        wanted = [(send.group, send.name, str(send.path)) for send in of_programs if send.origin == host]
        if wanted:
            file = directory / f"sends-{host}.json"
            file.write_text(json.dumps(wanted))
            script = Path(__file__).parent / "many_senders.py"
            programs.append(fabric.popen(host, [sys.executable, str(script), str(file)], **pipes))
    argvs = [["wormcast", "send", str(send.path), "--group", str(send.group), "--json"] for send in commands]
    started = [fabric.popen(send.origin, argv, **pipes) for send, argv in zip(commands, argvs, strict=True)]
    told: dict[str, dict[int, str | None]] = {}
    try:
        for send, process in zip(commands, started, strict=True):
            out, err = process.communicate(timeout=END_SECONDS_MAX)
            assert process.returncode in (0, 3), (send, process.returncode, err)
            report = json.loads(out)
            assert report["sha256"] == send.sha256
            told[send.name] = {member["host"]: member["reason"] for member in report["members"]}
            has = [member["host"] for member in report["members"] if member["delivered"]]
            assert set(has) == {host for host, reason in told[send.name].items() if reason is None}
            assert (process.returncode == 0) == (len(has) == len(report["members"])), (send, report)
            assert (report["delivered"], report["failed"]) == (len(has), len(report["members"]) - len(has))
        for program in programs:
            out, err = program.communicate(timeout=END_SECONDS_MAX)
            assert program.returncode == 0, err
            for line in out.splitlines():
                report = json.loads(line)
                told[report["name"]] = {int(host): reason for host, reason in report["members"].items()}
    finally:
        for process in [*started, *programs]:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return told


def test_whoever_is_said_to_have_a_file_has_it(fabric: Fabric, groups: list[int], tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", secrets.randbelow(1 << 32)))
    print(f"SEED={seed}")
    draw = random.Random(seed)
    sends = draw_sends(draw, groups, tmp_path / "files")
    all_places = [(host, group) for group in groups for host in HOSTS]
    receivers = {place for place in all_places if draw.random() < 0.5}
    outs = {place: tmp_path / "{}-{}".format(*place) for place in all_places}
    receiving = {place: receive(fabric, *place, outs[place]) for place in sorted(receivers)}
    try:
        wait_for_receivers(fabric, receivers)
        told = run_sends(fabric, sends, tmp_path)
        for process in receiving.values():
            process.send_signal(signal.SIGINT)
        for place, process in receiving.items():
            _, err = process.communicate(timeout=END_SECONDS_MAX)
            assert process.returncode == 130, (place, process.returncode, err)
    finally:
        for process in receiving.values():
            if process.poll() is None:
                process.kill()
                process.communicate()
    for send in sends:
        # Those who received were there all the time, and the others never.
        want = {host for host in HOSTS if host != send.origin and (host, send.group) in receivers}
        members = told[send.name]
        assert set(members) == set(HOSTS) - {send.origin}, (send, members)
        assert {host for host, reason in members.items() if reason is None} == want, (send, members)
        for host in want:
            assert sha256_of(outs[host, send.group] / send.name) == send.sha256, (send, host)
    for place in receivers:
        got = sorted(path.name for path in outs[place].iterdir())
        others = sorted(send.name for send in sends if send.group == place[1] and send.origin != place[0])
        assert got == others, place
