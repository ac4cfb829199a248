"""`wormcast receive --exec` with real agents: what runs, with what, and what becomes of it when the service ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_lab.lab import PROGRAM, Lab, environment, group
from agent_lab.service import LIMIT_S, Service, file_of, names, send, services, until

pytestmark = pytest.mark.network

VARIABLES = ("FILE", "ORIGIN", "GROUP", "MESSAGE", "SHA256", "BYTES")
WRITE_ALL = 'printf "%s\\0" ' + " ".join(f'"$WORMCAST_{name}"' for name in VARIABLES) + ' >>"$NOTES"'


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab(3, [group(1, "repeat", [0, 1]), group(2, "circuit", [0, 1])], "--receiver-wait", "600")
    yield lab
    lab.close()


@pytest.fixture
def serve(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    into = tmp_path / "into"
    into.mkdir()
    with services() as started:

        def start(*options: str, **more: object) -> Service:
            env = {**environment(), "NOTES": str(tmp_path / "notes"), "GATE": str(tmp_path / "gate")}
            started.append(Service(lab, into, *options, env=env, **more))
            started[-1].says("receiving from group 2 (group2)")
            return started[-1]

        yield start


def test_it_runs_once_for_each_file_with_all_that_is_known(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    # Whoever puts a name into a shell's words runs it.
    evil = "a 'b' \"c\" $(touch ran) `touch ran`; touch ran #&|*?[é] .bin"
    service = serve("--exec", WRITE_ALL)
    files = [
        file_of(tmp_path / evil, 3000, 1),
        file_of(tmp_path / "plain", 0),
        file_of(tmp_path / evil, 4000, 2),
    ]
    files[0].write_bytes(b"1" * 3000)
    send(lab, 0, 1, files[0])
    send(lab, 0, 2, files[1])
    files[0].write_bytes(b"2" * 4000)
    send(lab, 0, 1, files[0])
    until(lambda: [record.command for record in service.records()] == ["ended"] * 3)
    *values, end = (tmp_path / "notes").read_bytes().decode().split("\0")
    told = [tuple(values[at : at + 6]) for at in range(0, len(values), 6)]
    assert (len(told), end) == (3, "")
    for record, one in zip(service.records(), told, strict=True):
        wanted = (record.file, 0, record.group, record.message, record.sha256, record.bytes)
        assert one == tuple(str(value) for value in wanted)
        assert record.exit_status == 0
    stem = evil.removesuffix(".bin")
    assert names(service.into) == sorted([evil, f"{stem}.1.bin", "plain"])
    assert [record.file for record in service.records()] == [
        str(service.into / name) for name in (evil, "plain", f"{stem}.1.bin")
    ]
    assert not list(tmp_path.rglob("ran"))
    assert not Path("ran").exists()
    assert service.stop() == 0


def test_a_command_that_fails_is_reported_and_ends_nothing(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    service = serve(
        "--exec",
        'echo "said by the command"; case $WORMCAST_FILE in *bad) exit 7;; *killed) kill -9 $$; esac',
    )
    for name in ("bad", "killed", "good"):
        send(lab, 0, 1, file_of(tmp_path / name))
    until(lambda: [record.command for record in service.records()] == ["ended"] * 3)
    assert [record.exit_status for record in service.records()] == [7, 137, 0]
    service.says(f"the command for {service.into}/bad ended with 7")
    service.says(f"the command for {service.into}/killed ended with 137")
    assert service.log.count("said by the command") == 3
    shown = subprocess.run(
        [*PROGRAM, "receive", "--history", "--into", str(service.into)],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    assert [line.split("  ")[-1] for line in shown.stdout.splitlines()[1:]] == [
        "ended with 7",
        "ended with 137",
        "done",
    ]


WAIT = 'while [ ! -e "$GATE" ]; do sleep 0.05; done; ' + WRITE_ALL


def test_a_long_command_stops_nothing_until_many_wait(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    few = "import wormcast.receive.commands as commands, wormcast.receive.files as files\n"
    few += "commands.WAITING_MAX, files.EXTEND_INTERVAL_S = 2, 0.1\n"
    few += "from wormcast.cli.main import main; main(prog_name='wormcast')"
    service = serve("--exec", WAIT, program=[sys.executable, "-c", few])
    send(lab, 0, 1, file_of(tmp_path / "0"))
    send(lab, 0, 1, file_of(tmp_path / "1"))
    assert [record.command for record in service.records()] == ["waiting", "waiting"]
    late = lab.start(0, "send", str(file_of(tmp_path / "2")), "-g", "2", "--json")
    service.says("2 commands wait: files are not confirmed until one has ended")
    # It is neither placed nor confirmed.
    assert names(service.into) == ["0", "1"]
    assert late.poll() is None
    (tmp_path / "gate").touch()
    out, _ = late.communicate(timeout=LIMIT_S)
    assert json.loads(out)["failed"] == 0
    until(lambda: [record.command for record in service.records()] == ["ended"] * 3)
    order = (tmp_path / "notes").read_bytes().split(b"\0")[:-1:6]
    assert [Path(os.fsdecode(path)).name for path in order] == ["0", "1", "2"]


def test_a_file_that_waits_for_a_command_is_not_given_up_by_its_agent(tmp_path: Path) -> None:
    few = "import wormcast.receive.commands as commands\n"
    few += "from wormcast.cli import session\nfrom wormcast.receive import service\n"
    few += "commands.WAITING_MAX, session.EXTEND_INTERVAL_S, service.EXTEND_INTERVAL_S = 1, 0.1, 0.1\n"
    few += "from wormcast.cli.main import main; main(prog_name='wormcast')"
    into = tmp_path / "into"
    into.mkdir()
    lab = Lab(2, [group(1, "repeat", [0, 1]), group(2, "repeat", [0, 1])], "--receiver-stall", "2")
    env = {**environment(), "NOTES": str(tmp_path / "notes"), "GATE": str(tmp_path / "gate")}
    service = Service(lab, into, "--exec", WAIT, program=[sys.executable, "-c", few], env=env)
    try:
        service.says("receiving from group 2 (group2)")
        first = lab.start(0, "send", str(file_of(tmp_path / "0")), "-g", "1")
        assert first.wait(LIMIT_S) == 0
        late = lab.start(0, "send", str(file_of(tmp_path / "1")), "-g", "2")
        service.says("1 commands wait")
        # Longer than the agent waits for who says nothing.
        time.sleep(5)
        (tmp_path / "gate").touch()
        assert late.wait(LIMIT_S) == 0
        assert service.stop() == 0
    finally:
        service.process.kill()
        lab.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_has_not_run_to_its_end_runs_at_the_next_start(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path, number: int
) -> None:
    command = f'echo "begun $WORMCAST_FILE" >&2; {WAIT}'
    service = serve("--exec", command)
    for name in ("0", "1"):
        send(lab, 0, 1, file_of(tmp_path / name))
    service.says("begun")
    assert service.stop(number) == (0 if number == signal.SIGTERM else -9)
    if number == signal.SIGTERM:
        service.says("2 commands have not run to their end")
    else:
        # Its command lives on, and does no harm here.
        (tmp_path / "gate").touch()
        until(lambda: (tmp_path / "notes").exists())
        (tmp_path / "notes").unlink()
    assert [record.command for record in service.records()] == ["waiting", "waiting"]
    # Without --exec nothing runs, and nothing is forgotten.
    assert serve().stop() == 0
    (tmp_path / "gate").touch()
    again = serve("--exec", command)
    until(lambda: [record.command for record in again.records()] == ["ended", "ended"])
    assert (tmp_path / "notes").read_bytes().count(b"\0") == 12
    assert again.stop() == 0


def test_a_command_that_ignores_the_signal_is_killed(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    short = "import wormcast.receive.commands as commands\ncommands.STOP_S = 0.2\n"
    short += "from wormcast.cli.main import main; main(prog_name='wormcast')"
    service = serve("--exec", f'trap "" TERM; echo begun >&2; {WAIT}', program=[sys.executable, "-c", short])
    send(lab, 0, 1, file_of(tmp_path / "0"))
    service.says("begun")
    assert service.stop() == 0
    assert [record.command for record in service.records()] == ["waiting"]


JOURNAL = """
import ctypes, json, os, signal, socket, sys
# It ends with the service, which has the process that started it (prctl(2), PR_SET_PDEATHSIG).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.makedirs("/run/systemd/journal", exist_ok=True)
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
print("ready", flush=True)
while True:
    print(json.dumps(journal.recv(1 << 16).decode("latin-1")), flush=True)
