"""Runs inside a network namespace of its own: one switch, an agent at each port.

Started by agent_lab.lab as `python fabric.py DIRECTORY AGENT HOSTS GROUPS OPTIONS...`; says
"ready" when every agent has its plan. Then it takes lines, `kill HOST`, `start HOST` and `plan GROUPS`, and says "done"
after each; it ends with standard input.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from wormcast.agentrpc import agent_pb2, agent_pb2_grpc
from wormcast.client import Agent, AgentError

ETHERTYPE_WORM = 0x88B5
UNICAST, TREE = 0, 1
HEADER = struct.Struct(">BBBBHHHH")
FRAME_START = 14
# Not in the socket module.
SO_RCVBUFFORCE = 33
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23


class Switch(threading.Thread):
    """Forwards UNICAST and TREE worms as SPEC.md §3 says; host h is at port h."""

    def __init__(self, ports: list[str]) -> None:
        super().__init__(daemon=True)
        self._ports = []
        for name in ports:
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE_WORM))
            port.bind((name, ETHERTYPE_WORM))
            port.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
            port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            self._ports.append(port)

    def run(self) -> None:
        while True:
            ready, _, _ = select.select(self._ports, [], [])
            for port in ready:
                frame = port.recv(10_000)
                for out, copy in forward(frame):
                    self._ports[out].send(copy)


def forward(frame: bytes) -> Iterator[tuple[int, bytes]]:
    """Ports and the copies that leave by them."""
    kind, flags, length, hops, source, sequence, following, _ = HEADER.unpack_from(frame, FRAME_START)
    start = FRAME_START + HEADER.size
    route, payload = frame[start : start + length], frame[start + length :]

    def copy(rest: bytes) -> bytes:
        fields = (kind, flags, len(rest), hops + 1, source, sequence, following)
        worm = HEADER.pack(*fields, 0) + rest
        worm = HEADER.pack(*fields, checksum(worm)) + rest
        return frame[:FRAME_START] + worm + payload

    if kind & 15 == UNICAST:
        yield route[0], copy(route[1:])
    elif kind & 15 == TREE:
        while route[0] != 0xFF:
            port, size = route[0], route[1]
            sub = route[2 : 2 + size]
            yield port, copy(sub + b"\xff" if sub else b"")
            route = route[2 + size :]


def checksum(data: bytes) -> int:
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


class Directory(agent_pb2_grpc.AgentDirectoryServicer):
    """Registers whoever comes, gives each its plan, and passes their answers on."""

    def __init__(self, hosts: int, groups: list[dict[str, Any]]) -> None:
        self._hosts = hosts
        self._groups = groups
        self.epoch = 1
        self._answers: dict[int, list[Any]] = {}
        """That wait, by the host that is to have them."""
        self._changed = threading.Condition()

    def plan(self, groups: list[dict[str, Any]]) -> None:
        """Other groups from now on."""
        with self._changed:
            self._groups = groups
            self.epoch += 1
            self._changed.notify_all()

    def Attach(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        host = next(requests).register.host_id
        yield agent_pb2.ControllerMessage(registered=agent_pb2.Registered(host_id=host))
        routes = [agent_pb2.Route(host=to, ports=bytes([to])) for to in range(self._hosts) if to != host]
        context.add_callback(self._wake)
        threading.Thread(target=self._read, args=(host, requests), daemon=True).start()
        epoch = 0
        while context.is_active():
            with self._changed:
                while self.epoch == epoch and not self._answers.get(host) and context.is_active():
                    self._changed.wait()
                answers, same = self._answers.pop(host, []), self.epoch == epoch
                epoch, groups = self.epoch, self._groups
            for answer in answers:
                yield agent_pb2.ControllerMessage(answer=answer)
            if same:
                continue
            own = [agent_pb2.Group(**group) for group in groups if host in group["members"]]
            plan = agent_pb2.Plan(epoch=epoch, host_id=host, routes=routes, tree_routes=routes, groups=own)
            yield agent_pb2.ControllerMessage(plan=plan)

    def _read(self, host: int, requests: Iterator[Any]) -> None:
        """Whatever an agent says."""
        with contextlib.suppress(grpc.RpcError):
            for message in requests:
                if message.WhichOneof("body") == "answer":
                    told = message.answer
                    answer = agent_pb2.Answer(group=told.group, host=host, text=told.text)
                    with self._changed:
                        self._answers.setdefault(told.host, []).append(answer)
                        self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def wait_for_plan(path: Path, epoch: int = 1) -> None:
    """Until the agent at ``path`` has one, of this epoch at least."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            with Agent(path) as agent:
                if agent.status()["plan_epoch"] >= epoch:
                    return
        except AgentError:
            pass
        time.sleep(0.02)
    sys.exit(f"{path}: no plan")


def main() -> None:
    directory, binary, hosts = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    groups, options = json.loads(sys.argv[4]), sys.argv[5:]
    for host in range(hosts):
        link = f"ip link add h{host} type veth peer name s{host} && ip link set h{host} up && ip link set s{host} up"
        subprocess.run(link, shell=True, check=True)
    Switch([f"s{host}" for host in range(hosts)]).start()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4 * hosts + 2))
    plans = Directory(hosts, groups)
    agent_pb2_grpc.add_AgentDirectoryServicer_to_server(plans, server)
    address = f"unix:{directory}/controller.sock"
    server.add_insecure_port(address)
    server.start()
    agents: dict[int, subprocess.Popen[bytes]] = {}

    def start(host: int) -> None:
        command = [binary, "--interface", f"h{host}", "--controller", address, "--name", f"h{host}"]
        command += ["--host-id", str(host), "--socket", f"{directory}/h{host}.sock"]
        command += ["--state-dir", str(directory), *options]
        with (directory / f"h{host}.log").open("ab") as log:
            agents[host] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)

    try:
        for host in range(hosts):
            start(host)
        for host in range(hosts):
            wait_for_plan(directory / f"h{host}.sock")
        print("ready", flush=True)
        for line in sys.stdin:
            word, rest = line.split(maxsplit=1)
            if word == "plan":
                plans.plan(json.loads(rest))
                for host in (host for host, agent in agents.items() if agent.poll() is None):
                    wait_for_plan(directory / f"h{host}.sock", plans.epoch)
            elif word == "kill":
                agents[int(rest)].kill()
                agents[int(rest)].wait()
            else:
                start(int(rest))
            print("done", flush=True)
    finally:
        for agent in agents.values():
            agent.kill()
            agent.wait()


if __name__ == "__main__":
    main()
