"""The source distribution is built and used on a clean machine, for which everything is compiled.

That it has all it is built from, test_packages.py looks up whenever tests run.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import clean
import pytest

NEEDS = clean.missing()
pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(NEEDS is not None, reason=str(NEEDS)),
]


def test_it_builds_where_nothing_is(machine: clean.Machine, dist: Path) -> None:
    """With the Rust of this machine; what cargo fetched and compiled for others here is used again."""
    toolchain = subprocess.run(
        ["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True
    ).stdout.strip()
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    shared = {
        "/toolchain": Path(toolchain),
        str(cargo / "registry"): cargo / "registry",
        "/target": clean.ROOT / "target",
    }
    (archive,) = dist.glob("wormcast-*.tar.gz")
    machine = clean.Machine(machine.directory, {**machine.shared, **shared})
    machine.run(f"{clean.INSTALL} python3 python3-venv gcc libc6-dev")
    machine.run(
        f"export PATH=/toolchain/bin:$PATH CARGO_TARGET_DIR=/target CARGO_HOME={cargo}; "
        f"python3 -m venv /opt/wormcast && /opt/wormcast/bin/pip install -q /dist/{archive.name}"
    )
    done = machine.run(
        "export PATH=/opt/wormcast/bin:$PATH; wormcast verify --json --topology <(wormcast topo make torus:3); "
        "wormcast-switch --version; wormcast-agent --version; wormcast controller run --help >/dev/null"
    )
    assert '"deadlock_free": true' in done.stdout
