"""What a controller written with finsy does. Runs beside the switch, prints JSON.

finsy_session.py ADDRESS DEVICE ELECTION P4INFO DEVICE_CONFIG
"""

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import finsy as fy

FRAME = bytes.fromhex("0180c200000e02000000000188cc") + b"from finsy" + bytes(40)
PACKET_OUTGOING = 4
SESSION_TIMEOUT_S = 600


async def write_and_read(switch: fy.Switch, seen: dict[str, Any]) -> None:
    """Writes one entity of each kind and reads them back."""
    known = fy.P4TableEntry(
        "ingress.ports", match=fy.P4TableMatch(port=5), action=fy.P4TableAction("ingress.port_known")
    )
    await switch.delete_all()
    await switch.write(
        [
            +fy.P4MulticastGroupEntry(0x4000, replicas=((0, 1), (1, 1), (5, 1))),
            +known,
            +fy.P4TableEntry(
                "ingress.groups",
                match=fy.P4TableMatch(group=7),
                action=fy.P4TableAction("ingress.replicate", mgid=0x4000),
            ),
            +fy.P4TableEntry(
                "ingress.class_d",
                match=fy.P4TableMatch({"hdr.ipv4.dst": "239.1.1.7"}),
                action=fy.P4TableAction("ingress.enter_group", group=7),
                priority=10,
            ),
            ~fy.P4TableEntry(
                "ingress.tree_sets",
                action=fy.P4TableAction("ingress.replicate_filtered", low=0x33, high=0),
                is_default_action=True,
            ),
        ]
    )
    seen["ports"] = [
        entry.match_dict(switch.p4info) async for entry in switch.read(fy.P4TableEntry("ingress.ports"))
    ]
    seen["groups"] = [
        [entry.match_dict(switch.p4info), entry.action_str(switch.p4info)]
        async for entry in switch.read(fy.P4TableEntry("ingress.groups"))
    ]
    seen["class_d"] = [entry.priority async for entry in switch.read(fy.P4TableEntry("ingress.class_d"))]
    seen["multicast"] = [
        entry.replicas_str() async for entry in switch.read(fy.P4MulticastGroupEntry(0x4000))
    ]
    try:
        await switch.insert([known])
        seen["second_insert"] = "accepted"
    except fy.P4ClientError as error:
        seen["second_insert"] = [detail.canonical_code.name for detail in error.details.values()]


async def exchange_packets(switch: fy.Switch, seen: dict[str, Any]) -> None:
    """A packet-out that reaches its link, and a frame of that link that comes in."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as link:
        link.bind(("h5", 3))
        link.settimeout(300)
        packets = switch.read_packets()
        await switch.write(fy.P4PacketOut(FRAME, egress_port=5, pad=0))
        while True:
            data, source = await asyncio.to_thread(link.recvfrom, 4000)
            if source[2] != PACKET_OUTGOING and data == FRAME:
                seen["packet_out"] = True
                break
        waiting = asyncio.ensure_future(anext(packets))
        await asyncio.sleep(0)
        link.send(FRAME)
        packet = await waiting
        seen["packet_in"] = [packet.payload.hex(), packet.metadata["ingress_port"]]
        seen["frame"] = FRAME.hex()
    counter = switch.read(fy.P4CounterEntry("ingress_ports", index=5))
    seen["counter"] = [entry.packet_count async for entry in counter]


async def main() -> None:
    """Runs the session once; an error in it ends the program."""
    address, device, election, p4info, device_config = sys.argv[1:6]
    seen: dict[str, Any] = {}
    outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ready(switch: fy.Switch) -> None:
        try:
            await write_and_read(switch, seen)
            await exchange_packets(switch, seen)
            outcome.set_result(None)
        except Exception as error:
            outcome.set_exception(error)

    options = fy.SwitchOptions(
        p4info=Path(p4info),
        p4blob=Path(device_config),
        device_id=int(device),
        initial_election_id=int(election),
        fail_fast=True,
        ready_handler=ready,
    )
    running = asyncio.create_task(fy.Switch("switch", address, options).run())
    await asyncio.wait({running, outcome}, timeout=SESSION_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
    if not outcome.done():
        running.cancel()
        await running  # shows why it ended early
    await outcome
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main())
