"""A state file that is damaged, older or gone is noticed, said, and refused until the operator decides."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from controller_lab.running import running, until
from controller_lab.serving import RawClient, serving
from wormcast.network.groups import Group
from wormcast.network.ids import Epoch, GroupId, HostId
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database, StoreError

FILES = ("", "-wal", "-mark")
PAGE_FRAME = 4096 + 24
"""Of a write-ahead log: a page and what is before it."""


def put(database: Database, number: int) -> None:
    group = Group(GroupId(number), f"g{number}", "tree", (HostId(1), HostId(2)))
    database.change_groups([group], [], None)


def crashed(path: Path, into: Path) -> Path:
    """The files as a crash would leave them; the controller that has them open tidies up its own."""
    into.mkdir()
    for ending in FILES:
        shutil.copyfile(f"{path}{ending}", into / f"{path.name}{ending}")
    return into / path.name


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Two groups, the log not in the file yet."""
    database = Database(tmp_path / "state.db")
    put(database, 1)
    put(database, 2)
    path = crashed(tmp_path / "state.db", tmp_path / "crashed")
    database.close()
    return path


def groups(database: Database) -> list[int]:
    return [int(group.id) for group in database.groups()]


def test_what_a_crash_leaves_is_whole(left: Path) -> None:
    database = Database(left)
    assert groups(database) == [1, 2]
    put(database, 3)
    database.close()
    again = Database(left)
    assert groups(again) == [1, 2, 3]
    again.close()


@pytest.mark.parametrize("place", ["head", "middle", "end", "cut", "gone"])
def test_a_damaged_log_is_refused_as_it_is_until_the_operator_accepts_it(left: Path, place: str) -> None:
    log = Path(f"{left}-wal")
    size = log.stat().st_size
    if place == "gone":
        log.unlink()
    elif place == "cut":
        os.truncate(log, size - PAGE_FRAME)
    else:
        at = {"head": 9, "middle": size // 2, "end": size - 100}[place]
        with log.open("r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1]))
    before = log.read_bytes() if log.exists() else None
    for _again in range(2):
        with pytest.raises(StoreError, match=r"older than|missing or empty") as refused:
            Database(left)
        assert str(left) in str(refused.value)
        assert "--accept-empty-state" in str(refused.value)
    assert (log.read_bytes() if log.exists() else None) == before, "somebody may still want to look at it"
    accepted = Database(left, accept_older=True)
    assert set(groups(accepted)) < {1, 2}
    put(accepted, 7)
    accepted.close()
    again = Database(left)
    assert 7 in groups(again)
    again.close()


def test_another_file_in_its_place_and_a_damaged_mark_are_refused(left: Path, tmp_path: Path) -> None:
    other = Database(tmp_path / "other.db")
    other.close()
    shutil.copyfile(tmp_path / "other.db", left)
    Path(f"{left}-wal").unlink()
    with pytest.raises(StoreError, match="not the one that was written last"):
        Database(left)
    Path(f"{left}-mark").write_text("12 groups")
    with pytest.raises(StoreError, match="does not say how much was written"):
        Database(left)
    Path(f"{left}-mark").unlink()
    Database(left).close()


def test_what_a_machine_that_breaks_down_may_lose_is_said_and_no_reason_to_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.db"
    database = Database(path)
    put(database, 1)
    size = Path(f"{path}-wal").stat().st_size
    database.put_agent_plan(Epoch(5), "digest")
    left = crashed(path, tmp_path / "crashed")
    database.close()
    os.truncate(f"{left}-wal", size)
    with caplog.at_level(logging.WARNING, logger="wormcast.store"):
        again = Database(left)
    assert groups(again) == [1]
    assert "lacks the last 1 changes" in caplog.text
    again.close()


def test_a_file_that_is_deleted_while_in_use_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    async def post(path: Path, number: int) -> tuple[int, str]:
        body = f'{{"scheme": "tree", "members": ["p"], "name": "g{number}"}}'.encode()
        client = await RawClient.connect(path)
        head = f"POST /v1/groups HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        client.send(head.encode() + b"\r\n\r\n" + body)
        status, _, answer = await client.answer()
        client.close()
        return status, str(answer)

    async def main() -> None:
        state, rest = tmp_path / "state.db", tmp_path / "rest.sock"
        async with running(state) as controller, serving(controller, rest):
            declare(controller)
            assert (await post(rest, 1))[0] == 201
            away = tmp_path / "away.db"
            state.rename(away)
            status, answer = await post(rest, 2)
            assert status == 507
            assert "deleted or replaced" in answer
            assert controller.state_problem()
            await until(lambda: "state_lost" in [e.kind for e in controller.events.history()])
            state.write_bytes(away.read_bytes())
            assert (await post(rest, 2))[0] == 507, "a copy is another file"
            away.replace(state)
            assert (await post(rest, 2))[0] == 201
            assert controller.state_problem() is None
            assert [group.name for group in controller.groups.groups()] == ["g1", "g2"]

    asyncio.run(main())


def declare(controller: Controller) -> None:
    """A host to be a member."""
    controller.hosts.declare("p", (0, 1), 9, controller.clock.now())  # type: ignore[arg-type]


def test_the_controller_does_not_start_without_the_file_that_it_had(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    database = Database(state)
    put(database, 1)
    database.close()
    state.unlink()
    argv = [sys.executable, "-m", "wormcast.cli.main", "controller", "run", "--state", str(state)]
    argv += ["--agents", f"unix:{tmp_path}/agents.sock", "--listen", f"unix:{tmp_path}/rest.sock"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 78
    assert f"state file {state} is missing or empty, and 1 changes were kept in it" in ended.stderr
    assert not state.exists()
    begun = subprocess.Popen([*argv, "--accept-empty-state"])
    try:
        while not (tmp_path / "rest.sock").exists():
            assert begun.poll() is None
    finally:
        begun.terminate()
        assert begun.wait() == 0
    again = Database(state)
    assert groups(again) == []
    again.close()
