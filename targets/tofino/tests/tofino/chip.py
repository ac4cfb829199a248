"""A Tofino around the program: what is fixed in the chip, as public documents describe it.

A frame that ends while its parser reads goes on with `parser_err` set. What parsers take leaves the
frame; what deparsers emit goes in front of the rest. A resubmitted frame comes again as it came, with
eight bytes of the first pass where the port's metadata were. Copies of a multicast group each have
an egress of their own. The clock counts nanoseconds in 48 bits; both gresses read it. Each pipe has
registers of its own.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tofino.machine import Machine
from tofino.meter import Bucket, MeterCell
from tofino.syntax import Program, TypeName, read_program
from tofino.values import Cell, Entry, Frame, Switch

Json = dict[str, Any]
SOURCES = Path(__file__).resolve().parents[2]

PORT_BYTE_RECIRCULATION = 254
CPU = 510
PASSES_MAX = 300  # of one frame; more means that it recirculates for ever
CLOCK_BITS = 48
DEPTH_MAX = (1 << 19) - 1  # cells of a queue that are counted


@dataclass(frozen=True)
class Target:
    """One of the two chips, and how a switch that is made of it is cabled."""

    declarations: str  # of its architecture, in targets/tofino/front_end
    recirculation: int  # device port
    cpu: int  # device port
    metadata_bytes: int  # in front of a frame
    cabling: Callable[[int], int]

    def device_port(self, port: int) -> int:
        """A device port for each port; none that has a meaning of its own."""
        special = {CPU: self.cpu, PORT_BYTE_RECIRCULATION: self.recirculation}
        return special[port] if port in special else self.cabling(port)


# Ports are spread over four pipes.
TOFINO = Target("tna.p4", 0x44, 0x140, 8, lambda port: (port & 3) << 7 | port >> 2)
# Ports 0-119 are in one pipe, and so have registers in common.
TOFINO2 = Target("t2na.p4", 0x06, 0x00, 24, lambda port: port // 120 << 7 | port % 120 + 8)
TARGETS = {"tofino.p4": TOFINO, "tofino2.p4": TOFINO2}


def device_port(port: int) -> int:
    """That of Tofino."""
    return TOFINO.device_port(port)


@dataclass
class Copy:
    """A frame that leaves."""

    device_port: int
    data: bytes


@dataclass
class Result:
    """What came of one pass or of all passes of a frame, in order, with the cells that counted. Priorities are those it crossed buffers with."""

    out: list[Copy] = field(default_factory=list)
    grown: dict[str, dict[int, int]] = field(default_factory=dict)
    resubmitted: int = 0
    recirculated: int = 0
    priorities: list[tuple[int, int]] = field(default_factory=list)

    def add(self, other: "Result") -> None:
        """What came of a later pass."""
        self.out += other.out
        for name, cells in other.grown.items():
            self.grown[name] = dict(Counter(self.grown.get(name, {})) + Counter(cells))
        self.resubmitted += other.resubmitted
        self.recirculated += other.recirculated
        self.priorities += other.priorities


@dataclass
class Routed:
    """What the traffic manager is told: device port and rid of each copy, and the priority."""

    copies: list[tuple[int, int]]
    ingress_cos: int
    queue: int


def load(top: str = "tofino.p4") -> Program:
    """The program, with the architecture's declarations in front."""
    return read_program(SOURCES / "front_end" / TARGETS[top].declarations, SOURCES / top)


