"""A Docker daemon and a base image. Without what they need, every test here is skipped by name."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from composing import BASE, ROOT, SECONDS_MAX, clean, missing

CERTIFICATES = ROOT / "packaging" / "docker" / "certificates"
NEEDS = missing()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        item.add_marker(pytest.mark.network)
        item.add_marker(pytest.mark.timeout(SECONDS_MAX))
        if NEEDS is not None:
            item.add_marker(pytest.mark.skip(reason=NEEDS))


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Docker daemon, this machine's or one for these tests."""
    if subprocess.run(["docker", "info"], capture_output=True).returncode == 0:
        yield
        return
    log = tmp_path_factory.mktemp("docker") / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(["dockerd"], stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while subprocess.run(["docker", "info"], capture_output=True).returncode != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.skip(f"dockerd does not run here: {log.read_text()[-300:]}")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)


@pytest.fixture(scope="session")
def trusted() -> Iterator[None]:
    """Certificates for the build; those of whoever runs this stay."""
    before = {path: path.read_bytes() for path in CERTIFICATES.glob("*.crt")}
    subprocess.run([CERTIFICATES.parent / "trust"], check=True)
    yield
    for path in CERTIFICATES.glob("*.crt"):
        path.unlink()
    for path, certificate in before.items():
        path.write_bytes(certificate)


@pytest.fixture(scope="session")
def base(daemon: None, trusted: None, tmp_path_factory: pytest.TempPathFactory) -> str:  # noqa: ARG001
    """The base image: what `debian:12-slim` is. What is built on it trusts what this machine trusts."""
    if subprocess.run(["docker", "image", "inspect", BASE], capture_output=True).returncode == 0:
        return BASE
    more = tmp_path_factory.mktemp("base")
    apt = more / "etc" / "apt"
    apt.mkdir(parents=True)
    # Packages come from where this machine's do.
    for name in ("sources.list", "sources.list.d"):
        subprocess.run(["cp", "-aL", f"/etc/apt/{name}", f"--target-directory={apt}"], capture_output=True)
    (more / "Dockerfile").write_text(f"FROM {BASE}-bare\nCOPY etc /etc\n")
    system = subprocess.Popen(
        ["tar", "-C", clean.base(), "--exclude=./var/cache/apt/archives/*.deb", "-c", "."],
        stdout=subprocess.PIPE,
    )
    subprocess.run(
        ["docker", "import", "-", f"{BASE}-bare"], stdin=system.stdout, check=True, capture_output=True
    )
    assert system.wait() == 0
    legacy = {**os.environ, "DOCKER_BUILDKIT": "0"}
    subprocess.run(["docker", "build", "--tag", BASE, more], env=legacy, check=True, capture_output=True)
    return BASE
