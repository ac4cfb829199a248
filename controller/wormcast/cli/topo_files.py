"""`wormcast topo make`, `topo convert`, `topo fabric` and `topo draw`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
from wormcast_planner import PORT_ID_MAX

from wormcast import pictures, routing
from wormcast.cli.files import (
    NUMBER,
    SWITCH,
    Json,
    as_png_file,
    planned,
    read_json,
    read_topology,
    refuse_without_effect,
    write_bytes,
    write_text,
)
from wormcast.cli.refusal import Refusal
from wormcast.cli.source import complete_algorithm, complete_topology

FORMATS = click.Choice(routing.topology_formats())

# How the options of `topo make` are put together for each kind: needed, then optional.
FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "testbed": ((), ()),
    "line": (("switches",), ("hosts",)),
    "ring": (("switches",), ("hosts",)),
    "star": (("switches",), ("hosts",)),
    "full-mesh": (("switches",), ("hosts",)),
    "torus": (("k",), ("hosts",)),
    "unidirectional-torus": (("k",), ("hosts",)),
    "mesh": (("k",), ("hosts",)),
    "fat-tree": (("k",), ()),
    "clos2": (("leaves", "spines"), ("hosts",)),
    "clos3": (("pods", "leaves", "spines", "cores"), ("hosts",)),
    "dragonfly": (("a", "p", "h"), ("groups", "arrangement")),
    "shufflenet": (("p", "k"), ("hosts",)),
    "irregular": (("switches", "seed"), ("hosts", "links")),
}


# What needed options are; those of one kind alone under its name.
NEEDED = {
    "switches": "how many switches, 1 or more",
    "ring switches": "how many switches, 3 or more",
    "k": "how many switches along each dimension, 2 or more, as in 4 or 4x4x2",
    "mesh k": "how many switches along each dimension, 1 or more, as in 4 or 4x4x2",
    "fat-tree k": "how many ports each switch has, an even number of 2 or more",
    "shufflenet k": "how many columns, 2 or more",
    "shufflenet p": "how many links lead onward from each switch, 2 or more",
    "leaves": "how many leaves, 1 or more",
    "clos3 leaves": "how many leaves each pod has, 1 or more",
    "spines": "how many spines, 1 or more",
    "clos3 spines": "how many spines each pod has, 1 or more",
    "pods": "how many pods, 1 or more",
    "cores": "how many cores in all, a multiple of the spines of a pod",
    "a": "how many switches each group has, 1 or more",
    "p": "how many hosts each switch has",
    "h": "how many links of each switch lead to other groups, 1 or more",
    "seed": "a number of 0 or more",
}
EXAMPLES = {
    "line": "line:4",
    "ring": "ring:4",
    "star": "star:4",
    "full-mesh": "full-mesh:4",
    "torus": "torus:4 or torus:4x4x2",
    "unidirectional-torus": "unidirectional-torus:4",
    "mesh": "mesh:4 or mesh:4x4x2",
    "fat-tree": "fat-tree:4",
    "clos2": "clos2:4:2",
    "clos3": "clos3:2:2:2:4",
    "dragonfly": "dragonfly:4:2:2",
    "shufflenet": "shufflenet:2:3",
    "irregular": "irregular:16:7",
}


def _complete_kind(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    return [kind for kind in FORMS if kind.startswith(incomplete)]


@click.command("make")
@click.argument("kind", shell_complete=_complete_kind)
@click.option(
    "--k",
    metavar="K|KxL",
    help="Switches along each dimension; ports of a fat tree; columns of a shufflenet.",
)
@click.option("--p", type=int, help="Hosts on each switch of a dragonfly; links onward in a shufflenet.")
@click.option("--switches", type=int, help="How many switches.")
@click.option("--hosts", type=int, help="Hosts on each switch or leaf. [default: 1; irregular: 4]")
@click.option("--links", type=int, help="Links of each switch, irregular networks. [default: 4]")
@click.option("--pods", type=int, help="Pods of a clos3.")
@click.option("--leaves", type=int, help="Leaves of a clos2; leaves of each pod of a clos3.")
@click.option("--spines", type=int, help="Spines of a clos2; spines of each pod of a clos3.")
@click.option("--cores", type=int, help="Cores of a clos3, a multiple of its spines.")
@click.option("--a", type=int, help="Switches of each group of a dragonfly. [default: 2h]")
@click.option("--h", type=int, help="Global links of each switch of a dragonfly.")
@click.option("--groups", type=int, help="Groups of a dragonfly. [default: a·h + 1]")
@click.option(
    "--arrangement", help="Global links of a dragonfly: palmtree or consecutive. [default: palmtree]"
)
@click.option(
    "--seed",
    type=int,
    help="Seed of an irregular network. The other kinds are not random; for them it changes nothing. [default: 1]",
)
@click.option("--format", "to", type=FORMATS, default="json", show_default=True, help="Format of the file.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, unless --format names another format; refusals are JSON too.",
)
def topo_make(
    kind: str,
    to: str,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
    **numbers: int | str | None,
) -> None:
    """Make a topology file.

    KIND is testbed, line, ring, star, full-mesh, torus, unidirectional-torus, mesh,
    fat-tree, clos2, clos3, dragonfly, shufflenet or irregular. Its numbers are options,
    or follow the kind, as in torus:4.

    \b
    wormcast topo make torus --k 4x4 > torus.json
    wormcast topo make irregular --switches 16 --seed 7 > net.json
    wormcast topo make dragonfly --h 2                      (balanced: a = 4, p = 2)
    wormcast topo make clos3 --pods 12 --leaves 48 --spines 4 --cores 192 --hosts 48
    wormcast topo make fat-tree:8 --format ibsim -o fabric.net
    """
    topology = planned(lambda: routing.make(_spec(kind, numbers)))
    write_text(_as_text(topology, to), output)


def _needed(kind: str, name: str) -> str:
    return NEEDED.get(f"{kind} {name}", NEEDED[name])


def _spec(kind: str, numbers: dict[str, int | str | None]) -> str:
    given = {name: value for name, value in numbers.items() if value is not None}
    if kind.split(":")[0] in FORMS and (":" in kind or kind != "irregular"):
        given.pop("seed", None)
    if ":" in kind:
        if given:
            raise Refusal(f"{kind} has its numbers already; leave out --{next(iter(given))}")
        return kind
    if kind not in FORMS:
        raise Refusal(f"there is no topology {kind!r}; choices are {', '.join(FORMS)}")
    needed, optional = FORMS[kind]
    _fill_defaults(kind, given)
    for name in needed:
        if name not in given:
            raise Refusal(f"{kind} needs --{name}, {_needed(kind, name)}; or write it as {EXAMPLES[kind]}")
    for name in given:
        if name not in needed + optional:
            takes = ", ".join(f"--{choice}" for choice in needed + optional) or "no numbers"
            raise Refusal(f"{kind} does not take --{name}; it takes {takes}")
    return ":".join([kind, *(str(given[name]) for name in needed + optional if name in given)])


def _fill_defaults(kind: str, given: dict[str, int | str]) -> None:
    if kind == "irregular":
        given.setdefault("seed", 1)
        if "links" in given:
            given.setdefault("hosts", 4)
    if kind == "dragonfly" and "h" in given:
        # Balanced (Kim et al. 2008, §3.1): a = 2p = 2h.
        h = int(given["h"])
        given.setdefault("a", 2 * h)
        given.setdefault("p", h)
        if "arrangement" in given:
            given.setdefault("groups", int(given["a"]) * h + 1)


def _as_text(topology: Json, to: str) -> str:
    if to == "json":
        return routing.to_text(topology)
    return planned(lambda: routing.write(topology, to))


@click.command("convert")
@click.argument("topology", metavar="FILE|KIND", shell_complete=complete_topology)
@click.option("--to", type=FORMATS, required=True, help="Format to write.")
@click.option("--from", "source", type=FORMATS, help="Format to read. [default: by its content]")
@click.option(
    "--hosts-per-switch",
    type=click.IntRange(0, PORT_ID_MAX + 1),
    default=0,
    help="Add this many hosts to every switch, for files without hosts.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print refusals as JSON.")
def topo_convert(
    topology: str,
    to: str,
    source: str | None,
    hosts_per_switch: int,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Write a topology file in another format.

    Formats: json (our own), ibsim and ibnetdiscover (InfiniBand net lists; their port p+1
    is our port p), edges (one link a line), graphml. Names of switches and hosts are
    kept. Nodes without numbers get ids in the order of their names.

    \b
    ibnetdiscover | wormcast topo convert - --to json > fabric.json
    wormcast topo convert fabric.json --to graphml -o fabric.graphml
    wormcast topo convert zoo.graphml --hosts-per-switch 2 --to json
    """
    value = read_topology(topology, format=source, hosts_per_switch=hosts_per_switch)
    write_text(_as_text(value, to), output)


