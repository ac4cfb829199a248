"""Fixtures for tests of switches that are installed."""

import os

import pytest

from rig.targets import Target, targets


@pytest.fixture(scope="session", params=targets(), ids=lambda target: target.name)
def target(request: pytest.FixtureRequest) -> Target:
    """Each switch; skipped where it is not installed or this is not root."""
    found: Target = request.param
    if found.binary is None:
        pytest.skip(found.missing)
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    return found
