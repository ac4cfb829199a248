"""`wormcast controller run`: switches, agents and REST in one process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import resource
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from wormcast.api.app import create_app
from wormcast.api.connections import IDLE_SECONDS_MAX, Connection
from wormcast.decimal import read_decimal
from wormcast.directory.server import DirectoryError
from wormcast.discovery.hosts import GONE_AFTER_S
from wormcast.network.ids import SwitchId
from wormcast.network.routing import Routing
from wormcast.network.topology import Grid
from wormcast.offload.pool import WorkerPool
from wormcast.p4rt.artifacts import ArtifactError, find_artifacts
from wormcast.p4rt.programs import V1MODEL
from wormcast.reconcile.chip_ports import read_device_ports
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.port_sources import read_interfaces
from wormcast.sockets import CannotListen, SocketAccess, check_address, listen_at
from wormcast.store.database import Database, StoreError, SwitchSpec
from wormcast.wormhole.switching import Switching

LOG = logging.getLogger("wormcast")

STOP_TIMEOUT_S = 3


class StartError(Exception):
    """The controller cannot start; the text says why and what would do."""


@dataclass(frozen=True)
class Options:
    """What the command line gives."""

    switches: Path | None
    agents: tuple[str, ...]
    listen: str
    state: Path | None
    pipeline: Path | None
    routing: Routing | None
    probe_interval_s: float
    class_d: str | None = None
    gone_after_s: float = GONE_AFTER_S
    access: SocketAccess = field(default_factory=SocketAccess)
    guard: bool | None = None
    switching: Switching | None = None
    program: str = V1MODEL
    accept_empty_state: bool = False
    allowed_hosts: tuple[str, ...] = ()


def run(options: Options) -> None:
    """Runs until SIGINT or SIGTERM. Raises `StartError`."""
    _raise_file_limit()
    asyncio.run(_serve(options))


def _raise_file_limit() -> None:
    """A descriptor for every switch, agent and client, as far as this user may have them."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(options: Options) -> None:
    listen = rest_settings(options.listen)
    try:
        controller = Controller(
            Database(options.state, options.accept_empty_state),
            find_artifacts(options.pipeline, options.program),
            options.routing,
            probe_interval_s=options.probe_interval_s,
            class_d=options.class_d,
            gone_after_s=options.gone_after_s,
            guard=options.guard,
            switching=options.switching,
        )
        configuration = read_configuration(options.switches) if options.switches else Configuration()
        controller.put_switches(configuration.switches, configuration.grid)
        for host in configuration.hosts:
            controller.declare_host(*host)
        agents = await controller.start(options.agents, options.access)
    except (StoreError, ArtifactError, DirectoryError) as error:
        raise StartError(str(error)) from error
    except RequestError as error:
        raise StartError(f"{options.switches}: {error.message}") from error
    pool = WorkerPool()
    # Whoever listens at a name answers to it.
    names = (*options.allowed_hosts, listen.get("host", ""))
    server = _Server(uvicorn.Config(create_app(controller, pool, names), **listen))
    LOG.info("agents connect at %s; REST is at %s", ", ".join(agents), options.listen)
    try:
        await _until_stopped(controller, server, options)
    finally:
        await pool.close()
        await controller.stop()


async def _until_stopped(controller: Controller, server: _Server, options: Options) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    rest = asyncio.create_task(_serve_rest(server, options), name="rest")
    waiting = [rest, asyncio.create_task(stopped.wait())]
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        controller.events.close()
        server.should_exit = True
        with contextlib.suppress(StartError):
            await rest
        for task in waiting:
            task.cancel()


