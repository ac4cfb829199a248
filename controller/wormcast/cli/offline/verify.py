"""`wormcast verify` on a topology file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from wormcast import plan
from wormcast.cli.offline.common import (
    Json,
    RefusedInput,
    file_options,
    planned,
    read_json,
    read_topology,
    write_text,
)

EXIT_DEADLOCK = 1

BRANCHING = """Branches of a worm while one is blocked: independent (packet mode), coupled or A
(they stop and keep their channels), interrupted or B (they give them up; every multicast
starts at the root), flushed or C (as A, but unicast they block is flushed)."""
BUFFERS = (
    "Buffers of hosts that pass worms on: spill (to host memory), classes (two finite), shared (one finite)."
)
FORWARDING = "A worm without a buffer: store (refused and sent again), cut-through (waits in its channels)."


@click.command("verify")
@click.option("--routes", "routes_path", type=Path, help="Routes file to check.")
@click.option("--algorithm", help="Check all routes of an algorithm. [default: osud]")
@click.option("--group", "group_paths", type=Path, multiple=True, help="Group file; repeatable.")
@click.option("--groups", "groups_path", type=Path, help="File of several groups: a list of plans.")
@click.option("--branching", default="independent", show_default=True, help=BRANCHING)
@click.option("--buffers", default="spill", show_default=True, help=BUFFERS)
@click.option("--forwarding", default="store", show_default=True, help=FORWARDING)
@click.option(
    "--check", "certificate_path", type=Path, help="Check that the order in this verify file holds."
)
@file_options
@click.pass_context
def verify(
    context: click.Context,
    routes_path: Path | None,
    algorithm: str | None,
    group_paths: tuple[Path, ...],
    groups_path: Path | None,
    certificate_path: Path | None,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,
    branching: str,
    buffers: str,
    forwarding: str,
) -> None:
    """Check routes and groups on a topology file for deadlock. Exit code 1: they can
    deadlock, or with --check: the order does not hold."""
    value = read_topology(topology)
    routes = None if routes_path is None else read_json(routes_path, "routes")
    groups = [_plan(path) for path in group_paths]
    if groups_path is not None:
        groups += _plans(groups_path)
    if certificate_path is not None:
        certificate = read_json(certificate_path, "certificate")
        if routes is None:
            routes = planned(lambda: plan.routes(value, algorithm or "osud", root))
        answer = _check(value, routes, groups, certificate)
        good = answer["holds"]
    else:
        if routes is None and algorithm is None:
            algorithm = "osud"
        answer = planned(
            lambda: plan.verify(
                value,
                routes,
                algorithm=algorithm,
                root=root,
                groups=groups,
                branching=branching,
                buffers=buffers,
                forwarding=forwarding,
            )
        )
        good = answer["deadlock_free"]
    for_people = output is None and not as_json and sys.stdout.isatty()
    write_text(_explain(answer) if for_people else plan.to_text(answer), output)
    if not good:
        context.exit(EXIT_DEADLOCK)


def _plan(path: Path) -> Json:
    group = read_json(path, "group")
    if "groups" in group:
        raise RefusedInput(f"{path} holds several groups; give it as --groups")
    return group


def _plans(path: Path) -> list[Json]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
        plans: Any = plan.plans_of(json.loads(text))
    except OSError as error:
        raise RefusedInput(f"cannot read groups {path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise RefusedInput(f"groups {path} is not JSON of plans: {error}") from error
    return list(plans)


def _check(topology: Json, routes: Json, groups: list[Json], certificate: Json) -> Json:
    try:
        return {"holds": True, **plan.check_certificate(topology, routes, groups, certificate)}
    except plan.Violation as violation:
        worm, held, needed = violation.worm, violation.held, violation.needed
        return {"holds": False, "worm": worm, "held": held, "needed": needed, "reason": violation.reason}
    except ValueError as error:
        raise RefusedInput(str(error)) from error


def _explain(answer: Json) -> str:
    if "holds" not in answer:
        return plan.explain(answer)
    if answer["holds"]:
        return f"the order holds for {answer['worms']} worms in {answer['steps']} steps\n"
    return f"{answer['worm']} holds {answer['held']} and needs {answer['needed']}: {answer['reason']}\n"
