"""Commands that work on files, without a controller: `topo make`, `topo draw`, and
`route`, `group plan`, `verify` with `--topology`.

They read and write the JSON files of ARCHITECTURE.md. Exit codes: 0 done, 1 the routes
can deadlock (`verify`), 2 the input is refused.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from wormcast import plan

EXIT_DEADLOCK = 1
EXIT_REFUSED = 2
_ID = click.IntRange(0, 65534)

F = TypeVar("F", bound=Callable[..., Any])
Json = dict[str, Any]

# How the options of `topo make` are put together for each kind: needed, then optional.
_FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "testbed": ((), ()),
    "line": (("switches",), ("hosts",)),
    "ring": (("switches",), ("hosts",)),
    "star": (("switches",), ("hosts",)),
    "full-mesh": (("switches",), ("hosts",)),
    "torus": (("k",), ("hosts",)),
    "unidirectional-torus": (("k",), ("hosts",)),
    "mesh": (("k",), ("hosts",)),
    "fat-tree": (("k",), ()),
    "shufflenet": (("p", "k"), ("hosts",)),
    "irregular": (("switches", "seed"), ("hosts", "links")),
}


class RefusedInput(click.ClickException):
    """Input that is refused; the message says what, why and what would do."""

    exit_code = EXIT_REFUSED


def _planned(work: Callable[[], Json]) -> Json:
    try:
        return work()
    except plan.RoutingError as error:
        raise RefusedInput(str(error)) from error


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise RefusedInput(f"cannot write {output}: {error.strerror}") from error


def _read_json(path: Path, what: str) -> Json:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
        value = json.loads(text)
    except OSError as error:
        raise RefusedInput(f"cannot read {what} {path}: {error.strerror}") from error
    except ValueError as error:
        raise RefusedInput(f"{what} {path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RefusedInput(f"{what} {path} is not a JSON object")
    return value


def _read_topology(name: str) -> Json:
    """A file, `-` for standard input, or a kind such as `torus:4`."""
    is_kind = name.split(":")[0] in _FORMS and not Path(name).exists()
    if is_kind:
        return _planned(lambda: plan.make(name))
    topology = _read_json(Path(name), "topology")
    return _planned(lambda: plan.check(topology, allow_split=True))


def _host_list(context: click.Context, parameter: click.Parameter, value: str | None) -> list[int]:  # noqa: ARG001
    if value is None:
        return []
    if not re.fullmatch(r"\d+([,\s]+\d+)*", value.strip()):
        raise click.BadParameter(f"{value!r} is no list of hosts such as 1,5,9")
    return [int(host) for host in re.findall(r"\d+", value)]


def _file_options(command: F) -> F:
    """Adds --topology, --root, --output and --json."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON; that is so anyway.")(command)
    command = click.option(
        "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file."
    )(command)
    command = click.option("--root", type=_ID, help="Root switch. [default: the one of least eccentricity]")(
        command
    )
    return click.option(
        "--topology",
        required=True,
        metavar="FILE|KIND",
        help="Topology file, - for standard input, or a kind such as torus:4.",
    )(command)


@click.command("make")
@click.argument("kind")
@click.option("--k", metavar="K|KxL", help="Switches along each dimension; ports of a fat tree; columns.")
@click.option("--p", type=int, help="Links onward of each switch of a shufflenet.")
@click.option("--switches", type=int, help="How many switches.")
@click.option("--hosts", type=int, help="Hosts on each switch. [default: 1; irregular: 4]")
@click.option("--links", type=int, help="Links of each switch, irregular networks. [default: 4]")
@click.option("--seed", type=int, help="Seed of an irregular network. [default: 1]")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; that is so anyway.")
def topo_make(kind: str, output: Path | None, as_json: bool, **numbers: int | str | None) -> None:  # noqa: ARG001
    """Make a topology file.

    KIND is testbed, line, ring, star, full-mesh, torus, unidirectional-torus, mesh,
    fat-tree, shufflenet or irregular, with its numbers as options; or a kind with its
    numbers, such as torus:4.
    """
    topology = _planned(lambda: plan.make(_spec(kind, numbers)))
    _write(plan.to_text(topology), output)


def _spec(kind: str, numbers: dict[str, int | str | None]) -> str:
    given = {name: value for name, value in numbers.items() if value is not None}
    if ":" in kind:
        if given:
            raise RefusedInput(f"{kind} has its numbers already; leave out --{next(iter(given))}")
        return kind
    if kind not in _FORMS:
        raise RefusedInput(f"there is no topology {kind!r}; choices are {', '.join(_FORMS)}")
    needed, optional = _FORMS[kind]
    if kind == "irregular":
        given.setdefault("seed", 1)
        if "links" in given:
            given.setdefault("hosts", 4)
    for name in needed:
        if name not in given:
            raise RefusedInput(f"{kind} needs --{name}")
    for name in given:
        if name not in needed + optional:
            takes = ", ".join(f"--{choice}" for choice in needed + optional) or "no numbers"
            raise RefusedInput(f"{kind} does not take --{name}; it takes {takes}")
    return ":".join([kind, *(str(given[name]) for name in needed + optional if name in given)])


