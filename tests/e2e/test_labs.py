"""Every lab, run for real and in short: what one should see is seen, and what is wrong is named."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from labs.pfc import install
from labs.shell import PYTHON as SHELL_PYTHON
from labs.typed import MininetScript
from test_run import outside

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = str(ROOT / "tests" / "python")
sys.path[:0] = [path for path in (TESTS,) if path not in sys.path]

from document_lab.pages import console  # noqa: E402

RUN = [str(ROOT / "switch" / "labs" / "run")]
LABS = ("queues", "pfc", "registers", "exercises")
SECONDS_MAX = 600.0
"""Only against hanging for ever."""

needs_shell = pytest.mark.skipif(
    not SHELL_PYTHON.is_file(),
    reason="p4runtime-shell is not installed in .build/p4runtime-shell (setup/peer)",
)


OLD_TOPOLOGY = """\
#!/usr/bin/python
from mininet.cli import CLI
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.topo import Topo
from stratum import StratumBmv2Switch


class Pair(Topo):
    def __init__(self, *args, **kwargs):
        Topo.__init__(self, *args, **kwargs)
        for name in 'leaf7', 'leaf8':
            self.addSwitch(name, cls=StratumBmv2Switch, cpuport=255)
        for number in 1, 2:
            host = self.addHost('h%d' % number, mac='02:00:00:00:00:0%d' % number, ip='10.0.0.%d/24' % number)
            self.addLink(host, 'leaf7')


setLogLevel('info')
net = Mininet(topo=Pair(), controller=None)
net.start()
CLI(net)
net.stop()
print '#' * 20
print 'stopped'
"""
"""As a topology file of ngsdn-tutorial is written: for Python 2."""


def clone(variable: str, what: str) -> Path:
    """Somebody's clone of a repository that is not ours, where there is one."""
    path = os.environ.get(variable)
    if path is None:
        pytest.skip(f"{variable} names no clone of {what}")
    return Path(path)


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *words], cwd=cwd, env=outside(), capture_output=True, text=True, timeout=SECONDS_MAX
    )


def report(*words: str, cwd: Path) -> dict[str, Any]:
    """The report of a lab that has seen what it should."""
    done = run(*words, "--json", "--out", str(cwd / "out"), cwd=cwd)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["seen_as_expected"] is True
    assert [sight["seen"] for sight in found["sights"] if sight["holds"] is False] == []
    assert json.loads((cwd / "out" / "report.json").read_text()) == found
    assert len(found["pictures"]) == 1
    for picture in found["pictures"]:
        text = Path(picture).read_text()
        assert ET.fromstring(text).tag.endswith("svg")
        assert str(ROOT) not in text, "a picture does not tell where it was made"
    return found


def documented(lab: str) -> list[str]:
    """What the page of the labs says to type for one, after `switch/labs/run`."""
    (words,) = [
        line.split()[1:] for line in console("docs/labs.md", lab) if line.startswith("switch/labs/run ")
    ]
    return words


def seen(found: dict[str, Any], words: str) -> dict[str, Any]:
    """The one sight whose expectation has these words."""
    (sight,) = (sight for sight in found["sights"] if words in sight["expected"])
    return dict(sight)


def test_labs_are_listed_and_others_refused(tmp_path: Path) -> None:
    listed = run(cwd=tmp_path)
    assert listed.returncode == 0
    assert all(f"  {lab} " in listed.stdout for lab in LABS)
    for lab in LABS:
        told = run(lab, "--help", cwd=tmp_path)
        assert told.returncode == 0
        assert "--out" in told.stdout
    wrong = run("queue", "--json", cwd=tmp_path)
    assert wrong.returncode == 2
    error = json.loads(wrong.stderr)["error"]
    assert error["value"] == "queue"
    assert error["choices"] == list(LABS)
    assert not (tmp_path / "out").exists()


