"""Nodes for Mininet scripts of your own: a switch, a host with its agent, and the controller of both.

Unlike `wormcast up`, a script has no sandbox: switches are in the machine's own network namespace, as those of
every Mininet script are. Sockets, logs and the controller's state are in one directory, `WormcastController.directory`,
which is removed when the script ends.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from mininet.node import Controller
from wormcast.mininet import programs
from wormcast.mininet.nodes import CPU_PORT, FabricHost, LoggedDaemon, P4Switch

START_SECONDS_MAX = 120.0
"""Only against waiting for ever: how long a controller may take until it answers."""
ANSWER_SECONDS_MAX = 60.0
ID_MAX = 1023
"""Of switches: their P4Runtime servers have a port each, from `GRPC_PORT_FIRST` on."""
LAST_LINES = 5


class DaemonEnded(RuntimeError):
    """A program of ours has ended that should run; the text has the end of its log."""


def _print_plainly(
    hook: Callable[..., Any], kind: type[BaseException], error: BaseException, trace: Any
) -> None:
    if issubclass(kind, DaemonEnded):
        print(f"*** {error}", file=sys.stderr)
    else:
        hook(kind, error, trace)


# Where in the script it was noticed says nothing of why.
sys.excepthook = functools.partial(_print_plainly, sys.excepthook)


@functools.cache
def run_directory() -> Path:
    """The directory of this script's sockets, logs and state; removed when the script ends."""
    directory = Path(tempfile.mkdtemp(prefix="wormcast-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


class ScriptDaemon(LoggedDaemon):
    """A daemon that ends with the script, also where the script fails."""

    def launch(self, argv: list[str]) -> None:
        super().launch(argv)
        atexit.register(self.halt)


def number_of(name: str) -> int:
    """The id that a node's name ends in, as Mininet's own switches have it: 3 of "s3". Raises ValueError."""
    match = re.search(r"(\d+)$", name)
    if match is None or int(match[1]) > ID_MAX:
        raise ValueError(
            f"switch name {name!r} does not end in a number up to {ID_MAX}; give it an id, as in id=3"
        )
    return int(match[1])


class WormcastController(ScriptDaemon, Controller):
    """`wormcast controller run`: finds the network, makes groups, serves REST at `api`.

    `listen`: where REST is served, "unix:/path" or "host:port"; a socket that all hosts reach unless told.
    `arguments`: passed on to `wormcast controller run`.
    """

    def __init__(
        self, name: str, listen: str | None = None, arguments: tuple[str, ...] = (), **params: Any
    ) -> None:
        self.directory = run_directory()
        self.log_path = self.directory / f"{name}.log"
        self.api = listen or f"unix:{self.directory}/{name}-api.sock"
        self.agents = f"unix:{self.directory}/{name}-agents.sock"
        self.arguments = arguments
        super().__init__(name, **params)

    def checkListening(self) -> None:
        """Nothing to look for: Mininet asks by telnet for an OpenFlow port."""

    def start(self) -> None:
        """Start the controller, without switches yet."""
        argv = [programs.find("wormcast"), "controller", "run", "--listen", self.api, "--agents", self.agents]
        self.launch([*argv, "--state", f"{self.directory}/{self.name}.db", *self.arguments])

    def stop(self, *_: Any, **__: Any) -> None:
        self.halt()
        self.terminate()

    def client(self) -> httpx.Client:
        """A client of its REST."""
        if self.api.startswith("unix:"):
            transport = httpx.HTTPTransport(uds=self.api.removeprefix("unix:"))
            return httpx.Client(
                base_url="http://controller/v1", transport=transport, timeout=ANSWER_SECONDS_MAX
            )
        return httpx.Client(base_url=f"http://{self.api}/v1", timeout=ANSWER_SECONDS_MAX)

    def add(self, switch: WormcastSwitch) -> None:
        """Have it control `switch`. Raises `DaemonEnded` with the end of its log where it cannot."""
        with self.client() as client:
            deadline = time.monotonic() + START_SECONDS_MAX
            while True:
                try:
                    answer = client.post("switches", json=switch.entry())
                    break
                except httpx.TransportError as error:
                    self._check_runs()
                    if time.monotonic() > deadline:
                        raise DaemonEnded(f"{self.name} does not answer at {self.api}: {error}") from None
                    time.sleep(0.1)
        if answer.is_error:
            raise DaemonEnded(f"{self.name} refuses {switch.name}: {answer.json()['error']['message']}")

    def _check_runs(self) -> None:
        if self.process is None or self.process.poll() is not None:
            raise DaemonEnded(f"{self.name} has ended:\n{last_lines(self.log_path)}") from None

    def hosts_up(self) -> dict[str, int]:
        """Hosts whose agents take part, by name: the switches they are at. Raises `DaemonEnded`."""
        try:
            with self.client() as client:
                answer = client.get("topology")
        except httpx.TransportError:
            self._check_runs()
            return {}
        answer.raise_for_status()
        found = answer.json()["hosts"]
        return {host["name"]: host["switch"] for host in found if host["state"] == "up"}


class WormcastSwitch(ScriptDaemon, P4Switch):
    """wormcast-switch with a P4Runtime server at `address`, and a `WormcastController` if the network has one.

    `id`: its number and device id; what the name ends in unless told. `program`: BMv2 JSON of a program of your own,
    which then runs from the start; otherwise a controller gives it one. `cpu_port`, `drop_port`, `grpc_port` and
    `thrift_port`: as `P4Switch` has them; `log_level`, `seed`, `impair`: options of wormcast-switch of these names.
    `log_file`: where its log goes; into `WormcastController.directory` unless told. `arguments`: further options,
    passed on to wormcast-switch.
    """

    def __init__(
        self,
        name: str,
        id: int | None = None,
        program: str | None = None,
        arguments: tuple[str, ...] = (),
        log_file: str | None = None,
        **params: Any,
    ) -> None:
        self.program = program
        self.arguments = arguments
        self.controller: WormcastController | None = None
        number = number_of(name) if id is None else id
        # Mininet wants a datapath id, which OpenFlow switches have; it takes one from names like s23 alone.
        params.setdefault("dpid", f"{number:x}")
        super().__init__(name, id=number, log_directory=run_directory(), **params)
        if log_file is not None:
            self.log_path = Path(log_file)

    def command(self) -> list[str]:
        argv = super().command()
        if self.program is not None:
            argv[argv.index("--no-p4")] = self.program
        separator = argv.index("--")
        return [*argv[:separator], *self.arguments, *argv[separator:]]

    def start(self, controllers: list[Any]) -> None:
        """Start the switch, have the network's `WormcastController` control it, and start its hosts' agents."""
        self.controller = next((c for c in controllers if isinstance(c, WormcastController)), None)
        if self.controller is not None and self.cpu_port != CPU_PORT:
            raise ValueError(
                f"{self.name}: cpu_port {self.cpu_port} is for programs of your own: a WormcastController's "
                f"has {CPU_PORT}"
            )
        super().start(controllers)
        if self.controller is None:
            return
        self.controller.add(self)
        for host in self.neighbours():
            host.start_agent(self.controller)

    def neighbours(self) -> list[WormcastHost]:
        """The Wormcast hosts with a link to this switch."""
        links = [interface.link for interface in self.intfList() if interface.link is not None]
        ends = [end.node for link in links for end in (link.intf1, link.intf2)]
        return [node for node in ends if isinstance(node, WormcastHost)]

    def connected(self) -> bool:
        """For `Mininet.waitConnected`: whether the agents of all its hosts take part in the fabric.

        Without a controller: whether its P4Runtime server listens. Raises `DaemonEnded` where it has ended.
        """
        if self.process is None or self.process.poll() is not None:
            raise DaemonEnded(f"{self.name} has ended:\n{last_lines(self.log_path)}")
        if self.controller is None:
            host, _, port = self.address.rpartition(":")
            try:
                socket.create_connection((host, int(port)), timeout=1.0).close()
            except OSError:
                return False
            return True
        up = self.controller.hosts_up()
        return all(up.get(host.name) == self.id for host in self.neighbours())


class WormcastHost(FabricHost):
    """A host with wormcast-agent on its first interface. On it `wormcast` finds agent and controller.

    `agent_arguments`: passed on to wormcast-agent.
    """

    def __init__(self, name: str, agent_arguments: tuple[str, ...] = (), **params: Any) -> None:
        self.agent = ScriptDaemon()
        self.agent.log_path = run_directory() / f"{name}.log"
        self.agent_arguments = agent_arguments
        self.environment: dict[str, str] = {}
        super().__init__(name, **params)

    @property
    def socket(self) -> Path:
        """Where its agent's local API is."""
        return run_directory() / f"{self.name}.sock"

    def start_agent(self, controller: WormcastController) -> None:
        """Start the agent; once, however many switches the host has links to."""
        if self.agent.process is not None:
            return
        argv = ["mnexec", "-a", str(self.pid), programs.find(programs.AGENT)]
        argv += ["--interface", self.defaultIntf().name, "--controller", controller.agents]
        argv += ["--socket", str(self.socket), "--name", self.name]
        argv += ["--state-dir", str(run_directory() / "agents"), *self.agent_arguments]
        self.agent.launch(argv)
        self.environment = {"WORMCAST_SOCKET": str(self.socket), "WORMCAST_API": controller.api}
        self.environment["PATH"] = f"{programs.BIN}:{os.environ['PATH']}"
        self.cmd("; ".join(f"export {name}={shlex.quote(value)}" for name, value in self.environment.items()))

    def popen(self, *args: Any, **keywords: Any) -> Any:
        """As Mininet's; the command finds agent and controller too."""
        environment = {**os.environ, **self.environment, **(keywords.pop("env", None) or {})}
        return super().popen(*args, env=environment, **keywords)

    def terminate(self) -> None:
        """End the agent, then the host."""
        self.agent.halt()
        super().terminate()


def last_lines(log: Path) -> str:
    """The end of a log."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-LAST_LINES:])
