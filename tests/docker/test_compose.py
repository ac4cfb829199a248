"""docker-compose.yml as users use it: built, brought up, used and taken down."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy
import httpx
import pytest
from composing import P4RUNTIME_PORTS, REST_PORT, ROOT, SECONDS_MAX, Compose, at_a_terminal, compose_commands
from document_lab.pages import console

PROFILES = ["demo", "test", "lab", "bmv2", "onos"]


def links() -> set[str]:
    """Network interfaces of this machine but those of Docker's own bridges."""
    names = [path.name for path in Path("/sys/class/net").iterdir()]
    return {name for name in names if name != "docker0" and not name.startswith("br-")}


@pytest.fixture(
    scope="module", params=compose_commands() or [["docker", "compose"]], ids=lambda words: " ".join(words)
)
def compose(request: pytest.FixtureRequest, base: str) -> Iterator[Compose]:
    """Each version of Compose that is here, with the fabric up."""
    made = Compose(request.param, base)
    before = links()
    try:
        made("build", "fabric")
        made("up", "-d", "--no-build", TOPOLOGY="torus:3", RATE="50")
        yield made
    finally:
        began = time.monotonic()
        made("down", "--volumes", fine=False)
        print(f"taken down in {time.monotonic() - began:.1f} s")
    deadline = time.monotonic() + SECONDS_MAX
    while links() - before:  # the kernel removes the links of a namespace that has ended when it comes to it
        assert time.monotonic() < deadline, links() - before
        time.sleep(0.2)


def health(compose: Compose) -> dict[str, Any]:
    """What Docker knows of the fabric's health."""
    container = compose("ps", "-q", "fabric").stdout.strip()
    asked = subprocess.run(["docker", "inspect", container], check=True, capture_output=True, text=True)
    state: dict[str, Any] = json.loads(asked.stdout)[0]["State"]["Health"]
    return state


def test_the_fabric_is_up_and_says_what_to_type(compose: Compose) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while health(compose)["Status"] != "healthy":
        assert time.monotonic() < deadline, health(compose)
        time.sleep(0.5)
    assert "9 switches and 9 hosts are up" in health(compose)["Log"][-1]["Output"]
    log = compose("logs", "--no-color", "fabric").stdout.strip().splitlines()
    assert "docker compose exec fabric on h0 wormcast status" in log[-1]
    assert f"P4Runtime of the switches at 127.0.0.1, ports {P4RUNTIME_PORTS}" in log[-2]
    assert f"REST at http://127.0.0.1:{REST_PORT}/v1" in log[-3]
    assert json.loads(compose.on("h4", "wormcast", "status", "--json"))["host"] == 4
    assert "h7-eth0" in compose.on("h7", "ip", "-br", "link")


def test_a_file_goes_to_all_members(compose: Compose) -> None:
    compose.on("h0", "wormcast", "group", "create", "--scheme", "switch", "0", "4", "8")
    receive = "mkdir -p /tmp/$0 && wormcast recv --group 0 --output /tmp/$0 --count 1"
    receivers = [
        subprocess.Popen(
            [*compose.command, "exec", "-T", "fabric", "on", host, "sh", "-c", receive, host],
            cwd=ROOT,
            env={**os.environ, **compose.settings},
            stdin=subprocess.DEVNULL,
        )
        for host in ("h4", "h8")
    ]
    # The user's own: commands start where docker-compose.yml is.
    compose.on("h0", "wormcast", "send", "README.md", "--group", "0")
    assert [receiver.wait(SECONDS_MAX) for receiver in receivers] == [0, 0]
    for host in ("h4", "h8"):
        assert compose.on("h0", "cat", f"/tmp/{host}/README.md") == (ROOT / "README.md").read_text()


@pytest.mark.usefixtures("compose")
def test_rest_and_p4runtime_are_reached_from_the_machine() -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{REST_PORT}/v1", timeout=600) as client:
        assert len(client.get("hosts").json()["hosts"]) == 9

    async def entries() -> int:
        options = finsy.SwitchOptions(device_id=2, initial_election_id=1)
        async with finsy.Switch("mine", "127.0.0.1:15053", options) as switch:
            return len([entry async for entry in switch.read(finsy.P4TableEntry())])

    assert asyncio.run(entries()) > 0


def test_health_is_not_said_of_a_fabric_that_lacks_something(compose: Compose) -> None:
    """A host whose agent ended is down, and health says which."""
    compose("exec", "-T", "fabric", "pkill", "-KILL", "-f", "interface h5-eth0")
    deadline = time.monotonic() + SECONDS_MAX
    while (asked := compose("exec", "-T", "fabric", "healthy", fine=False)).returncode == 0:
        assert time.monotonic() < deadline, asked.stdout
        time.sleep(0.5)
    assert "not up: host 5" in asked.stderr


def test_a_taken_port_is_named(compose: Compose) -> None:
    second = Compose(compose.command, compose.settings["BASE"])
    second.settings["COMPOSE_PROJECT_NAME"] += "-second"
    try:
        refused = second("up", "-d", "--no-build", fine=False)
        assert refused.returncode != 0
        assert re.search(
            rf"127\.0\.0\.1:({REST_PORT}|150\d\d).* port is already allocated", refused.stderr
        ), refused.stderr
    finally:
        second("down", "--volumes", fine=False)