def test_make_runs_a_lab() -> None:
    """The lab itself is run below."""
    for line in console("docs/labs.md", "Labs"):
        words = line.split()
        if words[0] == "switch/labs/run":
            assert words[1:] == documented(words[1])
        elif words[0] == "make":
            told = subprocess.run(
                ["make", "-n", *words[1:]], cwd=ROOT, env=outside(), capture_output=True, text=True
            )
            assert told.stdout.splitlines()[-1] == f"switch/labs/run {words[-1].removeprefix('LAB=')}", (
                told.stderr
            )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("queues", "--rate", "4"), "kbit, mbit, gbit"),
        (("queues", "--rate", "10gbit"), "frames a second"),
        (("pfc", "--switches", "2"), "3<=x<=16"),
        (("pfc", "--rate", "fast"), "kbit, mbit, gbit"),
        (("exercises",), "--tutorials"),
        (("exercises", "--ngsdn", ".", "--program", "x.json"), "--p4info"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, words: tuple[str, ...], named: str) -> None:
    done = run(*words, "--json", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert named in json.loads(done.stderr)["error"]["message"]


def test_queues_behave_like_links(tmp_path: Path) -> None:
    """Live, nothing that a busy machine can change decides; tests/python/test_labs_fluid.py decides on virtual time."""
    found = report(*documented("queues"), cwd=tmp_path)
    live = found["figures"]["live"]
    assert live["bulk"]["dropped"] > 0
    assert live["urgent"]["received"] > 1_000
    for priority in ("urgent", "bulk"):
        assert set(live[priority]["deviation"]) == {"rate", "depth", "delay", "loss"}


def test_a_storm_and_a_deadlock_are_named(tmp_path: Path) -> None:
    found = report(*documented("pfc"), "--switches", "3", "--seconds", "1", cwd=tmp_path)
    assert "port 1 priority 3" in seen(found, "the watchdog names")["seen"]
    ring = seen(found, "names a deadlock")["seen"]
    assert all(f"switch {at} port 1 priority 3" in ring for at in range(3))
    assert "switch 3" not in ring
    assert found["figures"]["legal"]["received"] > 100


@needs_shell
def test_registers_are_read_and_written(tmp_path: Path) -> None:
    found = report(*documented("registers"), "--seed", "7", cwd=tmp_path)
    others = report("registers", "--seed", "8", cwd=tmp_path)
    assert found["figures"]["cells"] != others["figures"]["cells"]
    transcript = (tmp_path / "out" / "transcript.txt").read_text()
    assert others["figures"]["cells"]["1"] in transcript
    assert "OUT_OF_RANGE" in transcript


def test_a_clone_that_is_none_is_named(tmp_path: Path) -> None:
    for option, what in (("--tutorials", "run_exercise.py"), ("--ngsdn", "docker-compose.yml")):
        done = run("exercises", option, str(tmp_path), "--json", cwd=tmp_path)
        assert done.returncode == 1
        assert what in json.loads(done.stderr.splitlines()[-1])["error"]["message"]


def test_a_topology_for_stratum_and_python_2_runs(tmp_path: Path) -> None:
    script = tmp_path / "topo.py"
    script.write_text(OLD_TOPOLOGY)
    mininet = MininetScript(
        [str(ROOT / "switch/labs/ngsdn/python"), str(script)], tmp_path, {"STRATUM_TMP": str(tmp_path)}
    )
    try:
        assert "leaf7 wormcast-switch @ 50001" in mininet.transcript
        assert "leaf8 wormcast-switch @ 50002" in mininet.transcript
        for host, other in ((1, 2), (2, 1)):
            mininet.type(
                f"h{host} ip neigh replace 10.0.0.{other} lladdr 02:00:00:00:00:0{other} dev h{host}-eth0"
            )
        asyncio.run(install("127.0.0.1:50001", {1: {1: 1, 2: 2}}))
        assert " 0% packet loss" in mininet.type("h1 ping -c 2 h2")
        (device,) = json.loads((tmp_path / "leaf7" / "onos-netcfg.json").read_text())["devices"].values()
        assert device["basic"]["managementAddress"].endswith(":50001?device_id=1")
        assert {port: of["name"] for port, of in device["ports"].items()} == {
            "1": "leaf7-eth1",
            "2": "leaf7-eth2",
        }
        assert (tmp_path / "leaf7" / "grpc-port.txt").read_text() == "50001"
        assert (tmp_path / "leaf8" / "stratum_bmv2.log").is_file()
        assert mininet.close("exit\n") == 0
    finally:
        mininet.kill()
    assert mininet.transcript.endswith(f"{'#' * 20}\nstopped\n")
    assert not list(Path("/sys/class/net").glob("leaf7-*")), "its interfaces are gone"


@needs_shell
def test_ngsdn_runs_with_one_line_changed(tmp_path: Path) -> None:
    path = clone("WORMCAST_NGSDN", "opennetworkinglab/ngsdn-tutorial")
    found = report("exercises", "--ngsdn", str(path), cwd=tmp_path)
    assert len(found["figures"]["difference"].splitlines()) == 5, (
        "two names, a place, a line less, a line more"
    )
    assert "leaf1 @ 50001" in seen(found, "four switches")["seen"]


def test_an_exercise_of_the_tutorials_runs_with_one_line_changed(tmp_path: Path) -> None:
    path = clone("WORMCAST_TUTORIALS", "p4lang/tutorials")
    python = os.environ.get("WORMCAST_TUTORIALS_PYTHON", "python3")
    compiled = os.environ.get("WORMCAST_TUTORIALS_BASIC")
    given = (
        []
        if compiled is None
        else ["--program", f"{compiled}/basic.json", "--p4info", f"{compiled}/p4info.txt"]
    )
    done = run(
        "exercises",
        "--tutorials",
        str(path),
        "--python",
        python,
        "--solution",
        *given,
        "--json",
        cwd=tmp_path,
    )
    if done.returncode == 1 and "this machine has not" in done.stderr:
        pytest.skip(json.loads(done.stderr.splitlines()[-1])["error"]["message"])
    assert done.returncode == 0, done.stderr[-4000:]
    assert seen(json.loads(done.stdout), "pingall")["seen"] == "0% dropped"
