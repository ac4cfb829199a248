"""The first process of a network namespace: starts programs, sends and captures frames, as told on standard input.

When it ends, the kernel takes with it whatever runs in there.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4

programs: dict[str, subprocess.Popen[bytes]] = {}
stops: dict[str, threading.Event] = {}


def run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def start(name: str, argv: list[str], log: str) -> None:
    with Path(log).open("ab") as output:
        programs[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def stop(name: str, force: bool = False) -> int:
    program = programs.pop(name)
    (program.kill if force else program.terminate)()
    return program.wait(timeout=600)


def signal_to(name: str, number: int) -> None:
    programs[name].send_signal(number)


def repeat(interface: str, frame: str, interval_s: float) -> None:
    """Sends a frame again and again until `quiet`."""
    end = open_socket(interface)
    stopped = stops[interface] = threading.Event()

    def loop() -> None:
        while not stopped.wait(interval_s):
            try:
                end.send(bytes.fromhex(frame))
            except OSError:
                continue  # the interface is down; it may come up again

    threading.Thread(target=loop, daemon=True).start()


def quiet(interface: str) -> None:
    stops.pop(interface).set()


def exchange(interface: str, frames: list[str], listen: list[str], seconds: float) -> dict[str, list[str]]:
    """Sends frames out of one interface; what then comes in at others, LLDP left out."""
    ends = {name: open_socket(name) for name in listen}
    sender = open_socket(interface)
    for frame in frames:
        sender.send(bytes.fromhex(frame))
    got: dict[str, list[str]] = {name: [] for name in listen}
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select(list(ends.values()), [], [], left)
        for name, end in ends.items():
            if end in ready:
                data, address = end.recvfrom(65535)
                if address[2] != PACKET_OUTGOING and data[12:14] != b"\x88\xcc":
                    got[name].append(data.hex())
    return got


def talk(port: int, data: str) -> str:
    """Sends bytes to a port of this namespace; what is answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
        connection.sendall(bytes.fromhex(data))
        return connection.recv(4096).hex()


def open_socket(interface: str) -> socket.socket:
    # Protocol 0 until it is bound: it would hear every interface before.
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.bind((interface, ETH_P_ALL))
    return end


ACTIONS = {
    "run": run,
    "signal": signal_to,
    "start": start,
    "stop": stop,
    "repeat": repeat,
    "quiet": quiet,
    "exchange": exchange,
    "talk": talk,
}


def main() -> None:
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        action = ACTIONS[request.pop("do")]
        try:
            answer = {"result": action(**request)}  # type: ignore[operator]
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    for name in list(programs):
        stop(name, force=True)


if __name__ == "__main__":
    main()