"""


def test_the_journal_gets_entries_with_fields_and_systemd_the_state(lab: Lab, tmp_path: Path) -> None:
    """In a mount namespace of its own, so that no journal of this machine sees it."""
    into = tmp_path / "into"
    into.mkdir()
    state = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    state.bind(str(lab.directory / "notify"))
    state.settimeout(LIMIT_S)
    script = f"""
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd
{sys.executable} -c '{JOURNAL}' &
until [ -S /run/systemd/journal/socket ]; do sleep 0.05; done
exec {sys.executable} -c 'import os, sys
place = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{{place.st_dev}}:{{place.st_ino}}"
os.execv(sys.argv[1], sys.argv[1:])' "$@"
"""
    command = [*PROGRAM, "receive", "--into", str(into), "--socket", str(lab.socket(1))]
    command += ["--exec", 'test -z "$NOTIFY_SOCKET" && exit 5']
    service = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, "sh", *command],
        env={**environment(), "NOTIFY_SOCKET": str(lab.directory / "notify")},
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("wb"),
        text=True,
    )
    try:
        assert state.recv(4096) == b"READY=1"
        entries: list[dict[str, str]] = []

        def entry(start: str) -> dict[str, str]:
            assert service.stdout is not None
            while not entries or not entries[-1]["MESSAGE"].startswith(start):
                line = service.stdout.readline()
                if line != "ready\n":
                    entries.append(parsed(json.loads(line).encode("latin-1")))
            return entries[-1]

        assert entry("receiving from group 2")["PRIORITY"] == "6"
        file = file_of(tmp_path / "a.bin", 1234)
        send(lab, 0, 1, file)
        came = entry(str(into / "a.bin"))
        assert (came["WORMCAST_ORIGIN"], came["WORMCAST_GROUP"]) == ("0", "group1")
        assert (came["WORMCAST_FILE"], came["WORMCAST_BYTES"]) == (str(into / "a.bin"), "1234")
        assert (came["SYSLOG_IDENTIFIER"], len(came["WORMCAST_SHA256"])) == ("wormcast", 64)
        assert entry("the command for")["PRIORITY"] == "4"
        status = b""
        while b"1 received" not in status:
            status = state.recv(4096)
        assert status == b"STATUS=receiving from 2 groups; 1 received"
        service.send_signal(signal.SIGTERM)
        while state.recv(4096) != b"STOPPING=1":
            pass
        assert service.wait(LIMIT_S) == 0
        assert (tmp_path / "stderr").read_bytes() == b""
    finally:
        service.kill()
        state.close()


def parsed(entry: bytes) -> dict[str, str]:
    """As systemd's journal reads it: a name, the length of its value, the value."""
    fields = {}
    while entry:
        name, _, entry = entry.partition(b"\n")
        length = int.from_bytes(entry[:8], "little")
        fields[name.decode()] = entry[8 : 8 + length].decode()
        assert entry[8 + length : 9 + length] == b"\n"
        entry = entry[9 + length :]
    return fields


def test_what_is_here_already_is_confirmed_and_its_command_does_not_run_again(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    service = serve("--overwrite", "--exec", 'echo "$WORMCAST_FILE" >>"$NOTES"')
    file = file_of(tmp_path / "a", 5000)
    for seed, commands in [
        (1, ["ended"]),
        (1, ["ended", None]),
        (2, ["ended", None, "ended"]),
        (2, ["ended", None, "ended", None]),
    ]:
        file_of(file, 5000, seed)
        os.utime(file, (seed, seed))
        words = ["send", str(file), "-g", "1", "--changed"]
        assert lab.start(0, *words).wait(LIMIT_S) == 0
        until(
            lambda commands=commands: [one.command for one in service.records()] == commands, service.records
        )
    assert [record.outcome for record in service.records()] == ["received"] * 4
    assert (tmp_path / "notes").read_text() == f"{service.into / 'a'}\n" * 2
    assert names(service.into) == ["a"]