def test_the_demo_writes_its_report_into_the_folder(compose: Compose) -> None:
    out = ROOT / "out" / "compose-demo"
    shutil.rmtree(out, ignore_errors=True)
    settings = {
        "TOPOLOGY": "line:3",
        "FILE": "README.md",
        "SCHEMES": "tree,switch",
        "OUT": "out/compose-demo",
        "MTU": "9000",
    }
    try:
        done = compose("run", "--rm", "-T", "demo", **settings)
        assert "3 P4 switches" in done.stdout
        report = json.loads((out / "report.json").read_text())
        assert [scheme["scheme"] for scheme in report["schemes"]] == ["tree", "switch"]
        assert (report["file_bytes"], report["mtu_bytes"]) == ((ROOT / "README.md").stat().st_size, 9000)
        assert (out / "groups.png").stat().st_size > 10_000
    finally:
        shutil.rmtree(out, ignore_errors=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"TOPOLOGY": "donut:4"}, "donut"),
        ({"RATE": "fast"}, "rate 'fast' is not a number of Mb/s from 0.1 to 100000, and not none"),
        ({"SCHEMES": "pigeon"}, "scheme pigeon is not one of: "),
        ({"SWITCH": "bmv2"}, "simple_switch_grpc is not installed"),
        (
            {"FILE": "/no/such/file"},
            "there is no file FILE=/no/such/file in the folder of docker-compose.yml",
        ),
    ],
)
def test_wrong_settings_are_one_clear_line(compose: Compose, settings: dict[str, str], said: str) -> None:
    done = compose("run", "--rm", "-T", "demo", fine=False, **settings)
    assert done.returncode == 2, done.stdout + done.stderr
    text = " ".join((done.stdout + done.stderr).split())
    assert said in text
    assert "Traceback" not in text


@pytest.mark.usefixtures("compose")
def test_a_missing_capability_is_named() -> None:
    bare = subprocess.run(
        ["docker", "run", "--rm", "wormcast", "start", "fabric"], capture_output=True, text=True
    )
    assert bare.returncode == 2
    assert bare.stderr.startswith("start: this container lacks CAP_NET_ADMIN CAP_SYS_ADMIN; see cap_add")


def test_every_profile_is_valid(compose: Compose) -> None:
    """What needs images from elsewhere, bmv2 and onos, is checked no further than this."""
    profiles = [word for profile in PROFILES for word in ("--profile", profile)]
    services = compose(*profiles, "config", "--services").stdout.split()
    assert {"fabric", "demo", "test", "lab", "fabric-bmv2", "onos", "join-onos"} == set(services)


def test_a_program_is_bundled_with_its_libraries(base: str) -> None:
    """As simple_switch_grpc is, for the profile bmv2: it then runs without those of the system."""
    volume = f"{ROOT}/packaging/docker/bundle:/usr/local/bin/bundle:ro"
    script = "bundle bash /opt/bundle && rm /lib/*-linux-gnu/libtinfo* && /opt/bundle/run -c 'echo it runs'"
    done = subprocess.run(
        ["docker", "run", "--rm", "-v", volume, base, "sh", "-c", script], capture_output=True, text=True
    )
    assert done.stdout == "it runs\n", done.stderr


LABS = ("queues", "pfc", "registers")
SHORT = {"SIZE": "256KiB", "SCHEMES": "tree,switch", "OUT": "out/compose-demo"}
"""The demo of the documents takes a minute."""
SOME_TESTS = [".venv/bin/pytest", "-q", "tests/python/test_one_home.py"]
"""All take the time of `make test`."""


def test_what_the_documents_say_is_typed(compose: Compose, tmp_path: Path) -> None:
    """Word for word, at a terminal; the first command in one of its own, where it stays."""
    reader = Compose(compose.command, compose.settings["BASE"])
    reader.settings |= {
        "COMPOSE_PROJECT_NAME": f"wormcast-reader-{os.getpid()}",
        "REST_PORT": str(REST_PORT + 1),
        "P4RUNTIME_PORTS": "15151-15166",
        **SHORT,
    }
    environment = {**os.environ, **reader.settings, "TERM": "xterm"}
    readme, install = console("README.md", "With Docker"), console("docs/install.md", "Docker")
    assert (readme[0], install[0]) == ("docker compose up", "docker compose up")
    assert (readme[-1], install[-1]) == ("docker compose down", "docker compose down")
    labs = [
        line
        for lab in ("Labs", *LABS)
        for line in console("docs/labs.md", lab)
        if line.startswith("docker compose ")
    ]
    answers = {
        "docker compose exec fabric on h0 wormcast status": "host 0",
        "docker compose exec fabric on h0": "h0-eth0",
        "docker compose run --rm demo": "report: ",
        "docker compose run --rm lab": "switch/labs/run",
        "docker compose run --rm test": " passed",
        **{f"docker compose run --rm lab {lab}": "report.json" for lab in LABS},
    }
    lines = dict.fromkeys([*install[1:-1], *readme[1:-1], *labs])
    assert set(lines) == set(answers)
    compose("build", "lab")
    log = tmp_path / "up"
    try:
        with log.open("wb") as out:
            up = subprocess.Popen(
                [*reader.command, "up"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        deadline = time.monotonic() + SECONDS_MAX
        while "docker compose exec fabric on h0 wormcast status" not in log.read_text(errors="replace"):
            assert up.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.2)
        for line in lines:
            words = [*reader.command, *line.split()[2:]]
            more = SOME_TESTS if line.endswith(" test") else []
            typed = "ip -brief link\nexit\n" if line.endswith(" h0") else ""
            printed = at_a_terminal([*words, *more], environment, typed)
            assert answers[line] in printed, f"{line}\n{printed[-4000:]}"
        reader(*install[-1].split()[2:])
        assert up.wait(SECONDS_MAX) is not None
    finally:
        reader("down", "--volumes", fine=False)
        for made in ("compose-demo", *(f"labs/{lab}" for lab in LABS)):
            shutil.rmtree(ROOT / "out" / made, ignore_errors=True)
