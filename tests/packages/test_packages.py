"""Every package of `make dist` is installed and used on a clean machine.

.venv/bin/pytest tests/packages       makes the packages first; WORMCAST_DIST=DIRECTORY takes those that are there
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
INSTALL = "apt-get update -qq && apt-get install -y -qq --no-install-recommends"
DEMO = "cd /root && wormcast demo --topology line:2 --size 256KiB --schemes tree,switch --out /root/demo"


@pytest.fixture(scope="session")
def dist() -> Path:
    if (given := os.environ.get("WORMCAST_DIST")) is not None:
        return Path(given).resolve()
    subprocess.run([sys.executable, ROOT / "packaging" / "package.py"], check=True, cwd=ROOT)
    return ROOT / "dist"


@pytest.fixture
def machine(dist: Path) -> Iterator[clean.Machine]:
    """A clean machine that sees the packages, and the Mininet script, in /dist and /script.py."""
    import tempfile

    # Not below pytest's own directory, which would be kept: these are large.
    with tempfile.TemporaryDirectory(prefix="wormcast-clean-", dir=clean.KEPT.parent) as directory:
        yield clean.Machine(Path(directory), {"/dist": dist})


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
    machine.run(f"{INSTALL} systemd adduser bash-completion && useradd -m alice")
    later = typed(tuple(line.replace(" --now", "") for line in services))
    enabled = machine.run(
        f"export SYSTEMD_OFFLINE=1\n{later}\nls /etc/systemd/system/multi-user.target.wants; id -nG alice"
    ).stdout
    for unit in ("controller", "agent@eth1", "switch"):
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
stat -c '%U:%G %a %n' /run/wormcast/*
kill $(jobs -p); wait || true
END
"""
    ).stdout
    assert "1 host" in served
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


def test_the_source_distribution(machine: clean.Machine, dist: Path) -> None:
    """With the Rust of this machine; what cargo fetched and compiled for others here is used again."""
    toolchain = subprocess.run(
        ["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True
    ).stdout.strip()
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    shared = {
        "/toolchain": Path(toolchain),
        str(cargo / "registry"): cargo / "registry",
        "/target": ROOT / "target",
    }
    machine = clean.Machine(machine.directory, {**machine.shared, **shared})
    machine.run(f"{INSTALL} python3 python3-venv gcc libc6-dev")
    machine.run(
        f"export PATH=/toolchain/bin:$PATH CARGO_TARGET_DIR=/target CARGO_HOME={cargo}; "
        f"python3 -m venv /opt/wormcast && /opt/wormcast/bin/pip install -q /dist/{one(dist, 'wormcast-*.tar.gz')}"
    )
    done = machine.run(
        "export PATH=/opt/wormcast/bin:$PATH; wormcast verify --json --topology <(wormcast topo make torus:3); "
        "wormcast-switch --version; wormcast-agent --version; wormcast controller run --help >/dev/null"
    )
    assert '"deadlock_free": true' in done.stdout


def test_sums_are_those_of_the_packages(dist: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=dist, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": OK") == 4
