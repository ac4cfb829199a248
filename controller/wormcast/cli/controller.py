"""`wormcast controller`."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click
from wormcast_planner import ALGORITHM_DEFAULT, CLASS_D_MODES, SWITCH_ID_MAX, RoutingError

from wormcast.cli.refusal import Commands, Refusal
from wormcast.cli.source import complete_algorithm
from wormcast.discovery.hosts import GONE_AFTER_MAX_S, GONE_AFTER_MIN_S, GONE_AFTER_S
from wormcast.exits import Exit
from wormcast.network.ids import SwitchId
from wormcast.network.routing import Routing
from wormcast.p4rt.programs import PROGRAMS, V1MODEL
from wormcast.wormhole.switching import SWITCHINGS, Switching

AGENTS_DEFAULT = "unix:/run/wormcast/agents.sock"
LISTEN_DEFAULT = "127.0.0.1:8080"
STATE_DEFAULT = "/var/lib/wormcast/controller.db"


@click.group(cls=Commands)
def controller() -> None:
    """Run the controller of a fabric."""


@controller.command()
@click.option(
    "--switches",
    type=click.Path(dir_okay=False, path_type=Path),
    help='JSON file of the switches to control: {"switches": [{"id": 0, "address": "127.0.0.1:50051", "device_id": 0, "ports": 8}]}. '
    'It may also name hosts without an agent: "hosts": [{"name": "printer", "switch": 0, "port": 5}]. '
    "More of both can be added over REST.",
)
@click.option(
    "--agents",
    multiple=True,
    default=[AGENTS_DEFAULT],
    show_default=True,
    help="Address where agents connect: unix:/path or host:port. May be given several times.",
)
@click.option(
    "--listen",
    default=LISTEN_DEFAULT,
    show_default=True,
    help="Address of the REST API: host:port or unix:/path.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A name with dots that REST answers to, beside that of this machine. May be given several times.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=STATE_DEFAULT,
    show_default=True,
    help="State file (SQLite). ':memory:' keeps nothing.",
)
@click.option(
    "--accept-empty-state",
    is_flag=True,
    help="Begin though the state file is gone, is another one or lacks the last changes: with what is there.",
)
@click.option(
    "--pipeline",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory with wormcast.json and wormcast.p4info.txtpb. [default: those of this installation] For a chip, with "
    "tofino.pb.bin or tofino2.pb.bin: what its P4Runtime server loads.",
)
@click.option(
    "--program",
    type=click.Choice(PROGRAMS),
    default=V1MODEL,
    show_default=True,
    help="What all switches run. v1model: wormcast-switch and BMv2. tofino, tofino2: the program for that chip, whose "
    "compiled form --pipeline has.",
)
@click.option(
    "--algorithm",
    shell_complete=complete_algorithm,
    help="Unicast routes. osud: shortest legal paths over all links. tree-only: along the spanning tree. "
    "omit, rmit, rrmit, pit, rrmit-min: shortest paths, on which hosts re-inject; all but omit use several a pair. "
    "Kept in the state file with --root and --balanced; 'wormcast routing set' changes them at run time. "
    f"[default: as kept there, else {ALGORITHM_DEFAULT}]",
)
@click.option(
    "--root",
    type=click.IntRange(0, SWITCH_ID_MAX),
    help="Root switch of the routes. [default: each connected part chooses]",
)
@click.option(
    "--balanced",
    is_flag=True,
    help="Choose paths, and without --root the root, so that the largest load falls. For osud and tree-only.",
)
@click.option(
    "--probe-interval-ms",
    type=click.IntRange(50, 5000),
    default=250,
    show_default=True,
    help="Time between LLDP probes on a link where a switch does not tell of its ports.",
)
@click.option(
    "--gone-after",
    type=click.FloatRange(GONE_AFTER_MIN_S, GONE_AFTER_MAX_S),
    default=GONE_AFTER_S,
    show_default=True,
    metavar="SECONDS",
    help="A host leaves its groups when its agent gives no sign of life for this long, and returns when it is heard "
    "again. A shorter silence, as of a paused host, delays its groups and takes nobody out.",
)
@click.option(
    "--class-d",
    type=click.Choice(CLASS_D_MODES),
    help="Numbers of IP multicast addresses. narrow: the low 8 bits, so that some addresses share a number. wide: 16 "
    "bits, so that each has its own as long as the switches have room. Kept in the state file. "
    "[default: as kept there, else narrow]",
)
@click.option(
    "--guard/--no-guard",
    default=None,
    help="Whether switches refuse worms that no plan gives a host. Kept in the state file; 'wormcast guard set' changes "
    "it at run time. [default: as kept there, else off]",
)
@click.option(
    "--switching",
    type=click.Choice(SWITCHINGS),
    help="How switches pass worms on: each frame as soon as it can, or so that a worm has its channels for itself, and "
    "waits or (flush) gives way. Kept in the state file; 'wormcast switching set' changes it at run time. With "
    "tofino packet alone, with tofino2 packet and wormhole. "
    "[default: as kept there, else packet]",
)
@click.option(
    "--socket-mode",
    metavar="MODE",
    help="Mode of the Unix sockets of REST and agents: 0600 (the user who runs this), 0660 (a group too), 0666 (everyone). "
    "[default: 0600; with --socket-group 0660]",
)
@click.option("--socket-group", metavar="NAME", help="Group of users that the Unix sockets belong to.")
@click.option("-v", "--verbose", count=True, help="Log more. Twice: log everything.")
def run(
    switches: Path | None,
    agents: tuple[str, ...],
    listen: str,
    allow_host: tuple[str, ...],
    state: Path,
    accept_empty_state: bool,
    pipeline: Path | None,
    program: str,
    algorithm: str | None,
    root: int | None,
    balanced: bool,
    probe_interval_ms: int,
    gone_after: float,
    class_d: str | None,
    guard: bool | None,
    switching: str | None,
    socket_mode: str | None,
    socket_group: str | None,
    verbose: int,
) -> None:
    """Control switches and agents until interrupted."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    logging.basicConfig(
        level=[logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)],
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
    )
    logging.getLogger("wormcast").setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
    if verbose < 2:
        logging.getLogger("finsy").setLevel(logging.CRITICAL)
    from wormcast.cli.service import Options, StartError
    from wormcast.cli.service import run as serve
    from wormcast.sockets import AccessError, SocketAccess

    try:
        access = SocketAccess.parse(socket_mode, socket_group)
    except AccessError as error:
        raise Refusal(str(error), code="cannot-start", exit_code=Exit.CANNOT_START) from error
    options = Options(
        switches,
        agents,
        listen,
        None if str(state) == ":memory:" else state,
        pipeline,
        _routing(algorithm, root, balanced),
        probe_interval_ms / 1000,
        class_d,
        gone_after,
        access,
        guard,
        None if switching is None else Switching.parse(switching),
        program,
        accept_empty_state,
        allow_host,
    )
    try:
        serve(options)
    except StartError as error:
        raise Refusal(str(error), code="cannot-start", exit_code=Exit.CANNOT_START) from error


def _routing(algorithm: str | None, root: int | None, balanced: bool) -> Routing | None:
    """What the options say; None if nothing."""
    if algorithm is None and root is None and not balanced:
        return None
    try:
        return Routing(algorithm or ALGORITHM_DEFAULT, None if root is None else SwitchId(root), balanced)
    except RoutingError as error:
        raise Refusal(str(error), code="cannot-start", exit_code=Exit.CANNOT_START) from error
