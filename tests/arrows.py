"""Who uses whom: the arrows between our crates, packages and files.

    .venv/bin/python tests/arrows.py           what breaks a rule, a line each
    .venv/bin/python tests/arrows.py CRATE     the arrows between the folders of a crate or package, and its circles of files

The rules: a crate depends only on those that `CRATES` names; a pure one has the clippy.toml that denies IO. Within a
crate or a Python package, files that use each other in a circle lie in one folder, and folders use each other in no
circle, so that each folder is above those it uses. What only tests use is no arrow: `#[cfg(test)]` modules are left out.
A feature (`FEATURES`) has one folder, or one file, of its name in each layer: there is all of it, so that the rest can be
read without it. It holds what those above use, such as its part of the state, beside what acts on those, such as its part of the
engine. So its folder is neither above nor below others, and the rule of folders leaves it out. That of files holds for it too.
The testbed (`mininet/`) uses what `TESTBED_USES` names; the modules of `TESTBED_USERS` alone use it.

In Rust no files use each other in a circle at all. A file uses another if
it names something that is written there: by a `use` or by a path. A name that was handed on, by `pub use` or because a
module above imported it, leads to the file that has it, so a parent that only declares its children or hands their names
on uses none of them. Calling a method or reading a field names no file.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Crate:
    """A crate of ours: what it may depend on of ours, and whether it is pure."""

    uses: frozenset[str] = frozenset()
    pure: bool = False


def pure(*uses: str) -> Crate:
    return Crate(frozenset(uses), pure=True)


def shell(*uses: str) -> Crate:
    return Crate(frozenset(uses))


def switch(*crates: str) -> list[str]:
    """Names of crates of the switch."""
    return [f"wormcast-switch-{crate}" for crate in crates]


# By folder; ARCHITECTURE.md, "The parts", sums it up.
CRATES = {
    "wire": pure(),
    "words": pure(),
    "routing": pure("wormcast-wire"),
    "verify": pure("wormcast-wire", "wormcast-routing"),
    "planner": pure("wormcast-wire", "wormcast-routing", "wormcast-verify", "wormcast-agent-proto"),
    "planner/python": shell(
        "wormcast-wire", "wormcast-routing", "wormcast-verify", "wormcast-planner", "wormcast-agent-proto"
    ),
    "protocol": pure("wormcast-wire"),
    "hostagent/proto": pure(),
    "hostagent/core": pure("wormcast-wire", "wormcast-routing", "wormcast-protocol", "wormcast-agent-proto"),
    "hostagent/bundle": shell("wormcast-words"),
    "hostagent/bundle/python": shell("wormcast-bundle", "wormcast-words"),
    "hostagent": shell(
        "wormcast-wire", "wormcast-words", "wormcast-protocol", "wormcast-agent-core", "wormcast-agent-proto"
    ),
    "switch/program": pure(),
    "switch/pipeline": pure("wormcast-switch-program"),
    "switch/flow": pure(),
    "switch/jit": shell("wormcast-switch-program", "wormcast-switch-pipeline"),
    "switch/ports": shell("wormcast-switch-flow"),
    "switch/listen": shell(),
    "switch/dataplane": shell("wormcast-words", *switch("program", "pipeline", "flow", "ports")),
    "switch/p4runtime": shell(*switch("program", "pipeline", "dataplane", "listen")),
    "switch/gnmi": shell(*switch("dataplane")),
    "switch/bmv2": shell(*switch("program", "pipeline", "dataplane", "listen")),
    "switch/stf": shell(*switch("program", "pipeline", "flow", "jit", "dataplane", "bmv2")),
    "switch": shell(
        "wormcast-words",
        *switch(
            "program", "pipeline", "flow", "jit", "ports", "listen", "dataplane", "p4runtime", "gnmi", "bmv2"
        ),
    ),
    "tests/fabric": shell(
        "wormcast-wire",
        "wormcast-routing",
        "wormcast-planner",
        "wormcast-protocol",
        "wormcast-agent-core",
        "wormcast-agent-proto",
        *switch("program", "pipeline", "jit"),
    ),
}
# What a pure crate may have of others: none of these can do IO by itself.
PURE_LIBRARIES = {
    "bytes", "crc32fast", "hashbrown", "md-5", "prost", "quick-xml", "rand_chacha", "rand_core", "serde", "serde_json",
    "sha2", "thiserror", "twox-hash",
}  # fmt: skip
PACKAGES = {"wormcast": "controller/wormcast"}
# Pure Python packages and what they must not import.
PURE_PACKAGES = [
    f"controller/wormcast/{name}" for name in ("network", "discovery", "routing", "verify", "pictures")
]
# The same of features' files.
PURE_FILES = [
    f"controller/wormcast/{name}.py" for name in ("guard/state", "trace/ways", "wormhole/switching")
]
# `wormcast.mininet` is a link to mininet/testbed.
TESTBED = "mininet"
TESTBED_USES = {
    "client", "network", "p4rt", "pictures", "routing", "counted.py", "exits.py", "wire.py",
    "wormhole/switching.py",
}  # fmt: skip
# The commands that bring fabrics up, and the hint that one is up; nothing of the controller.
TESTBED_USERS = {"cli/fabric.py", "cli/fabric_completion.py", "cli/fabric_parts.py", "cli/nearby.py"}
SHELL_MODULES = {"asyncio", "socket", "grpc", "finsy", "fastapi", "sqlite3", "time", "random", "threading"}

# Each has one name in all layers. By what the code calls them: gathered ACKs, the guard at the edge, the MTU by path, traces,
# transfers (records of files sent), wormhole mode.
FEATURES = {"gather", "guard", "mtu", "trace", "transfers", "wormhole"}

Graph = Mapping[Path, frozenset[Path]]
"""For each file those that it uses."""


# Rust


def is_test(path: Path) -> bool:
    """A module that is compiled for tests alone, by its name."""
    return path.name == "tests.rs" or path.name.endswith("_tests.rs") or "tests" in path.parent.name


def rust_files(source: Path) -> dict[tuple[str, ...], Path]:
    """The file of each module of a crate, by its path below the crate's root."""
    modules: dict[tuple[str, ...], Path] = {}
    roots = [source / name for name in ("lib.rs", "main.rs") if (source / name).is_file()]
    for root in roots[:1]:
        modules[()] = root
    for path in sorted(source.rglob("*.rs")):
        if path in roots or is_test(path):
            continue
        parts = path.relative_to(source).with_suffix("").parts
        modules[parts[:-1] if parts[-1] == "mod" else parts] = path
    return modules


TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|[A-Za-z_]\w*|::|\S""",
    re.S,
)


def rust_tokens(text: str) -> list[str]:
    """Words and signs, without comments, literals and what is compiled only for tests."""
    tokens = [
        match.group()
        for match in TOKEN.finditer(text)
        if not match.group().startswith(("//", "/*"))
        and not re.match(r"""(b|r#*)?["]|b?'.+'$""", match.group(), re.S)
    ]
    kept: list[str] = []
    at = 0
    while at < len(tokens):
        if tokens[at : at + 7] == ["#", "[", "cfg", "(", "test", ")", "]"]:
            at = end_of_item(tokens, at + 7)
        else:
            kept.append(tokens[at])
            at += 1
    return kept


def end_of_item(tokens: list[str], at: int) -> int:
    """The place behind an item: behind its braces, or its semicolon if it has none."""
    depth = 0
    while at < len(tokens):
        if tokens[at] in "{([":
            depth += 1
        elif tokens[at] in "})]":
            depth -= 1
            if depth == 0 and tokens[at] == "}":
                return at + 1
        elif tokens[at] == ";" and depth == 0:
            return at + 1
        at += 1
    return at


PathSegments = tuple[str, ...]


def use_paths(tokens: list[str], at: int, prefix: PathSegments) -> tuple[list[tuple[PathSegments, str]], int]:
    """The paths of a `use` tree that starts at `at`, each with its name here, and the place behind it."""
    found: list[tuple[PathSegments, str]] = []
    path = prefix
    while at < len(tokens):
        token = tokens[at]
        if token == "{":
            at += 1
            while tokens[at] != "}":
                inner, at = use_paths(tokens, at, path)
                found += inner
                assert tokens[at] in {",", "}"}, f"a use that cannot be read: {tokens[at - 8 : at + 8]}"
                at += tokens[at] == ","
            return found, at + 1
        if token == "as":
            found.append((path, tokens[at + 1]))
            return found, at + 2
        if token in {",", ";", "}"}:
            break
        if token != "::":
            path = (*path, token)
        at += 1
    name = path[-1]
    if name == "self":
        path, name = path[:-1], path[-2]
    return [*found, (path, name)], at


