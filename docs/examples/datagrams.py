"""Plain IP multicast: no word of Wormcast in it.

datagrams.py receive ADDRESS COUNT      prints COUNT datagrams
datagrams.py send ADDRESS TEXT COUNT    sends the text COUNT times
"""

import socket
import sys
import time

PORT = 5007

action, group, *rest = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
    if action == "receive":
        plain.bind((group, PORT))
        membership = socket.inet_aton(group) + socket.inet_aton("0.0.0.0")
        plain.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        for _ in range(int(rest[0])):
            data, (sender, _port) = plain.recvfrom(2048)
            print(f"{data.decode()} (from {sender})")
    else:
        plain.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
        for _ in range(int(rest[1])):
            plain.sendto(rest[0].encode(), (group, PORT))
            time.sleep(0.1)
