"""Labs of containers: what their programs are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from wormcast import lab_files, routing
from wormcast.cli.main import main


@pytest.mark.parametrize("out", [frozenset(), frozenset({1}), frozenset({0, 4, 5})])
def test_hosts_that_re_inject_nothing_have_agents_that_say_so(out: frozenset[int]) -> None:
    network = routing.make("ring:3:2")
    for host in network["hosts"]:
        if host["id"] in out:
            host["transit"] = False
    nodes = lab_files.nodes(network, 1, "controller:9600", {f"s{s}": f"s{s}" for s in range(3)}, (1500, 1600))
    told = {node.name for node in nodes if "--no-transit" in node.script}
    assert told == {f"h{host}" for host in out}
    assert lab_files.containerlab(network).count("--no-transit") == len(out)
    assert sum(text.count("--no-transit") for text in lab_files.kathara(network).values()) == len(out)


def test_a_folder_for_kathara_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "lab"
    file.write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for output, why in [(file, "is a file"), (tmp_path / "full", "is not empty")]:
        arguments = ["topo", "lab", "star:2", "--for", "kathara", "--output", str(output)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 2
        assert f"{output} {why}; a lab for kathara takes a folder that is empty or new" in result.output
    assert file.read_text() == "mine"
