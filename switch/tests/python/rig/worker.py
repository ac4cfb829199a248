"""First process of the namespace: links, the switch, and one answer for each request.

    worker.py TARGET BINARY DIRECTORY PORT,PORT,… fast|slow

Requests and answers are one JSON object a line on stdin and stdout.
"""

import json
import queue
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import grpc

from rig.bmv2_thrift import set_queue_rates
from rig.links import Links
from rig.p4runtime import P4RuntimeClient
from rig.targets import COMPILED

Json = dict[str, Any]
DEVICE_ID = 1
CPU_PORT = 510
DROP_PORT = 511
ADDRESS = "127.0.0.1:9559"
START_TIMEOUT_S = 600.0
FRAME_TIMEOUT_S = 600.0
FLOOD_QUIET_S = 1.0
FLOOD_GAP_S = 0.001
SLOW_FRAMES_PER_S = 100
SLOW_RATE = "500kbit"
MARKER_TYPE = b"\x88\xcc"


class Worker:
    """The switch under test."""

    def __init__(self, target: str, binary: str, directory: Path, ports: list[int], slow: bool) -> None:
        self.links = Links(ports)
        self.p4info_text = (COMPILED / "wormcast.p4info.txtpb").read_text()
        self.device_config = (COMPILED / "wormcast.json").read_bytes()
        command = [binary, "--no-p4", "--device-id", str(DEVICE_ID), *self.links.interface_arguments()]
        if slow and target == "wormcast-switch":
            command += ["--port-rate", SLOW_RATE]
        command += ["--", "--grpc-server-addr", ADDRESS]
        command += ["--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT)]
        self.log = (directory / f"{target}.log").open("wb")
        self.switch = subprocess.Popen(command, cwd=directory, stdout=self.log, stderr=subprocess.STDOUT)
        self.client = self.connect(1)
        if slow and target == "simple_switch_grpc":
            set_queue_rates(SLOW_FRAMES_PER_S)
        self.markers = 0
        self.groups: list[Json] = []  # installed by the last state

    def connect(self, election_id: int) -> P4RuntimeClient:
        """A session that is primary."""
        client = P4RuntimeClient(ADDRESS, DEVICE_ID, self.p4info_text, election_id)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                client.wait_ready(0.5)
                break
            except grpc.FutureTimeoutError:
                code = self.switch.poll()
                if code is not None:
                    raise RuntimeError(
                        f"the switch ended with code {code} before it could be reached"
                    ) from None
                if time.monotonic() > deadline:
                    raise
        status = client.become_primary().status
        if status.code != 0:
            raise RuntimeError(f"the switch refused to make this session primary: {status}")
        return client

    def handle(self, request: Json) -> Json:
        match request["do"]:
            case "install":
                return self.install(request["state"])
            case "pass":
                return self.pass_frame(request)
            case "flood":
                return self.flood(request)
            case "run":
                return self.run_script(request)
        raise ValueError(f"unknown request {request['do']!r}")

    def install(self, state: Json) -> Json:
        """Takes the multicast groups of the last state away, loads the program anew and writes a state.

        BMv2 forgets the groups with the old program but leaves their replicas in its
        replication engine, so they have to be deleted first.
        """
        if self.groups:
            self.client.write([self.client.multicast_update(group, "DELETE") for group in self.groups])
        self.groups = state["multicast_groups"]
        self.client.set_pipeline(self.device_config)
        updates = [self.client.multicast_update(group) for group in state["multicast_groups"]]
        updates += [self.client.table_update(entry) for entry in state["tables"]]
        updates += [self.client.default_update(entry) for entry in state["defaults"]]
        updates += [self.client.meter_update(meter) for meter in state.get("meters", [])]
        if updates:
            self.client.write(updates)
        self.links.drain(0.2)
        return {}

    def counters(self) -> dict[str, dict[int, int]]:
        """All counters, cells that are not zero."""
        names = ("drops", "filtered", "kinds", "ingress_ports", "egress_ports")
        return {name: self.client.read_counter(name) for name in names}

    def pass_frame(self, request: Json) -> Json:
        """Puts one frame in and returns what came out and which counters grew.

        No sleeping: the switch has taken the frame when its ingress counter has grown, and
        has let go of everything when a marker sent behind it has come out of every port.
        """
        before = self.counters()
        frame = bytes.fromhex(request["frame"])
        port = request["ingress_port"]
        if port == CPU_PORT:
            self.client.send_packet(frame, request["packet_out"])
        else:
            self.links.send(port, frame)
        out: list[Json] = []
        self._await_counter("ingress_ports", port, before["ingress_ports"].get(port, 0) + 1)
        deadline = time.monotonic() + FRAME_TIMEOUT_S
        while len(out) < request["expected"] and time.monotonic() < deadline:
            out += self._received(0.01)
        # Drops of recirculated worms come later than the marker could.
        for cell, count in request["expected_drops"].items():
            self._await_counter("drops", int(cell), before["drops"].get(int(cell), 0) + count)
        out += self._received_before_markers()
        after = self.counters()
        # The markers themselves: packet-outs at every port, one packet-in.
        grown = {
            name: {cell: count - before[name].get(cell, 0) for cell, count in after[name].items()}
            for name in after
        }
        for marked in [*self.links.ports, CPU_PORT]:
            grown["egress_ports"][marked] = grown["egress_ports"].get(marked, 0) - 1
        grown["ingress_ports"][CPU_PORT] = grown["ingress_ports"].get(CPU_PORT, 0) - len(self.links.ports) - 1
        return {"out": out, "grown": {name: _without_zeros(cells) for name, cells in grown.items()}}

    def flood(self, request: Json) -> Json:
        """Puts a frame in many times; how often each frame came out of each port."""
        frame = bytes.fromhex(request["frame"])
        seen: Counter[tuple[int, bytes]] = Counter()
        for _ in range(request["count"]):
            self.links.send(request["ingress_port"], frame)
            # libpcap holds 32 frames for BMv2 and loses what comes faster than it is read.
            time.sleep(FLOOD_GAP_S)
            seen.update(self.links.receive(0))
        while found := self.links.receive(FLOOD_QUIET_S):
            seen.update(found)
        return {"out": [{"port": port, "frame": data.hex(), "count": n} for (port, data), n in seen.items()]}

    def _await_counter(self, name: str, cell: int, least: int) -> None:
        """Waits until a cell has grown; gives up silently, since the comparison will tell."""
        deadline = time.monotonic() + FRAME_TIMEOUT_S
        while self.client.read_counter(name).get(cell, 0) < least and time.monotonic() < deadline:
            time.sleep(0.002)

    def _received(self, timeout_s: float) -> list[Json]:
        """Frames and packet-ins that are there, or come in time."""
        found = [{"port": port, "frame": data.hex()} for port, data in self.links.receive(timeout_s)]
        while True:
            try:
                packet = self.client.packet_in(self.client.next_response(0.0 if found else 0.001))
            except queue.Empty:
                return found
            if packet is not None:
                found.append({"port": CPU_PORT, "frame": packet[0].hex(), "packet_in": packet[1]})

    def _received_before_markers(self) -> list[Json]:
        """What comes out of each port ahead of a marker sent to it now."""
        self.markers += 1
        marker = b"\xff" * 6 + b"\x02" + self.markers.to_bytes(5, "big") + MARKER_TYPE + b"marker" + bytes(40)
        waiting = Counter([*self.links.ports, CPU_PORT])
        for port in waiting:
            self.client.send_packet(marker, {"egress_port": port})
        found = []
        deadline = time.monotonic() + FRAME_TIMEOUT_S
        while +waiting:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no marker came out of ports {sorted(+waiting)}")
            for item in self._received(0.01):
                if item["frame"] == marker.hex():
                    waiting[item["port"]] -= 1
                else:
                    found.append(item)
        return found

    def run_script(self, request: Json) -> Json:
        """Runs a client beside the switch, with its address and files as arguments.

        The client gets a higher election id than ours, and afterwards we take a higher one
        still. What it leaves behind is deleted.
        """
        arguments = [ADDRESS, str(DEVICE_ID), str(self.client.election_id + 10)]
        arguments += [str(COMPILED / "wormcast.p4info.txtpb"), str(COMPILED / "wormcast.json")]
        self.install({"multicast_groups": [], "tables": [], "defaults": []})
        done = subprocess.run(
            [*request["command"], *arguments],
            capture_output=True,
            text=True,
            timeout=request["timeout_s"],
            check=False,
        )
        election_id = self.client.election_id + 20
        self.client.close()
        self.client = self.connect(election_id)
        self.groups = self.client.read_multicast_groups()
        return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def _without_zeros(cells: dict[int, int]) -> dict[int, int]:
    return {cell: count for cell, count in cells.items() if count}


def main() -> int:
    """Serves requests until stdin ends."""
    target, binary, directory, ports, speed = sys.argv[1:6]
    answers = sys.stdout
    sys.stdout = sys.stderr
    try:
        worker = Worker(
            target, binary, Path(directory), [int(port) for port in ports.split(",")], speed == "slow"
        )
    except Exception:
        print(json.dumps({"error": traceback.format_exc()}), file=answers, flush=True)
        return 1
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = worker.handle(json.loads(line))
        except Exception:
            answer = {"error": traceback.format_exc(), "switch_exit": worker.switch.poll()}
        print(json.dumps(answer), file=answers, flush=True)
    worker.switch.terminate()
    worker.switch.wait(timeout=600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
