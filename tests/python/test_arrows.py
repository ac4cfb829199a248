"""The arrows between crates, packages and files point down; see tests/arrows.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("arrows", ROOT / "tests" / "arrows.py")
assert spec is not None
assert spec.loader is not None
arrows = importlib.util.module_from_spec(spec)
sys.modules["arrows"] = arrows
spec.loader.exec_module(arrows)


def write(base: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return base


def uses(graph: arrows.Graph, base: Path) -> dict[str, list[str]]:
    return {
        str(file.relative_to(base)): sorted(str(target.relative_to(base)) for target in targets)
        for file, targets in graph.items()
        if targets
    }


def test_every_arrow_points_down() -> None:
    found = list(arrows.faults())
    assert not found, "\n".join(found)


def test_every_crate_has_its_rules() -> None:
    depths = ("*/Cargo.toml", "*/*/Cargo.toml", "*/*/*/Cargo.toml")
    crates = {str(path.parent.relative_to(ROOT)) for depth in depths for path in ROOT.glob(depth)}
    assert crates - {"switch/fuzz"} == set(arrows.CRATES)


def test_names_lead_to_the_file_that_has_them(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        {
            "lib.rs": "mod a;\nmod b;\npub use a::{inner::Deep as Renamed, Flat};\npub use b::*;",
            "a/mod.rs": "pub mod inner;\npub struct Flat;",
            "a/inner.rs": "pub struct Deep; // use crate::b::Wide;",
            "b.rs": 'pub struct Wide;\nfn f() -> impl Sized + use<> { crate::Renamed; "crate::a::Flat" }',
            "c.rs": "use super::{Flat, Wide};\n#[cfg(test)]\nmod tests { use crate::Renamed; }",
        },
    )
    assert uses(arrows.rust_graph(source), source) == {"b.rs": ["a/inner.rs"], "c.rs": ["a/mod.rs", "b.rs"]}


@pytest.mark.parametrize(
    ("back", "found"),
    [
        ("", []),
        ("use crate::low::Low;", []),
        ("use crate::top::Top;", ["files in a circle wider than one folder", "folders in a circle"]),
        ("use crate::top::side::Side;", ["folders in a circle"]),
    ],
)
def test_a_circle_of_rust_files_is_found(tmp_path: Path, back: str, found: list[str]) -> None:
    source = write(
        tmp_path,
        {
            "lib.rs": "mod low; mod top;",
            "top/mod.rs": "pub mod side;\npub struct Top { low: crate::low::Part }",
            "top/side.rs": "pub struct Side;",
            "low/mod.rs": "mod part;\npub use part::Part;\npub struct Low;",
            "low/part.rs": f"{back}\npub struct Part;",
        },
    )
    faults = arrows.graph_faults(source, arrows.rust_graph(source))
    assert [fault.split(": ")[1] for fault in faults] == found


@pytest.mark.parametrize(
    ("name", "back", "found"),
    [
        ("guard", "", []),
        ("other", "", ["folders in a circle"]),
        ("guard", "use crate::engine::Engine;", ["files in a circle wider than one folder"]),
    ],
)
def test_a_features_folder_holds_what_others_use_and_what_acts_on_them(
    tmp_path: Path, name: str, back: str, found: list[str]
) -> None:
    source = write(
        tmp_path,
        {
            "lib.rs": f"mod engine; mod {name};",
            "engine/mod.rs": f"pub struct Engine {{ state: crate::{name}::state::State }}",
            f"{name}/mod.rs": "mod engine; pub mod state;",
            f"{name}/state.rs": f"{back}\npub struct State;",
            f"{name}/engine.rs": "impl crate::engine::Engine {}",
        },
    )
    faults = arrows.graph_faults(source, arrows.rust_graph(source))
    assert [fault.split(": ")[1] for fault in faults] == found


def test_a_feature_may_be_one_file(tmp_path: Path) -> None:
    """In the root of a crate, whose folders it uses, and which use it."""
    source = write(
        tmp_path,
        {
            "lib.rs": "mod low; mod mtu;",
            "low/mod.rs": "pub struct Low;",
            "low/user.rs": "use crate::mtu::Limits;",
            "mtu.rs": "use crate::low::Low; pub struct Limits;",
        },
    )
    graph = arrows.rust_graph(source)
    assert arrows.graph_faults(source, graph) == []


@pytest.mark.parametrize(
    ("child", "sizes"),
    [
        ("", []),
        ("use super::Handed;", []),
        ("use super::Imported;", []),
        ("use super::own;", [2]),
        ("fn f() -> u8 { crate::top::own() }", [2]),
        ("use super::other::Other;", [3]),
        ("#[cfg(test)]\nmod tests { use super::super::own; }", []),
    ],
)
def test_a_circle_of_rust_files_in_one_folder_is_found(tmp_path: Path, child: str, sizes: list[int]) -> None:
    source = write(
        tmp_path,
        {
            "lib.rs": "mod low; mod top;",
            "low.rs": "pub struct Imported; pub struct Handed;",
            "top/mod.rs": "mod side; mod other; use crate::low::Imported; pub use crate::low::Handed;\n"
            "use side::Side; pub fn own() -> u8 { 1 }",
            "top/side.rs": f"pub struct Side;\n{child}",
            "top/other.rs": "use super::own; pub struct Other;",
        },
    )
    graph = arrows.rust_graph(source)
    assert [len(circle) for circle in arrows.circles(graph)] == sizes
    assert len(arrows.circle_faults(source, graph)) == len(sizes)


@pytest.mark.parametrize(
    ("back", "found"),
    [
        ("", []),
        ("from package.low import helper", []),
        ("import package.top.tall", ["files in a circle wider than one folder", "folders in a circle"]),
        ("from package.top import other", ["folders in a circle"]),
    ],
)
def test_a_circle_of_python_files_is_found(tmp_path: Path, back: str, found: list[str]) -> None:
    folder = write(
        tmp_path / "package",
        {
            "top/__init__.py": "",
            "top/tall.py": "from package.low.part import Part",
            "top/other.py": "",
            "low/__init__.py": "",
            "low/helper.py": "",
            "low/part.py": f"{back}\nclass Part: ...",
        },
    )
    faults = arrows.graph_faults(folder, arrows.python_graph("package", folder))
    assert [fault.split(": ")[1] for fault in faults] == found


def test_the_testbed_is_used_by_its_commands_alone_and_uses_no_controller(tmp_path: Path) -> None:
    testbed = write(
        tmp_path / "mininet" / "testbed",
        {
            "__init__.py": "",
            "fabric.py": "from package import client",
            "keep.py": "from package.reconcile import plan",
        },
    )
    folder = write(
        tmp_path / "package",
        {
            "client/__init__.py": "",
            "cli/fabric.py": "def up():\n    from package.mininet import fabric",
            "reconcile/plan.py": "from package.mininet.fabric import Fabric",
        },
    )
    (folder / "mininet").symlink_to(testbed)
    faults = arrows.testbed_faults(folder, arrows.python_graph("package", folder))
    assert [fault.split(";")[0] for fault in faults] == [
        "mininet/keep.py: the testbed may not use reconcile/plan.py",
        "reconcile/plan.py: uses the testbed, mininet/fabric.py",
    ]


def test_types_of_the_binding_that_are_the_controllers_are_found(tmp_path: Path) -> None:
    stub = tmp_path / "binding.pyi"
    stub.write_text("from typing import Protocol\nfrom wormcast.network.ids import HostId")
    assert arrows.stub_faults(stub) == ["binding.pyi: imports wormcast.network.ids.HostId, which is above it"]


def test_a_manifest_that_points_up_or_does_io_is_found() -> None:
    routing = arrows.CRATES["routing"]
    assert arrows.manifest_faults("routing", ["serde"], routing) == []
    faults = arrows.manifest_faults("routing", ["serde", "tokio", "wormcast-switch"], routing)
    assert "routing: depends on wormcast-switch, which is not below it" in faults
    assert "routing: is pure and depends on tokio" in faults
