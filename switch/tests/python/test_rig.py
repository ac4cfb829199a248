"""The rig leaves nothing behind, whatever happens to it."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.host import SwitchRig
from rig.targets import Target

pytestmark = pytest.mark.network


def _processes_with(word: str) -> list[int]:
    """Processes whose command line has this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has just ended
    return [number for number in found if number != os.getpid()]


def _until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 600
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_killing_the_rig_takes_the_switch_along(target: Target, tmp_path: Path) -> None:
    """SIGKILL for the process pytest holds: switch, worker and namespace go with it."""
    rig = SwitchRig(target, tmp_path, [0, 1])
    word = f"{tmp_path}"
    assert _processes_with(word), "the worker has the directory on its command line"
    switches = [number for number in _processes_with("0@s0") if _in_namespace_of(number, rig.process.pid)]
    assert len(switches) == 1
    rig.process.send_signal(signal.SIGKILL)
    rig.process.wait()
    assert _until(lambda: not _processes_with(word))
    assert _until(lambda: not Path(f"/proc/{switches[0]}").exists())


def test_a_failing_test_ends_the_switch(target: Target, tmp_path: Path) -> None:
    """An exception in the block ends the worker, and with it everything."""
    with pytest.raises(ZeroDivisionError), SwitchRig(target, tmp_path, [0]):
        _ = 1 // 0
    assert _until(lambda: not _processes_with(f"{tmp_path}"))


def test_a_request_that_fails_names_the_cause(target: Target, tmp_path: Path) -> None:
    """The worker goes on after an error and the next request is served."""
    with SwitchRig(target, tmp_path, [0]) as rig:
        with pytest.raises(AssertionError, match="unknown request 'dance'"):
            rig.ask(do="dance")
        assert rig.ask(do="install", state={"multicast_groups": [], "tables": [], "defaults": []}) == {}


def _in_namespace_of(number: int, parent: int) -> bool:
    """Whether a process shares the network namespace of the first child of another."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    try:
        return Path(f"/proc/{number}/ns/net").readlink() == Path(f"/proc/{children[0]}/ns/net").readlink()
    except OSError:
        return False
