"""`wormcast topo make` and `topo draw`."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import plan
from wormcast.cli.offline.common import ID_RANGE, RefusedInput, planned, read_topology, write_text

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
    "shufflenet": (("p", "k"), ("hosts",)),
    "irregular": (("switches", "seed"), ("hosts", "links")),
}


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
    topology = planned(lambda: plan.make(_spec(kind, numbers)))
    write_text(plan.to_text(topology), output)


def _spec(kind: str, numbers: dict[str, int | str | None]) -> str:
    given = {name: value for name, value in numbers.items() if value is not None}
    if ":" in kind:
        if given:
            raise RefusedInput(f"{kind} has its numbers already; leave out --{next(iter(given))}")
        return kind
    if kind not in FORMS:
        raise RefusedInput(f"there is no topology {kind!r}; choices are {', '.join(FORMS)}")
    needed, optional = FORMS[kind]
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
@click.option("--root", type=ID_RANGE, help="Root switch. [default: the one of least eccentricity]")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
def topo_draw(topology: str, root: int | None, output: Path | None) -> None:
    """Draw a topology and its spanning tree as SVG."""
    value = read_topology(topology)
    write_text(planned(lambda: {"svg": plan.svg(value, root)})["svg"], output)
