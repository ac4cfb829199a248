"""Every package of `make dist` is installed and used on a clean machine.

.venv/bin/pytest tests/packages       makes the packages first; WORMCAST_DIST=DIRECTORY takes those that are there
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import clean
import pytest

ROOT = clean.ROOT
sys.path.insert(0, str(ROOT / "tests" / "python"))

from document_lab.pages import console  # noqa: E402

NEEDS = clean.missing()
pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(NEEDS is not None, reason=str(NEEDS)),
]
DEMO = "cd /root && wormcast demo --topology line:2 --size 256KiB --schemes tree,switch --out /root/demo"


def one(dist: Path, pattern: str) -> str:
    """The name of the one package of a kind."""
    (path,) = dist.glob(pattern)
    return path.name


def readers_script() -> str:
    """The Mininet script that a reader of docs/install.md runs."""
    page = (ROOT / "docs" / "install.md").read_text()
    (script,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(script)


def typed(commands: tuple[str, ...]) -> str:
    """A script that does what a reader of these commands does: says yes to apt, leaves `wormcast up` when it is up."""
    lines = ["cd /", "export APT_CONFIG=/root/yes", "echo 'APT::Get::Assume-Yes \"true\";' >$APT_CONFIG"]
    for command in commands:
        if command == "wormcast up":
            lines += [
                f"{command} >/root/up 2>&1 & up=$!",
                "until grep -q '^fabric up' /root/up; do kill -0 $up || { cat /root/up; exit 1; }; sleep 0.1; done",
                "kill $up; wait $up || true; cat /root/up",
            ]
        elif command != "make dist":  # which has made what is in /dist
            lines.append(command)
    return "\n".join(lines)


def test_the_debian_package(machine: clean.Machine, dist: Path) -> None:
    said = console("docs/install.md", "Debian package")
    install, services = said[: said.index("wormcast up") + 1], said[said.index("wormcast up") + 1 :]
    assert one(dist, "wormcast_*.deb") in " ".join(install)
    machine.run("apt-get update -qq")
    assert "fabric up: 4 switches, 8 hosts" in machine.run(typed(install)).stdout
    assert "report: " in machine.run(DEMO).stdout
    done = machine.run(
        f"cat > /script.py <<'END'\n{readers_script()}END\nunshare --net sh -c 'ip link set lo up; python3 /script.py'"
    )
    assert "group 0 (group-0): switch" in done.stdout

    # The services: they can be enabled, systemd finds nothing wrong with them, and what they run does what it
    # should. Nothing boots here, so systemd starts none.
    machine.run(f"{clean.INSTALL} systemd adduser bash-completion && useradd -m alice")
    later = typed(tuple(line.replace(" --now", "") for line in services))
    enabled = machine.run(
        f"export SYSTEMD_OFFLINE=1\n{later}\nls /etc/systemd/system/multi-user.target.wants; id -nG alice"
    ).stdout
    for unit in ("controller", "agent@eth1", "switch", "receive"):
        assert f"wormcast-{unit}.service" in enabled
    assert enabled.splitlines()[-1] == "alice wormcast"
    units = machine.run("systemd-analyze verify /lib/systemd/system/wormcast-*.service 2>&1 || true").stdout
    assert "wormcast" not in units.replace("Failed to add dependency on net-devices", ""), units
    served = machine.run(
        """
unshare --net bash -e <<'END'
ip link set lo up
. /etc/default/wormcast
start() { sed -n 's/^ExecStart=//p' /lib/systemd/system/$1 | sed "s/%I/$2/"; }
as() { setpriv --reuid wormcast --regid wormcast --init-groups --inh-caps=$1 --ambient-caps=$1 "${@:2}"; }
ip link add eth1 type veth peer name p0 && ip link set eth1 up && ip link set p0 up
install -d -o wormcast -g wormcast /var/lib/wormcast
echo '{"switches": [{"id": 0, "address": "127.0.0.1:50051", "ports": 8}]}' > /etc/wormcast/switches.json
SWITCH_OPTIONS="-i 0@p0 -- --grpc-server-addr 127.0.0.1:50051 --cpu-port 510"
as +net_raw,+net_admin $(eval echo $(start wormcast-switch.service)) &
as -all $(eval echo $(start wormcast-controller.service)) &
as +net_raw $(eval echo $(start wormcast-agent@.service eth1)) &
for _ in $(seq 1200); do wormcast host list --json 2>/dev/null | grep -q '"state": "up"' && break; sleep 0.1; done
wormcast host list
install -d -o wormcast-receive -g wormcast-receive -m 0750 /var/lib/wormcast-receive
setpriv --reuid wormcast-receive --regid wormcast-receive --groups $(getent group wormcast | cut -d: -f3) \
  $(eval echo $(start wormcast-receive.service)) --metrics unix:/tmp/receive.sock &
