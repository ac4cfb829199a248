"""Every command with wrong files, wrong values and options that do not go together: it refuses
them in one form, with no traceback and no bare number of a system error."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result
from wormcast import routing, verify
from wormcast.cli.main import main
from wormcast.cli.source import PlanningCommand
from wormcast.routing import schemas

EXIT_CODES = {0, 1, 2, 3, 4, 69, 78}
SEEDS = 150
VALUES = [
    "",
    "-1",
    "0",
    "1.5",
    "x",
    "²",
    "٣",
    "1e400",
    "nan",
    "inf",
    "9" * 5000,
    "18446744073709551616",
    "\udcff",
    "a\nb",
    "../..",
    "1,2",
    "0:4",
]
REFUSAL = jsonschema.Draft202012Validator(schemas.load("refusal"))
NOWHERE = {"WORMCAST_API": "unix:/nowhere/api.sock", "WORMCAST_SOCKET": "/nowhere/agent.sock"}


def run(arguments: list[str], *, as_json: bool = True) -> Result:
    extra = ["--json"] if as_json else []
    return CliRunner().invoke(main, [*arguments, *extra], input="", env=NOWHERE)


def check(arguments: list[str]) -> Result:
    """Runs it and holds what must hold of any answer."""
    result = run(arguments)
    shown = f"{[a[:40] for a in arguments]}: {result.exit_code}\n{result.output[-600:]!r}"
    assert result.exception is None or isinstance(result.exception, SystemExit), shown
    assert result.exit_code in EXIT_CODES, shown
    assert "Traceback" not in result.output, shown
    assert "[Errno" not in result.output, shown
    assert "panicked" not in result.output, shown
    if result.exit_code not in (0, 1) or (result.exit_code == 1 and not result.stdout):
        refusal = json.loads(result.stderr)
        assert not list(REFUSAL.iter_errors(refusal)), shown
        assert refusal["error"]["code"] != "internal", shown
        assert result.stdout == "", shown
    return result


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands that do something, those that plan also on a file."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*path, name))
        return
    yield path, command
    if isinstance(command, PlanningCommand):
        yield (*path, "--topology", "torus:3"), command


BASES: dict[tuple[str, ...], list[str]] = {
    ("topo", "make"): ["torus:3"],
    ("topo", "convert"): ["topology.json", "--to", "json"],
    ("topo", "fabric"): ["topology.json"],
    ("topo", "draw"): ["topology.json"],
    ("group", "create"): ["0", "1"],
    ("group", "show"): ["0"],
    ("group", "delete"): ["0", "1"],
    ("group", "add"): ["0", "1"],
    ("group", "remove"): ["0", "1"],
    ("group", "plan"): ["0"],
    ("group", "plan", "--topology", "torus:3"): ["0", "1", "2"],
    ("host", "declare"): ["x", "--switch", "0", "--port", "1"],
    ("host", "forget"): ["x"],
    ("change",): ["--fail-link", "0:1"],
    ("change", "--topology", "torus:3"): ["--fail-link", "0:1"],
    ("completions",): ["bash"],
    ("send",): ["topology.json", "--group", "1"],
    ("recv",): ["--output", ".", "--group", "1"],
}
# These would start: what they refuse is in test_controller_cli, test_agent_receive and tests/e2e/test_run.
STARTERS = [("controller", "run"), ("receive",), ("up",), ("on",), ("demo",)]
LEAVES = [(path, command) for path, command in leaves(main) if path not in STARTERS]
NAMES = [" ".join(path) for path, _ in LEAVES]


def options_of(command: click.Command) -> list[click.Option]:
    return [p for p in command.params if isinstance(p, click.Option) and p.name not in ("as_json", "help")]


def is_file(parameter: click.Parameter) -> bool:
    named = re.search(r"file|path|topology|^new$|^costs$", parameter.name or "")
    return isinstance(parameter.type, click.Path) or bool(named)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind, and none."""
    at = tmp_path_factory.mktemp("files")
    topology = routing.make("torus:3")
    group = routing.group(topology, {"scheme": "tree", "source": 0, "members": [0, 1, 2]})
    good: dict[str, Any] = {
        "topology": topology,
        "routes": routing.routes(topology),
        "group": group,
        "verify": verify.verify(topology, algorithm="osud"),
        "balance": routing.balance_report(topology),
        "change": routing.change(topology, routing.damage(topology, links=[(0, 1)])),
        "costs": routing.costs(),
        "switches": {"switches": [{"id": 0, "address": "a:1", "ports": 4}]},
    }
    for name, value in good.items():
        (at / f"{name}.json").write_text(json.dumps(value))
        text = json.dumps(value)
        (at / f"{name}-cut.json").write_text(text[: len(text) // 2])
        spoilt = re.sub(r"\d+", "1e400", text, count=1)
        (at / f"{name}-spoilt.json").write_text(spoilt.replace(": 1", ": NaN", 1))
        huge = re.sub(r": \d+", ": " + "9" * 400, text, count=3)
        (at / f"{name}-huge.json").write_text(huge)
    others: dict[str, Any] = {
        "magic": {"scheme_message_forward_ns": {"magic": 4}},
        "none": {"switches": [], "hosts": [], "links": []},
        "nothing": {"algorithm": "osud", "routes": []},
        "five": 5,
    }
    (at / "kept").mkdir()
    for name, value in others.items():
        (at / f"kept/{name}.json").write_text(json.dumps(value))
    (at / "empty.json").write_text("")
    (at / "list.json").write_text("[1, {}, null]")
    (at / "binary.json").write_bytes(bytes(range(256)) * 8)
    (at / "deep.json").write_text("[" * 100_000)
    (at / "deeper.json").write_text('{"links":' * 5_000 + "1" + "}" * 5_000)
    (at / "surrogate.json").write_text('{"switches": [{"id": "\\ud800"}], "hosts": [], "links": []}')
    (at / "object.json").write_text("{}")
    (at / "nulls.json").write_text(
        '{"switches": null, "routes": null, "edges": null, "members": null, "deadlock_free": true}'
    )
    (at / "digits.json").write_text('{"switches": [{"id": ' + "1" * 5_000 + "}]}")
    (at / "directory.json").mkdir()
    return at


def wrong_files(directory: Path) -> list[str]:
    found = sorted(path.name for path in directory.iterdir())
    return [*found, "missing.json", "/proc/self/mem", "no/where.json", "topology.json/below", "n" * 300, "-"]


@pytest.fixture(autouse=True)
def inside(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of its own, in which the files are."""
    for path in directory.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=NAMES)
def test_wrong_files(path: tuple[str, ...], command: click.Command, directory: Path) -> None:
    base = [*path, *BASES.get(path, [])]
    files = wrong_files(directory)
    for option in options_of(command):
        if is_file(option) and option.name not in ("output", "draw"):
            for file in files:
                check([*base, option.opts[0], file])
        elif is_file(option) or option.name == "output":
            for file in ("directory.json", "/dev/full", "no/where.json", "topology.json/x", "n" * 300):
                check([*base, option.opts[0], file])
    for argument in command.params:
        if isinstance(argument, click.Argument) and is_file(argument):
            for file in files:
                check([*path, file, *BASES.get(path, [])[1:]])


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=NAMES)
def test_wrong_values(path: tuple[str, ...], command: click.Command) -> None:
    base = [*path, *BASES.get(path, [])]
    check(base)
    check([*path, "--no-such-option"])
    for option in options_of(command):
        if option.is_flag or is_file(option) or option.name in ("output", "api", "socket"):
            continue
        for value in VALUES:
            check([*base, f"{option.opts[0]}={value}" if option.opts[0][:2] == "--" else value])
    for value in VALUES:
        check([*path, value])


@pytest.mark.parametrize(
    "address", ["", "x", "unix:", "unix:/", "http://", "http://[", "ftp://a", "a:99999", "²:1"]
)
@pytest.mark.parametrize("command", [["group", "list"], ["topo", "show"], ["events"]])
def test_wrong_addresses(command: list[str], address: str) -> None:
    assert check([*command, "--api", address]).exit_code in (2, 69)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_options_at_random(seed: int, directory: Path) -> None:
    """Options that contradict each other among them."""
    chance = random.Random(seed)
    path, command = chance.choice(LEAVES)
    arguments = [*path, *BASES.get(path, [])]
    files = wrong_files(directory)
    options = options_of(command)
    for option in chance.sample(options, min(len(options), chance.randrange(5))):
        if option.name in ("api", "socket"):
            continue
        if option.is_flag:
            arguments.append(option.opts[0])
        elif is_file(option):
            arguments += [option.opts[0], chance.choice(files)]
        else:
            choices = getattr(option.type, "choices", None)
            wanted = ["1", "2", "3", *map(str, choices or VALUES)]
            arguments += [option.opts[0], chance.choice(wanted)]
    check(arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["topo", "draw", "torus:3", "-o", "x.pdf"], [".svg", ".png"]),
        (["topo", "draw", "torus:3", "-o", "x.svg", "--png"], ["--png"]),
        (["topo", "draw", "torus:3", "--algorithm", "omit"], ["--algorithm", "--route"]),
        (["topo", "draw", "torus:3", "--group", "routes.json"], ["routes file", "group file"]),
        (["group", "plan", "--topology", "torus:3", "0", "1", "--k", "0"], ["--k", "x>=1"]),
        (["group", "create", "0", "1", "--k", "0"], ["--k", "x>=1"]),
        (
            ["group", "plan", "--topology", "torus:3", "0", "1", "--scheme", "tree", "--k", "2"],
            ["--k", "tree", "--fan-out"],
        ),
        (["group", "create", "0", "1", "--scheme", "tree", "--k", "2"], ["--k", "tree", "--fan-out"]),
        (["group", "create", "0", "1", "--fan-out", "2"], ["--fan-out", "k-binomial", "tree"]),
        (
            ["group", "create", "0", "1", "--scheme", "tree", "--variant", "return"],
            ["--variant", "circuit", "--fan-out"],
        ),
        (
            ["group", "create", "0", "1", "--scheme", "circuit", "--variant", "ordered"],
            ["'ordered'", "omit-last", "return"],
        ),
        (["group", "create", "0", "1", "--k", "2", "--packets", "9"], ["--packets", "--k"]),
        (["group", "plan", "--topology", "torus:3", "0", "1", "--payload", "9"], ["--payload", "--bytes"]),
        (["group", "plan", "--topology", "torus:3", "0", "1", "--seed", "9"], ["--seed", "--order random"]),
        (["group", "plan", "--topology", "torus:3", "0", "1", "--tables"], ["--tables", "auto"]),
        (
            ["group", "plan", "--topology", "torus:3", "0", "1", "--scheme", "auto", "--r", "2"],
            ["--r", "auto"],
        ),
        (["route", "--topology", "torus:3", "--seed", "2"], ["--seed", "rmit"]),
        (["verify", "--topology", "torus:3", "--check", "verify.json", "--buffers", "shared"], ["--buffers"]),
        (["verify", "--topology", "torus:3", "--routes", "routes.json", "--root", "1"], ["--root"]),
        (["verify", "--topology", "torus:3", "--check", "routes.json"], ["routes file", "verify file"]),
        (["change", "--topology", "torus:3", "--new-root", "1", "--planned"], ["--planned", "--fail-link"]),
        (["recv", "-g", "1", "-o", "-", "--fsync"], ["--fsync", "standard output"]),
        (["topo", "convert", "torus:3", "--to", "json", "--from", "edges"], ["--from", "torus:3"]),
        (["costs", "--costs", "toruss"], ["toruss", "torus", "agents", "nic"]),
        (["grup", "list"], ["grup", "group", "route"]),
        (["route", "--topology", "torus:3", "--algorithm", "best"], ["best", "osud", "omit"]),
        (["route", "--topology", "torus:3", "h99"], ["'h99'", "0, 1, 2"]),
        (["route", "--topology", "torus:3", "--root", "x"], ["'x'", "0<=x<=65534"]),
        (["topo", "make", "torus"], ["--k", "2 or more", "torus:4"]),
        (["topo", "make", "torus:0"], ["dimension of 0", "2 switches", "16384"]),
        (["topo", "make", "torus:99999"], ["99999", "16384"]),
        (["topo", "make", "ring:-3"], ['SWITCHES "-3"', "0 or more"]),
        (["change", "--topology", "torus:3", "--fail-link", "3:99"], ["3:99", "switch 3", "1, 2, 3, 4"]),
        (["change", "--topology", "torus:3", "--fail-link", "99:0"], ["switch 99", "0, 1, 2"]),
        (
            ["group", "plan", "--topology", "torus:3", "0", "1", "--scheme", "magic"],
            ["magic", "auto", "k-binomial", "broadcast"],
        ),
        (["costs", "--costs", "kept/magic.json"], ["magic", "k-binomial", "broadcast"]),
        (["verify", "--topology", "kept/none.json", "--p4runtime", "127.0.0.1:1"], ["no switches"]),
        (["verify", "--topology", "torus:3", "--routes", "kept/nothing.json"], ["nothing to check"]),
        (["verify", "--topology", "torus:3", "--groups", "kept/five.json"], ["five.json", "list of them"]),
        (["schema", "frog"], ["frog", "topology", "refusal"]),
        (["completions", "tcsh"], ["tcsh", "bash", "zsh", "fish"]),
    ],
)
def test_refusals_say_what_would_do(arguments: list[str], words: list[str]) -> None:
    result = check(arguments)
    assert result.exit_code == 2
    assert all(word in json.loads(result.stderr)["error"]["message"] for word in words), result.stderr
    told = run(arguments, as_json=False)
    assert told.exit_code == 2
    assert "Error: " in told.stderr
