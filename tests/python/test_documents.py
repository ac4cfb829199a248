"""Commands in the documents: those that need no network are run, word for word; of the others programs,
files, subcommands and options are looked up, and the reason why they are not run is here.

tests/e2e/test_documents.py runs what README and the pages of docs/ say about fabrics. Every block of docs/ is run, page by
page. A ```console block is for a machine that this one is not: it names the test that types it on one, or says why
none does.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
from document_lab.commands import OFFLINE, ROOT, Block, blocks
from document_lab.pages import Console, Page, consoles, is_page, pages
from document_lab.running import read_page
from wormcast.cli.main import main

BIN = ROOT / ".venv" / "bin"
SECONDS_MAX = 600
BY_E2E = re.compile(
    r"wormcast (on h\d|up|demo|host list|routing|controller run|-agent)|wormcast-agent|mkdir|echo"
)
REASONS = {
    r"wormcast worms": "switches in wormhole mode: tests/e2e/test_wormhole.py",
    r"make (-C switch )?(demo|lab|build|dist|test|seeds|setup|bench|docs|help|onos)\b": "takes minutes, or runs these tests; the target is looked up",
    r"make run ": "a target of p4lang's tutorials, which are not here",
    r"(WORMCAST_WRITE_VECTORS=1 )?cargo |target/release/": "builds; its package, test or example is looked up",
    r"(\.venv/bin/python -m wormcast\.mininet\.sandbox )?pytest ": "these tests themselves; the path is looked up",
    r"(bench/|switch/bench/|switch/fuzz/|(\.\./)+\.venv/bin/python|SANITIZER=)": "measures or searches for minutes",
    r"wormcast-switch |wormcast-stf |bare_forwarder |flood ": "needs interfaces and programs of the reader's",
    r"(curl|ln|cd|kill|\.) ": "about what the reader has started or installed",
    r"setup/arm64 ": "builds for many minutes",
    r"setup/test ": "runs these tests",
    r"setup/peer |tests/ptf/run ": "installs ptf, and needs a switch; run by tests/conformance/test_ptf.py",
    r"(docker compose|switch/labs/run|git clone)( |$)": "a lab: run by tests/e2e/test_labs.py; its options are looked up",
    r"docker ": "needs an image from elsewhere",
    r"WORMCAST_ONOS_BUNDLES=": "needs files of the official image of ONOS",
    r"wormcast receive": "a service of the package: run by tests/python/test_agent_receive.py",
    r"wormcast (on( HOST| --|$)|schema KIND|recv|send|status|group|guard|switching|host|events|costs|trace|transfers|controller|verify|balance|change|route|topo)": (
        "a form, or one that needs a fabric: run by tests/e2e/test_documents.py as README has it"
    ),
}
SYSTEM = {"curl", "ln", "cd", "kill", ".", "mkdir", "echo", "pytest", "cargo", "docker", "git"}
# What stands in the blocks of docs/ is done page by page.
ALL = [block for block in blocks() if not (is_page(block.document) and block.fenced)]
PAGES = pages()


def test_documents_have_commands() -> None:
    names = {block.document for block in ALL}
    assert {"README.md", "routing/README.md", "controller/README.md", "switch/README.md"} <= names
    assert sum(len(block.commands) for block in ALL) > 80


def test_pages_have_commands() -> None:
    assert {page.where for page in PAGES} == {"anywhere", "fabric", "copy"}
    assert sum(len(page.blocks) for page in PAGES) > 30


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.where == "anywhere"], ids=lambda page: page.document
)
def test_pages_that_need_no_fabric_are_done(page: Page, tmp_path: Path) -> None:
    (tmp_path / "reader").mkdir()
    read_page(page, tmp_path / "reader", tmp_path)


@pytest.mark.parametrize(
    "block", consoles(), ids=lambda block: f"{block.document}: {block.heading}: {block.commands[0]}"
)
def test_commands_for_other_machines_are_run_there_or_say_why_not(block: Console) -> None:
    for test in block.run_by:
        asks = re.compile(
            rf'console\(\s*"{re.escape(block.document)}", ("{re.escape(block.heading)}"|[a-z]+)[,)]'
        )
        assert asks.search((ROOT / test).read_text()), (
            f"{test} does not ask for {block.heading!r} of {block.document}"
        )
    if block.run_by:
        return
    assert block.not_run, f"write `<!-- run by TEST -->` or `<!-- not run: REASON -->` above {block.commands}"
    pytest.skip(f"not run: {block.not_run}")


def has_blank(command: str) -> bool:
    """Whether a word in capitals stands for something of the reader's, as in FILE."""
    return bool(re.search(r"(?<![\w./-])[A-Z]{3,}(?![\w.])|…|\.\.\.", command))


def runs_here(block: Block) -> bool:
    if is_page(block.document):
        return False
    whole = [c for c in block.commands if OFFLINE.match(c) and not has_blank(c)]
    # A span such as `wormcast balance` names a command and is not one to type.
    return len(whole) == len(block.commands)