@dataclass
class RustModule:
    """What one file says of names: those it uses, and those it hands on."""

    uses: list[PathSegments]
    exports: dict[str, PathSegments]
    """`pub use`: the name here, and where it is from."""
    globs: list[PathSegments]
    imports: dict[str, PathSegments]
    """`use`: the same; modules below see these too."""


def read_rust(text: str) -> RustModule:
    tokens = rust_tokens(text)
    module = RustModule([], {}, [], {})
    at = 0
    public = False
    while at < len(tokens):
        token = tokens[at]
        if token == "pub":
            public = True
            at = end_of_visibility(tokens, at + 1)
            continue
        if token == "use" and tokens[at + 1] != "<":
            paths, at = use_paths(tokens, at + 1, ())
            for path, name in paths:
                if public and name == "*":
                    module.globs.append(path[:-1])
                elif public:
                    module.exports[name] = path
                else:
                    module.uses.append(path)
                    module.imports[name] = path
        elif (
            re.match(r"[A-Za-z_]", token)
            and tokens[at + 1 : at + 2] == ["::"]
            and (at == 0 or tokens[at - 1] != "::")
        ):
            path = (token,)
            while tokens[at + 1 : at + 2] == ["::"] and re.match(r"[A-Za-z_]", tokens[at + 2]):
                path, at = (*path, tokens[at + 2]), at + 2
            module.uses.append(path)
            at += 1
        else:
            at += 1
        public = False
    return module


def end_of_visibility(tokens: list[str], at: int) -> int:
    """Behind the `(crate)` or `(in path)` of a `pub`."""
    if tokens[at : at + 1] == ["("] and tokens[at + 1] in {"crate", "super", "self", "in"}:
        return tokens.index(")", at) + 1
    return at


def rust_graph(source: Path) -> Graph:
    """The files of a crate and those they use."""
    return {file: frozenset(targets) for file, targets in rust_names(source).items()}


def rust_names(source: Path) -> dict[Path, dict[Path, set[str]]]:
    """The files of a crate, and what each names of others; a name that is handed on leads to where it is from."""
    files = rust_files(source)
    modules = {path: read_rust(file.read_text()) for path, file in files.items()}

    def absolute(at: PathSegments, path: PathSegments) -> PathSegments | None:
        """Below the crate's root; None: a name that is not of this crate's modules."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in {"super", "self"}:
            here = at
            rest = path
            while rest and rest[0] in {"super", "self"}:
                here = here[:-1] if rest[0] == "super" else here
                rest = rest[1:]
            return (*here, *rest)
        return (*at, *path) if (*at, path[0]) in files else None

    def home(path: PathSegments, depth: int = 0) -> PathSegments | None:
        """The module that has the item of this path."""
        at: PathSegments = ()
        for n, name in enumerate(path):
            if (*at, name) in files:
                at = (*at, name)
                continue
            exported = modules[at].exports.get(name, modules[at].imports.get(name))
            if exported is not None and depth < 8:
                target = absolute(at, exported)
                return None if target is None else home((*target, *path[n + 1 :]), depth + 1)
            for glob in modules[at].globs:
                target = absolute(at, glob)
                if target is not None and depth < 8 and has(target, name):
                    return home((*target, *path[n:]), depth + 1)
            return at
        return at

    def has(module: PathSegments, name: str) -> bool:
        return (
            module in files
            and re.search(
                rf"\b(?:fn|struct|enum|trait|type|const|static|mod|macro_rules!)\s+{name}\b",
                files[module].read_text(),
            )
            is not None
        )

    named: dict[Path, dict[Path, set[str]]] = {}
    for at, file in files.items():
        named[file] = {}
        for path in modules[at].uses:
            target = absolute(at, path)
            found = None if target is None else home(target)
            if found is not None and files[found] != file:
                named[file].setdefault(files[found], set()).add(path[-1])
    return named


# Python


def python_graph(name: str, folder: Path) -> Graph:
    """The files of a package and those they import; what only a type checker reads is an import too."""
    files = {}
    # A link to a folder is a part of the package too.
    links = [path for path in folder.iterdir() if path.is_symlink() and path.is_dir()]
    for path in sorted(path for place in (folder, *links) for path in place.rglob("*.py")):
        parts = (name, *path.relative_to(folder).with_suffix("").parts)
        files[parts[:-1] if parts[-1] == "__init__" else parts] = path
    graph = {}
    for path in files.values():
        targets = (target for module in imports(path) if (target := deepest(files, module)) is not None)
        graph[path] = frozenset(targets) - {path}
    return graph


def imports(path: Path) -> Iterator[PathSegments]:
    """The modules and names that a file imports, absolute as we write them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((*node.module.split("."), alias.name) for alias in node.names)


