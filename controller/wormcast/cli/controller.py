"""`wormcast controller`."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from wormcast.cli.refusal import Commands, Refusal
from wormcast.discovery.hosts import GONE_AFTER_MAX_S, GONE_AFTER_MIN_S, GONE_AFTER_S

AGENTS_DEFAULT = "unix:/run/wormcast/agents.sock"
LISTEN_DEFAULT = "127.0.0.1:8080"
STATE_DEFAULT = "/var/lib/wormcast/controller.db"
EXIT_START = 78
"""It cannot start as told (EX_CONFIG of sysexits.h)."""


@click.group(cls=Commands)
def controller() -> None:
    """Run the controller of a fabric."""


@controller.command()
@click.option(
    "--switches",
    type=click.Path(dir_okay=False, path_type=Path),
    help='Switches to control: {"switches": [{"id": 0, "address": "127.0.0.1:50051", "device_id": 0, "ports": 8}]}; '
    'hosts without an agent may follow: "hosts": [{"name": "printer", "switch": 0, "port": 5}]. '
    "More can be added over REST.",
)
@click.option(
    "--agents",
    multiple=True,
    default=[AGENTS_DEFAULT],
    show_default=True,
    help="Where agents attach: unix:/path or host:port. May be given several times.",
)
@click.option(
    "--listen",
    default=LISTEN_DEFAULT,
    show_default=True,
    help="Where REST is served: host:port or unix:/path.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=STATE_DEFAULT,
    show_default=True,
    help="State file (SQLite); ':memory:' keeps nothing.",
)
@click.option(
    "--pipeline",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of wormcast.json and wormcast.p4info.txtpb. [default: those of this installation]",
)
@click.option(
    "--algorithm",
    default="osud",
    show_default=True,
    help="Unicast routes: osud uses all links, tree-only those of the spanning tree; omit is minimal, and "
    "hosts on the way re-inject.",
)
@click.option(
    "--probe-interval-ms",
    type=click.IntRange(50, 5000),
    default=250,
    show_default=True,
    help="Time between LLDP probes on a link; after four lost in a row the link is down.",
)
@click.option(
    "--gone-after",
    type=click.FloatRange(GONE_AFTER_MIN_S, GONE_AFTER_MAX_S),
    default=GONE_AFTER_S,
    show_default=True,
    metavar="SECONDS",
    help="A member whose agent gives no sign of life for so long leaves its groups until it is back. What is silent "
    "for less, a paused host or switch too, delays its groups and loses no membership.",
)
@click.option(
    "--class-d",
    type=click.Choice(["narrow", "wide"]),
    help="Numbers of IP multicast addresses: narrow, their low 8 bits, so that some share one; wide, one of 16 bits "
    "each, as long as the switches have room. Kept in the state file. [default: as kept there, else narrow]",
)
@click.option(
    "--socket-mode",
    metavar="MODE",
    help="Mode of the Unix sockets of REST and agents: 0600, the user who runs this; 0660, a group too; 0666, everyone. "
    "[default: 0600; with --socket-group 0660]",
)
@click.option("--socket-group", metavar="NAME", help="Group of users that the Unix sockets belong to.")
@click.option("-v", "--verbose", count=True, help="Log more; given twice, log everything.")
def run(
    switches: Path | None,
    agents: tuple[str, ...],
    listen: str,
    state: Path,
    pipeline: Path | None,
    algorithm: str,
    probe_interval_ms: int,
    gone_after: float,
    class_d: str | None,
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
        raise Refusal(str(error), code="cannot-start", exit_code=EXIT_START) from error
    options = Options(
        switches,
        agents,
        listen,
        None if str(state) == ":memory:" else state,
        pipeline,
        algorithm,
        probe_interval_ms / 1000,
        class_d,
        gone_after,
        access,
    )
    try:
        serve(options)
    except StartError as error:
        raise Refusal(str(error), code="cannot-start", exit_code=EXIT_START) from error
