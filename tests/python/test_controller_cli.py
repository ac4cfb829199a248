"""The command line as a user runs it: a controller process, commands against it, what is said when things are wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import httpx
import pytest

START_SECONDS_MAX = 600.0
HELP_LOADS = {f"wormcast{name}" for name in ("", ".cli", ".cli.start", ".cli.main", ".cli.refusal", ".exits")}
"""Modules of ours, and no package of others but click: what makes it quick. bench/cli measures how quick."""
ONE_SWITCH = '{"switches": [{"id": 0, "address": "a:1", "ports": 3}], "hosts": [%s]}'


@dataclass
class Shell:
    """Runs `wormcast` in a directory of its own."""

    directory: Path

    @property
    def api(self) -> str:
        return f"unix:{self.directory}/rest.sock"

    def run(
        self, *arguments: str, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One command; the controller's address is in the environment."""
        return subprocess.run(
            [sys.executable, "-m", "wormcast.cli.main", *arguments],
            cwd=self.directory,
            env={**os.environ, "WORMCAST_API": self.api, "COLUMNS": "120", **(environment or {})},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def start_controller(self, *arguments: str) -> subprocess.Popen[str]:
        """A controller that listens here."""
        addresses = ["--agents", f"unix:{self.directory}/agents.sock", "--listen", self.api]
        return subprocess.Popen(
            [sys.executable, "-m", "wormcast.cli.main", "controller", "run", *addresses, *arguments],
            cwd=self.directory,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A controller with one switch that does not answer, and two declared hosts; for all tests of this file."""
    shell = Shell(tmp_path_factory.mktemp("cli"))
    switches = {
        "switches": [{"id": 0, "address": "127.0.0.1:39999", "device_id": 0, "ports": 4}],
        "hosts": [{"name": "h0", "switch": 0, "port": 0}],
    }
    (shell.directory / "switches.json").write_text(json.dumps(switches))
    controller = shell.start_controller("--switches", "switches.json", "--state", "state.db")
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while shell.run("topo", "show", "--json").returncode != 0:
            assert time.monotonic() < deadline, "the controller does not answer"
            assert controller.poll() is None
        made = shell.run("host", "declare", "h1", "--switch", "0", "--port", "1")
        assert made.returncode == 0, made.stderr
        yield shell
    finally:
        controller.send_signal(signal.SIGTERM)
        assert controller.wait(timeout=600) == 0
        assert controller.stderr is not None
        assert "Traceback" not in controller.stderr.read()


def test_groups_over_the_command_line(fabric: Shell) -> None:
    made = fabric.run("group", "create", "h0", "1", "--scheme", "switch", "--class-d", "239.0.0.5", "--json")
    assert json.loads(made.stdout)["id"] == 5, made.stderr
    assert "group 5 (group-5): switch, class D 239.0.0.5" in fabric.run("group", "show", "5").stdout
    listed = fabric.run("group", "list").stdout
    assert "group-5" in listed
    assert "0 1" in listed
    assert fabric.run("group", "remove", "5", "h0", "h9").returncode == 2
    assert json.loads(fabric.run("group", "remove", "group-5", "h0", "--json").stdout)["members"] == [1]
    assert json.loads(fabric.run("group", "add", "5", "h0", "--json").stdout)["members"] == [0, 1]
    assert [
        e["kind"] for e in map(json.loads, fabric.run("events", "--no-follow", "--json").stdout.splitlines())
    ][-3:] == ["group_created", "group_changed", "group_changed"]
    assert fabric.run("group", "delete", "5").stdout == "group 5 is deleted\n"
    assert json.loads(fabric.run("group", "list", "--json").stdout) == {"groups": []}


def test_the_rate_of_a_group_is_set_and_lifted(fabric: Shell) -> None:
    made = fabric.run("group", "create", "h0", "h1", "--name", "slow", "--rate", "20M")
    assert "k-binomial, at most 20 Mb/s a host, epoch" in made.stdout, made.stderr
    assert "at most 500 kb/s a host" in fabric.run("group", "set", "slow", "--rate", "500k").stdout
    lifted = fabric.run("group", "set", "slow", "--any-rate", "--json")
    assert json.loads(lifted.stdout)["parameters"]["rate_bits"] == 0
    assert "at most" not in fabric.run("group", "show", "slow").stdout
    for given in ([], ["--any-rate", "--rate", "1M"]):
        assert "give either --rate or --any-rate" in fabric.run("group", "set", "slow", *given).stderr
    assert fabric.run("group", "delete", "slow").returncode == 0


def test_several_groups_are_deleted_together_or_not_at_all(fabric: Shell) -> None:
    for name in ("red", "green", "blue"):
        assert fabric.run("group", "create", "h0", "h1", "--name", name).returncode == 0
    refused = fabric.run("group", "delete", "red", "nope", "blue", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stderr)["error"]["code"] == "not-found"
    listed = json.loads(fabric.run("group", "list", "--json").stdout)
    assert {"red", "green", "blue"} <= {group["name"] for group in listed["groups"]}
    done = fabric.run("group", "delete", "red", "green", "blue")
    assert done.stdout == "group red is deleted\ngroup green is deleted\ngroup blue is deleted\n", done.stderr
    listed = json.loads(fabric.run("group", "list", "--json").stdout)
    assert not {"red", "green", "blue"} & {group["name"] for group in listed["groups"]}


def test_what_the_command_line_leaves_out_rest_does_too(fabric: Shell) -> None:
    """Defaults of the command line are those of REST."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=f"{fabric.directory}/rest.sock")) as rest:
        over_rest = rest.post("http://controller/v1/groups", json={"members": [0, 1]})
        assert over_rest.status_code == 201, over_rest.text
    by_hand = json.loads(fabric.run("group", "create", "0", "1", "--json").stdout)
    for own in ("scheme", "parameters", "class_d", "members"):
        assert over_rest.json()[own] == by_hand[own]
    names = [over_rest.json()["name"], by_hand["name"]]
    assert fabric.run("group", "delete", *names).returncode == 0


def test_events_are_followed_as_they_happen(fabric: Shell) -> None:
    command = [
        sys.executable,
        "-m",
        "wormcast.cli.main",
        "events",
        "--json",
        "--api",
        fabric.api,
        "--after",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        try:
            assert watcher.stdout is not None
            events = (json.loads(line) for line in watcher.stdout)
            hosts = (event for event in events if event["kind"] == "host")
            assert [next(hosts)["name"] for _ in range(2)] == ["h0", "h1"]
            for _ in range(2):
                fabric.run("host", "declare", "x2", "--switch", "0", "--port", "2")
                assert next(hosts)["name"] == "x2"
                fabric.run("host", "forget", "x2")
                assert next(hosts)["state"] == "forgotten"
        finally:
            watcher.terminate()


def test_the_network_is_shown(fabric: Shell) -> None:
    hosts = fabric.run("host", "list").stdout
    assert "h1" in hosts
    assert "0:1" in hosts
    assert "0 of 1 switch up" in fabric.run("topo", "show").stdout
    assert json.loads(fabric.run("route", "--json").stdout) == {
        "algorithm": "osud",
        "root": None,
        "routes": [],
    }
    assert fabric.run("verify").returncode == 0
    declared = fabric.run("host", "declare", "h3", "--switch", "0", "--port", "3", "--id", "30")
    assert declared.stdout == "host 30 is h3 on port 3 of switch 0\n"
    assert fabric.run("host", "forget", "h3").returncode == 0
    assert "h3" not in [h["name"] for h in json.loads(fabric.run("host", "list", "--json").stdout)["hosts"]]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["group", "create", "h0", "h9"], 2, "there is no host 'h9'; there are h0, h1"),
        (["group", "create", "h0", "--id", "255"], 2, "group 255 is broadcast"),
        (["group", "show", "77"], 2, "there is no group '77'; there are none"),
        (
            ["group", "create", "h0", "--scheme", "flood"],
            2,
            "'repeat', 'circuit', 'tree', 'k-binomial', 'postal', 'u-torus', 's-torus', 'md-torus', 'mu-torus', 'switch', "
            "'table', 'broadcast', 'auto'",
        ),
        (
            ["host", "declare", "x", "--switch", "0", "--port", "4"],
            2,
            "switch 0 has no port 4; possible: 0 to 3",
        ),
        (["route", "--algorithm", "magic"], 2, "osud"),
    ],
)
def test_refusals_say_what_would_do(fabric: Shell, arguments: list[str], code: int, text: str) -> None:
    done = fabric.run(*arguments)
    assert text in done.stderr
    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["group", "list"], ["topo", "show"], ["route"], ["verify"], ["events"]])
