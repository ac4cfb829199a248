"""Every kind of worm and everything that can be wrong with it, through a real switch: tests for the ptf runner.

`tests/ptf/run` starts them; the README there says how, and what a switch needs. A test sends each frame of
malformed.py in and compares what comes out, and the counted drops, with what the reference says.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from pathlib import Path

import malformed
import ptf
from oracle.codec import Worm
from oracle.tree import Branch, encode_tree
from ptf.base_tests import BaseTest
from ptf.testutils import send_packet, test_param_get
from reference import ReferenceSwitch
from rig.p4runtime import P4RuntimeClient
from vector_files import load_vectors
from wormcast.wire import CPU_PORT, DropReason, Kind

STATE = "small"
CONNECT_SECONDS_MAX = 600.0
COME_SECONDS_MAX = 600.0
"""Only against waiting for ever for what does not come."""
POLL_SECONDS = 0.01
INGRESS_PORT = 4


class Frames(BaseTest):
    """What sends frames of one kind. Subclasses say which."""

    frames: list[bytes]

    def setUp(self) -> None:
        """Takes the switch over, loads the program and writes a state."""
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        state = load_vectors("worm_switch.json")["states"][STATE]
        self.ports = state["ports"]
        missing = sorted(set(self.ports) - {port for _, port in self.dataplane.ports})
        assert not missing, f"no interface for ports {missing}; the state has ports {self.ports}"
        self.reference = ReferenceSwitch(state)
        self.client = P4RuntimeClient(
            test_param_get("grpc"),
            int(test_param_get("device")),
            Path(test_param_get("p4info")).read_text(),
            int(test_param_get("election")),
        )
        self.client.wait_ready(CONNECT_SECONDS_MAX)
        status = self.client.become_primary().status
        assert status.code == 0, f"the switch refused to make this session primary: {status}"
        # BMv2 keeps replicas of the groups of an older program.
        old = self.client.read_multicast_groups()
        if old:
            self.client.write([self.client.multicast_update(group, "DELETE") for group in old])
        self.client.set_pipeline(Path(test_param_get("config")).read_bytes())
        updates = [self.client.multicast_update(group) for group in state["multicast_groups"]]
        updates += [self.client.table_update(entry) for entry in state["tables"]]
        updates += [self.client.default_update(entry) for entry in state["defaults"]]
        self.client.write(updates)
        self.markers = 0

    def tearDown(self) -> None:
        """Lets the switch go."""
        self.client.close()

    def check_all(self) -> None:
        """Every frame; all that differ are told."""
        wrong = [text for frame in self.frames for text in self.check(frame)]
        assert not wrong, f"{len(wrong)} of {len(self.frames)} frames differ:\n" + "\n".join(wrong[:20])

    def check(self, frame: bytes) -> list[str]:
        """What a frame did otherwise than the reference says."""
        want = self.reference.handle(INGRESS_PORT, frame)
        before = self.client.read_counter("drops")
        send_packet(self, INGRESS_PORT, frame)
        found = self.received(len(want.out))
        found += self.received_before_marker()
        drops = self.dropped(before, sum(want.drops.values()))
        faults = []
        if Counter(found) != Counter(want.out):
            faults.append(f"{frame.hex()}: came {told(found)}, expected {told(want.out)}")
        if drops != want.drops:
            faults.append(f"{frame.hex()}: dropped {dict(drops)}, expected {dict(want.drops)}")
        return faults

    def received(self, count: int) -> list[tuple[int, bytes]]:
        """So many frames and packet-ins, fewer if no more come."""
        found: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + COME_SECONDS_MAX
        while len(found) < count and time.monotonic() < deadline:
            found += self.polled()
        return found

    def polled(self) -> list[tuple[int, bytes]]:
        """What is there, or comes soon."""
        found = []
        result = self.dataplane.poll(timeout=POLL_SECONDS)
        if isinstance(result, self.dataplane.PollSuccess):
            found.append((result.port, bytes(result.packet)))
        while True:
            try:
                packet = self.client.packet_in(self.client.next_response(0.0))
            except (queue.Empty, ValueError):
                return found
            if packet is not None:
                found.append((CPU_PORT, packet[0]))

    def received_before_marker(self) -> list[tuple[int, bytes]]:
        """What comes out of each port ahead of the copies of a worm sent in behind the frame."""
        self.markers += 1
        route = encode_tree(Branch(port) for port in self.ports)
        marker = Worm(Kind.TREE, route, b"marker", source=0xFFFF, sequence=self.markers)
        copies = {(port, frame) for port, frame in self.reference.handle(INGRESS_PORT, marker.to_frame()).out}
        send_packet(self, INGRESS_PORT, marker.to_frame())
        found = []
        deadline = time.monotonic() + COME_SECONDS_MAX
        while copies:
            assert time.monotonic() < deadline, f"no marker came out of ports {sorted(p for p, _ in copies)}"
            for item in self.polled():
                if item in copies:
                    copies.remove(item)
                else:
                    found.append(item)
        return found

    def dropped(self, before: dict[int, int], count: int) -> Counter[str]:
        """Drops by reason since a reading of the counter; waits for so many."""
        deadline = time.monotonic() + COME_SECONDS_MAX
        while True:
            now = self.client.read_counter("drops")
            grown = {cell: packets - before.get(cell, 0) for cell, packets in now.items()}
            drops = Counter({DropReason(cell).name: n for cell, n in grown.items() if n})
            if sum(drops.values()) >= count or time.monotonic() > deadline:
                return drops
            time.sleep(POLL_SECONDS)


def told(frames: list[tuple[int, bytes]]) -> str:
    """Frames by port, as text."""
    return ", ".join(f"{port}: {frame.hex()}" for port, frame in sorted(frames)) or "nothing"


def _tests() -> dict[str, type[Frames]]:
    """A test for each kind of worm and each fault, and one for what is no worm."""
    found = {
        f"{worm}_{family}": malformed.frames(worm, family)
        for worm in malformed.WORMS
        for family in malformed.FAMILIES
    }
    found["no_worms"] = malformed.others()
    return {
        name: type(name, (Frames,), {"frames": frames, "runTest": Frames.check_all, "__module__": __name__})
        for name, frames in found.items()
    }


# The runner takes each class with `runTest` for a test.
globals().update(_tests())
