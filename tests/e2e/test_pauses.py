"""Processes that are paused, as by a machine without a free processor: every transfer ends whole, nobody is lost.

Each test runs one transfer of every scheme at once, pauses processes (SIGSTOP) in the midst of all of them, and
lets them go on.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import sha256_of
from wormcast.network.groups import SCHEMES_ANYWHERE

RATES_MBPS = {"wormcast": 12.0, "bmv2": 3.0}
MEMBERS = {scheme: [(n + k) % 8 for k in (0, 2, 3, 5)] for n, scheme in enumerate(SCHEMES_ANYWHERE)}
"""The first is the source; every host has part in several groups."""
END_SECONDS_MAX = 600.0
SOURCE, RECEIVER = MEMBERS["switch"][0], MEMBERS["switch"][1]


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=RATES_MBPS[switch])


def size_of(fabric: Fabric) -> int:
    """Bytes of a file that takes seconds beside the files of the other schemes."""
    return int(RATES_MBPS[fabric.options.switch] * 1e6 / 8 * 1.6)


class Transfers:
    """One transfer of each scheme, all under way."""

    def __init__(self, fabric: Fabric, file: Path, directory: Path) -> None:
        self.fabric = fabric
        self.file = file
        self.directory = directory
        self.groups: dict[str, int] = {}
        self.receiving: dict[tuple[str, int], subprocess.Popen[str]] = {}
        self.sending: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Transfers:
        try:
            for scheme, members in MEMBERS.items():
                body = {"scheme": scheme, "members": sorted(members)}
                self.groups[scheme] = self.fabric.post("groups", body)["id"]
            for scheme, group in self.groups.items():
                self.fabric.wait_group(group, 60.0)
                for host in MEMBERS[scheme][1:]:
                    argv = ["wormcast", "recv", "--group", str(group), "--count", "1", "--json"]
                    argv += ["--output", str(self.output(scheme, host))]
                    self.receiving[scheme, host] = self._start(host, argv)
            self._wait(lambda: all(self._entry(s, h, "receivers") for s, h in self.receiving))
            for scheme, group in self.groups.items():
                argv = ["wormcast", "send", str(self.file), "--group", str(group), "--json"]
                self.sending[scheme] = self._start(MEMBERS[scheme][0], argv)
            self._wait(lambda: all(self._entry(s, h, "streams") for s, h in self.receiving))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def output(self, scheme: str, host: int) -> Path:
        path = self.directory / f"{scheme}-{host}"
        path.mkdir(exist_ok=True)
        return path

    def check_ended_whole(self) -> None:
        """Every member of every group has the file, and its sender says so."""
        want = sha256_of(self.file)
        for scheme, process in self.sending.items():
            out, err = process.communicate(timeout=END_SECONDS_MAX)
            assert process.returncode == 0, f"{scheme}: send ended with {process.returncode}: {err} {out}"
            report = json.loads(out)
            assert all(m["delivered"] for m in report["members"]), f"{scheme}: {report}"
            assert {m["host"] for m in report["members"]} == set(MEMBERS[scheme][1:]), scheme
        for (scheme, host), process in self.receiving.items():
            out, err = process.communicate(timeout=600)
            assert process.returncode == 0, (
                f"{scheme}: recv on h{host} ended with {process.returncode}: {err}"
            )
            assert sha256_of(Path(json.loads(out.strip().splitlines()[-1])["path"])) == want

    def behind(self, scheme: str) -> list[dict[str, Any]]:
        """Who keeps the transfer back, as its source sees it, the one most behind first."""
        source = MEMBERS[scheme][0]
        streams = self._entry(scheme, source, "streams")
        found: list[dict[str, Any]] = next(one["behind"] for one in streams if one["origin"] == source)
        return found

    def close(self) -> None:
        for process in [*self.sending.values(), *self.receiving.values()]:
            if process.poll() is None:
                process.kill()
                process.communicate()
        for group in self.groups.values():
            self.fabric.delete(f"groups/{group}")

    def _start(self, host: int, argv: list[str]) -> subprocess.Popen[str]:
        return self.fabric.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _entry(self, scheme: str, host: int, key: str) -> Any:
        status = self.fabric.agent_status(host) or {"groups": []}
        groups = [g for g in status["groups"] if g["group"] == self.groups[scheme]]
        return groups[0][key] if groups else None

    def _wait(self, condition: Callable[[], bool], seconds_max: float = 600.0) -> None:
        deadline = time.monotonic() + seconds_max
        while not condition():
            assert time.monotonic() < deadline, "the transfers did not begin"
            ended = [p for p in [*self.receiving.values(), *self.sending.values()] if p.poll()]
            assert not ended, [p.communicate() for p in ended]
            time.sleep(0.1)


@contextlib.contextmanager
def paused(processes: list[int]) -> Iterator[None]:
    """Stops processes, and lets them go on in any case."""
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def switches_of(fabric: Fabric) -> list[int]:
    return sorted({s.process.pid for s in fabric.switches.values() if s.process is not None})


def controller_of(fabric: Fabric) -> list[int]:
    assert fabric.controller is not None
    return [fabric.controller.pid]


def everything(fabric: Fabric) -> list[int]:
    """Every process of the fabric and of the transfers: all in this namespace that run a command of ours."""
    found = [*switches_of(fabric), *controller_of(fabric), *(a.pid for a in fabric.agents.values())]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                argv = (entry / "cmdline").read_bytes().split(b"\0")
                if any(arg.endswith(b"/wormcast") for arg in argv[:2]) and argv[2:3] in (
                    [b"send"],
                    [b"recv"],
                ):
                    found.append(int(entry.name))
    return found


PAUSES: dict[str, tuple[Callable[[Fabric], list[int]], float]] = {
    "all switches, 10 s": (switches_of, 10.0),
    "one switch, 10 s": (lambda fabric: switches_of(fabric)[:1], 10.0),
    "controller, 10 s": (controller_of, 10.0),
    "controller, 60 s": (controller_of, 60.0),
    "a receiver, 8 s": (lambda fabric: [fabric.agents[RECEIVER].pid], 8.0),
    "a source, 6 s": (lambda fabric: [fabric.agents[SOURCE].pid], 6.0),
    "everything, 10 s": (everything, 10.0),
}


@pytest.mark.parametrize("pause", PAUSES)
def test_a_pause_delays_every_scheme_and_ends_nothing(
    fabric: Fabric, pause: str, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    choose, seconds = PAUSES[pause]
    with Transfers(fabric, random_file(size_of(fabric)), tmp_path) as transfers:
        epoch = fabric.get("status")["epoch"]
        before = max((e["number"] for e in events(fabric)), default=0)
        chosen = choose(fabric)
        assert choose is not everything or len(chosen) > 4 + 1 + 8 + len(SCHEMES_ANYWHERE), (
            "of the transfers too"
        )
        with paused(chosen):
            time.sleep(seconds)
            behind = [] if pause != "a receiver, 8 s" else transfers.behind("switch")
        if behind:
            assert behind[0]["host"] == RECEIVER, behind
            assert 0 < behind[0]["bytes"] <= size_of(fabric), behind
        assert bool(behind) == (pause == "a receiver, 8 s"), "the source does not say who keeps it back"
        transfers.check_ended_whole()
        for group in transfers.groups.values():
            state = fabric.get(f"groups/{group}")["state"]
            assert all(member["takes_part"] for member in state), state
        removed = [e for e in events(fabric) if e["kind"] == "host" and e.get("gone")]
        assert not removed, removed
        if pause.startswith("controller"):
            since = [e for e in events(fabric) if e["number"] > before]
            now = fabric.get("status")["epoch"]
            assert now == epoch, f"its own pause is no reason for another plan: {since}"
    fabric.wait_ready()


def starve(processes: list[int], seconds: float) -> None:
    """Lets each of these run a third of the time, whenever chance has it, as busy loops beside them do."""
    chance, deadline = random.Random(1), time.monotonic() + seconds
    while time.monotonic() < deadline:
        with paused([process for process in processes if chance.random() < 2 / 3]):
            time.sleep(0.05)


def test_pauses_on_a_loaded_machine(
    fabric: Fabric, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    """All processes starved, and each kind of them paused in turn for some seconds besides."""
    with Transfers(fabric, random_file(2 * size_of(fabric)), tmp_path) as transfers:
        for choose in (everything, switches_of, controller_of):
            chosen = choose(fabric)
            with paused(chosen):
                starve(sorted({*everything(fabric)} - {*chosen}), 5.0)
        starve(everything(fabric), 5.0)
        transfers.check_ended_whole()
    fabric.wait_ready()


def events(fabric: Fabric) -> list[dict[str, Any]]:
    """What the controller has recorded."""
    found: list[dict[str, Any]] = fabric.get("events?follow=false")["events"]
    return found