for _ in $(seq 1200); do [ -e /var/lib/wormcast-receive/.wormcast-history.jsonl ] && break; sleep 0.1; done
stat -c '%U %n' /var/lib/wormcast-receive/.wormcast-history.jsonl
stat -c '%U:%G %a %n' /run/wormcast/*
kill $(jobs -p); wait || true
END
"""
    ).stdout
    assert "1 host" in served
    assert "wormcast-receive /var/lib/wormcast-receive/.wormcast-history.jsonl" in served
    assert "wormcast:wormcast 660 /run/wormcast/agents.sock" in served
    assert "wormcast:wormcast 660 /run/wormcast/agent.sock" in served

    machine.run("apt-get purge -y -qq wormcast; ! dpkg -s wormcast 2>/dev/null; ! getent passwd wormcast")
    left = machine.run(
        "find / -xdev -iname '*wormcast*' -not -path '/dist/*' -not -path '/root/*' -not -path '/proc/*'"
    )
    assert not [line for line in left.stdout.splitlines() if "/apt/" not in line and "/dpkg/" not in line]


def test_the_wheel(machine: clean.Machine) -> None:
    machine.run("apt-get update -qq")
    # One at a time: apt makes the list of certificates anew, and pip needs ours.
    for command in console("docs/install.md", "Wheel"):
        machine.run(typed((command,)))
    done = machine.run(
        f"export PATH=/wormcast-venv/bin:$PATH; {DEMO}; wormcast verify --json --topology <(wormcast topo make torus:3)"
    )
    assert "report: " in done.stdout
    assert '"deadlock_free": true' in done.stdout
    # Without root, Mininet or a virtual environment's activation.
    planned = machine.run(
        "useradd -m alice; runuser -u alice -- bash -c 'cd; /wormcast-venv/bin/wormcast topo make torus:3 > net.json; "
        "/wormcast-venv/bin/wormcast group plan --topology net.json --members 0,1,2 --source 0 --scheme tree --json'"
    )
    assert '"scheme": "tree"' in planned.stdout


MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Processors: Debian's names, and the kernel's."""


@pytest.mark.parametrize("processor", MACHINES)
def test_static_programs_need_nothing_of_the_machine(dist: Path, tmp_path: Path, processor: str) -> None:
    """They run where there is no C library at all, those of the other processor under qemu-user: a packet test of
    p4c's form through the switch's pipeline."""
    emulator = f"qemu-{MACHINES[processor]}"
    native = MACHINES[processor] == os.uname().machine
    where = dist if native else dist / processor
    archives = list(where.glob(f"wormcast-programs-*-linux-{processor}.tar.xz"))
    if not native and not archives:
        pytest.skip(f"no programs for {processor} in {where} (setup/arm64 programs)")
    if not native and shutil.which(emulator) is None:
        pytest.skip(f"{emulator} is not installed")
    (archive,) = archives
    room = tmp_path / "room"
    room.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", room, "--strip-components=1"], check=True)
    programs = ROOT / "switch" / "tests" / "programs"
    for suffix in ("json", "stf"):
        (room / f"meters.{suffix}").write_bytes((programs / f"meters.{suffix}").read_bytes())

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["chroot", str(room), f"/bin/{program}"] if native else [emulator, f"bin/{program}"]
        return subprocess.run([*command, *arguments], cwd=room, capture_output=True, text=True)

    for program in ("wormcast-switch", "wormcast-agent"):
        assert run(program, "--version").stdout.startswith("wormcast-")
    tested = run("wormcast-stf", "meters.json", "meters.stf")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert {path.name for path in (room / "completions").iterdir()} == {"bash", "zsh", "fish"}


def git_files(*paths: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *paths], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.splitlines()
    return set(listed)


def test_the_source_distribution_has_all_that_its_rust_parts_are_built_from(dist: Path) -> None:
    with tarfile.open(dist / one(dist, "wormcast-*.tar.gz")) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    not_built = (
        "switch/bench/",
        "switch/fuzz/",
        "switch/labs/",
        "switch/tests/python/",
        "verify/tests/python/",
    )
    wanted = {
        name
        for name in git_files("Cargo.toml", "Cargo.lock", *members)
        if not name.startswith(not_built) and not name.endswith((".gitignore", ".gitattributes"))
    }
    for name in [name for name in wanted if name.endswith(".rs")]:
        for text in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', (ROOT / name).read_text()):
            wanted.add(os.path.relpath((ROOT / name).parent / text, ROOT))
    assert len(wanted) > 500
    assert not wanted - held


def test_sums_are_those_of_the_packages(dist: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=dist, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": OK") == 4
