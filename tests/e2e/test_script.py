"""`wormcast.mininet` in Mininet scripts as users write them, each in namespaces of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS_MAX = 600.0
"""Only against hanging for ever."""
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
ROOMS = "mount -t sysfs sysfs /sys && ip link set lo up"


def run(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as root does from a shell, in a machine of its own; nothing of it is left in /tmp or running."""
    file = directory / "script.py"
    file.write_text(script)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WORMCAST_")}
    after = 'ls "$TMPDIR" | sed "s/^/left: /"; pgrep -a wormcast | sed "s/^/left: /"'
    command = f'{ROOMS} || exit 99; "$0" "$1"; code=$?; {after}; exit $code'
    # Paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="wc-") as temporary:
        return subprocess.run(
            [*NAMESPACES, "bash", "-c", command, sys.executable, str(file)],
            cwd=directory,
            env={**environment, "TMPDIR": temporary},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )


def readers_script() -> str:
    """The Mininet script that a reader of docs/install.md runs."""
    page = (ROOT / "docs" / "install.md").read_text()
    (script,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(script)


def test_the_script_in_the_documents_makes_a_group(tmp_path: Path) -> None:
    done = run(readers_script(), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "group 0 (group-0): switch" in done.stdout
    assert "left:" not in done.stdout


def test_a_file_goes_through_a_topology_of_ones_own(tmp_path: Path) -> None:
    """Two switches, three hosts, plain IP between the processes of Mininet untouched; names as the script has them."""
    done = run(
        """
import pathlib
from mininet.net import Mininet
from mininet.topo import Topo
from wormcast.mininet import WormcastController, WormcastHost, WormcastSwitch

class Mine(Topo):
    def build(self):
        left, right = self.addSwitch("left7"), self.addSwitch("right", id=12)
        for name, switch in (("alice", left), ("bob", left), ("carol", right)):
            self.addLink(self.addHost(name), switch)
        self.addLink(left, right)

net = Mininet(Mine(), switch=WormcastSwitch, host=WormcastHost, controller=WormcastController, waitConnected=True)
net.start()
alice, carol = net["alice"], net["carol"]
print(alice.cmd("wormcast group create --scheme tree alice bob carol"))
pathlib.Path("data").write_bytes(bytes(range(256)) * 4096)
for name in ("bob", "carol"):
    pathlib.Path(name).mkdir()
receivers = [net[name].popen(f"wormcast recv --group 0 --output {name} --count 1") for name in ("bob", "carol")]
print(alice.cmd("wormcast send data --group 0 2>/dev/null; echo sent $?"))
print("received", [receiver.wait() for receiver in receivers])
print("same", [pathlib.Path(name, "data").read_bytes() == pathlib.Path("data").read_bytes() for name in ("bob", "carol")])
net.stop()
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sent 0" in done.stdout
    assert "received [0, 0]" in done.stdout
    assert "same [True, True]" in done.stdout
    assert "left:" not in done.stdout


def test_a_program_of_ones_own_runs_without_a_controller(tmp_path: Path) -> None:
    """The program sends every frame to port 1. Ports, logs and further options are those that the script names."""
    done = run(
        f"""
import pathlib
import socket
from mininet.net import Mininet
from mininet.topo import Topo
from wormcast.mininet import WormcastHost, WormcastSwitch

class Pair(Topo):
    def build(self):
        switch = self.addSwitch(
            "s1", program={str(ROOT / "switch/tests/programs/meters.json")!r}, cpu_port=64, drop_port=63,
            grpc_port=50999, thrift_port=9990, log_level="info", log_file="s1.txt", arguments=("--pcap=.",),
        )
        for name in ("h1", "h2"):
            self.addLink(self.addHost(name), switch)

net = Mininet(Pair(), switch=WormcastSwitch, host=WormcastHost, controller=None, waitConnected=True)
net.start()
came = lambda host: int(net[host].cmd(f"cat /sys/class/net/{{host}}-eth0/statistics/rx_packets"))
while came("h1") == 0:
    net["h2"].cmd("ping -c 1 -W 1 10.0.0.77")  # asks by ARP who that is
print("came", came("h1") > 0)
socket.create_connection(("127.0.0.1", 9990)).close()
print("at", net["s1"].address)
words = pathlib.Path(f"/proc/{{net['s1'].process.pid}}/cmdline").read_text().split(chr(0))
print("ports", words[words.index("--cpu-port") + 1], words[words.index("--drop-port") + 1])
net.stop()
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "came True" in done.stdout
    assert "at 127.0.0.1:50999" in done.stdout
    assert "ports 64 63" in done.stdout
    assert (tmp_path / "s1.txt").stat().st_size > 0
    assert (tmp_path / "s1-eth1_out.pcap").stat().st_size > 0


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "from wormcast.mininet import WormcastSwitch; WormcastSwitch('core')",
            "switch name 'core' does not end in a number up to 1023; give it an id, as in id=3",
        ),
        (
            "from wormcast.mininet import WormcastSwitch; WormcastSwitch('s1', cpu_port=512)",
            "cpu_port 512 is not from 0 to 511",
        ),
        (
            "from mininet.net import Mininet\n"
            "from mininet.topo import SingleSwitchTopo\n"
            "from wormcast.mininet import WormcastController, WormcastSwitch\n"
            "def switch(name, **params):\n"
            "    return WormcastSwitch(name, cpu_port=64, **params)\n"
            "Mininet(SingleSwitchTopo(1), switch=switch, controller=WormcastController).start()",
            "s1: cpu_port 64 is for programs of your own: a WormcastController's has 510",
        ),
        ("from wormcast.mininet import WormcastRouter", "cannot import name 'WormcastRouter'"),
    ],
)
def test_wrong_use_is_named(tmp_path: Path, script: str, said: str) -> None:
    done = run(script, tmp_path)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_switch_that_cannot_start_is_named_with_its_log(tmp_path: Path) -> None:
    done = run(
        """
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from wormcast.mininet import WormcastController, WormcastHost, WormcastSwitch

def switch(name, **params):
    return WormcastSwitch(name, arguments=("--no-such-option",), **params)

net = Mininet(SingleSwitchTopo(2), switch=switch, host=WormcastHost, controller=WormcastController, waitConnected=True)
net.start()
""",
        tmp_path,
    )
    assert done.returncode == 1
    assert "*** s1 has ended" in done.stderr
    assert "Traceback" not in done.stderr
    assert "--no-such-option" in done.stderr
    assert "left:" not in done.stdout
