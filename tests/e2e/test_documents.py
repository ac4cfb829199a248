"""What README and the pages of docs/ say about fabrics is done, word for word, as a first-time user does it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

from document_lab.commands import blocks  # noqa: E402
from document_lab.pages import Page, console, pages  # noqa: E402
from document_lab.running import SECONDS_MAX, environment, read_page, terminal  # noqa: E402

README = [block.commands for block in blocks() if block.document == "README.md" and block.fenced]


def block_with(text: str) -> tuple[str, ...]:
    """The block of README that has a command with this text."""
    (found,) = [commands for commands in README if any(text in command for command in commands)]
    return found


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[None]:
    """What README's first terminal does."""
    (command,) = block_with("wormcast up")
    with terminal(command, tmp_path / "terminal"):
        yield


@pytest.mark.usefixtures("fabric")
def test_the_second_terminal() -> None:
    commands = block_with("wormcast on h0 wormcast topo show")
    received = [ROOT / "out" / host / "README.md" for host in ("h1", "h2")]
    for path in received:
        path.unlink(missing_ok=True)
    # One shell, since some of the commands go on in the background; a failure ends it.
    script = "\n".join(["set -e", *[f"echo '+ {number}'\n{c}" for number, c in enumerate(commands)], "wait"])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "group 0 (group-0)" in done.stdout
    assert "Traceback" not in done.stderr
    content = (ROOT / "README.md").read_bytes()
    for path in received:
        assert path.read_bytes() == content
        path.unlink()


def test_machines_of_their_own(tmp_path: Path) -> None:
    """A switch, a controller and an agent with their default addresses, in a namespace of their own."""
    typed = console("docs/install.md", "Without Mininet")
    after = typed.index("wormcast host list") + 1
    first, second = typed[:after], typed[after:]
    prepare = [
        "set -e",
        "mount -t tmpfs tmpfs /run && mkdir -p /var/lib/wormcast && mount -t tmpfs tmpfs /var/lib/wormcast",
        "ip link set lo up && ip addr add 10.0.0.1/24 dev lo",
        "ip link add eth1 type veth peer name veth0 && ip link add eth2 type veth peer name veth1",
        "for link in eth1 eth2 veth0 veth1; do ip link set $link up; done",
        f"export PATH={ROOT}/.venv/bin:$PATH",
        'answers() { for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; "$@"; }',
        'up() { wormcast host list --json | grep -q \'"state": "up"\'; }',
    ]
    # The reader waits where a program needs a moment; the commands are the page's.
    steps = []
    for command in first:
        if command == "wormcast host list":
            steps.append("answers wormcast host list; answers up")
        if command.startswith("wormcast-agent"):
            steps.append("answers wormcast host list")
        steps.append(command)
    stop = ["kill %2 && wait %2", "kill %3; wait %3 || true"]
    again = [*second, "answers up"]
    script = "\n".join([*prepare, *steps, *stop, *again])
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
    done = subprocess.run(
        [*command, "bash", "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 host" in done.stdout


def test_the_tutorial_quotes_what_wormcast_up_prints(tmp_path: Path) -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text()
    found = re.search(r"^```sh\nwormcast up\n```$.*?^```text\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL)
    assert found is not None
    quoted = found[1].replace("…", str(ROOT)).splitlines()
    log = tmp_path / "terminal"
    with terminal("wormcast up", log):
        deadline = time.monotonic() + SECONDS_MAX
        while "Ctrl-C" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        # On a busy machine it also says that this one does not keep up.
        assert [line for line in log.read_text().splitlines() if not line.startswith("wormcast: ")] == quoted


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "page", [page for page in pages() if page.where == "fabric"], ids=lambda page: page.document
)
def test_pages_that_need_a_fabric(page: Page, tmp_path: Path) -> None:
    read_page(page, ROOT, tmp_path)
