"""Switch processes joined by veth, in wormhole mode, and hosts that send trains and obey STOP, GO and RESET.

For tests inside a sandbox. Nothing here says how long anything takes: tests wait for conditions."""

from __future__ import annotations

import asyncio
import random
import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import grpc
from wormcast.cli.worms import read_channels
from wormcast.routing.held import Channel
from wormcast.wire import (
    CONTROL_GO,
    CONTROL_RESET,
    CONTROL_STOP,
    CPU_PORT,
    DROP_PORT,
    ETHERTYPE_WORM,
    INSTANCE_PLAIN,
    MGID_HOLD,
    MGID_INTERRUPT,
    MGID_TREE_ALL,
    MGID_TREE_SET,
    NEIGHBOUR_NONE,
    RECIRCULATE_PORT,
    WORMHOLE_INTERRUPT,
    WORMHOLE_INTERRUPT_ROOT,
    Flag,
    Kind,
    Role,
    TrainEvent,
)

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/conformance", "switch/tests/python")]
from oracle.codec import Worm, decode_frame  # noqa: E402 - after the path is set
from rig.p4runtime import P4RuntimeClient  # noqa: E402
from rig.targets import COMPILED, targets  # noqa: E402

Json = dict[str, Any]
BINARIES = dict(zip(("wormcast", "bmv2"), (target.binary for target in targets()), strict=True))
P4RUNTIME_PORT, THRIFT_PORT = 9600, 9700
"""Of the first switch; each further one has the next."""
START_SECONDS_MAX = 600.0
SECONDS_MAX = 600.0
"""Against hanging for ever: what is waited for comes in a few seconds."""
PACE_S = 0.03
"""Between two frames of a host. A little longer than GAP_US, so that frames do not pile up in the first switch."""
GAP_US = 25_000
NEVER_US = 4_000_000_000
ROOT = 0
"""The switch that is the root of the spanning tree."""
AGAIN_S = 0.3
"""A worm that was reset is sent again after a random time up to this (WORM §3)."""
MODE = {
    # BMv2 keeps 64 frames that wait, for the two channels of a switch that have some. Between STOP and HELD_FULL a
    # neighbour may still send for 22 * GAP_US, half a second, however late it runs.
    "stop_frames": 8,
    "go_frames": 4,
    "held_max": 30,
    "gap_us": GAP_US,
    # Said again four times in that time; GO ends it.
    "stop_us": 10_000_000,
    "idle_us": 500_000,
}


@dataclass(frozen=True)
class Received:
    """What a host got of a worm: positions in order, and whether a frame with TAIL came, whole or aborted."""

    positions: tuple[int, ...] = ()
    ended: bool = False
    aborted: bool = False


@dataclass
class Train:
    """A worm that a host sends, `allowed` frames of it so far."""

    kind: int
    route: bytes
    frames: int
    sequence: int
    allowed: int
    sent: int = 0
    after: float = 0.0

    def frame(self, source: int) -> bytes:
        """The next frame. Its payload begins with its position, as the train header does."""
        flags = Flag.TRAIN | (Flag.HEAD if self.sent == 0 else 0)
        flags |= Flag.TAIL if self.sent + 1 == self.frames else 0
        position = self.sent.to_bytes(2, "big")
        return Worm(
            kind=self.kind,
            route=self.route if self.sent == 0 else b"",
            payload=position + bytes(40),
            flags=int(flags),
            source=source,
            sequence=self.sequence,
            train=position + bytes(18),
        ).to_frame()


