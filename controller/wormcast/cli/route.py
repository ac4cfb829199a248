"""`wormcast route`."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import routing
from wormcast.cli.files import Json, planned, refuse_without_effect, write_text
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import print_table
from wormcast.cli.source import (
    HOST,
    Host,
    PlanningCommand,
    Source,
    at_least_one_switch,
    chosen_routing,
    complete_algorithm,
    complete_end,
    find_host,
    source_options,
)
from wormcast.counted import counted
from wormcast.routing.fallback import RUNS_AS, longer_routes, runs_as

SEED_RANGE = click.IntRange(0, 2**63 - 1)
SEED_DEFAULT = 1
HOSTS_NAMED_MAX = 16
"""Hosts named in one line; of more it says how many there are."""
DRAWN = ("rmit", "rrmit", "pit", "rrmit-min")
"""Algorithms that draw paths."""


@click.command("route", cls=PlanningCommand)
@click.argument("src", type=HOST, required=False, shell_complete=complete_end)
@click.argument("dst", type=HOST, required=False, shell_complete=complete_end)
@click.option(
    "--from",
    "sender",
    type=HOST,
    metavar="HOST",
    help="Host that sends, instead of SRC.",
    shell_complete=complete_end,
)
@click.option(
    "--to",
    "receiver",
    type=HOST,
    metavar="HOST",
    help="Host that receives, instead of DST.",
    shell_complete=complete_end,
)
@click.option(
    "--algorithm",
    help=f"One of {', '.join(routing.algorithms())}. [default: the one in force; of a file {routing.ALGORITHM_DEFAULT}]",
    shell_complete=complete_algorithm,
)
@click.option(
    "--seed",
    type=SEED_RANGE,
    help="rmit, rrmit, pit, rrmit-min: seed that chooses the ten paths of a pair which has more. [default: 1]",
)
@click.option(
    "--summary",
    is_flag=True,
    help=f"Print figures over all pairs, beside those of {routing.ALGORITHM_DEFAULT}.",
)
@source_options
def route(
    src: Host | None,
    dst: Host | None,
    sender: Host | None,
    receiver: Host | None,
    algorithm: str | None,
    seed: int | None,
    summary: bool,
    source: Source,
    root: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show source routes: from host SRC, to host DST, or all. Hosts are ids or names.

    The network is that of the running controller, or that of --topology. Without
    --algorithm and --root these are the routes in force, with how many messages took
    each. Prints a table, with --json or --output JSON.
    """
    src, dst = _either("source", src, "--from", sender), _either("destination", dst, "--to", receiver)
    if summary and (src is not None or dst is not None):
        raise Refusal("--summary is over all pairs; leave out source and destination")
    setting = chosen_routing(source, algorithm, root)
    chosen = setting["algorithm"]
    if chosen in routing.algorithms() and chosen not in DRAWN:
        refuse_without_effect("--seed", seed, f"with {chosen}; it is for {', '.join(DRAWN)}")
    topology = source.topology()
    seed = SEED_DEFAULT if seed is None else seed
    ends: Json = {
        name: find_host(topology, key) for name, key in (("src", src), ("dst", dst)) if key is not None
    }
    for_people = not as_json and output is None
    if summary:
        figures = planned(lambda: routing.route_summary(topology, **setting, seed=seed))
        baseline = planned(lambda: routing.route_summary(topology, routing.ALGORITHM_DEFAULT, root))
        if for_people:
            _print_summary(figures, baseline)
            _print_longer(topology, figures)
        else:
            fallback = {"runs_as": runs_as(topology, chosen)}
            write_text(routing.to_text(figures | fallback | {"baseline": baseline}), output)
        return
    routes = None
    if algorithm is None and root is None and seed == SEED_DEFAULT and _are_apart(topology, ends):
        routes = source.routes_in_force(ends)
    if routes is None:
        routes = planned(lambda: routing.routes(at_least_one_switch(topology), **setting, seed=seed, **ends))
    if not topology["switches"]:
        routes["root"] = None
    if for_people:
        _print_routes(routes)
        if chosen in RUNS_AS and not all(host.get("transit", True) for host in topology["hosts"]):
            _print_longer(topology, planned(lambda: routing.route_summary(topology, **setting, seed=seed)))
    else:
        write_text(routing.to_text(routes), output)


