"""Fixtures: vectors, and each switch that is installed, running the compiled program."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from rig.fixtures import target as target
from rig.host import SwitchRig
from rig.targets import Target
from vector_files import load_vectors

# The same examples in every run, and no time limit for one of them on a busy machine.
settings.register_profile("conformance", deadline=None, derandomize=True)
settings.load_profile("conformance")


@pytest.fixture(scope="session")
def switch(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchRig]:
    """A running switch with the ports of every state of worm_switch.json."""
    states = load_vectors("worm_switch.json")["states"]
    ports = sorted({port for state in states.values() for port in state["ports"]})
    with SwitchRig(target, tmp_path_factory.mktemp(target.name), ports) as rig:
        yield rig