@dataclass
class Host:
    """A host at the far end of a link of a switch."""

    number: int
    end: socket.socket
    random: random.Random
    queue: deque[Train] = field(default_factory=deque)
    done: dict[int, Train] = field(default_factory=dict)
    """Trains that have left, by sequence."""
    sequences: int = 0
    stopped_until: float = 0.0
    next_at: float = 0.0
    resets: list[int] = field(default_factory=list)
    """Sequences of worms that came back."""
    received: dict[tuple[int, int], Received] = field(default_factory=dict)
    """By source and sequence."""
    interleaved: list[tuple[int, int]] = field(default_factory=list)
    """Worms that went on when another one had come in between."""
    last: tuple[int, int] | None = None
    multicasts: list[tuple[int, int]] = field(default_factory=list)
    """TREE worms, each time frames of one came behind those of another."""
    orders: dict[tuple[int, int], int] = field(default_factory=dict)
    """The numbers that the root gave them."""

    def send(self, kind: int, route: bytes, frames: int, allowed: int | None = None) -> Train:
        """A worm to be sent; `allowed`: only so many frames of it until more are."""
        self.sequences += 1
        train = Train(kind, route, frames, self.sequences, frames if allowed is None else allowed)
        self.queue.append(train)
        return train

    def step(self, now: float) -> None:
        """Takes what has come and sends what may leave."""
        while True:
            try:
                data, address = self.end.recvfrom(65535)
            except BlockingIOError:
                break
            if address[2] != socket.PACKET_OUTGOING and data[12:14] == ETHERTYPE_WORM.to_bytes(2, "big"):
                self._take(decode_frame(data), now)
        if not self.queue or now < max(self.stopped_until, self.next_at, self.queue[0].after):
            return
        train = self.queue[0]
        if train.sent < train.allowed:
            self.end.send(train.frame(self.number))
            train.sent += 1
            self.next_at = now + PACE_S
            if train.sent == train.frames:
                self.done[train.sequence] = self.queue.popleft()

    def _take(self, worm: Worm, now: float) -> None:
        assert worm.route == b"", f"host {self.number} got a worm whose route goes on: {worm}"
        if worm.kind == Kind.CONTROL:
            op, stop_us = worm.signal[0], int.from_bytes(worm.signal[6:10], "big")
            if op == CONTROL_STOP:
                self.stopped_until = now + stop_us / 1e6
            elif op == CONTROL_GO:
                self.stopped_until = 0.0
            elif op == CONTROL_RESET:
                source, sequence = (int.from_bytes(worm.signal[at : at + 2], "big") for at in (2, 4))
                assert source == self.number, f"host {self.number} got a RESET of host {source}"
                self._send_again(sequence, now)
            return
        key = (worm.source, worm.sequence)
        if worm.kind == Kind.TREE:
            if self.multicasts[-1:] != [key]:
                self.multicasts.append(key)
            order = int.from_bytes(worm.train[3:5], "big")
            assert self.orders.setdefault(key, order) == order, f"two numbers in worm {key}"
        if worm.flags & (Flag.HEAD | Flag.TAIL | Flag.RESUMED) == Flag.TAIL | Flag.RESUMED:
            return  # the end of a fragment carries nothing
        if key != self.last and key in self.received and not worm.flags & Flag.RESUMED:
            self.interleaved.append(key)
        self.last = key
        was = self.received.get(key, Received())
        self.received[key] = Received(
            (*was.positions, int.from_bytes(worm.train[:2], "big")),
            was.ended or bool(worm.flags & Flag.TAIL),
            was.aborted or bool(worm.flags & Flag.ABORT),
        )

    def _send_again(self, sequence: int, now: float) -> None:
        self.resets.append(sequence)
        if self.queue and self.queue[0].sequence == sequence:
            train = self.queue.popleft()
        else:
            train = self.done[sequence]
        again = self.send(train.kind, train.route, train.frames)
        again.after = now + self.random.uniform(0.0, AGAIN_S)


