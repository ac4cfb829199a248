"""Fixtures: each switch that is installed, running the compiled program of Wormcast's data plane."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from rig.fixtures import target as target
from rig.host import SwitchRig
from rig.targets import Target

PORTS = range(8)
# The same examples in every run, and no time limit for one of them on a busy machine.
settings.register_profile("switch", deadline=None, derandomize=True)
settings.load_profile("switch")


@pytest.fixture(scope="session")
def switch(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchRig]:
    with SwitchRig(target, tmp_path_factory.mktemp(target.name), [*PORTS]) as rig:
        yield rig
