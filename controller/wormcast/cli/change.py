"""`wormcast change`: from routes to routes while worms of both are in the network."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from wormcast import routing
from wormcast.cli.files import (
    ID_RANGE,
    NUMBER,
    Json,
    planned,
    read_json,
    read_topology,
    refuse_without_effect,
    write_text,
)
from wormcast.cli.refusal import Refusal
from wormcast.cli.source import (
    PlanningCommand,
    Source,
    complete_algorithm,
    complete_topology,
    source_options,
)

METHODS = {
    "kept-order": "along the order of switches in force",
    "repaired-order": "along that order, with switches that lost their way up moved behind",
    "detours": "new paths for broken pairs only",
    "fresh": "planned from scratch",
    "tree": "along a spanning tree, for the time being",
    "staged": "some pairs have their next path already",
    "drain": "some pairs stop, so that the next step is safe",
}
End = tuple[int, int]


@click.command("change", cls=PlanningCommand)
@click.option(
    "--to", "new", metavar="FILE|KIND", help="Topology from now on.", shell_complete=complete_topology
)
@click.option(
    "--fail-link", "links", multiple=True, metavar="S:P", help="Link at port P of switch S is lost."
)
@click.option("--fail-switch", "switches", type=ID_RANGE, multiple=True, help="Switch is lost.")
@click.option(
    "--add", "added", multiple=True, metavar="S:P-S:P", help="Link is new; so is a switch not there yet."
)
@click.option("--new-root", type=ID_RANGE, help="Plan from scratch with this root.")
@click.option(
    "--algorithm",
    default="osud",
    show_default=True,
    help="osud, tree-only or omit.",
    shell_complete=complete_algorithm,
)
@click.option(
    "--routes", "routes_path", type=Path, help="Routes in force. [default: as --algorithm plans them]"
)
@click.option("--planned", is_flag=True, help="Links that go carry worms until the change is done.")
@source_options
def change(
    new: str | None,
    links: tuple[str, ...],
    switches: tuple[int, ...],
    added: tuple[str, ...],
    new_root: int | None,
    algorithm: str,
    routes_path: Path | None,
    planned: bool,
    source: Source,
    root: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Plan the steps from the routes in force to those of a changed topology, so that worms
    of before and after cannot deadlock together.

    Links, switches and ports are those of --topology, or of the running controller's
    network. Prints JSON; at a terminal a
    summary, unless --json says otherwise.
    """
    if planned and new is None and not (links or switches):
        refuse_without_effect(
            "--planned", True, "where no link goes; it is for --fail-link, --fail-switch and --to"
        )
    if routes_path is not None:
        refuse_without_effect("--root", root, "with --routes, which has its root; --new-root gives another")
    old = source.topology()
    routes = None if routes_path is None else read_json(routes_path, "routes", "routes")
    after = _after(old, new, links, switches, added, new_root)
    file = _plan(old, after, algorithm, root, routes, new_root, planned)
    if as_json or output is not None or not sys.stdout.isatty():
        write_text(routing.to_text(file), output)
    else:
        click.echo(describe(file), nl=False)


def _plan(
    old: Json,
    after: Json,
    algorithm: str,
    root: int | None,
    routes: Json | None,
    new_root: int | None,
    keeps_links: bool,
) -> Json:
    return planned(
        lambda: routing.change(
            old, after, algorithm, root, routes=routes, new_root=new_root, planned=keeps_links
        )
    )


def _after(
    old: Json,
    new: str | None,
    links: tuple[str, ...],
    switches: tuple[int, ...],
    added: tuple[str, ...],
    new_root: int | None,
) -> Json:
    if new is not None:
        if links or switches or added:
            raise Refusal("--to says what the topology is; leave out --fail-link, --fail-switch and --add")
        return read_topology(new)
    if not (links or switches or added) and new_root is None:
        raise Refusal("nothing changes; give --to, --fail-link, --fail-switch, --add or --new-root")
    after = old
    if links or switches:
        ends = [_end(link, link, "--fail-link") for link in links]
        after = planned(lambda: routing.damage(old, links=ends, switches=switches))
    if added:
        pairs = [_ends(link) for link in added]
        after = planned(lambda: routing.add_links(after, pairs))
    return after


def _ends(text: str) -> tuple[End, End]:
    first, dash, second = text.partition("-")
    if not dash:
        raise Refusal(f"--add {text!r} is no link such as 3:1-4:2")
    return _end(first, text, "--add"), _end(second, text, "--add")


def _end(text: str, whole: str, option: str) -> End:
    if not re.fullmatch(f"{NUMBER}:{NUMBER}", text):
        raise Refusal(f"{option} {whole!r}: {text!r} is no switch and port such as 3:1")
    switch, port = text.split(":")
    return int(switch), int(port)


def describe(file: Json) -> str:
    """The change file for people."""
    summary = file["summary"]
    lines = []
    if not file["steps"]:
        lines.append(f"No route changes; all {summary['routes']} stay as they are.")
    for number, step in enumerate(file["steps"], 1):
        root = "" if step["root"] is None else f", root {step['root']}"
        lines.append(f"Step {number}: {step['method']}{root} ({METHODS[step['method']]})")
        lines.append(f"  install {step['routes_changed']} routes; no deadlock with those in force before")
        if step["drain"]:
            lines.append(
                f"  stop {len(step['drain'])} pairs; their worms have to be gone before the next step"
            )
        if step["waiting"]:
            lines.append(f"  {step['waiting']} pairs have no route until a later step")
    if len(file["steps"]) > 1:
        lines.append("Before each step after the first, wait until worms older than the last step are gone.")
    lines.append(
        f"{summary['routes_changed']} routes installed, {summary['routes_broken']} had broken; "
        f"{summary['routes']} pairs have a route, {summary['unreachable']} have none."
    )
    return "\n".join(lines) + "\n"
