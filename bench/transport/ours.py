"""Wormcast: a file, a directory or messages over P4 switches."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import account
import content
from bridge import PeerError
from cases import Case
from wormcast.mininet import fabric as fabrics
from wormcast.mininet.options import parse_mtus

SWITCHES = 4
LOOK_EVERY_S = 0.02
ROOT = Path(__file__).resolve().parent.parent.parent


def ring(hosts: int) -> dict[str, Any]:
    """Four switches in a ring as in the testbed, hosts spread over them. Their ports are below 8."""
    switches = [{"id": number, "ports": 8} for number in range(SWITCHES)]
    places = [{"id": host, "switch": host * SWITCHES // hosts} for host in range(hosts)]
    for place in places:
        before = [one for one in places[: place["id"]] if one["switch"] == place["switch"]]
        place["port"] = len(before)
    links = [
        {"a": number, "a_port": 6, "b": (number + 1) % SWITCHES, "b_port": 7} for number in range(SWITCHES)
    ]
    return {"switches": switches, "hosts": places, "links": links}


@contextlib.contextmanager
def group(case: Case, scheme: str) -> Iterator[tuple[fabrics.Fabric, int]]:
    """A fabric of 8 or 16 hosts, and a group of the first of them."""
    topology = ring(8 if case.receivers < 8 else 16)
    settings = fabrics.Options(
        topology,
        rate_mbps=case.rate,
        mtus=parse_mtus(str(case.mtu), None),
        impair=f"loss={case.loss}" if case.loss else None,
    )
    with tempfile.TemporaryDirectory() as place, fabrics.Fabric(settings, Path(place)) as fabric:
        fabric.wait_ready()
        body = {"scheme": scheme, "members": list(range(case.receivers + 1))}
        number = fabric.post("groups", body)["id"]
        fabric.wait_group(number)
        yield fabric, number


def used(fabric: fabrics.Fabric, running: list[Any]) -> dict[str, float]:
    """Processor seconds of all parts so far; of programs those that have ended, and those that run."""
    switches = [one.process.pid for one in fabric.switches.values() if one.process is not None]
    programs = account.programs() + sum(account.whole(one.pid) for one in running)
    return {"programs": programs, **account.daemons(fabric.agents, switches)}


def receivers(fabric: fabrics.Fabric, number: int, case: Case, folders: list[Path]) -> list[Any]:
    """`wormcast recv` at every member, when each has the group open."""
    started = []
    for host, folder in enumerate(folders, 1):
        argv = ["wormcast", "recv", "--group", str(number), "--output", str(folder), "--count", "1"]
        argv += ["--overwrite", "--json"]
        with (folder.parent / f"said-h{host}").open("wb") as said:
            started.append(fabric.popen(host, argv, stdout=said, stderr=said))
    waiting = set(range(1, case.receivers + 1))
    while waiting:
        for host in list(waiting):
            if started[host - 1].poll() is not None:
                raise PeerError(f"wormcast recv on h{host} ended early")
            status = fabric.agent_status(host) or {}
            if any(one["group"] == number and one["receivers"] for one in status.get("groups", [])):
                waiting.discard(host)
        time.sleep(LOOK_EVERY_S)
    return started


def deliver(case: Case, scheme: str, source: Path, old: Path | None, place: Path) -> dict[str, Any]:
    """A file or directory to all. `old`: what receivers have of it from before."""
    folders = [place / f"h{host}" for host in range(1, case.receivers + 1)]
    for folder in folders:
        folder.mkdir()
        if old is not None:
            content.copy(old, folder / source.name, names=True)
    with group(case, scheme) as (fabric, number):
        receiving = receivers(fabric, number, case, folders)
        before = used(fabric, receiving)
        begun = time.monotonic()
        argv = ["wormcast", "send", str(source), "--group", str(number), "--json"]
        argv += ["--changed"] if old is not None else []
        with (place / "said").open("wb") as said:
            sending = fabric.popen(0, argv, stdout=said, stderr=said)
            code = sending.wait()
        seconds = time.monotonic() - begun
        if code != 0:
            raise PeerError(f"wormcast send ended with {code}: {(place / 'said').read_text()[-300:]}")
        for process in receiving:
            process.wait()
        spent = account.since(before, used(fabric, []))
    # The bytes, not anybody's word. The tree under its own name, as it was sent.
    want = content.digest(source)
    wrong = [folder.name for folder in folders if content.digest(folder / source.name) != want]
    if wrong:
        raise PeerError(f"wormcast: the content is not right at {', '.join(wrong)}")
    own = json.loads((place / "said").read_text().strip().splitlines()[-1]).get("seconds")
    return {"seconds": round(seconds, 3), "network_seconds": own, "processor": spent}


def messages(case: Case, scheme: str) -> dict[str, Any]:
    """Messages by programs on the hosts: `hostagent/examples/messages.rs`."""
    program = str(ROOT / "target" / "release" / "examples" / "messages")
    with group(case, scheme) as (fabric, number), tempfile.TemporaryDirectory() as place:
        before = used(fabric, [])
        listening = []
        for host in range(1, case.receivers + 1):
            argv = [program, "receive", str(fabric.agent_socket(host)), str(number)]
            listening.append(fabric.popen(host, argv))
        said = Path(place) / "said"
        argv = [program, "send", str(fabric.agent_socket(0)), str(number), str(case.size)]
        with said.open("wb") as out:
            code = fabric.popen(0, argv, stdout=out).wait()
        for process in listening:
            process.terminate()
            process.wait()
        if code != 0:
            raise PeerError(f"messages ended with {code}: {said.read_text()[-300:]}")
        return {**json.loads(said.read_text()), "processor": account.since(before, used(fabric, []))}


def missing(kind: str) -> str | None:
    """Why this cannot be measured here."""
    if os.geteuid() != 0:
        return "needs root"
    example = ROOT / "target" / "release" / "examples" / "messages"
    if kind == "messages" and not example.exists():
        return "no target/release/examples/messages (bench/transport/run builds it)"
    return None
