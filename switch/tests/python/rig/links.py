"""veth links of the switch inside the namespace, and what passes on their far ends."""

import errno
import select
import socket
import subprocess
import time
from pathlib import Path

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4  # sll_pkttype of what this end sent itself
LINK_MTU = 4000


def run(*command: str) -> None:
    """A command that has to succeed. Raises CalledProcessError with its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")


class Links:
    """One veth for each port: `s<port>` is the switch's end, `h<port>` is ours."""

    def __init__(self, ports: list[int]) -> None:
        for scope in ("all", "default"):
            # The kernel would add neighbour discovery of its own to what the switch sends.
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
        run("ip", "link", "set", "lo", "up")
        self.ports = ports
        self.sockets: dict[int, socket.socket] = {}
        for port in ports:
            run(
                "ip",
                "link",
                "add",
                f"s{port}",
                "mtu",
                str(LINK_MTU),
                "type",
                "veth",
                "peer",
                "name",
                f"h{port}",
            )
            run("ip", "link", "set", f"h{port}", "mtu", str(LINK_MTU), "up")
            run("ip", "link", "set", f"s{port}", "up")
            end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            end.bind((f"h{port}", ETH_P_ALL))
            end.setblocking(False)
            self.sockets[port] = end

    def interface_arguments(self) -> list[str]:
        """`-i port@interface` for each port."""
        return [word for port in self.ports for word in ("-i", f"{port}@s{port}")]

    def send(self, port: int, frame: bytes) -> None:
        """Puts a frame on the link of a port, towards the switch."""
        self.sockets[port].send(frame)

    def receive(self, timeout_s: float) -> list[tuple[int, bytes]]:
        """What has come from the switch; waits for the first frame at most this long."""
        by_socket = {end.fileno(): (port, end) for port, end in self.sockets.items()}
        ready, _, _ = select.select(list(by_socket), [], [], max(0.0, timeout_s))
        frames = []
        for number in ready:
            port, end = by_socket[number]
            while True:
                try:
                    data, address = end.recvfrom(65535)
                except BlockingIOError:
                    break
                except OSError as error:
                    # A client has taken the link down and up again: told once.
                    if error.errno != errno.ENETDOWN:
                        raise
                    continue
                if address[2] != PACKET_OUTGOING:
                    frames.append((port, data))
        return frames

    def drain(self, quiet_s: float) -> None:
        """Throws away what comes until nothing has come for this long."""
        until = time.monotonic() + quiet_s
        while time.monotonic() < until:
            if self.receive(until - time.monotonic()):
                until = time.monotonic() + quiet_s
