"""Registers over P4Runtime, read and written with p4runtime-shell as it is."""

from __future__ import annotations

import random
import re
import socket
import time

import click

from labs.report import Report
from labs.rig import PROGRAMS, LabError, make_cable, open_interface, running_switch
from labs.shell import Shell

PROGRAM, P4INFO = PROGRAMS / "externs.json", PROGRAMS / "externs.p4info.txtpb"
REGISTER = "ingress.memory"
CELLS, CELL_BYTES = 4, 12
WRITE, READ = 1, 2
"""Operations of the packets of switch/tests/programs/externs.p4."""
COMMAND_BYTES = 33
ADDRESS = "127.0.0.1:50051"
ARRIVE_SECONDS_MAX = 30.0
CELL = re.compile(r"\((\d+), '([0-9a-f]*)'\)")
SHOW = "[(one.index.index, one.data.bitstring.hex()) for one in found]"


def packet(operation: int, index: int, value: bytes = b"") -> bytes:
    """A packet that has the switch write a cell of the register, or read one into the packet."""
    head = bytes([operation, index]) + value.rjust(CELL_BYTES, b"\0")
    return head + bytes(COMMAND_BYTES - len(head)) + b"lab registers".ljust(31, b"\0")


def cells(printed: str) -> dict[int, bytes]:
    """Cells that the shell has printed, by index."""
    return {
        int(index): bytes.fromhex(value).rjust(CELL_BYTES, b"\0") for index, value in CELL.findall(printed)
    }


def request(register_id: int, index: int, value: bytes) -> str:
    """A WriteRequest in protobuf's text form, as the shell's Write reads it from a file."""
    text = "".join(f"\\{byte:03o}" for byte in value.lstrip(b"\0") or b"\0")
    return (
        "updates {\n  type: MODIFY\n  entity {\n    register_entry {\n"
        f"      register_id: {register_id}\n      index {{ index: {index} }}\n"
        f'      data {{ bitstring: "{text}" }}\n    }}\n  }}\n}}\n'
    )


def through(sending: socket.socket, receiving: socket.socket, frame: bytes) -> bytes:
    """Send a frame through the switch; give it as it came out."""
    sending.send(frame)
    deadline = time.monotonic() + ARRIVE_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            data, source = receiving.recvfrom(2_048)
        except TimeoutError:
            continue
        if source[2] != 4 and data[:2] == frame[:2]:
            return data
    raise LabError("a packet did not come out of the switch")


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Of the values that are written.")
def lab(report: Report, seed: int) -> None:
    """A P4 program has a register of four cells of 96 bits. Packets write and read it, and so does p4runtime-shell,
    unmodified: by Write, which sends a request from a file, and by read_one of its client.
    """
    chance = random.Random(seed)
    values = [
        bytes([chance.randrange(1, 256)]) + chance.randbytes(CELL_BYTES - 3) + b"\x12\x34" for _ in range(2)
    ]
    for port, host in enumerate(("sender", "receiver")):
        make_cable(host, f"port{port}")
    argv = [
        "--no-p4",
        "-i",
        "0@port0",
        "-i",
        "1@port1",
        "--device-id",
        "0",
        "--",
        "--grpc-server-addr",
        ADDRESS,
    ]
    with running_switch(argv, report.directory), open_interface("receiver", timeout_s=1.0) as receiving:
        shell = Shell(ADDRESS, 0, P4INFO, PROGRAM, report.directory)
        try:
            with open_interface("sender") as sending:
                look(report, shell, sending, receiving, values)
        finally:
            shell.close()
            (report.directory / "transcript.txt").write_text(shell.transcript)
    report.draw_text(shell.transcript, "registers")
    click.echo(shell.transcript, err=True)


def look(
    report: Report, shell: Shell, sending: socket.socket, receiving: socket.socket, values: list[bytes]
) -> None:
    """Type what a person would, and compare with what packets see."""
    shell.type("%xmode Minimal")  # errors without a trace
    listed = shell.type("[(one.preamble.name, one.preamble.id) for one in p4info.registers]")
    found = re.search(rf"'{re.escape(REGISTER)}', (\d+)", listed)
    report.check(
        "the program's P4Info lists the register and its id", " ".join(listed.split()), found is not None
    )
    register_id = int(found[1]) if found else 0
    shell.type_all(
        [
            "from p4.v1 import p4runtime_pb2",
            "from p4runtime_sh.shell import client",
            "cell = p4runtime_pb2.Entity()",
            f"cell.register_entry.register_id = {register_id}",
        ]
    )

    def read_cells(line: str) -> dict[int, bytes]:
        shell.type(line)
        shell.type(
            "found = [one.register_entry for answer in client.read_one(cell) for one in answer.entities]"
        )
        return cells(shell.type(SHOW))

    empty = read_cells('cell.register_entry.ClearField("index")')
    report.check(
        f"a read without an index gives all {CELLS} cells, 0 at first",
        f"{len(empty)} cells: {', '.join(value.hex().lstrip('0') or '0' for value in empty.values())}",
        empty == {index: bytes(CELL_BYTES) for index in range(CELLS)},
    )
    by_packet, by_shell = values
    shell.comment(f"now a packet has the switch write {by_packet.hex()} into cell 2")
    through(sending, receiving, packet(WRITE, 2, by_packet))
    seen = read_cells("cell.register_entry.index.index = 2")
    report.check(
        "a packet writes cell 2, and the shell reads it (client.read_one)",
        f"written {by_packet.hex()}, read {seen.get(2, b'').hex()}",
        seen == {2: by_packet},
    )
    (report.directory / "write-1.txt").write_text(request(register_id, 1, by_shell))
    shell.type('Write("write-1.txt")')
    out = through(sending, receiving, packet(READ, 1))[2 : 2 + CELL_BYTES]
    shell.comment(f"a packet that has the switch read cell 1 comes out with {out.hex()}")
    report.check(
        "the shell writes cell 1 (Write, from a file), and a packet reads it",
        f"written {by_shell.hex()}, in the packet {out.hex()}",
        out == by_shell,
    )
    (report.directory / f"write-{CELLS}.txt").write_text(request(register_id, CELLS, by_shell))
    refused = shell.type(f'Write("write-{CELLS}.txt")')
    report.check(
        f"a write to cell {CELLS}, which there is not, is refused with a reason",
        " ".join(refused.split())[-160:],
        "OUT_OF_RANGE" in refused or "INVALID_ARGUMENT" in refused,
    )
    last = read_cells('cell.register_entry.ClearField("index")')
    report.check(
        "at the end the register holds both values and nothing else",
        ", ".join(f"{index}: {value.hex().lstrip('0') or '0'}" for index, value in sorted(last.items())),
        last == {0: bytes(CELL_BYTES), 1: by_shell, 2: by_packet, 3: bytes(CELL_BYTES)},
    )
    report.figures["cells"] = {str(index): value.hex() for index, value in last.items()}
