"""Files, sockets, interfaces and ports that the switch and the agent cannot use: they name each, and say why in words.

Every option of both programs is in this file, so that a new one has to say what it names.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_lab.lab import agent_binary
from controller_lab.namespace import targets

LIMIT_S = 600
PROGRAM = str(Path(__file__).resolve().parents[2] / "p4src/compiled/wormcast.json")
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]
"""Root, but permissions hold for it too."""
LINK = 'ip link set lo up && ip link add f0 type veth peer name f1 && ip link set f0 up && ip link set f1 up && exec "$@"'

READ = ("missing", "directory", "denied", "long")
"""What can be wrong with a file that is read or written."""
SOCKET = ("missing", "directory", "denied", "long", "used")
INTERFACE = ("unknown", "long")

# The option, its arguments, what can be wrong with it. PATH, NAME and PORT stand for what is wrong, HERE for a folder.
Case = tuple[str, str, tuple[str, ...]]
GRPC = "--device-id 1 --grpc-server-addr unix:HERE/grpc"
TLS = f"{GRPC} --no-p4 --grpc-server-ssl --grpc-server-cert HERE/c.pem --grpc-server-key HERE/k.pem"
SWITCH: list[Case] = [
    ("JSON", f"{GRPC} PATH", READ),
    ("--fabric", "--grpc-server-addr unix:HERE/grpc --fabric PATH", READ),
    ("--translation", f"{GRPC} --no-p4 --translation PATH", READ),
    ("--restore-state", f"{GRPC} {PROGRAM} --restore-state PATH", READ),
    ("--grpc-server-cacert", f"{TLS} --grpc-server-with-client-auth --grpc-server-cacert PATH", READ),
    ("--grpc-server-cert", TLS.replace("HERE/c.pem", "PATH"), READ),
    ("--grpc-server-key", TLS.replace("HERE/k.pem", "PATH"), READ),
    ("--statistics", f"{GRPC} --no-p4 --statistics PATH", READ),
    ("--trace-file", f"{GRPC} --no-p4 --trace all --trace-file PATH", READ),
    ("--log-file", f"{GRPC} --no-p4 --log-file PATH", READ),
    ("--pcap", f"{GRPC} --no-p4 --interface 1@f0 --pcap=PATH", ("missing",)),
    ("--use-files", f"{GRPC} --no-p4 --interface 1@PATH --use-files 0", ("missing", "denied", "long")),
    ("--grpc-server-addr", "--device-id 1 --no-p4 --grpc-server-addr unix:PATH", SOCKET),
    ("--dp-grpc-server-addr", f"{GRPC} --no-p4 --dp-grpc-server-addr unix:PATH", SOCKET),
    ("--notifications-addr", f"{GRPC} --no-p4 --notifications-addr ipc://PATH", SOCKET),
    ("--packet-in", f"{GRPC} --no-p4 --packet-in ipc://PATH", SOCKET),
    ("--nanolog", f"{GRPC} --no-p4 --nanolog ipc://PATH", SOCKET),
    ("--grpc-server-addr", "--device-id 1 --no-p4 --grpc-server-addr 127.0.0.1:PORT", ("port",)),
    ("--dp-grpc-server-addr", f"{GRPC} --no-p4 --dp-grpc-server-addr 127.0.0.1:PORT", ("port",)),
    ("--notifications-addr", f"{GRPC} --no-p4 --notifications-addr tcp://127.0.0.1:PORT", ("port",)),
    ("--packet-in", f"{GRPC} --no-p4 --packet-in tcp://127.0.0.1:PORT", ("port",)),
    ("--nanolog", f"{GRPC} --no-p4 --nanolog tcp://127.0.0.1:PORT", ("port",)),
    ("--metrics-addr", f"{GRPC} --no-p4 --metrics-addr 127.0.0.1:PORT", ("port",)),
    ("--thrift-port", f"{GRPC} --no-p4 --thrift-port PORT", ("port",)),
    ("--thrift-addr", f"{GRPC} --no-p4 --thrift-addr 203.0.113.9 --thrift-port PORT", ("elsewhere",)),
    ("--interface", f"{GRPC} --no-p4 --interface 1@NAME", INTERFACE),
]
SWITCH_OTHERS = """
    --no-p4 --device-id --workers --spin --engine --socket-mode --cpu-port --drop-port --priority-queues --queue-frames
    --recirculations --ring-frames --receive --port-rate --impair --seed --trace --trace-format --log-console
    --log-file-max-size --log-file-max-files --log-level --dump-packet-data --completions --version --json-version --help
    --grpc-server-ssl --grpc-server-with-client-auth --lossless --lossless-map --link-rate --link-delay --response-time
    --frame-max --pfc-thresholds --buffer-bytes --pause-frames --pause-quanta --watchdog --scheduler --ecn-threshold
    --enable-swap --disable-swap --log-flush --debugger --debugger-addr --max-port-count --max-mc-groups
    --max-l1-entries --max-l2-entries --load-modules