class Chip:
    """A switch with one program.

    `forward` runs one frame to its end. With `enter` and `pass_one` many are in the switch at a time:
    those in `recirculating` are on their way back to ingress, each for one more pass. In the chip they
    come in the order in which they left; here whoever calls says which is next, or takes one out.
    """

    def __init__(self, program: Program, target: Target = TOFINO) -> None:
        self.program = program
        self.target = target
        self.switch = Switch()
        self.groups: dict[int, list[tuple[int, int]]] = {}  # device port, rid
        self.recirculating: list[bytes] = []

    # What a controller does

    def install(self, state: Json, ports: list[int]) -> None:
        """A state of worm_switch.json, and the map of its ports.

        Replicas that take a branch say which by their instance, here in every group of a TREE.
        """
        self.switch = Switch()
        self.recirculating = []
        device_port = self.target.device_port
        for entry in state["tables"]:
            keys = {
                name: (key["value"], key["mask"]) if isinstance(key, dict) else (key, -1)
                for name, key in entry["key"].items()
            }
            self.switch.entries.setdefault(entry["table"], []).append(
                Entry(keys, entry["action"], _numbers(entry["parameters"]), entry.get("priority", 0))
            )
        for entry in state["defaults"]:
            self.switch.defaults[entry["table"]] = (entry["action"], _numbers(entry["parameters"]))
        for port in {*ports, CPU, PORT_BYTE_RECIRCULATION}:
            device = device_port(port)
            for table, key, action, value in (
                ("ingress.entry_ports", device, "ingress.entry_port", {"port": port}),
                ("egress.exit_ports", device, "egress.exit_port", {"port": port}),
                ("ingress.device_ports", port, "ingress.device_port", {"device": device}),
            ):
                name = "port" if table == "ingress.device_ports" else "device_port"
                self.switch.entries.setdefault(table, []).append(Entry({name: (key, -1)}, action, value))
        for meter in state.get("meters", []):
            bucket = meter["rate_bytes"], meter["burst_bytes"]
            cells = self.switch.meters.setdefault(meter["meter"], {})
            cells[meter["index"]] = MeterCell(Bucket(*bucket), Bucket(*bucket))
        self.groups = {
            group["id"]: [
                (device_port(replica["port"]), _instance(group["id"], replica))
                for replica in group["replicas"]
            ]
            for group in state["multicast_groups"]
        }

    # What the chip does

    def forward(
        self, port: int, frame: bytes, deq_qdepth: int = 0, now_ns: int = 0, stay_ns: int = 0
    ) -> Result:
        """A frame that comes in by a device port, until all that is made of it has left.

        From ingress to egress it takes `stay_ns`, in each pass. No other frame may be in the switch.
        """
        assert not self.recirculating, "other frames are in the switch"
        self.switch.now_ns = now_ns
        result = self.enter(port, frame, deq_qdepth, stay_ns)
        passes = 1
        while self.recirculating:
            passes += 1
            if passes > PASSES_MAX:
                raise RuntimeError(f"a frame passes more than {PASSES_MAX} times: {frame.hex()}")
            result.add(self.pass_one(0, deq_qdepth, stay_ns))
        return result

    def enter(self, port: int, frame: bytes, deq_qdepth: int = 0, stay_ns: int = 0) -> Result:
        """The first pass of a frame that comes in by a device port, at the clock `switch.now_ns`."""
        result = Result()
        self.switch.counters = {}
        for copy in self._pass(port, frame, min(deq_qdepth, DEPTH_MAX), stay_ns, result):
            if copy.device_port == self.target.recirculation:
                result.recirculated += 1
                self.recirculating.append(copy.data)
            else:
                result.out.append(copy)
        result.grown = {name: dict(counter) for name, counter in self.switch.counters.items()}
        return result

    def pass_one(self, index: int, deq_qdepth: int = 0, stay_ns: int = 0) -> Result:
        """One more pass of one of those in `recirculating`."""
        return self.enter(self.target.recirculation, self.recirculating.pop(index), deq_qdepth, stay_ns)

    def _pass(self, port: int, frame: bytes, deq_qdepth: int, stay_ns: int, result: Result) -> list[Copy]:
        metadata = bytes(self.target.metadata_bytes)
        to, data = self._ingress(port, metadata + frame, resubmit_flag=0)
        if isinstance(to, bytes):
            result.resubmitted += 1
            to, data = self._ingress(port, to + metadata[len(to) :] + frame, resubmit_flag=1)
        assert isinstance(to, Routed), "a frame is resubmitted once at most"
        if to.copies:
            result.priorities.append((to.ingress_cos, to.queue))
        self.switch.now_ns += stay_ns
        copies = []
        for device, rid in to.copies:
            left = self._egress(device, rid, data, deq_qdepth)
            if left is not None:
                copies.append(Copy(device, left))
        return copies

    def _ingress(self, port: int, data: bytes, resubmit_flag: int) -> tuple[Routed | bytes, bytes]:
        """Where the frame goes, or what is said to its second pass; and the frame."""
        machine = Machine(self.program, self.switch, port >> 7)
        machine.frame = Frame(data)
        machine.frame_bytes = len(data) - self.target.metadata_bytes
        parser, control, deparser = (self.program.blocks[name] for name in self.program.pipeline[:3])
        hdr, meta = (machine.new(parameter.type) for parameter in parser.parameters[1:3])
        intrinsic = machine.new(parser.parameters[3].type)
        self._fill(machine, intrinsic, {"resubmit_flag": resubmit_flag, "ingress_port": port})
        error = machine.run(parser, [_packet(), hdr, meta, intrinsic])
        from_parser, to_deparser, to_manager = (machine.new(p.type) for p in control.parameters[3:])
        self._fill(machine, from_parser, {"parser_err": error, "global_tstamp": self._clock()})
        for cell in (to_deparser, to_manager):
            cell.value.valid = True
        machine.run(control, [hdr, meta, intrinsic, from_parser, to_deparser, to_manager])
        machine.run(deparser, [_packet(), hdr, meta, to_deparser])
        frame = bytes(machine.emitted) + machine.frame.rest()
        if _field(to_deparser, "drop_ctl") & 1:
            return Routed([], 0, 0), frame
        if machine.resubmitted is not None:
            return machine.resubmitted, frame
        to = list(self.groups.get(_field(to_manager, "mcast_grp_a"), []))
        # Port 0 is a port like any other: that no unicast copy is asked for is kept beside it.
        if meta.value.fields["unicast"].value:
            to.append((_field(to_manager, "ucast_egress_port"), 0))
        return Routed(to, _field(to_manager, "ingress_cos"), _field(to_manager, "qid")), frame

    def _egress(self, device: int, rid: int, data: bytes, deq_qdepth: int) -> bytes | None:
        machine = Machine(self.program, self.switch, device >> 7)
        machine.frame = Frame(data)
        parser, control, deparser = (self.program.blocks[name] for name in self.program.pipeline[3:])
        hdr, meta = (machine.new(parameter.type) for parameter in parser.parameters[1:3])
        intrinsic = machine.new(parser.parameters[3].type)
        said = {"egress_port": device, "egress_rid": rid, "deq_qdepth": deq_qdepth}
        self._fill(machine, intrinsic, said)
        error = machine.run(parser, [_packet(), hdr, meta, intrinsic])
        if error:
            raise RuntimeError(f"egress cannot read what ingress sent: error {error}, {data.hex()}")
        from_parser, to_deparser, to_port = (machine.new(p.type) for p in control.parameters[3:])
        self._fill(machine, from_parser, {"global_tstamp": self._clock()})
        machine.run(control, [hdr, meta, intrinsic, from_parser, to_deparser, to_port])
        if _field(to_deparser, "drop_ctl") & 1:
            return None
        machine.run(deparser, [_packet(), hdr, meta, to_deparser])
        return bytes(machine.emitted) + machine.frame.rest()

    def _clock(self) -> int:
        return self.switch.now_ns % (1 << CLOCK_BITS)

    def _fill(self, machine: Machine, cell: Cell, values: dict[str, int]) -> None:
        machine.intrinsic.add(id(cell.value))
        cell.value.valid = True
        for name, value in values.items():
            found = cell.value.fields[name]
            found.value = type(found.value)(value, found.type.width)


def _packet() -> Cell:
    return Cell(None, TypeName("packet"))


def _field(cell: Cell, name: str) -> int:
    return int(cell.value.fields[name].value.value)


def _numbers(parameters: Json) -> dict[str, int]:
    return {name: int(value, 0) if isinstance(value, str) else value for name, value in parameters.items()}


def _instance(group: int, replica: Json) -> int:
    """TREE groups (ids below 0x0200, but for that of BROADCAST) say the branch of every replica."""
    instance: int = replica["instance"]
    if 1 < group < 0x0200 and instance >> 8 != 1:
        return 0x0100 + int(replica["port"])
    return instance
