"""What a person does in p4runtime-shell, as a program. Runs beside the switch, prints JSON.

shell_session.py ADDRESS DEVICE ELECTION P4INFO DEVICE_CONFIG
"""

import json
import socket
import sys
import threading
from typing import Any

import p4runtime_sh.shell as sh

address, device, election, p4info, device_config = sys.argv[1:6]
answers = sys.stdout
sys.stdout = sys.stderr  # the shell prints what it does
seen: dict[str, Any] = {}

sh.setup(
    device_id=int(device),
    grpc_addr=address,
    election_id=(0, int(election)),
    config=sh.FwdPipeConfig(p4info, device_config),
    verbose=False,
)
try:
    for port in (0, 1, 4, 5):
        entry = sh.TableEntry("ingress.ports")(action="ingress.port_known")
        entry.match["port"] = str(port)
        entry.insert()
    entry = sh.TableEntry("ingress.port_roles")(action="ingress.role")
    entry.match["standard_metadata.ingress_port"] = "0"
    entry.action["role"] = "2"
    entry.action["neighbour"] = "0"
    entry.insert()
    entry = sh.TableEntry("egress.edge_ports")(action="egress.to_host")
    entry.match["standard_metadata.egress_port"] = "1"
    entry.insert()
    group = sh.MulticastGroupEntry(0x4000)
    for port in (0, 1, 5):
        group.add(port, 1)
    group.insert()
    seen["multicast"] = []
    sh.MulticastGroupEntry(0x4000).read(
        lambda found: seen["multicast"].extend([[r.port, r.instance] for r in found.replicas])
    )
    entry = sh.TableEntry("ingress.groups")(action="ingress.replicate")
    entry.match["group"] = "7"
    entry.action["mgid"] = "0x4000"
    entry.insert()
    for address_and_mask, priority in (("239.1.1.7&&&255.255.255.255", 20), ("239.0.0.0&&&255.0.0.0", 10)):
        entry = sh.TableEntry("ingress.class_d")(action="ingress.enter_group")
        entry.match["hdr.ipv4.dst"] = address_and_mask
        entry.action["group"] = "7"
        entry.priority = priority
        entry.insert()
    entry = sh.TableEntry("ingress.tree_sets")(action="ingress.replicate_filtered", is_default=True)
    entry.action["low"] = "0x33"
    entry.action["high"] = "0"
    entry.modify()

    entry = sh.TableEntry("ingress.ports")(action="ingress.port_known")
    entry.match["port"] = "4"
    entry.delete()
    seen["ports"] = sorted(
        int.from_bytes(found.match["port"].exact.value, "big")
        for found in sh.TableEntry("ingress.ports").read()
    )
    seen["class_d"] = sorted(found.priority for found in sh.TableEntry("ingress.class_d").read())

    # A second insert of the same key has to fail, and the shell has to survive it.
    entry = sh.TableEntry("ingress.ports")(action="ingress.port_known")
    entry.match["port"] = "5"
    try:
        entry.insert()
        seen["second_insert"] = "accepted"
    except Exception as error:
        seen["second_insert"] = str(error)

    frame = bytes.fromhex("0180c200000e02000000000188cc") + b"from the shell" + bytes(40)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    link.bind(("h5", 3))
    link.settimeout(300)
    sh.PacketOut(payload=frame, egress_port="5").send()
    while True:
        data, source = link.recvfrom(4000)
        if source[2] != 4 and data == frame:
            seen["packet_out"] = True
            break

    packets = sh.PacketIn()
    threading.Timer(0.5, lambda: link.send(frame)).start()
    sniffed = packets.sniff(timeout=5)
    seen["packet_in"] = [
        [
            packet.packet.payload.hex(),
            {m.metadata_id: int.from_bytes(m.value, "big") for m in packet.packet.metadata},
        ]
        for packet in sniffed
    ]
    seen["frame"] = frame.hex()

    worm = bytes.fromhex("03574f524d0002000000000188b51006010000050001 88b6 0000 05".replace(" ", ""))
    words = sum(int.from_bytes(worm[14:24][i : i + 2], "big") for i in range(0, 10, 2)) + 0x0500
    while words > 0xFFFF:
        words = (words & 0xFFFF) + (words >> 16)
    worm = worm[:24] + (~words & 0xFFFF).to_bytes(2, "big") + worm[26:] + b"payload"
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sender.bind(("h0", 3))
    sender.send(worm)
    while True:
        data, source = link.recvfrom(4000)
        if source[2] != 4 and data.endswith(b"payload"):
            seen["worm"] = data.hex()
            break
    cell = sh.CounterEntry("kinds")
    cell.index = 0
    seen["kinds_unicast"] = [found.packet_count for found in cell.read()]
finally:
    sh.teardown()
print(json.dumps(seen), file=answers)