"""
"""Options that name no place."""

AT = "--interface f0 --socket HERE/agent --state-dir HERE --controller unix:HERE/controller"
AGENT: list[Case] = [
    ("--fabric", "--fabric PATH", READ),
    ("--socket", AT.replace("HERE/agent", "PATH"), ("directory", "denied", "long", "used")),
    ("--state-dir", AT.replace("--state-dir HERE", "--state-dir PATH"), ("file", "denied", "long")),
    ("--controller", AT.replace("HERE/controller", "PATH"), ("missing", "directory", "denied", "long")),
    ("--controller", AT.replace("unix:HERE/controller", "127.0.0.1:19"), ("nobody",)),
    ("--interface", AT.replace("f0", "NAME"), INTERFACE),
]
AGENT_OTHERS = """
    --workers --socket-mode --name --host-id --no-transit --mtu --buffer-mib --receiver-wait --receiver-stall
    --coalesce-us --completions --log-level --help --version
"""

WHY = {
    "missing": "No such file or directory|there is no directory",
    "directory": "[Ii]s a directory|it is a directory|is no socket|is not a socket|Connection refused",
    "file": "Not a directory",
    "denied": "Permission denied",
    "long": "File name too long|bytes; at most [0-9]+|[0-9]+ bytes|no network interface|not a name",
    "used": "another process listens|another agent",
    "port": "Address already in use",
    "elsewhere": "Cannot assign requested address",
    "nobody": "Connection refused",
    "unknown": "there is no interface|no network interface",
}


def switch_binary() -> str:
    binary = targets()[0].binary
    if binary is None:
        pytest.skip("wormcast-switch is not built; `make build`, or set WORMCAST_SWITCH")
    return binary


def the_agent() -> str:
    binary = agent_binary()
    if binary is None:
        pytest.skip("wormcast-agent is not built; `make build`, or set WORMCAST_AGENT")
    return binary


def test_every_option_says_what_it_names() -> None:
    for program, named, others in (
        (switch_binary(), SWITCH, SWITCH_OTHERS),
        (the_agent(), AGENT, AGENT_OTHERS),
    ):
        shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        options = set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z0-9-]*)", shown, re.MULTILINE))
        assert options == ({case[0] for case in named} - {"JSON"}) | set(others.split()), program


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """By what is wrong with it, what stands for PATH, NAME or PORT."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    folder = tmp_path_factory.mktemp("p")
    (folder / "file").write_text("{}")
    denied = folder / "denied"
    denied.mkdir()
    (denied / "it").write_text("{}")
    for path in (denied / "it", denied):
        path.chmod(0o700)
        os.chown(path, 65534, 65534)
    with socket.socket(socket.AF_UNIX) as used, socket.create_server(("127.0.0.1", 0)) as port:
        used.bind(str(folder / "used"))
        used.listen()
        yield {
            "missing": str(folder / "nowhere" / "it"),
            "directory": str(folder),
            "file": str(folder / "file" / "it"),
            "denied": str(denied / "it"),
            "long": str(folder / ("x" * 300)),
            "used": str(folder / "used"),
            "port": str(port.getsockname()[1]),
            "elsewhere": "9090",
            "nobody": "127.0.0.1:19",
            "unknown": "nosuch0",
        }


def _every(named: list[Case]) -> list[tuple[str, str, str]]:
    return [(option, arguments, wrong) for option, arguments, wrongs in named for wrong in wrongs]


@pytest.mark.parametrize(("option", "arguments", "wrong"), _every(SWITCH))
def test_the_switch_says_what_it_cannot_use(
    places: dict[str, str], tmp_path: Path, option: str, arguments: str, wrong: str
) -> None:
    said = _said(switch_binary(), arguments, places[wrong], wrong, tmp_path)
    assert option in said or option in ("JSON", "--interface", "--use-files"), said


@pytest.mark.parametrize(("arguments", "wrong"), [case[1:] for case in _every(AGENT)])
def test_the_agent_says_what_it_cannot_use(
    places: dict[str, str], tmp_path: Path, arguments: str, wrong: str
) -> None:
    _said(the_agent(), arguments, places[wrong], wrong, tmp_path)


def _said(program: str, arguments: str, value: str, wrong: str, here: Path) -> str:
    """What it says once it has named what is wrong, and why, in words. Some go on: they may find it later."""
    if "pem" in arguments:
        key = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
        subprocess.run(f"{key} -keyout k.pem -out c.pem".split(), capture_output=True, check=True, cwd=here)
    words = [re.sub("PATH|NAME|PORT", value, word).replace("HERE", str(here)) for word in arguments.split()]
    command = [*(WITHOUT_RIGHTS if wrong == "denied" else []), program, *words]
    if wrong not in ("port", "elsewhere"):
        command = ["unshare", "--net", "sh", "-c", LINK, "sh", *command]
    log = here / "said"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output, cwd=here)
    try:
        deadline = time.monotonic() + LIMIT_S
        while not re.search(WHY[wrong], log.read_text()) and process.poll() is None:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
    finally:
        process.terminate()
        process.wait()
    said = log.read_text()
    assert re.search(WHY[wrong], said), said
    assert value in said or value[:50] in said, said
    assert not re.search(r"os error|Errno|panicked|[A-Z][a-zA-Z]+\(|Traceback", said), said
    return said
