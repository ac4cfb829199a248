"""`wormcast verify`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import click
from wormcast_planner import is_copied_by_switches

from wormcast import routing
from wormcast import verify as verifying
from wormcast.cli.files import (
    Json,
    as_png_file,
    parse_json,
    planned,
    read_json,
    read_text,
    refuse_without_effect,
    warn,
    write_answer,
    write_bytes,
)
from wormcast.cli.foreign import Foreign, answer_foreign, foreign_options, is_good, read_routes
from wormcast.cli.kinds import mismatch
from wormcast.cli.refusal import Refusal
from wormcast.cli.source import (
    BRANCHING_DEFAULT,
    PlanningCommand,
    Source,
    at_least_one_switch,
    chosen_routing,
    complete_algorithm,
    source_options,
    topology_name,
)
from wormcast.exits import Exit
from wormcast.network.groups import TREE_ROUTES

NOTHING_TO_CHECK = "nothing-to-check"
"""Code of a refusal: the files have no route at all, so that nothing would be proved."""

BRANCHING = """What the other branches of a worm do while one is blocked. independent: they go on
(packet mode). coupled or A: they stop and keep their channels. interrupted or B: they give
their channels up; every multicast starts at the root. flushed or C: as A, and unicast worms
that they block are flushed. wormhole, wormhole:interrupt and wormhole:flush of `wormcast switching` are A, B and C."""
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
@click.option(
    "--branching",
    help=f"{BRANCHING} [default: as the switches do now; of a file independent]",
    shell_complete=_complete_model,
)
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
    force are checked as the switches pass worms on now; a file has no groups.

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
    for warning in answer.get("warnings", ()):
        warn(f"{topology_name(source)}: {warning}")
    write_answer(answer, _explain, output, as_json)
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
    by_file = bool(groups_path or group_paths or routes_path)
    in_force = not (by_file or algorithm) and root is None
    plain = certificate is None and not any(model.values())
    if in_force and plain and (answer := source.verdict()) is not None:
        return answer
    topology = source.topology()
    mode = source.branching()
    branching = (
        model["branching"] if certificate is None else (certificate.get("model") or {}).get("branching")
    )
    as_now = branching in (None, mode)
    routes = None if routes_path is None else read_json(routes_path, "routes", "routes")
    if in_force:
        routes = source.routes_in_force({})
    left_out: list[int] = []
    groups = [_plan(path) for path in group_paths]
    if groups_path is not None:
        groups += _plans(groups_path)
    if not (groups_path or group_paths or routes_path or algorithm):
        found = _groups_in_force(
            source, topology, root, buffers not in (None, "spill"), mode if as_now else None
        )
        groups, left_out = found
    setting: Json = {"root": root}
    if routes is None:
        setting = chosen_routing(source, algorithm, root)
    topology = at_least_one_switch(topology)
    if certificate is not None:
        if routes is None:
            routes = planned(functools.partial(routing.routes, topology, **setting))
        answer = _check(topology, routes, groups, certificate, certificate_path)
    else:
        given: dict[str, Any] = {name: chosen for name, chosen in model.items() if chosen is not None}
        given.setdefault("branching", mode)
        answer = planned(lambda: verifying.verify(topology, routes, **setting, groups=groups, **given))
    if by_file and verifying.saw_nothing(answer):
        raise Refusal(
            "there is no route and no multicast in these files: nothing to check", code=NOTHING_TO_CHECK
        )
    return {**answer, "groups_left_out": left_out} if left_out else answer


def _groups_in_force(
    source: Source, topology: Json, root: int | None, forwarded: bool, mode: str | None
) -> tuple[list[Json], list[int]]:
    """What every sender of a group may send, and the groups that are left out. Groups that hosts forward send unicast
    worms, which the routes hold already; their buffers count only where these are finite: `forwarded`. Trees of a
    group's own are the controller's to choose, so groups that have such (guard C) are left out, and those through the
    root (guard B). `mode`: branches do what switches have them do now. In wormhole mode scheme switch alone holds
    channels, and where multicasts are interrupted it goes by the root."""
    plans: list[Json] = []
    left_out: list[int] = []
    wormhole = mode not in (None, BRANCHING_DEFAULT)
    for group in source.groups():
        copied = is_copied_by_switches(group.scheme)
        if len(group.members) < 2 or not (forwarded or copied):
            continue
        if wormhole and copied and group.scheme != TREE_ROUTES:
            continue
        if group.parameters.get("guard") in ("B", "C") or (copied and mode == "interrupted"):
            left_out.append(group.about["id"])
            continue
        at = group.root if root is None else root
        plans += [
            planned(functools.partial(routing.group, topology, group.request(sender), at))
            for sender in group.members
        ]
    return plans, left_out


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
    found = value.get("groups", [value]) if isinstance(value, dict) else value
    if not isinstance(found, list):
        raise Refusal(
            f'groups {path} is not JSON of plans: a plan, a list of them, or {{"groups": [plan, …]}}',
            code="wrong-type",
        )
    plans: list[Any] = found
    for number, entry in enumerate(plans):
        if not isinstance(entry, dict):
            raise Refusal(f"groups {path}: entry {number} is not an object", code="wrong-type")
    return plans


def _certificate(path: Path, option: str | None) -> Json:
    certificate = read_json(path, "certificate")
    if wrong := mismatch(certificate, "verify"):
        raise Refusal(f"certificate {path}: the files do not fit together: {wrong}", code="wrong-type")
    # What says of which routes it is: those of ours have a model.
    if option is not None and "model" in certificate:
        text = f"certificate {path}: it is of routes in our own files, not of those that {option} names"
        raise Refusal(text, code="wrong-type")
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
        return {"holds": True, **verifying.check_certificate(topology, routes, groups, certificate)}
    except verifying.Violation as violation:
        worm, held, needed = violation.worm, violation.held, violation.needed
        return {"holds": False, "worm": worm, "held": held, "needed": needed, "reason": violation.reason}
    except ValueError as error:
        raise Refusal(f"certificate {path}: {error}") from error


def _explain(answer: Json) -> str:
    if "holds" not in answer:
        return verifying.explain(answer)
    if answer["holds"]:
        left_out = answer.get("groups_left_out")
        more = f"; not checked: groups {', '.join(map(str, left_out))}" if left_out else ""
        return f"the order holds for {answer['worms']} worms in {answer['steps']} steps{more}\n"
    return f"{answer['worm']} holds {answer['held']} and needs {answer['needed']}: {answer['reason']}\n"