class Network:
    """Running switches with links and hosts. A context manager; whatever happens, its processes and links go.

    `topology` is that of a topology file.
    """

    def __init__(
        self,
        topology: Json,
        kind: str,
        directory: Path,
        scheme: int,
        silent_us: int = NEVER_US,
        seed: int = 1,
    ) -> None:
        self.topology = topology
        self.kind = kind
        self.directory = directory
        self.mode = {**MODE, "scheme": scheme, "silent_us": silent_us}
        self.seed = seed
        self.hosts: dict[int, Host] = {}
        self.clients: dict[int, P4RuntimeClient] = {}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._ends: list[str] = []

    def __enter__(self) -> Self:
        try:
            self._make_links()
            for switch in self.topology["switches"]:
                self._start(switch["id"])
            for switch in self.topology["switches"]:
                self._configure(switch["id"])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the switches and takes the links away."""
        for client in self.clients.values():
            client.close()
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        for host in self.hosts.values():
            host.end.close()
        for end in self._ends:
            subprocess.run(["ip", "link", "delete", end], capture_output=True, check=False)
        self._ends.clear()

    # what tests ask

    def channels(self) -> list[Channel]:
        """What worms have and wait for now."""
        over_thrift = self.kind == "bmv2"
        first = THRIFT_PORT if over_thrift else P4RUNTIME_PORT
        places = {number: (f"127.0.0.1:{first + number}", number) for number in self.processes}
        return asyncio.run(read_channels(places, self.topology, over_thrift))

    @property
    def p4runtime(self) -> str:
        """Addresses of all switches, by id, as `--p4runtime` takes them."""
        return ",".join(f"127.0.0.1:{P4RUNTIME_PORT + number}" for number in sorted(self.processes))

    @property
    def thrift(self) -> str:
        """Where BMv2 tells its registers, as `--thrift` takes them."""
        return ",".join(f"127.0.0.1:{THRIFT_PORT + number}" for number in sorted(self.processes))

    def events(self, event: int) -> int:
        """How often something happened to trains, at all switches."""
        return sum(client.read_counter("trains").get(event, 0) for client in self.clients.values())

    def drops(self) -> dict[int, int]:
        """Frames dropped by reason, at all switches."""
        found: dict[int, int] = {}
        for client in self.clients.values():
            for reason, count in client.read_counter("drops").items():
                found[reason] = found.get(reason, 0) + count
        return found

    def wait(self, what: str, condition: Callable[[], bool], every_s: float = 0.2) -> None:
        """Lets hosts send and receive until the condition holds. Raises TimeoutError that says what is there."""
        until = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > until:
                text = f"{what}, not within {SECONDS_MAX:g} s\n{self.state()}"
                raise TimeoutError("\n".join([text, *map(str, self.channels())]))
            self.run(every_s)

    def run(self, seconds: float) -> None:
        """Lets hosts send and receive for so long."""
        until = time.monotonic() + seconds
        ends = [host.end for host in self.hosts.values()]
        while (now := time.monotonic()) < until:
            for host in self.hosts.values():
                host.step(now)
            select.select(ends, [], [], PACE_S / 4)
        for number, process in self.processes.items():
            assert process.poll() is None, f"switch {number} has ended: {process.returncode}"

    def state(self) -> str:
        """What hosts have, and the ends of the logs: for messages of failures."""
        lines = []
        for host in self.hosts.values():
            got = {key: (len(one.positions), one.ended, one.aborted) for key, one in host.received.items()}
            left = [(train.sequence, train.sent, train.frames) for train in host.queue]
            stopped = host.stopped_until > time.monotonic()
            lines.append(f"host {host.number}: got {got}, to send {left}, resets {host.resets}, {stopped=}")
        for number, client in self.clients.items():
            trains = {TrainEvent(cell).name: count for cell, count in client.read_counter("trains").items()}
            lines.append(f"switch {number}: {trains}, drops {client.read_counter('drops')}")
        for path in sorted(self.directory.glob("*.log")):
            if text := path.read_text(errors="replace")[-600:]:
                lines.append(f"--- {path.name}\n{text}")
        return "\n".join(lines)

    # bringing up

    def _make_links(self) -> None:
        for scope in ("all", "default"):
            # The kernel would add neighbour discovery of its own.
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
        pairs = [(_end(e["a"], e["a_port"]), _end(e["b"], e["b_port"])) for e in self.topology["links"]]
        pairs += [(_end(h["switch"], h["port"]), f"wh{h['id']}") for h in self.topology["hosts"]]
        for near, far in pairs:
            self._ends.append(near)
            _ip("link", "add", near, "type", "veth", "peer", "name", far)
            _ip("link", "set", near, "up")
            _ip("link", "set", far, "up")
        for host in self.topology["hosts"]:
            end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
            end.bind((f"wh{host['id']}", 0x0003))
            end.setblocking(False)
            self.hosts[host["id"]] = Host(host["id"], end, random.Random(self.seed + host["id"]))

    def _ports(self, switch: int) -> dict[int, Role]:
        roles = {h["port"]: Role.HOST for h in self.topology["hosts"] if h["switch"] == switch}
        for link in self.topology["links"]:
            roles |= {link[f"{e}_port"]: Role.SWITCH for e in ("a", "b") if link[e] == switch}
        return dict(sorted(roles.items()))

    def _start(self, switch: int) -> None:
        command = [str(BINARIES[self.kind]), "--no-p4", "--device-id", str(switch)]
        for port in self._ports(switch):
            command += ["-i", f"{port}@{_end(switch, port)}"]
        if self.kind == "wormcast":
            command += ["--recirculations", "0"]  # worms wait for as long as it takes
        else:
            command += ["--thrift-port", str(THRIFT_PORT + switch)]
        command += ["--", "--grpc-server-addr", f"127.0.0.1:{P4RUNTIME_PORT + switch}"]
        command += ["--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT)]
        with (self.directory / f"s{switch}.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=subprocess.STDOUT)
        self.processes[switch] = process

    def _configure(self, switch: int) -> None:
        p4info = (COMPILED / "wormcast.p4info.txtpb").read_text()
        client = P4RuntimeClient(f"127.0.0.1:{P4RUNTIME_PORT + switch}", switch, p4info)
        self.clients[switch] = client
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                client.wait_ready(0.5)
                break
            except grpc.FutureTimeoutError:
                if self.processes[switch].poll() is not None or time.monotonic() > until:
                    log = (self.directory / f"s{switch}.log").read_text(errors="replace")
                    raise RuntimeError(f"switch {switch} did not start\n{log}") from None
        assert client.become_primary().status.code == 0
        client.set_pipeline((COMPILED / "wormcast.json").read_bytes())
        updates = [client.multicast_update(group) for group in _groups(self._ports(switch))]
        updates += [client.table_update(entry) for entry in _entries(self._ports(switch))]
        parameters = dict(self.mode)
        if parameters["scheme"] == WORMHOLE_INTERRUPT and switch == ROOT:
            parameters["scheme"] = WORMHOLE_INTERRUPT_ROOT
        mode = {"table": "ingress.wormhole", "action": "ingress.wormhole_mode", "parameters": parameters}
        client.write([*updates, client.default_update(mode)])


def _end(switch: int, port: int) -> str:
    return f"ws{switch}-{port}"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _sets(ports: Iterable[int]) -> list[tuple[int, ...]]:
    """Every set of ports that a TREE worm may leave by."""
    named = list(ports)
    return [chosen for size in range(1, len(named) + 1) for chosen in combinations(named, size)]


def _bitmap(ports: Iterable[int]) -> int:
    return sum(1 << port for port in ports)


def _groups(roles: dict[int, Role]) -> list[Json]:
    """Those of p4src/CONTRACT.md that worms of wormhole mode need."""
    members = {MGID_TREE_SET + _bitmap(chosen): chosen for chosen in _sets(roles)}
    members[MGID_TREE_ALL] = tuple(roles)
    members[MGID_INTERRUPT] = (*roles, RECIRCULATE_PORT)
    members |= {MGID_HOLD + port: (RECIRCULATE_PORT, port) for port in roles}
    return [
        {"id": mgid, "replicas": [{"port": port, "instance": INSTANCE_PLAIN} for port in ports]}
        for mgid, ports in members.items()
    ]


def _entries(roles: dict[int, Role]) -> list[Json]:
    ingress, egress = "standard_metadata.ingress_port", "standard_metadata.egress_port"
    entries = []
    for port, role in roles.items():
        known = {"action": "ingress.port_known", "parameters": {}}
        entries.append({"table": "ingress.ports", "key": {"port": port}, **known})
        what = {"action": "ingress.role", "parameters": {"role": int(role), "neighbour": NEIGHBOUR_NONE}}
        entries.append({"table": "ingress.port_roles", "key": {ingress: port}, **what})
        if role == Role.HOST:
            edge = {"action": "egress.to_host", "parameters": {}}
            entries.append({"table": "egress.edge_ports", "key": {egress: port}, **edge})
    for chosen in _sets(roles):
        bitmap = _bitmap(chosen)
        replicate = {"action": "ingress.replicate", "parameters": {"mgid": MGID_TREE_SET + bitmap}}
        entries.append({"table": "ingress.tree_sets", "key": {"port_set": bitmap}, **replicate})
    return entries