@click.command("draw")
@click.argument("topology", metavar="FILE|KIND")
@click.option("--root", type=_ID, help="Root switch. [default: the one of least eccentricity]")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
def topo_draw(topology: str, root: int | None, output: Path | None) -> None:
    """Draw a topology and its spanning tree as SVG."""
    value = _read_topology(topology)
    _write(_planned(lambda: {"svg": plan.svg(value, root)})["svg"], output)


@click.command("route")
@click.argument("src", type=_ID, required=False)
@click.argument("dst", type=_ID, required=False)
@click.option("--algorithm", default="osud", show_default=True, help="osud or tree-only.")
@_file_options
def route(
    src: int | None,
    dst: int | None,
    algorithm: str,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Plan source routes on a topology file: from host SRC, to host DST, or all."""
    value = _read_topology(topology)
    routes = _planned(lambda: plan.routes(value, algorithm, root))
    hosts = {host["id"] for host in value["hosts"]}
    for host in (src, dst):
        if host is not None and host not in hosts:
            raise RefusedInput(f"there is no host {host}; hosts are {', '.join(map(str, sorted(hosts)))}")
    if src is not None and dst is not None:
        _planned(lambda: plan.route(value, src, dst, algorithm, root))
    for field in ("routes", "unreachable"):
        if field in routes:
            routes[field] = [
                pair for pair in routes[field] if src in (None, pair["src"]) and dst in (None, pair["dst"])
            ]
    _write(plan.to_text(routes), output)


@click.command("plan")
@click.argument("hosts", type=_ID, nargs=-1, metavar="[HOST]...")
@click.option("--members", callback=_host_list, help="Members, as in 1,5,9, or as arguments.")
@click.option("--source", type=_ID, help="Host that sends. [default: the lowest member]")
@click.option("--scheme", help="repeat, circuit, tree, k-binomial or switch. [default: k-binomial]")
@click.option("--k", type=int, help="k-binomial: most children of a host. [default: the best for --packets]")
@click.option("--packets", type=int, help="Packets of a message. [default: 1]")
@click.option("--fan-out", type=int, help="tree: most children of a host. [default: 3]")
@click.option("--variant", help="circuit: omit-last, return, ordered; tree: unordered, ordered.")
@click.option("--order", help="id, cco or dimension. [default: cco for k-binomial, else id]")
@click.option("--request", "request_path", type=Path, help="File with scheme, source, members, parameters.")
@_file_options
def group_plan(
    hosts: tuple[int, ...],
    members: list[int],
    source: int | None,
    scheme: str | None,
    request_path: Path | None,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
    **parameters: int | str | None,
) -> None:
    """Plan a group on a topology file: who sends to whom, and in how many steps."""
    request: Json = {} if request_path is None else _read_json(request_path, "request")
    if hosts or members:
        request["members"] = [*hosts, *members]
    if scheme is not None or "scheme" not in request:
        request["scheme"] = scheme or "k-binomial"
    given = {name: value for name, value in parameters.items() if value is not None}
    if given:
        request["parameters"] = {**(request.get("parameters") or {}), **given}
    if not request.get("members"):
        raise RefusedInput("no members; name them as arguments, with --members or in --request")
    if source is not None or "source" not in request:
        request["source"] = min(request["members"]) if source is None else source
    value = _read_topology(topology)
    _write(plan.to_text(_planned(lambda: plan.group(value, request, root))), output)


@click.command("verify")
@click.option("--routes", "routes_path", type=Path, help="Routes file to check.")
@click.option("--algorithm", help="Check all routes of osud or tree-only. [default: osud]")
@click.option("--group", "groups", type=Path, multiple=True, help="Group file of scheme switch; repeatable.")
@click.option(
    "--branching",
    default="independent",
    show_default=True,
    help="Branches of a worm while one is blocked: independent (packet mode, scheme B) or coupled (scheme A).",
)
@_file_options
@click.pass_context
def verify(
    context: click.Context,
    routes_path: Path | None,
    algorithm: str | None,
    groups: tuple[Path, ...],
    branching: str,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Check routes on a topology file for deadlock. Exit code 1: they can deadlock."""
    value = _read_topology(topology)
    routes = None if routes_path is None else _read_json(routes_path, "routes")
    trees: list[tuple[int, bytes]] = []
    for path in groups:
        trees += _trees(_read_json(path, "group"), path)
    if routes is None and algorithm is None and not trees:
        algorithm = "osud"
    verdict = _planned(
        lambda: plan.verify(value, routes, algorithm=algorithm, trees=trees, branching=branching, root=root)
    )
    _write(plan.to_text(verdict), output)
    if not verdict["deadlock_free"]:
        context.exit(EXIT_DEADLOCK)


def _trees(group: Json, path: Path) -> list[tuple[int, bytes]]:
    try:
        trees = plan.trees_of(group)
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedInput(f"group {path} has no source and routes that can be read: {error!r}") from error
    if not trees:
        raise RefusedInput(f"group {path} has no tree routes; only groups of scheme switch have them")
    return trees
