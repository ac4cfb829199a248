"""`wormcast controller run`: switches, agents and REST in one process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from wormcast import plan as routing
from wormcast.api.app import create_app
from wormcast.control.controller import Controller
from wormcast.control.errors import RequestError
from wormcast.control.port_sources import read_interfaces
from wormcast.directory.server import DirectoryError
from wormcast.fabric.class_d import ClassDMode
from wormcast.fabric.ids import SwitchId
from wormcast.fabric.pathfinder import RoutingPathfinder
from wormcast.p4rt.artifacts import ArtifactError, find_artifacts
from wormcast.sockets import claim_path
from wormcast.store.database import Database, StoreError, SwitchSpec

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
    algorithm: str
    probe_interval_s: float
    class_d: str | None = None


def run(options: Options) -> None:
    """Runs until SIGINT or SIGTERM. Raises `StartError`."""
    asyncio.run(_serve(options))


async def _serve(options: Options) -> None:
    if options.algorithm not in routing.algorithms():
        raise StartError(
            f"--algorithm {options.algorithm!r} is unknown; there are {', '.join(routing.algorithms())}"
        )
    listen = _listen_config(options.listen)
    try:
        controller = Controller(
            Database(options.state),
            find_artifacts(options.pipeline),
            RoutingPathfinder(options.algorithm),
            probe_interval_s=options.probe_interval_s,
            class_d=None if options.class_d is None else ClassDMode(options.class_d),
        )
        configuration = read_configuration(options.switches) if options.switches else Configuration()
        for spec in configuration.switches:
            controller.put_switch(spec)
        for host in configuration.hosts:
            controller.declare_host(*host)
        agents = await controller.start(options.agents)
    except (StoreError, ArtifactError, DirectoryError) as error:
        raise StartError(str(error)) from error
    except RequestError as error:
        raise StartError(f"{options.switches}: {error.message}") from error
    server = _Server(uvicorn.Config(create_app(controller), **listen))
    LOG.info("agents dial %s; REST on %s", ", ".join(agents), options.listen)
    try:
        await _until_stopped(controller, server, options.listen)
    finally:
        await controller.stop()


async def _until_stopped(controller: Controller, server: _Server, listen: str) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    rest = asyncio.create_task(_serve_rest(server, listen), name="rest")
    waiting = [rest, asyncio.create_task(stopped.wait()), asyncio.create_task(controller.wait_failed())]
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


async def _serve_rest(server: _Server, listen: str) -> None:
    try:
        await server.serve()
    except SystemExit:  # uvicorn's way to say that it cannot bind
        raise StartError(f"REST cannot be served on {listen}: the address is in use or not ours") from None


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen_config(listen: str) -> dict[str, Any]:
    """uvicorn's settings for an address; raises `StartError`."""
    common: dict[str, Any] = {
        "log_level": "warning",
        "access_log": False,
        "lifespan": "off",
        "timeout_graceful_shutdown": STOP_TIMEOUT_S,
    }
    if listen.startswith("unix:"):
        path = Path(listen.removeprefix("unix:"))
        try:
            claim_path(path)
        except OSError as error:
            raise StartError(f"REST cannot be served on {listen}: {error}") from error
        return {"uds": str(path), **common}
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise StartError(f"--listen {listen!r}: wanted host:port or unix:/path")
    return {"host": host.strip("[]"), "port": int(port), **common}


@dataclass(frozen=True)
class Configuration:
    """What the switches file says."""

    switches: tuple[SwitchSpec, ...] = ()
    hosts: tuple[tuple[str | None, int, int, int | None], ...] = ()
    """Hosts without an agent: name, switch, port, id."""


FILE_FORM = (
    '{"switches": [{"id": 0, "address": "127.0.0.1:50051", "device_id": 0, "ports": 8}], '
    '"hosts": [{"name": "printer", "switch": 0, "port": 5}]}'
)


def read_configuration(path: Path) -> Configuration:
    """Reads the switches file; raises `StartError` that names the file and the place."""
    try:
        value = json.loads(path.read_text())
        return Configuration(
            tuple(_read_switch(entry, f"switches[{n}]") for n, entry in enumerate(value["switches"])),
            tuple(_read_host(entry, f"hosts[{n}]") for n, entry in enumerate(value.get("hosts", []))),
        )
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise StartError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except KeyError as error:
        raise StartError(f"{path}: {error} is missing; wanted {FILE_FORM}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise StartError(f"{path}: {error}; wanted {FILE_FORM}") from error


def _read_switch(entry: dict[str, Any], place: str) -> SwitchSpec:
    return SwitchSpec(
        SwitchId(_integer(entry, "id", place)),
        _text(entry, "address", place),
        _integer(entry, "device_id", place) if "device_id" in entry else 0,
        _integer(entry, "ports", place),
        _interfaces(entry, place),
        _text(entry, "metrics", place) if "metrics" in entry else None,
    )


def _interfaces(entry: dict[str, Any], place: str) -> tuple[tuple[int, str], ...]:
    named = entry.get("interfaces", {})
    if not isinstance(named, dict):
        raise ValueError(f"{place}.interfaces is {named!r}, not interfaces by port")
    return read_interfaces(named)


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
        raise ValueError(f"{place}.{name} is {value!r}, not an integer")
    return value


def _text(entry: dict[str, Any], name: str, place: str) -> str:
    value = entry[name]
    if not isinstance(value, str):
        raise ValueError(f"{place}.{name} is {value!r}, not a text")
    return value