def deepest(files: Mapping[PathSegments, Path], module: PathSegments) -> Path | None:
    """The file of a module, or of the module that has a name; none if it is not of this package."""
    for length in range(len(module), 0, -1):
        if module[:length] in files:
            return files[module[:length]]
    return None


# Rules


def folder_of(file: Path) -> Path:
    """A file's folder; `a.rs` beside `a/` belongs to that, unless it holds tests alone."""
    below = file.with_suffix("")
    split = file.suffix == ".rs" and any(not is_test(path) for path in below.rglob("*.rs"))
    return below if split else file.parent


def circles(graph: Graph) -> list[list[Path]]:
    """Files that reach each other, in sets of two and more (Tarjan 1972)."""
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[list[Path]] = []

    def visit(node: Path) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            circle = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def wide_circles(graph: Graph) -> list[list[Path]]:
    """Circles of files that do not lie in one folder."""
    return [circle for circle in circles(graph) if len({folder_of(file) for file in circle}) > 1]


def is_of_feature(file: Path, base: Path) -> bool:
    """Whether it is a feature's file, or in its folder."""
    return not FEATURES.isdisjoint(file.relative_to(base).with_suffix("").parts)


def folder_circles(graph: Graph, base: Path) -> list[list[Path]]:
    """Folders that use each other in a circle; those of features are left out."""
    folders: dict[Path, set[Path]] = {}
    for file, targets in graph.items():
        if not is_of_feature(file, base):
            here = folders.setdefault(folder_of(file), set())
            here.update(folder_of(target) for target in targets if not is_of_feature(target, base))
    return circles({folder: frozenset(targets - {folder}) for folder, targets in folders.items()})


def graphs() -> Iterator[tuple[str, Graph]]:
    """Those of every crate and package, by folder."""
    for crate in CRATES:
        yield crate, rust_graph(ROOT / crate / "src")
    for package, folder in PACKAGES.items():
        yield folder, python_graph(package, ROOT / folder)


def manifest_faults(crate: str, dependencies: Iterable[str], rules: Crate) -> list[str]:
    """What a crate's manifest names and must not."""
    dependencies = set(dependencies)
    ours = {name for name in dependencies if name.startswith("wormcast-")}
    faults = [f"{crate}: depends on {name}, which is not below it" for name in sorted(ours - rules.uses)]
    if rules.pure:
        others = dependencies - ours - PURE_LIBRARIES
        faults += [f"{crate}: is pure and depends on {name}" for name in sorted(others)]
        config = ROOT / crate / "clippy.toml"
        if not config.is_symlink() or config.resolve() != ROOT / "setup" / "pure" / "clippy.toml":
            faults.append(f"{crate}: is pure; its clippy.toml must be a link to setup/pure/clippy.toml")
    return faults


def python_io_faults(folder: str, files: Iterable[Path]) -> list[str]:
    """Pure Python that imports what does IO."""
    return [
        f"{file.relative_to(ROOT)}: {folder} is pure and imports {module[0]}"
        for file in files
        for module in imports(file)
        if module[0] in SHELL_MODULES
    ]