@pytest.mark.parametrize(
    "block", [b for b in ALL if runs_here(b)], ids=lambda b: f"{b.document}: {b.commands[0]}"
)
def test_commands_without_a_network_are_run(block: Block, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    for command in block.commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == 0, f"{block.document}: {command}\n{done.stderr}"
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("document", "command"),
    sorted({(b.document, c) for b in ALL if not runs_here(b) for c in b.commands}),
)
def test_other_commands_are_there(document: str, command: str) -> None:
    if not (BY_E2E.match(command) or OFFLINE.match(command)):
        assert any(re.match(reason, command) for reason in REASONS), f"say why this is not run: {command}"
    words = words_of(command)
    while re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    program = words[0]
    if words[:2] == ["wormcast", "on"]:
        check_wormcast(words[1:2])
        if "wormcast" in words[1:]:
            check_wormcast(words[words.index("wormcast", 1) + 1 :])
    elif program == "wormcast":
        check_wormcast(words[1:])
    elif program == "make":
        folder, target = (words[2], words[3]) if words[1] == "-C" else (".", words[1])
        if target != "run":
            assert re.search(rf"^{target}:", (ROOT / folder / "Makefile").read_text(), re.MULTILINE)
    elif program == "cargo":
        check_cargo(words)
    elif program in ("wormcast-switch", "wormcast-agent", "wormcast-stf", "flood", "bare_forwarder"):
        sources = "hostagent" if program == "wormcast-agent" else "switch"
        check_options(words, [*(ROOT / sources).rglob("*.rs")])
    elif "/" in program and not program.startswith("target/"):
        folder = (ROOT / document).parent
        places = [folder, folder.parent] if program.startswith("..") else [ROOT]
        assert any((place / program).exists() for place in places), program
        near = [folder] if program.startswith("..") else [(ROOT / program).parent, *ROOT.glob("*/examples")]
        found = [path for place in near for path in place.rglob("*") if path.suffix in ("", ".py", ".rs")]
        check_options(words, [path for path in found if path.is_file()])
    elif program == "pytest":
        assert (ROOT / words[1]).exists()
    else:
        assert program in SYSTEM or program.startswith("target/"), program


def test_tables_of_bounds_name_the_files_that_have_them() -> None:
    rows = re.findall(
        r"`([a-z_]+/[a-z_]+\.py)`: ((?:`\w+`(?:, )?)+)", (ROOT / "controller/OPERATION.md").read_text()
    )
    assert len(rows) > 20
    for file, names in rows:
        text = (ROOT / "controller/wormcast" / file).read_text()
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^(class )?{name}\b", text, re.MULTILINE), f"{name} is not in {file}"


def words_of(command: str) -> list[str]:
    """The first program's words, without the brackets of a form."""
    simple = re.split(r"\s[|>&]|\s&$", command)[0]
    try:
        words = shlex.split(simple)
    except ValueError:
        words = simple.split()
    return [word.strip("[]") for word in words if word.strip("[]…")]


def options_of(words: list[str]) -> set[str]:
    own = words[: words.index("--")] if "--" in words else words
    return {part.split("=")[0] for word in own for part in word.split("|") if re.match(r"--\w", part)}


def check_wormcast(words: list[str]) -> None:
    """Subcommands and options are there."""
    command: click.Command = main
    context = click.Context(main)
    rest = list(words)
    while rest and isinstance(command, click.Group) and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        assert found is not None, f"no command {rest[0]!r}"
        command = found
        rest.pop(0)
    known = {
        name for p in command.get_params(click.Context(command)) for name in (*p.opts, *p.secondary_opts)
    }
    assert options_of(rest) <= known, options_of(rest) - known


def check_cargo(words: list[str]) -> None:
    """Packages, tests and examples are there."""
    manifests = "".join(path.read_text() for path in listed("*Cargo.toml"))
    for option, value in itertools.pairwise(words):
        if option in ("-p", "--package"):
            assert f'name = "{value}"' in manifests, value
        if option == "--test":
            assert f'[[test]]\nname = "{value}"' in manifests, value
        if option == "--example":
            files = (f"examples/{value}.rs", f"examples/{value}/main.rs")
            found = [path for file in files for path in (*ROOT.glob(f"*/{file}"), *ROOT.glob(f"*/*/{file}"))]
            assert found or f'name = "{value}"' in manifests, value
    modules = "".join(path.read_text() for path in listed("*/tests/all.rs"))
    for word in words:
        if part := re.match(r"(\w+)::", word):
            assert f"mod {part[1]};" in modules, word


def listed(pattern: str) -> list[Path]:
    """Files of the project. A walk through the checkout would meet what other tests write and remove beside this one."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in names.stdout.splitlines()]


def check_options(words: list[str], sources: list[Path]) -> None:
    """Every option occurs in the sources, as it is or as a name of Rust."""
    text = "\n".join(path.read_text(errors="replace") for path in sources if "target" not in path.parts)
    for option in options_of(words[1:]):
        name = option.removeprefix("--")
        assert name in text or re.search(rf"\b{name.replace('-', '_')}\b", text), option
