"""A fabric of `wormcast up`, changed from another terminal: start, stop, cut, mend, and which fabric is meant."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_run import SECONDS_MAX, UP, Run, daemon, on, outside, processes_of, start, until  # noqa: F401
from wormcast.mininet import programs


def up(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`wormcast up COMMAND` as another terminal runs it."""
    return subprocess.run(
        [*UP, *arguments],
        env={**outside(), **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )


def refusal(*arguments: str) -> dict[str, Any]:
    done = up(*arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    error: dict[str, Any] = json.loads(done.stderr)["error"]
    return error


def hosts_up() -> set[int]:
    done = on("h0", "wormcast", "host", "list", "--json")
    if done.returncode != 0:  # the controller is on its way
        return set()
    return {host["id"] for host in json.loads(done.stdout)["hosts"] if host["state"] == "up"}


def links() -> int:
    done = on("h0", "wormcast", "topo", "show", "--json")
    return len(json.loads(done.stdout)["links"]) if done.returncode == 0 else -1


def test_daemons_stop_and_start(start: Callable[..., Run], tmp_path: Path, switch: str) -> None:  # noqa: F811
    out = tmp_path / "fabric"
    run = start("--out", str(out), "--switch", switch)
    run.expect("fabric up")
    for part, words in (
        ("h1", ("wormcast-agent", "h1-eth0")),
        ("s1", (programs.SWITCHES[switch], "s1-p0")),
        ("controller", ("controller", "--switches")),
    ):
        daemon(out, *words)
        stopped = up("stop", part)
        assert (stopped.returncode, stopped.stdout) == (0, f"{part} stopped\n"), stopped.stderr
        with pytest.raises(AssertionError, match="no process"):
            daemon(out, *words)
        run.expect(f"stopped from another terminal: {part}")
        again = refusal("stop", part)
        assert (again["code"], again["message"]) == ("conflict", f"{part} is not running")
        started = up("start", "--json", part)
        assert started.returncode == 0, started.stderr
        assert json.loads(started.stdout) == {"started": [part]}
        daemon(out, *words)
        run.expect(f"started from another terminal: {part}")
        running = refusal("start", part)
        assert (running["code"], running["message"]) == ("conflict", f"{part} is running")
        # What was asked for is no fault, and is not told as one.
        assert "ended" not in run.text
    until(lambda: hosts_up() == {0, 1} and links() == 1, "the fabric is not whole again")
    os.kill(daemon(out, "wormcast-agent", "h1-eth0"), signal.SIGKILL)
    run.expect("the agent of h1 ended (SIGKILL)")
    assert up("start", "h1").returncode == 0
    until(lambda: hosts_up() == {0, 1}, "h1 does not come back")
    # Of several all are looked at first.
    assert up("stop", "h0", "h7").returncode == 2
    daemon(out, "wormcast-agent", "h0-eth0")


def test_links_are_cut_and_mended(start: Callable[..., Run], tmp_path: Path, switch: str) -> None:  # noqa: F811
    run = start("--out", str(tmp_path / "fabric"), "--switch", switch)
    run.expect("fabric up")
    assert links() == 1
    cut = up("cut", "s1", "s0")
    assert (cut.returncode, cut.stdout) == (0, "s0:1 - s1:1 cut\n"), cut.stderr
    until(lambda: links() == 0, "the link is still there")
    mended = up("mend", "s0:1", "s1", "--json")
    assert json.loads(mended.stdout) == {"mended": [{"a": "s0", "a_port": 1, "b": "s1", "b_port": 1}]}
    until(lambda: links() == 1, "the link does not come back")

    # Plain sockets of a host find their way to the fabric again.
    routes = on("h1", "ip", "route").stdout
    assert "224.0.0.0/4" in routes
    assert json.loads(up("cut", "h1", "s1", "--json").stdout) == {
        "cut": [{"a": "s1", "a_port": 0, "b": "h1"}]
    }
    # BMv2 takes no interface that goes down: there the link stays up and passes nothing.
    assert ("224.0.0.0/4" in on("h1", "ip", "route").stdout) == (switch == "bmv2")
    assert up("mend", "h1", "s1").returncode == 0
    assert sorted(on("h1", "ip", "route").stdout.split("\n")) == sorted(routes.split("\n"))


def test_wrong_names_are_answered_with_the_choices(start: Callable[..., Run]) -> None:  # noqa: F811
    assert refusal("stop", "h1")["message"] == "no fabric runs; start one with `wormcast up`"
    start().expect("fabric up")
    wrong = refusal("stop", "h9")
    assert (wrong["code"], wrong["value"]) == ("not-found", "h9")
    assert wrong["choices"] == ["controller", "s0", "s1", "h0", "h1"]
    assert refusal("cut", "h0", "h1")["message"] == "there is no link between h0 and h1; h0 has links to s0"
    assert refusal("cut", "s0:7", "s1")["message"].startswith("there is no link between s0:7 and s1")
    assert refusal("cut", "s0:x", "s1")["code"] == "syntax"
    assert refusal("mend", "s0", "controller")["value"] == "controller"
    early = up("--rate", "5", "stop", "s0")
    assert early.returncode == 2
    assert "--rate is for a new fabric" in early.stderr


def test_of_several_fabrics_the_newest_is_meant_or_the_one_of_the_environment(
    start: Callable[..., Run],  # noqa: F811
) -> None:
    first = start()
    first.expect("fabric up")
    second = start()
    second.expect("fabric up")

    def socket_of(done: subprocess.CompletedProcess[str]) -> str:
        assert done.returncode == 0, done.stderr
        return done.stdout

    sockets = {
        name: socket_of(on("--name", name, "h0", "printenv", "WORMCAST_SOCKET")) for name in ("run", "run-2")
    }
    newest = on("h0", "printenv", "WORMCAST_SOCKET")
    assert newest.stdout == sockets["run-2"]
    assert "this goes to 'run-2', the newest" in newest.stderr

    def on_named(name: str) -> subprocess.CompletedProcess[str]:
        command = [programs.find("wormcast"), "on", "h0", "printenv", "WORMCAST_SOCKET"]
        environment = {**outside(), "WORMCAST_FABRIC": name}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX)

    chosen = on_named("run")
    assert (chosen.stdout, chosen.stderr) == (sockets["run"], "")
    unknown = on_named("nosuch")
    assert unknown.returncode == 2
    assert "the name 'nosuch', which WORMCAST_FABRIC says; running: --name run (--out " in unknown.stderr
    stopped = up("stop", "h0", WORMCAST_FABRIC="run")
    assert stopped.returncode == 0, stopped.stderr
    first.expect("stopped from another terminal: h0")
    # The first ends; nobody has to be told which is meant.
    first.process.send_signal(signal.SIGTERM)
    first.wait()
    until(lambda: on("h0", "true").stderr == "", "the first fabric still counts")


def test_rest_is_where_it_is_said(start: Callable[..., Run]) -> None:  # noqa: F811
    run = start("--rest", "18081")
    run.expect("REST at http://127.0.0.1:18081/v1, described at http://127.0.0.1:18081/v1/openapi.json")


def test_a_command_has_its_fabric_for_others_too(start: Callable[..., Run], tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "fabric"
    run = start("--out", str(out), "--", "h0", "sleep", "1000")
    until(lambda: on("h1", "wormcast", "status").returncode == 0, "no command on another host")
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130
    until(lambda: not processes_of(out), "processes are left")


def offered(*words: str) -> set[str]:
    """What bash is offered for the last word, outside of the fabric."""
    environment = {
        **outside(),
        "_WORMCAST_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["wormcast", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [programs.find("wormcast")], env=environment, capture_output=True, text=True, timeout=SECONDS_MAX
    )
    assert done.stderr == ""
    return {line.split(",", 1)[1] for line in done.stdout.splitlines() if line}


def test_completions_know_the_running_fabric_from_outside(start: Callable[..., Run]) -> None:  # noqa: F811
    assert offered("on", "h") == set()
    start().expect("fabric up")
    made = on("h0", "wormcast", "group", "create", "--name", "news", "0", "1")
    assert made.returncode == 0, made.stderr
    assert offered("on", "h") == {"h0", "h1"}
    assert offered("on", "--name", "") == {"run"}
    assert offered("up", "stop", "") == {"controller", "s0", "s1", "h0", "h1"}
    assert offered("up", "cut", "s0", "") == {"s1", "h0", "h1"}
    assert offered("on", "h0", "wormcast", "group", "show", "n") == {"news"}
    assert offered("on", "h0", "wormcast", "send", "x", "--group", "n") == {"news"}
    assert offered("on", "h0", "wormcast", "host", "limit", "h") == {"h0", "h1"}