def stub_faults(stub: Path) -> list[str]:
    """Types of a binding that are those of a package above it."""
    return [
        f"{stub.name}: imports {'.'.join(module)}, which is above it"
        for module in imports(stub)
        if module[0] in PACKAGES
    ]


def testbed_faults(base: Path, graph: Graph) -> list[str]:
    """Arrows between the package and the testbed that are not allowed."""
    found = []
    for file, targets in graph.items():
        source = file.relative_to(base)
        for target in sorted(path.relative_to(base) for path in targets):
            inside = source.parts[0] == TESTBED, target.parts[0] == TESTBED
            if inside == (False, True) and source.as_posix() not in TESTBED_USERS:
                found.append(
                    f"{source}: uses the testbed, {target}; only {', '.join(sorted(TESTBED_USERS))} may"
                )
            if inside == (True, False) and TESTBED_USES.isdisjoint({target.parts[0], target.as_posix()}):
                found.append(f"{source}: the testbed may not use {target}")
    return found


def faults() -> list[str]:
    """Everything that breaks a rule, a line each; empty if all is well."""
    found = []
    for crate, rules in CRATES.items():
        manifest = tomllib.loads((ROOT / crate / "Cargo.toml").read_text())
        found += manifest_faults(crate, manifest.get("dependencies", {}), rules)
    for folder in PURE_PACKAGES:
        found += python_io_faults(folder, (ROOT / folder).rglob("*.py"))
    for file in PURE_FILES:
        found += python_io_faults(file, [ROOT / file])
    for stub in sorted((ROOT / "planner").rglob("*.pyi")):
        found += stub_faults(stub)
    for folder, graph in graphs():
        found += graph_faults(ROOT / folder, graph)
        if folder in CRATES:
            found += circle_faults(ROOT / folder, graph)
        if folder in PACKAGES.values():
            found += testbed_faults(ROOT / folder, graph)
    return found


def circle_faults(base: Path, graph: Graph) -> list[str]:
    """Circles of files, even within one folder."""
    name = base.relative_to(ROOT) if base.is_relative_to(ROOT) else base
    return [
        f"{name}: files in a circle: {', '.join(str(file.relative_to(base)) for file in circle)}"
        for circle in circles(graph)
    ]


def graph_faults(base: Path, graph: Graph) -> list[str]:
    """Circles wider than a folder, and circles of folders."""
    name = base.name if base.parent == ROOT else str(base)
    if base.is_relative_to(ROOT):
        name = str(base.relative_to(ROOT))

    def short(paths: Iterable[Path]) -> str:
        return ", ".join(str(path.relative_to(base)) for path in paths)

    found = [
        f"{name}: files in a circle wider than one folder: {short(circle)}" for circle in wide_circles(graph)
    ]
    return found + [f"{name}: folders in a circle: {short(circle)}" for circle in folder_circles(graph, base)]


def main() -> int:
    wanted = sys.argv[1:]
    if not wanted:
        found = faults()
        print("\n".join(found) or "every arrow points down")
        return bool(found)
    known = dict(graphs())
    for name in wanted:
        if name not in known:
            print(f"{name}: no crate or package; there are {', '.join(known)}", file=sys.stderr)
            return 2
        arrows: dict[tuple[Path, Path], int] = {}
        for file, targets in known[name].items():
            for target in targets:
                pair = (folder_of(file), folder_of(target))
                arrows[pair] = arrows.get(pair, 0) + 1
        for (source, target), count in sorted(arrows.items()):
            if source != target:
                base = ROOT / name
                print(f"{source.relative_to(base)} -> {target.relative_to(base)}  {count}")
        print_circles(ROOT / name, known[name])
    return 0


def print_circles(base: Path, graph: Graph) -> None:
    """Each circle of files: who uses whom in it, and in Rust by which names."""
    names = rust_names(base / "src") if (base / "src").is_dir() else {}
    for circle in circles(graph):
        print(f"\na circle of {len(circle)} files")
        for file in circle:
            for target in sorted(graph[file] & set(circle)):
                used = ", ".join(sorted(names.get(file, {}).get(target, ())))
                print(f"    {file.relative_to(base)} -> {target.relative_to(base)}  {used}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
