"""`wormcast verify`."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import click
from wormcast_planner import is_copied_by_switches

from wormcast import routing
from wormcast.cli.files import (
    Json,
    as_png_file,
    parse_json,
    planned,
    read_json,
    read_text,
    refuse_without_effect,
    write_bytes,
    write_text,
)
from wormcast.cli.foreign import Foreign, answer_foreign, foreign_options, is_good, read_routes
from wormcast.cli.kinds import mismatch
from wormcast.cli.refusal import Refusal
from wormcast.cli.source import (
    PlanningCommand,
    Source,
    at_least_one_switch,
    chosen_routing,
    complete_algorithm,
    source_options,
)
from wormcast.exits import Exit

BRANCHING = """What the other branches of a worm do while one is blocked. independent: they go on
(packet mode). coupled or A: they stop and keep their channels. interrupted or B: they give
their channels up; every multicast starts at the root. flushed or C: as A, and unicast worms
that they block are flushed."""
BUFFERS = "Buffers of hosts that forward. spill: host memory. classes: two finite classes. shared: one finite buffer."
MODELS = {
    "branching": ["independent", "coupled", "interrupted", "flushed"],
    "buffers": ["spill", "classes", "shared"],
    "forwarding": ["store", "cut-through"],
}
FORWARDING = (
    "A worm that finds no buffer. store: it is refused and sent again. cut-through: it waits in its channels."
)


def _complete_model(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,
    incomplete: str,
) -> list[str]:
    return [name for name in MODELS[parameter.name or ""] if name.startswith(incomplete)]


@click.command("verify", cls=PlanningCommand)
@click.option("--routes", "routes_path", type=Path, help="Routes file to check.")
@click.option(
    "--algorithm",
    help="Check all routes of an algorithm. "
    f"[default: the one in force; of a file {routing.ALGORITHM_DEFAULT}]",
    shell_complete=complete_algorithm,
)
@click.option(
    "--group",
    "group_paths",
    type=Path,
    multiple=True,
    help="Group file to check. May be given several times.",
)
@click.option("--groups", "groups_path", type=Path, help="File with a list of groups to check.")
@click.option("--branching", help=f"{BRANCHING} [default: independent]", shell_complete=_complete_model)
@click.option("--buffers", help=f"{BUFFERS} [default: spill]", shell_complete=_complete_model)
@click.option("--forwarding", help=f"{FORWARDING} [default: store]", shell_complete=_complete_model)
@click.option(
    "--check", "certificate_path", type=Path, help="Check that the order in this verify file holds."
)
@foreign_options
@click.option(
    "--draw",
    type=click.Path(dir_okay=False, path_type=Path),
    help="If there is a deadlock, write a picture of the cycle to this file, SVG or PNG.",
)
@source_options
@click.pass_context
def verify(
    context: click.Context,
    routes_path: Path | None,
    algorithm: str | None,
    group_paths: tuple[Path, ...],
    groups_path: Path | None,
    certificate_path: Path | None,
    foreign: Foreign,
    draw: Path | None,
    source: Source,
    root: int | None,
    output: Path | None,
    as_json: bool,
    branching: str | None,
    buffers: str | None,
    forwarding: str | None,
) -> None:
    """Check routes and groups for deadlock.

    The network is that of the running controller, or that of --topology. Without
    --routes, --algorithm, --group and --groups, the controller's routes and groups in
    force are checked; a file has no groups.

    \b
    Routes that others made are checked too:
      wormcast verify --topology ibnetdiscover.txt --tables lfts.txt     (dump_lfts, OpenSM)
      wormcast verify --paths paths.csv                                  (any router)
      wormcast verify --topology net.json --p4runtime switches.json      (running switches)

    Exit status 1: they can deadlock, or a destination is not reached. With --check: the
    order does not hold.
    """
    model = {"branching": branching, "buffers": buffers, "forwarding": forwarding}
    foreign.refuse_needless()
    as_png = draw is not None and as_png_file(False, draw)
    if foreign.option is None:
        _refuse_needless(model, certificate_path, routes_path, algorithm, root)
    else:
        ours = {"routes": routes_path, "algorithm": algorithm, "group": group_paths, "groups": groups_path}
        for name, given in {**ours, **model, "root": root}.items():
            refuse_without_effect(f"--{name}", given, f"with {foreign.option}")
    certificate = None if certificate_path is None else _certificate(certificate_path, foreign.option)
    if foreign.option is None:
        check = (certificate, certificate_path)
        answer = _verify_ours(source, routes_path, algorithm, (group_paths, groups_path), root, model, check)
    else:
        routes, names = read_routes(foreign, source, context.params.get("api"))
        answer = answer_foreign(routes, names, certificate, certificate_path)
    if draw is not None and answer.get("cycle"):
        picture = planned(lambda: _picture(answer, as_png))
        write_bytes(picture, draw)
    for_people = output is None and not as_json and sys.stdout.isatty()
    write_text(_explain(answer) if for_people else routing.to_text(answer), output)
    if not is_good(answer):
        context.exit(Exit.NO)


def _picture(answer: Json, as_png: bool) -> bytes:
    from wormcast import pictures

    return pictures.cycle_png(answer) if as_png else pictures.cycle_svg(answer).encode()


def _verify_ours(
    source: Source,
    routes_path: Path | None,
    algorithm: str | None,
    group_files: tuple[tuple[Path, ...], Path | None],
    root: int | None,
    model: Json,
    check: tuple[Json | None, Path | None],
) -> Json:
    """The answer about routes and groups in our own files, or in force."""
    group_paths, groups_path = group_files
    certificate, certificate_path = check
    buffers = model["buffers"] if certificate is None else (certificate.get("model") or {}).get("buffers")
    in_force = not (groups_path or group_paths or routes_path or algorithm) and root is None
    plain = certificate is None and not any(model.values())
    if in_force and plain and (answer := source.verdict()) is not None:
        return answer
    topology = source.topology()
    routes = None if routes_path is None else read_json(routes_path, "routes", "routes")
    if in_force:
        routes = source.routes_in_force({})
    groups = [_plan(path) for path in group_paths]
    if groups_path is not None:
        groups += _plans(groups_path)
    if not (groups_path or group_paths or routes_path or algorithm):
        groups = _groups_in_force(source, topology, root, forwarded=buffers not in (None, "spill"))
    setting: Json = {"root": root}
    if routes is None:
        setting = chosen_routing(source, algorithm, root)
    topology = at_least_one_switch(topology)
    if certificate is not None:
        if routes is None:
            routes = planned(functools.partial(routing.routes, topology, **setting))
        return _check(topology, routes, groups, certificate, certificate_path)
    given: dict[str, Any] = {name: chosen for name, chosen in model.items() if chosen is not None}
    return planned(lambda: routing.verify(topology, routes, **setting, groups=groups, **given))


def _groups_in_force(source: Source, topology: Json, root: int | None, *, forwarded: bool) -> list[Json]:
    """What every sender of a group may send. Groups that hosts forward send unicast worms, which the routes
    hold already; their buffers count only where these are finite: `forwarded`. Trees of a group's own are the
    controller's to choose, so groups that have such (guard C) are left out, and those through the root (guard B),
    whose worms are not interrupted in packet mode."""
    return [
        planned(
            functools.partial(
                routing.group, topology, group.request(sender), group.root if root is None else root
            )
        )
        for group in source.groups()
        if len(group.members) > 1 and (forwarded or is_copied_by_switches(group.scheme))
        if group.parameters.get("guard") not in ("B", "C")
        for sender in group.members
    ]


def _refuse_needless(
    model: Json, certificate: Path | None, routes: Path | None, algorithm: str | None, root: int | None
) -> None:
    """Refuses options that would change nothing."""
    if certificate is not None:
        for name, chosen in model.items():
            refuse_without_effect(f"--{name}", chosen, "with --check, whose file says which model it is for")
        if routes is not None:
            refuse_without_effect("--algorithm", algorithm, "with --check and --routes; leave out one")
    by_turns = model["branching"] in ("interrupted", "B") and certificate is None
    if routes is not None and algorithm is None and not by_turns:
        refuse_without_effect(
            "--root", root, "on the routes of a file; it is for --algorithm and --branching interrupted"
        )


def _plan(path: Path) -> Json:
    group = read_json(path, "group", "group")
    if "groups" in group:
        raise Refusal(f"{path} holds several groups; give it with --groups")
    return group


def _plans(path: Path) -> list[Json]:
    value = parse_json(read_text(path, "groups"), "groups", path, "JSON of plans")
    if wrong := mismatch(value, "group"):
        raise Refusal(f"groups {path}: {wrong}", code="wrong-type")
    try:
        plans: list[Any] = list(routing.plans_of(value))
    except TypeError as error:
        raise Refusal(f"groups {path} is not JSON of plans: {error}", code="wrong-type") from error
    for number, entry in enumerate(plans):
        if not isinstance(entry, dict):
            raise Refusal(f"groups {path}: entry {number} is not an object", code="wrong-type")
    return plans


def _certificate(path: Path, option: str | None) -> Json:
    certificate = read_json(path, "certificate")
    if wrong := mismatch(certificate, "verify"):
        raise Refusal(f"certificate {path}: the files do not fit together: {wrong}", code="wrong-type")
    # What says of which routes it is.
    about = "model" if option is None else "checked"
    wanted = {"deadlock_free": bool, about: dict, "order": list}
    for name, kind in wanted.items():
        if certificate.get("deadlock_free") is not False and not isinstance(certificate.get(name), kind):
            text = f'certificate {path}: the files do not fit together: field "{name}" is missing or wrong'
            made_by = "wormcast verify --topology FILE" + (f" {option} …" if option else "")
            raise Refusal(f"{text}; '{made_by} --json' makes one", code="missing-field")
    return certificate


def _check(topology: Json, routes: Json, groups: list[Json], certificate: Json, path: Path | None) -> Json:
    try:
        return {"holds": True, **routing.check_certificate(topology, routes, groups, certificate)}
    except routing.Violation as violation:
        worm, held, needed = violation.worm, violation.held, violation.needed
        return {"holds": False, "worm": worm, "held": held, "needed": needed, "reason": violation.reason}
    except ValueError as error:
        raise Refusal(f"certificate {path}: {error}") from error


def _explain(answer: Json) -> str:
    if "holds" not in answer:
        return routing.explain(answer)
    if answer["holds"]:
        return f"the order holds for {answer['worms']} worms in {answer['steps']} steps\n"
    return f"{answer['worm']} holds {answer['held']} and needs {answer['needed']}: {answer['reason']}\n"