def test_without_a_controller_the_address_is_named(shell: Shell, command: list[str]) -> None:
    done = shell.run(*command, environment={"WORMCAST_API": "http://127.0.0.1:1"})
    assert done.returncode == 69
    assert done.stderr.startswith(
        "Error: no controller at http://127.0.0.1:1: Connection refused; start one with"
    )


def test_addresses_that_are_none_are_refused(shell: Shell) -> None:
    done = shell.run("group", "list", "--api", "ftp://x")
    assert done.returncode == 2
    assert "write http://host:port or unix:/path" in done.stderr


def test_routes_and_groups_need_no_controller(shell: Shell) -> None:
    made = shell.run("topo", "make", "line", "--switches", "3")
    assert made.returncode == 0, made.stderr
    (shell.directory / "line.json").write_text(made.stdout)
    routes = shell.run("route", "--topology", "line.json")
    assert routes.returncode == 0, routes.stderr
    assert shell.run("verify", "--topology", "line.json").returncode == 0
    plan = shell.run("group", "plan", "--topology", "line.json", "--help")
    assert plan.returncode == 0
    assert "--members" in plan.stdout
    assert "without a controller" in shell.run("route", "--help").stdout


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "switches.json:1: not JSON"),
        ("[]", "switches.json"),
        ('{"switches": [{"id": 0}]}', "'address'"),
        (
            '{"switches": [{"id": "x", "address": "a:1", "ports": 1}]}',
            "switches[0].id is 'x', not an integer",
        ),
        ('{"switches": [{"id": 0, "address": "a:1", "ports": 300}]}', "possible: 1 to 254"),
        ('{"switches": [{"id": 0, "address": "a", "ports": 3}]}', "possible: host:port or unix:/path"),
        (ONE_SWITCH % '{"switch": 0}', "'port' is missing"),
        (ONE_SWITCH % '{"switch": 0, "port": 3}', "switch 0 has no port 3; possible: 0 to 2"),
        (ONE_SWITCH % '{"name": 3, "switch": 0, "port": 2}', "hosts[0].name is 3, not text"),
        (ONE_SWITCH % '{"name": "a b", "switch": 0, "port": 2}', "host name 'a b' is not valid"),
    ],
)
def test_switch_files_that_are_none_are_refused(shell: Shell, content: str, text: str) -> None:
    (shell.directory / "switches.json").write_text(content)
    done = shell.run(
        "controller", "run", "--switches", "switches.json", "--state", ":memory:", "--agents", "unix:a"
    )
    assert text in done.stderr
    assert done.returncode == 78
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--listen", "nowhere", "wanted host:port or unix:/path"),
        (
            "--listen",
            "192.0.2.1:80",
            "REST cannot be served on 192.0.2.1:80: cannot assign requested address; `ip address`",
        ),
        ("--listen", "none.invalid:80", "there is no host 'none.invalid'; name an address of this machine"),
        ("--listen", "unix:{at}/file", "{at}/file: it is a file and no socket; remove it, or name one"),
        ("--listen", "unix:{at}", "unix:{at}: it is a directory; name a file in it"),
        (
            "--agents",
            "nowhere",
            "agents cannot be served on nowhere: wanted unix:/path or host:port; ports are 0 to 65535",
        ),
        ("--agents", "127.0.0.1:99999", "wanted unix:/path or host:port; ports are 0 to 65535"),
        (
            "--agents",
            "192.0.2.1:80",
            "agents cannot be served on 192.0.2.1:80: cannot assign requested address; `ip address`",
        ),
        (
            "--agents",
            "127.0.0.1:{port}",
            "address already in use; end the process that listens there, or choose another",
        ),
        (
            "--listen",
            "127.0.0.1:{port}",
            "address already in use; end the process that listens there, or choose another",
        ),
        ("--agents", "unix:{at}/file", "{at}/file: it is a file and no socket; remove it, or name one"),
        (
            "--agents",
            "unix:{at}/file/a",
            "directory {at}/file cannot be made: file exists; a part of the path is a file",
        ),
        (
            "--agents",
            "unix:/proc/none/a",
            "directory /proc/none cannot be made: no such file or directory; choose a place",
        ),
        (
            "--agents",
            "unix:/proc/none",
            "no such file or directory; choose a place where directories can be made",
        ),
        (
            "--agents",
            "unix:/x" + 107 * "x",
            "the path has 109 bytes; a Unix socket takes 1 to 107: choose a shorter one",
        ),
        ("--pipeline", "/nonexistent", "no wormcast.json with wormcast.p4info.txtpb in /nonexistent"),
        (
            "--state",
            "/proc/none/x.db",
            "/proc/none: no such file or directory; choose a place where directories can be made",
        ),
        ("--state", "{at}", "state file {at} is a directory; name a file in it, as {at}/controller.db"),
        ("--state", "", "state file . is a directory; name a file in it, as controller.db"),
        ("--state", "/dev/full", "state file /dev/full is a device or a pipe; name a file"),
        (
            "--state",
            "{at}/file/x",
            "{at}/file: file exists; a part of the path is a file; choose another place",
        ),
        ("--state", "{at}/" + 300 * "x", "file name too long; choose a shorter name"),
        ("--algorithm", "magic", "osud"),
    ],
)
def test_a_controller_that_cannot_start_says_why(shell: Shell, option: str, value: str, text: str) -> None:
    (shell.directory / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        here = {"at": shell.directory, "port": taken.getsockname()[1]}
        options = {
            "--listen": shell.api,
            "--agents": f"unix:{shell.directory}/a.sock",
            "--state": ":memory:",
            option: value.format(**here),
        }
        done = shell.run("controller", "run", *[word for pair in options.items() for word in pair])
    assert text.format(**here) in done.stderr
    assert "Errno" not in done.stderr
    assert "GRPC" not in done.stderr
    assert done.returncode == 78
    assert "Traceback" not in done.stderr


def test_two_controllers_do_not_share_a_state_file(fabric: Shell) -> None:
    done = fabric.run(
        "controller", "run", "--state", "state.db", "--listen", "127.0.0.1:0", "--agents", "unix:b.sock"
    )
    assert done.returncode == 78
    assert "state.db is in use by another controller" in done.stderr
    assert fabric.run("topo", "show").returncode == 0, "the first one goes on"


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completions(shell: Shell, shell_name: str) -> None:
    assert "_WORMCAST_COMPLETE" in shell.run("completions", shell_name).stdout
    words = {"_WORMCAST_COMPLETE": "bash_complete", "COMP_WORDS": "wormcast gr", "COMP_CWORD": "1"}
    program = "import sys; sys.argv[0] = 'wormcast'; from wormcast.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "plain,group" in done.stdout


def loaded_by(shell: Shell, *arguments: str) -> set[str]:
    """Modules of ours that a command loads, and packages of others."""
    program = "from wormcast.cli.start import main; sys.argv[0] = 'wormcast'"
    told = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=open('modules', 'w')))"
    done = subprocess.run(
        [sys.executable, "-c", f"{told}\n{program}\nmain()", *arguments],
        cwd=shell.directory,
        env={**os.environ, "WORMCAST_API": shell.api},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = set((shell.directory / "modules").read_text().split())
    site = {path.name.partition(".")[0] for path in Path(click.__file__).parent.parent.iterdir()}
    packages = {name for name in names & site if not name.startswith(("_", "distutils", "sitecustomize"))}
    return packages | {name for name in names if name.partition(".")[0] == "wormcast"}


def test_help_loads_no_command_and_names_every_one(shell: Shell) -> None:
    assert loaded_by(shell, "--help") == HELP_LOADS | {"click"}
    done = shell.run("--help")
    assert done.returncode == 0
    for command in (
        "controller",
        "topo",
        "group",
        "route",
        "verify",
        "send",
        "recv",
        "status",
        "completions",
    ):
        assert f"  {command} " in done.stdout


def test_sending_and_receiving_load_no_tables_and_no_http(shell: Shell) -> None:
    """What is slow to load: most transfers print no table, and ask the agent alone."""
    program = (
        "import sys, wormcast.cli.receiving, wormcast.cli.sending, wormcast.cli.transfer; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=shell.directory, capture_output=True, text=True, check=True
    )
    assert not {"rich", "http.client", "ssl"} & set(done.stdout.split())


def test_what_is_missing_or_wrong_is_answered_with_the_choices(fabric: Shell) -> None:
    made = fabric.run("group", "create", "h0", "h1", "--name", "named", "--json")
    assert made.returncode == 0, made.stderr
    for command in (["group", "lag"], ["group", "show"], ["group", "delete"], ["group", "add"]):
        refused = fabric.run(*command, "--json")
        error = json.loads(refused.stderr)["error"]
        assert (refused.returncode, error["code"]) == (2, "usage")
        assert error["message"].startswith("Missing argument 'GROUP"), error
        assert "; there are " in error["message"], error
        assert "named" in error["message"], error
    assert "there are h0, h1" in fabric.run("group", "add", "named").stderr
    after = fabric.run("events", "--after", "-5")
    assert (after.returncode, "-5 is not in the range x>=0" in after.stderr) == (2, True)
    twice = fabric.run("group", "delete", "named", "named")
    assert (twice.returncode, "is named twice" in twice.stderr) == (2, True)
    for command in (["up"], ["on", "--out", "/etc/passwd", "h0", "true"], ["demo"]):
        out = fabric.run(command[0], "--out", "/etc/passwd", *command[3:])
        assert (out.returncode, "'/etc/passwd' is a file" in out.stderr) == (2, True), out.stderr
    for command in (["send", "switches.json"], ["recv", "-o", "."]):
        timeout = fabric.run(*command, "-g", "1", "--timeout", "0")
        assert (timeout.returncode, "0 is not a number of seconds above 0" in timeout.stderr) == (2, True)