def _are_apart(topology: Json, ends: Json) -> bool:
    """Whether the ends are hosts of the network, and not one host twice; else the planner says what is wrong."""
    known = {host["id"] for host in topology["hosts"]}
    return set(ends.values()) <= known and len(set(ends.values())) == len(ends)


def _either(what: str, argument: Host | None, option: str, value: Host | None) -> Host | None:
    if argument is not None and value is not None and argument != value:
        raise Refusal(
            f"the {what} is given twice: {argument} as argument and {value} with {option}; give one"
        )
    return value if argument is None else argument


def _print_routes(routes: Json) -> None:
    listed = routes["routes"]
    taken = ["messages"] if any("messages" in row for row in listed) else []
    print_table(
        f"{counted(len(listed), 'route')}, {routes['algorithm']}, root {routes['root']}",
        ["from", "to", "share", *taken, "ports", "switches", "in transit"],
        [
            [
                row["src"],
                row["dst"],
                f"{row.get('share', 1):.1%}",
                *(row.get(name) for name in taken),
                " ".join(map(str, row["ports"])),
                " ".join(map(str, row["switches"])),
                " ".join(map(str, row["in_transit"])) or None,
            ]
            for row in listed
        ],
    )
    if unknown := routes.get("uses_unknown"):
        named = ", ".join(map(str, unknown[:HOSTS_NAMED_MAX]))
        more = f" and {len(unknown) - HOSTS_NAMED_MAX} more" if len(unknown) > HOSTS_NAMED_MAX else ""
        click.echo(
            f"how often routes from host {named}{more} are used is not known: no word from their agents"
        )
    if apart := routes.get("unreachable"):
        click.echo(f"{len(apart)} pairs of hosts have no route; --json lists them")


def _print_longer(topology: Json, figures: Json) -> None:
    algorithm = figures["algorithm"]
    lines = longer_routes(algorithm, runs_as(topology, algorithm), figures["lengthened_pairs"])
    if lines:
        click.echo("\n".join(lines))


def _print_summary(figures: Json, baseline: Json) -> None:
    def load(values: Json) -> str:
        return f"{values['mean']:.1f} / {values['max']:.1f}"

    def column(of: Json) -> list[str]:
        return [
            str(of["pairs"]),
            str(of["unreachable"]),
            f"{of['alternatives_mean']:.2f}",
            f"{of['minimal']:.1%}",
            str(of["lengthened_pairs"]),
            f"{of['links_mean']:.3f}",
            f"{of['switches_mean']:.3f} / {of['switches_max']}",
            f"{of['in_transit_mean']:.3f} / {of['in_transit_max']}",
            load(of["in_transit_load"]),
            load(of["link_load"]),
        ]

    names = [
        "pairs",
        "pairs without a route",
        "routes of a pair, mean",
        "minimal routes",
        "pairs with longer routes, as hosts do not re-inject",
        "links of a route, mean",
        "switches crossed, mean / max",
        "in-transit hosts of a route, mean / max",
        "pairs a host re-injects for, mean / max",
        "pairs over a link, mean / max",
    ]
    # Beside the algorithm of routes that hosts do not re-inject, unless it is the one that was asked for.
    beside = [figures] if figures["algorithm"] == baseline["algorithm"] else [figures, baseline]
    print_table(
        f"root {figures['root']}",
        ["", *(of["algorithm"] for of in beside)],
        [list(row) for row in zip(names, *map(column, beside), strict=True)],
    )
