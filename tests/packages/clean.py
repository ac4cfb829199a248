"""Clean machines: a fresh Debian or Ubuntu in a directory, thrown away after each test.

The base is made once by debootstrap and kept in .build/clean; each machine is an overlay on it, in namespaces of its
own, so that nothing of it is left however the test ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".build" / "clean"
SECONDS_MAX = 1800.0
"""Only against hanging for ever."""
INSTALL = "apt-get update -qq && apt-get install -y -qq --no-install-recommends"
SETTINGS = (
    "/etc/apt/apt.conf.d",
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/trusted.gpg.d",
)
"""Where this machine's packages come from, and theirs."""


def suite() -> str:
    """The release of this machine, such as bookworm."""
    lines = Path("/etc/os-release").read_text().splitlines()
    names = dict(line.split("=", 1) for line in lines if "=" in line)
    return names["VERSION_CODENAME"].strip('"')


def missing() -> str | None:
    """What keeps this machine from making clean ones; None: nothing."""
    if os.geteuid() != 0:
        return "not root"
    return None if shutil.which("debootstrap") else "debootstrap is not installed"


def base() -> Path:
    """The directory of an untouched system, made when there is none."""
    place = KEPT / suite()
    if not place.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        fresh = KEPT / f"{suite()}.{os.getpid()}"
        try:
            subprocess.run(
                ["debootstrap", "--variant=minbase", suite(), fresh],
                check=True,
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
            )
            fresh.rename(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return place


@dataclass(frozen=True)
class Machine:
    """A clean machine. `directory`: where its changes go. `shared`: directories of this machine that it sees,
    by their places there; what it changes in them is its own."""

    directory: Path
    shared: dict[str, Path]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a Bash script on it as root; changes stay until the next one."""
        mounts = "\n".join(
            f"lay {here} {number} $new{there}" for number, (there, here) in enumerate(self.shared.items())
        )
        settings = "\n".join(
            f'[ ! -e {path} ] || {{ rm -rf "$new{path}" && cp -a {path} "$new{path}"; }}' for path in SETTINGS
        )
        prepare = f"""
set -e
new={self.directory}/root
lay() {{  # DIRECTORY NAME PLACE: the directory, with changes of its own, at a place
  mkdir -p {self.directory}/$2/changes {self.directory}/$2/work "$3"
  mount -t overlay overlay -o lowerdir=$1,upperdir={self.directory}/$2/changes,workdir={self.directory}/$2/work "$3"
}}
mkdir -p {KEPT}/archives
lay {base()} system $new
mount -t proc proc $new/proc
mount -t sysfs sysfs $new/sys
mount --rbind /dev $new/dev
mount --bind {KEPT}/archives $new/var/cache/apt/archives
cp -L /etc/resolv.conf $new/etc/resolv.conf
cp -L /etc/hosts $new/etc/hosts
{settings}
mkdir -p $new/usr/share/keyrings $new/etc/ssl/certs
cp -a -n /usr/share/keyrings/. $new/usr/share/keyrings/
cp -L /etc/ssl/certs/ca-certificates.crt $new/etc/ssl/certs/
{mounts}
# Not chroot alone: what enters the namespaces of a process, as Mininet does, would be outside.
mkdir -p $new/outside
cd $new
mount --make-rprivate /
pivot_root . outside
exec chroot . /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $(env | grep -E '^(PIP|[a-z]+_proxy)' | tr '\\n' ' ') \
  bash -ec 'umount -l /outside; rmdir /outside; cd /; '"$SCRIPT"
"""
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "bash", "-c", prepare],
            env={**os.environ, "SCRIPT": script},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done
