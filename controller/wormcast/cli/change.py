"""`wormcast change`: from routes to routes while worms of both are in the network."""

from __future__ import annotations

import re
from pathlib import Path

import click

from wormcast import routing
from wormcast.cli.files import (
    NUMBER,
    SWITCH,
    Json,
    planned,
    read_json,
    read_topology,
    refuse_without_effect,
    write_answer,
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
    "repaired-order": "along that order; switches that lost their link up are moved to its end",
    "detours": "new paths for broken pairs only",
    "fresh": "planned from scratch",
    "tree": "along a spanning tree, until the next step",
    "staged": "some pairs already use their next path",
    "new-order": "along another order of switches",
    "bridge": "along the order in force and the next; older worms leave before the next step",
    "drain": "some pairs stop sending, so that the next step is safe",
}
End = tuple[int, int]


@click.command("change", cls=PlanningCommand)
@click.option("--to", "new", metavar="FILE|KIND", help="New topology.", shell_complete=complete_topology)
@click.option(
    "--fail-link", "links", multiple=True, metavar="S:P", help="The link at port P of switch S fails."
)
@click.option("--fail-switch", "switches", type=SWITCH, multiple=True, help="This switch fails.")
@click.option(
    "--add",
    "added",
    multiple=True,
    metavar="S:P-S:P",
    help="Add this link, and its switches if they are new.",
)
@click.option("--new-root", type=SWITCH, help="Plan all routes anew from this root.")
@click.option(
    "--algorithm",
    default=routing.ALGORITHM_DEFAULT,
    show_default=True,
    help="osud, tree-only or omit.",
    shell_complete=complete_algorithm,
)
@click.option(
    "--routes", "routes_path", type=Path, help="Routes in force. [default: those that --algorithm plans]"
)
@click.option(
    "--planned", is_flag=True, help="Links to be removed still carry worms until the change is done."
)
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
    """Plan a change of the topology: the steps from the routes in force to the new ones.
    Old and new worms never deadlock together.

    Links, switches and ports are those of the running controller's network, or those of
    --topology. Prints a summary, with --json or --output JSON.
    """
    if planned and new is None and not (links or switches):
        refuse_without_effect(
            "--planned", True, "where no link is removed; it is for --fail-link, --fail-switch and --to"
        )
    if routes_path is not None:
        refuse_without_effect("--root", root, "with --routes, which names a root; --new-root gives another")
    old = source.topology()
    routes = None if routes_path is None else read_json(routes_path, "routes", "routes")
    after = _after(old, new, links, switches, added, new_root)
    file = _plan(old, after, algorithm, root, routes, new_root, planned)
    write_answer(file, describe, output, as_json)


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
            raise Refusal("--to gives the whole new topology; leave out --fail-link, --fail-switch and --add")
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
        raise Refusal(f"--add {text!r} is not a link; write it as 3:1-4:2")
    return _end(first, text, "--add"), _end(second, text, "--add")


def _end(text: str, whole: str, option: str) -> End:
    if not re.fullmatch(f"{NUMBER}:{NUMBER}", text):
        raise Refusal(f"{option} {whole!r}: {text!r} is not a switch and a port; write it as 3:1")
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
        lines.append(
            f"  install {step['routes_changed']} routes; they cannot deadlock with those in force before"
        )
        if step["drain"]:
            lines.append(
                f"  stop {len(step['drain'])} pairs; wait until their worms are gone before the next step"
            )
        if step["waiting"]:
            lines.append(f"  {step['waiting']} pairs have no route until a later step")
    if len(file["steps"]) > 1:
        lines.append("Before each step after the first, wait until worms older than the last step are gone.")
    lines.append(
        f"{summary['routes_changed']} routes installed; {summary['routes_broken']} were broken. "
        f"{summary['routes']} pairs have a route, {summary['unreachable']} have none."
    )
    return "\n".join(lines) + "\n"
