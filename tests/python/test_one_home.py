"""Lists and bounds of the wire have one home; shipped Python asks `wormcast_planner` for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from wormcast import routing, wire
from wormcast.cli.group_plan import SHAPES
from wormcast.client import frames
from wormcast.directory.server import PLAN_BYTES_MAX
from wormcast.discovery.lldp import NAME_BYTES_MAX
from wormcast.mininet import report
from wormcast.network.group_body import ParametersBody
from wormcast.network.groups import SCHEME_DEFAULT, SCHEMES, Parameters
from wormcast_planner import GROUP_BROADCAST, HOST_ID_MAX, PORT_ID_MAX, SWITCH_ID_MAX, is_copied_by_switches

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = sorted(path for folder in ("controller", "mininet") for path in (ROOT / folder).rglob("*.py"))
SHIPPED = [path for path in SHIPPED if not path.name.startswith("agent_pb2")]
LISTS = {
    "schemes": frozenset(SCHEMES),
    "algorithms": frozenset(routing.algorithms()),
    "topology formats": frozenset(routing.topology_formats()),
}
ALIKE_MAX = 2
"""Names of one list that a literal may hold; more of them are a copy."""
ALLOWED = {
    ("mininet/testbed/report.py", "schemes"),  # a sentence about each: held equal below
    ("controller/wormcast/cli/route.py", "algorithms"),  # those that draw paths
    ("controller/wormcast/cli/group_plan.py", "schemes"),  # those that switches copy: held equal below
    ("controller/wormcast/cli/measuring.py", "schemes"),  # three among which each cost shows
}
BOUNDS = {PORT_ID_MAX, PORT_ID_MAX + 1, HOST_ID_MAX, SWITCH_ID_MAX}


def literals(tree: ast.AST) -> Iterator[set[str]]:
    """The texts of each list, tuple, set, dictionary and enumeration that is written out."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = list(node.elts)
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        elif isinstance(node, ast.ClassDef):
            parts = [item.value for item in node.body if isinstance(item, ast.Assign)]
        yield {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_has_a_list_or_a_bound_of_its_own(path: Path) -> None:
    tree = ast.parse(path.read_text())
    name = str(path.relative_to(ROOT))
    copies = [
        (what, sorted(found & known))
        for found in literals(tree)
        for what, known in LISTS.items()
        if len(found & known) > ALIKE_MAX and (name, what) not in ALLOWED
    ]
    assert not copies
    if path.name != "wire.py":
        numbers = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not {number for number in numbers if type(number) is int} & BOUNDS


@pytest.mark.parametrize(
    ("bound", "file", "name"),
    [
        (frames.CONTROL_BYTES_MAX, "core/src/api/frame.rs", "CONTROL_BYTES_MAX"),
        (frames.DATA_BYTES_MAX, "core/src/api/frame.rs", "DATA_BYTES_MAX"),
        (PLAN_BYTES_MAX, "src/directory/mod.rs", "PLAN_BYTES_MAX"),
        (NAME_BYTES_MAX, "src/options.rs", "NAME_BYTES_MAX"),
    ],
)
def test_both_ends_of_a_connection_have_the_same_bound(bound: int, file: str, name: str) -> None:
    found = re.search(rf"const {name}: usize = (\d+)(?: << (\d+))?;", (ROOT / "hostagent" / file).read_text())
    assert found is not None
    assert bound == int(found[1]) << int(found[2] or 0)


def test_what_is_said_of_schemes_is_said_of_all() -> None:
    assert tuple(report.SCHEME_NOTES) == SCHEMES
    assert SCHEME_DEFAULT in SCHEMES
    assert set(SCHEMES) == {*routing.schemes(), "auto"}
    assert set(SHAPES["guard"]) == {name for name in routing.schemes() if is_copied_by_switches(name)}


def test_an_option_of_a_group_is_known_to_rest_controller_and_planner() -> None:
    """The compiler sees Rust alone, and mypy not what Rust reads of a Python object."""
    python = ROOT / "planner" / "python"
    stub = ast.parse((python / "wormcast_planner.pyi").read_text())
    given = {
        each.name: {part.name for part in each.body if isinstance(part, ast.FunctionDef)}
        for each in stub.body
        if isinstance(each, ast.ClassDef)
    }
    options = {one.name for one in fields(Parameters)}
    assert options == set(ParametersBody.model_fields) == given["ParametersLike"]
    read = set(re.findall(r'"(\w+)"', (python / "src" / "given_group.rs").read_text()))
    assert read == given["GroupLike"] | options
    # What is no shape is left out where a file is asked for: plan_requests.py.
    assert {name.rstrip("_") for name in options} - set(SHAPES) == {"ordered", "rate_bits"}


def test_the_numbers_of_the_p4_program_are_those_of_the_wire() -> None:
    assert wire.PORT_MAX == PORT_ID_MAX
    assert wire.CLASS_D_SOURCE == HOST_ID_MAX + 1
    assert wire.GROUP_BROADCAST == GROUP_BROADCAST