def fabric_file(topology: Json, *, program: str | None, cpu_port: int) -> Json:
    """What `wormcast-switch --fabric` takes: the switches, the links between them in
    memory, and a port on interface `s<switch>-p<port>` for each host."""
    switches = [{"name": f"s{switch['id']}", "device_id": switch["id"]} for switch in topology["switches"]]
    links = [
        {"ends": [f"s{link['a']}:{link['a_port']}", f"s{link['b']}:{link['b_port']}"]}
        for link in topology["links"]
    ]
    edges = [
        {"port": f"s{host['switch']}:{host['port']}", "interface": f"s{host['switch']}-p{host['port']}"}
        for host in topology["hosts"]
    ]
    value: Json = {} if program is None else {"program": program}
    return {**value, "cpu_port": cpu_port, "switches": switches, "links": links, "edges": edges}


@click.command("fabric")
@click.argument("topology", metavar="FILE|KIND", shell_complete=complete_topology)
@click.option("--program", metavar="JSON", help="Program of every switch. [default: the controller sets one]")
@click.option(
    "--cpu-port",
    type=click.IntRange(1, 510),
    default=510,
    show_default=True,
    help="Port of every switch that leads to the controller.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print refusals as JSON.")
def topo_fabric(
    topology: str,
    program: str | None,
    cpu_port: int,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Write the file of `wormcast-switch --fabric`, which runs all switches in one process.

    Device ids are the ids of the switches. The port of a host is on the interface
    s<switch>-p<port>, which must exist when the switches start.

    \b
    wormcast topo fabric fabric.json -o switches.json
    wormcast-switch --fabric switches.json -- --grpc-server-addr 127.0.0.1:9559
    """
    value = fabric_file(read_topology(topology), program=program, cpu_port=cpu_port)
    write_text(json.dumps(value, indent=1) + "\n", output)


def _pairs(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> list[tuple[int, int]]:
    pairs = []
    for value in values:
        src, comma, dst = value.partition(",")
        if not (comma and all(re.fullmatch(NUMBER, end.strip()) for end in (src, dst))):
            raise click.BadParameter(f"{value!r} is not a pair of hosts; write it as 0,5")
        pairs.append((int(src), int(dst)))
    return pairs


@click.command("draw")
@click.argument("topology", metavar="FILE|KIND", shell_complete=complete_topology)
@click.option("--root", type=SWITCH, help="Root switch. [default: the one of least eccentricity]")
@click.option(
    "--route",
    "pairs",
    multiple=True,
    callback=_pairs,
    metavar="SRC,DST",
    help="Draw this route. May be given several times.",
)
@click.option(
    "--algorithm",
    help=f"Algorithm of the routes of --route. [default: {routing.ALGORITHM_DEFAULT}]",
    shell_complete=complete_algorithm,
)
@click.option("--group", "group_path", type=Path, help="Draw this group file over the topology.")
@click.option(
    "--cycle",
    "cycle_path",
    type=Path,
    help="Draw the cycle of channels in this verify file over the topology.",
)
@click.option(
    "--png",
    is_flag=True,
    help="Write PNG instead of SVG; needs --output. A name that ends in .png does the same.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print refusals as JSON.")
def topo_draw(
    topology: str,
    root: int | None,
    pairs: list[tuple[int, int]],
    algorithm: str | None,
    group_path: Path | None,
    cycle_path: Path | None,
    png: bool,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Draw a topology and its spanning tree as SVG, and routes, a group or a cycle over it.

    \b
    wormcast topo draw torus:4 -o torus.svg
    wormcast topo draw net.json --route 0,9 --route 3,12 -o routes.svg
    wormcast topo draw net.json --group group.json -o group.png
    wormcast topo draw net.json --cycle verdict.json -o cycle.svg
    """
    as_png = as_png_file(png, output)
    if not pairs:
        refuse_without_effect("--algorithm", algorithm, "without --route")
    value = read_topology(topology)
    group: Any = None if group_path is None else read_json(group_path, "group", "group")
    cycle: Any = None if cycle_path is None else read_json(cycle_path, "cycle", "verify")
    routes = planned(lambda: _routes(value, pairs, algorithm or routing.ALGORITHM_DEFAULT, root))
    if as_png and output is not None:
        write_bytes(
            planned(lambda: pictures.png(value, root, routes=routes, group=group, cycle=cycle)), output
        )
    else:
        write_text(
            planned(lambda: pictures.svg(value, root, routes=routes, group=group, cycle=cycle)), output
        )


def _routes(topology: Json, pairs: list[tuple[int, int]], algorithm: str, root: int | None) -> list[Json]:
    return [routing.route(topology, src, dst, algorithm, root) for src, dst in pairs]
