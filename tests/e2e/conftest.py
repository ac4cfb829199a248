"""End-to-end tests run inside one sandbox, each module with a fabric of its own.

Run them with `make test`, or `.venv/bin/python -m wormcast.mininet.sandbox pytest tests/e2e`.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet import fabric as fabrics
from wormcast.mininet import sandbox, topologies

SWITCHES = ["wormcast", "bmv2"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to touch the machine's own network."""
    if items and not sandbox.inside() and not config.option.collectonly:
        raise pytest.UsageError(
            "end-to-end tests run in a sandbox: .venv/bin/python -m wormcast.mininet.sandbox pytest tests/e2e"
        )


@pytest.fixture(scope="module")
def make_fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., fabrics.Fabric]]:
    """Bring up fabrics that are taken down when the module ends, failed or not."""
    made: list[fabrics.Fabric] = []

    def make(topology: str = "testbed", **options: Any) -> fabrics.Fabric:
        for old in made:  # one at a time: they share names and addresses
            old.close()
        made.clear()
        settings = fabrics.Options(topologies.load_topology(topology), **options)
        fabric = fabrics.Fabric(settings, tmp_path_factory.mktemp("fabric"))
        made.append(fabric)
        fabric.__enter__()
        fabric.wait_ready()
        return fabric

    yield make
    for fabric in made:
        fabric.close()


@pytest.fixture(params=SWITCHES, scope="module")
def switch(request: pytest.FixtureRequest) -> str:
    """Each switch that is installed; the run says which it skipped."""
    kind: str = request.param
    if kind == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on the PATH")
    return kind


@pytest.fixture
def random_file(tmp_path: Path) -> Callable[[int], Path]:
    """Make a file of so many random bytes."""

    def make(size: int) -> Path:
        path = tmp_path / "random.bin"
        path.write_bytes(secrets.token_bytes(size))
        return path

    return make
