"""`wormcast group plan`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click
from wormcast_planner import FAN_OUT_DEFAULT, is_copied_by_switches

from wormcast import pictures, routing
from wormcast.cli.costs import auto_options
from wormcast.cli.files import Json, planned, read_json, refuse_without_effect, write_answer, write_text
from wormcast.cli.group_table import group_table
from wormcast.cli.refusal import Refusal
from wormcast.cli.source import (
    HOST,
    Group,
    Host,
    PlanningCommand,
    Source,
    complete_end,
    complete_group_or_end,
    find_host,
    host_list,
    source_options,
)
from wormcast.network.groups import AUTO as AUTO_SCHEME
from wormcast.network.groups import GROUP_BOUND, SCHEME_DEFAULT

SHAPES = {
    "k": ("k-binomial",),
    "packets": ("k-binomial",),
    "fan_out": ("tree",),
    "lambda": ("postal",),
    "r": ("mu-torus",),
    "variant": ("circuit",),
    "guard": ("switch", "table", "broadcast"),
    "least": ("switch", "table"),
    "trees": ("switch",),
}
"""The schemes each parameter of a configured group is for."""
SEPARATE = "separate"
"""Another name of scheme repeat, that of TORUS §3."""
AUTO_ALONE = ("tables", "total_order", "among", "costs")
AUTO = ("packets", "bytes", "payload", "discipline", "routing", *AUTO_ALONE)
"""Parameters of scheme auto; it chooses the others."""


def _complete_scheme(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    return [name for name in ("auto", *routing.schemes()) if name.startswith(incomplete)]


@click.command("plan", cls=PlanningCommand)
@click.argument("keys", nargs=-1, metavar="[GROUP | HOST...]", shell_complete=complete_group_or_end)
@click.option("--members", callback=host_list, help="Members, such as 1,5,9; or give them as arguments.")
@click.option(
    "--source",
    "sender",
    type=HOST,
    metavar="HOST",
    help="Host that sends. [default: the lowest member]",
    shell_complete=complete_end,
)
@click.option(
    "--scheme",
    help=f"auto, {', '.join(routing.schemes())}. [default: {SCHEME_DEFAULT}]",
    shell_complete=_complete_scheme,
)
@click.option("--packets", type=int, help="Packets of a message. [default: 1]")
@click.option("--bytes", type=int, help="Bytes of a message, in place of --packets.")
@click.option("--payload", type=int, help="Bytes of the message in one packet. [default: 1444]")
@click.option(
    "--k",
    type=click.IntRange(min=1),
    help="k-binomial: most children of a host. [default: the best for the packets]",
)
@click.option("--fan-out", type=int, help=f"tree: most children of a host. [default: {FAN_OUT_DEFAULT}]")
@click.option("--variant", help="circuit: omit-last, return or ordered. tree: unordered or ordered.")
@click.option(
    "--lambda", type=int, help="postal: time until a message is received, in send times. [default: 2]"
)
@click.option("--r", type=int, help="mu-torus: members of a chain. [default: as many as a ring has]")
@click.option(
    "--guard", help="switch, table, broadcast: what prevents deadlock: A, B or C (WORM §3). [default: A]"
)
@click.option(
    "--least", help="guard C: what the group's tree has little of: links or depth. [default: links]"
)
@click.option("--group", type=int, help=f"table: number of the group, {GROUP_BOUND}. [default: 0]")
@click.option(
    "--order", help="Order of the members: id, cco, dimension, hamiltonian or random. [default: the scheme's]"
)
@click.option("--seed", type=int, help="Seed of --order random. [default: 0]")
@click.option(
    "--discipline",
    help="What a host sends first. fpfs: each packet to all children. fcfs: all packets to one child. [default: fpfs]",
)
@click.option(
    "--routing",
    help="Unicast paths: osud, tree-only, ... or dimension-order. "
    "[default: osud; dimension-order on a unidirectional torus]",
)
@auto_options
@click.option(
    "--metrics", is_flag=True, help="Replay the sends and show contention, links, holding times and latency."
)
@click.option(
    "--draw",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a picture of who sends to whom to this SVG file.",
)
@click.option(
    "--request", "request_path", type=Path, help="JSON file with scheme, source, members and parameters."
)
@source_options
def plan_group(
    keys: tuple[str, ...],
    members: list[Host],
    sender: Host | None,
    scheme: str | None,
    request_path: Path | None,
    source: Source,
    root: int | None,
    output: Path | None,
    as_json: bool,
    metrics: bool,
    draw: Path | None,
    **parameters: int | str | Json | None,
) -> None:
    """Plan a group: who sends to whom, and in how many steps.

    The network is that of the running controller, or that of --topology. A single
    argument names a GROUP of the controller. Its members that take part now, its scheme
    and its parameters are planned; options replace them. Several arguments name HOSTs,
    and so does --members. With --topology every argument names a HOST.

    Prints a table, with --json or --output JSON.
    """
    request: Json = {} if request_path is None else read_json(request_path, "request", "group")
    given = {name: value for name, value in parameters.items() if value is not None}
    group = source.group(keys[0]) if len(keys) == 1 and not (members or request_path) else None
    topology = source.topology()
    if group is not None:
        request = _request(group, scheme, given)
    elif keys or members:
        request["members"] = [find_host(topology, key) for key in (*map(_host, keys), *members)]
    if scheme is not None or "scheme" not in request:
        request["scheme"] = scheme or SCHEME_DEFAULT
    known_schemes = [AUTO_SCHEME, *routing.schemes()]
    if (named := request["scheme"]) not in (*known_schemes, SEPARATE):
        shown = f'"{named}"' if isinstance(named, str) else json.dumps(named)
        text = f"there is no scheme {shown}; choices are {', '.join(known_schemes)}"
        raise Refusal(text, value=named, choices=known_schemes)
    if given:
        known = request.get("parameters") or {}
        if not isinstance(known, dict):
            raise Refusal(f"parameters of request {request_path} are not an object", code="wrong-type")
        request["parameters"] = {**known, **given}
    if not request.get("members"):
        raise Refusal("no members; name them as arguments, with --members or in --request")
    if sender is not None:
        request["source"] = find_host(topology, sender)
        if group is not None and request["source"] not in group.members:
            raise Refusal(
                f"host {request['source']} does not take part in group {group.about['id']}; "
                f"those that do are {', '.join(map(str, group.members))}",
                value=request["source"],
                choices=group.members,
            )
    elif "source" not in request:
        request["source"] = _lowest(request["members"])
    _refuse_foreign(request, given)
    if root is None and group is not None and is_copied_by_switches(request["scheme"]):
        root = group.root
    planned_group = planned(lambda: routing.group(topology, request, root, metrics))
    _refuse_needless(request, given, planned_group["parameters"])
    if draw is not None:
        write_text(pictures.group_svg(planned_group), draw)
    answer = planned_group if group is None else {**group.about, **planned_group}
    write_answer(answer, group_table, output, as_json)


def _host(key: str) -> Host:
    host: Host = HOST.convert(key, None, None)
    return host


def _request(group: Group, scheme: str | None, given: Json) -> Json:
    """What a group is planned from; its own parameters as far as options leave them a meaning."""
    known = dict(group.parameters)
    if scheme not in (None, group.scheme) or group.scheme == AUTO_SCHEME:
        known = {
            name: value for name, value in known.items() if (scheme or group.scheme) in SHAPES.get(name, ())
        }
    if "bytes" in given:
        known.pop("packets", None)
    if scheme in (None, group.scheme) and group.number is not None:
        known["group"] = group.number
    request: Json = {"scheme": group.scheme, "members": group.members, "parameters": known}
    if group.trees and scheme in (None, group.scheme) and not given.keys() & {"guard", "least"}:
        request["shared_trees"] = group.trees
    return request


def _lowest(members: object) -> int:
    if not isinstance(members, list) or not all(type(member) is int for member in members):
        raise Refusal("members of the request are not a list of host ids", code="wrong-type")
    return int(min(members))


def _refuse_foreign(request: Json, given: Json) -> None:
    """Refuses what `auto` chooses by itself, and what only `auto` understands."""
    scheme = request["scheme"]
    for name, value in given.items():
        if scheme == "auto" and name not in AUTO:
            refuse_without_effect(
                _option(name), value, f"with scheme auto; options with an effect are {_options(AUTO)}"
            )
        if scheme in routing.schemes() and name in AUTO_ALONE:
            refuse_without_effect(_option(name), value, f"with scheme {scheme}; it is for scheme auto")


def _refuse_needless(request: Json, given: Json, used: Json) -> None:
    """Refuses options that the plan did not go by: it names the parameters it has used."""
    if request["scheme"] == "auto":
        return
    by_bytes = request["parameters"].get("bytes") is not None if given else False
    for name, value in given.items():
        if name == "bytes" or (name == "payload" and by_bytes):
            continue
        if name == "payload":
            refuse_without_effect("--payload", value, "without --bytes")
        if name not in used or (name == "order" and used[name] != value):
            others = _options(["bytes", *used, *(["seed"] if name == "seed" else [])])
            because = "without --order random" if name == "seed" else f"with scheme {request['scheme']}"
            refuse_without_effect(_option(name), value, f"{because}; options with an effect are {others}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _options(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(_option, names)))