async def _serve_rest(server: _Server, options: Options) -> None:
    sockets = None
    try:
        if options.listen.startswith("unix:"):
            sockets = [listen_at(Path(options.listen.removeprefix("unix:")), options.access)]
        else:
            check_address(options.listen)
        await server.serve(sockets)
    except CannotListen as error:
        raise StartError(f"REST cannot be served on {options.listen}: {error}") from error
    except SystemExit:  # uvicorn's way to say that it cannot bind
        raise StartError(f"REST cannot be served on {options.listen}: the system refused it") from None


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def rest_settings(listen: str) -> dict[str, Any]:
    """uvicorn's settings for an address; raises `StartError`."""
    common: dict[str, Any] = {
        "log_level": "error",
        "access_log": False,
        "lifespan": "off",
        "http": Connection,
        "ws": "none",
        "timeout_keep_alive": IDLE_SECONDS_MAX,
        "timeout_graceful_shutdown": STOP_TIMEOUT_S,
    }
    if listen.startswith("unix:"):
        return common
    host, _, port = listen.rpartition(":")
    number = read_decimal(port)
    if not host or number is None or number >= 1 << 16:
        raise StartError(f"--listen {listen!r}: wanted host:port or unix:/path; ports are 0 to 65535")
    return {"host": host.strip("[]"), "port": number, **common}


FILE_BYTES_MAX = 4 << 20
"""Longest switches file: as many switches and hosts as there may be, with long names."""


@dataclass(frozen=True)
class Configuration:
    """What the switches file says."""

    switches: tuple[SwitchSpec, ...] = ()
    hosts: tuple[tuple[str | None, int, int, int | None], ...] = ()
    """Hosts without an agent: name, switch, port, id."""
    grid: Grid | None = None
    """Coordinates of the switches, if they are a torus or mesh."""


FILE_FORM = (
    '{"switches": [{"id": 0, "address": "127.0.0.1:50051", "device_id": 0, "ports": 8}], '
    '"hosts": [{"name": "printer", "switch": 0, "port": 5}], "grid": {"radix": [4, 4], "wraps": true}}'
)


def read_configuration(path: Path) -> Configuration:
    """Reads the switches file; raises `StartError` that names the file and the place."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
        if len(text) > FILE_BYTES_MAX:
            raise ValueError(f"more than {FILE_BYTES_MAX} bytes")
        value = json.loads(text)
        return Configuration(
            tuple(_read_switch(entry, f"switches[{n}]") for n, entry in enumerate(value["switches"])),
            tuple(_read_host(entry, f"hosts[{n}]") for n, entry in enumerate(value.get("hosts", []))),
            Grid.from_json(value["grid"]) if value.get("grid") is not None else None,
        )
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise StartError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except KeyError as error:
        raise StartError(f"{path}: {error} is missing; wanted {FILE_FORM}") from error
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StartError(f"{path}: {error}; wanted {FILE_FORM}") from error


def _read_switch(entry: dict[str, Any], place: str) -> SwitchSpec:
    return SwitchSpec(
        SwitchId(_integer(entry, "id", place)),
        _text(entry, "address", place),
        _integer(entry, "device_id", place) if "device_id" in entry else 0,
        _integer(entry, "ports", place),
        _interfaces(entry, place),
        _text(entry, "metrics", place) if "metrics" in entry else None,
        _device_ports(entry, place),
    )


def _interfaces(entry: dict[str, Any], place: str) -> tuple[tuple[int, str], ...]:
    named = entry.get("interfaces", {})
    if not isinstance(named, dict):
        raise ValueError(f"{place}.interfaces is {named!r}, not an object of interface names by port")
    return read_interfaces(named)


def _device_ports(entry: dict[str, Any], place: str) -> tuple[tuple[int, int], ...]:
    mapped = entry.get("device_ports", {})
    if not isinstance(mapped, dict):
        raise ValueError(f"{place}.device_ports is {mapped!r}, not an object of device ports by port")
    return read_device_ports(mapped)


def _read_host(entry: dict[str, Any], place: str) -> tuple[str | None, int, int, int | None]:
    return (
        _text(entry, "name", place) if "name" in entry else None,
        _integer(entry, "switch", place),
        _integer(entry, "port", place),
        _integer(entry, "id", place) if "id" in entry else None,
    )


def _integer(entry: dict[str, Any], name: str, place: str) -> int:
    value = entry[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{place}.{name} is {repr(value)[:64]}, not an integer")
    return value


def _text(entry: dict[str, Any], name: str, place: str) -> str:
    value = entry[name]
    if not isinstance(value, str):
        raise ValueError(f"{place}.{name} is {repr(value)[:64]}, not text")
    return value
