"""Mininet nodes of a Wormcast fabric: P4 switches and plain hosts."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from mininet.node import Host, Node, Switch
from wormcast.mininet import programs, wiring
from wormcast.mininet.sandbox import P4RUNTIME_PORTS
from wormcast.p4rt.thrift import NotThere, set_queue
from wormcast.wire import RECIRCULATE_PORT
from wormcast.wormhole.switching import BMV2_ROUNDS_PER_S, BMV2_WAITING_FRAMES

CPU_PORT = 510
DROP_PORT = 511
PORT_MAX = 511
TCP_PORT_MAX = 65535
GRPC_PORT_FIRST = P4RUNTIME_PORTS.start
THRIFT_PORT_FIRST = 9090
METRICS_PORT_FIRST = 40051

STOP_SECONDS_MAX = 5.0
LOOPBACK_UP = ("ifconfig", "lo", "up")
# A frame that waits in wormhole mode goes round in its switch for as long as that takes.
FOR_EVER = ("--recirculations", "0")
THRIFT_SECONDS_MAX = 600.0
"""Only against waiting for ever."""
# Of a port; many ports with as many as one switch has by default would take gigabytes.
SHARED_RING_FRAMES = 256


def stop_process(process: subprocess.Popen[Any], seconds_max: float = STOP_SECONDS_MAX) -> int:
    """Ask `process` to end, insist after `seconds_max`; return its exit code."""
    if process.poll() is None:
        process.terminate()
        try:
            return process.wait(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def start_daemon(argv: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a process that Ctrl-C at a prompt does not reach."""
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )


def within(name: str, value: int | None, low: int, high: int) -> int | None:
    """`value` of the option `name`. Raises ValueError where it is out of its bounds."""
    if value is not None and not low <= value <= high:
        raise ValueError(f"{name} {value} is not from {low} to {high}")
    return value


class LoggedDaemon:
    """A program of ours that runs beside the fabric, and the file it logs to."""

    log_path: Path
    process: subprocess.Popen[bytes] | None = None
    log: IO[bytes] | None = None

    def launch(self, argv: list[str]) -> None:
        self.log = self.log_path.open("ab")
        self.process = start_daemon(argv, self.log)

    def halt(self) -> None:
        """End the process, leaving its links in place, as when a switch crashes."""
        if self.process is not None:
            stop_process(self.process)
            self.process = None
        if self.log is not None:
            self.log.close()
            self.log = None


class SharedSwitches(LoggedDaemon):
    """One process of wormcast-switch that runs all switches of a fabric, for fabrics of many.

    Their links are interfaces, as with a process for each. The process listens where the
    switch of id 0 would; its devices are the ids of the switches.
    """

    def __init__(self, log_directory: Path, file: Path) -> None:
        self.log_path = log_directory / "switches.log"
        self.file = file

    def start(self, switches: list[P4Switch]) -> None:
        edges = [
            {"port": f"{switch.name}:{port}", "interface": interface}
            for switch in switches
            for port, interface in switch.port_interfaces().items()
        ]
        named = [{"name": switch.name, "device_id": switch.id} for switch in switches]
        self.file.write_text(json.dumps({"switches": named, "links": [], "edges": edges}))
        first = switches[0]
        argv = [first.binary, "--fabric", str(self.file)]
        argv += ["--log-level", first.log_level, "--seed", str(first.seed)]
        argv += ["--ring-frames", str(SHARED_RING_FRAMES), "--metrics-addr", str(first.metrics), *FOR_EVER]
        if first.impair:
            argv += ["--impair", f"all:{first.impair}"]
        argv += ["--", "--grpc-server-addr", first.address]
        self.launch([*argv, "--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT)])


class SharedAgents(LoggedDaemon):
    """One process of wormcast-agent that runs the agents of all hosts, for fabrics of many.

    Each has its interface in its host's network namespace, and a socket of its own.
    """

    def __init__(self, log_directory: Path, file: Path) -> None:
        self.log_path = log_directory / "agents.log"
        self.file = file

    def start(self, agents: list[dict[str, Any]], arguments: Sequence[str]) -> None:
        """Start the process. `agents`: as its file has them; `arguments`: for all of them."""
        self.file.write_text(json.dumps({"agents": agents}))
        self.launch([programs.find(programs.AGENT), "--fabric", str(self.file), *arguments])


class P4Switch(LoggedDaemon, Switch):
    """A switch that runs a compiled P4 program and is controlled over P4Runtime.

    `id` is its id in the topology; its gRPC server listens on loopback at `grpc_port`,
    `GRPC_PORT_FIRST + id` unless told, device id `id`. Link ports carry the names `s<id>-p<port>`.
    `cpu_port`: where packet-ins come from; None: nowhere. `thrift_port`: unless told, BMv2 has one of its own and
    wormcast-switch 9090 if that is free.
    """

    def __init__(
        self,
        name: str,
        *,
        id: int,
        kind: str = "wormcast",
        log_directory: Path,
        impair: str | None = None,
        seed: int = 1,
        log_level: str = "warn",
        shared: SharedSwitches | None = None,
        cpu_port: int | None = CPU_PORT,
        drop_port: int = DROP_PORT,
        grpc_port: int | None = None,
        thrift_port: int | None = None,
        **params: Any,
    ) -> None:
        self.id = id
        self.cpu_port = within("cpu_port", cpu_port, 0, PORT_MAX)
        self.drop_port = within("drop_port", drop_port, 0, PORT_MAX)
        self.grpc_port = within("grpc_port", grpc_port, 1, TCP_PORT_MAX)
        self.thrift_port = within("thrift_port", thrift_port, 1, TCP_PORT_MAX)
        self.shared = shared
        self.kind = kind
        self.impair = impair
        self.seed = seed
        self.log_level = log_level
        self.log_path = log_directory / f"{name}.log"
        self.binary = programs.find_switch(kind)
        super().__init__(name, **{**params, "inNamespace": False})

    @property
    def address(self) -> str:
        """Where the P4Runtime server listens."""
        port = GRPC_PORT_FIRST + (0 if self.shared else self.id)
        return f"127.0.0.1:{self.grpc_port or port}"

    @property
    def metrics(self) -> str | None:
        """Where its page of metrics is; None where the switch has none."""
        if self.kind != "wormcast":
            return None
        return f"127.0.0.1:{METRICS_PORT_FIRST + (0 if self.shared else self.id)}"

    def port_interfaces(self) -> dict[int, str]:
        return {port: i.name for port, i in sorted(self.intfs.items()) if i.name != "lo"}

    def entry(self, ports: int | None = None) -> dict[str, Any]:
        """This switch as the controller's switches file has it. `ports`: how many; up to its last link unless told."""
        interfaces = self.port_interfaces()
        return {
            "id": self.id,
            "address": self.address,
            "device_id": self.id,
            "ports": max(interfaces, default=0) + 1 if ports is None else ports,
            "interfaces": {str(port): name for port, name in interfaces.items()},
            **({} if self.metrics is None else {"metrics": self.metrics}),
        }

    def command(self) -> list[str]:
        """The command line, the same for both switches but for what only ours can do."""
        argv = [self.binary, "--no-p4", "--device-id", str(self.id)]
        for port, interface in self.port_interfaces().items():
            argv += ["-i", f"{port}@{interface}"]
        if self.kind == "wormcast":
            argv += ["--log-level", self.log_level, "--seed", str(self.seed + self.id)]
            argv += ["--metrics-addr", str(self.metrics)]
            if self.impair:
                argv += ["--impair", f"all:{self.impair}"]
        # BMv2 always opens one, and ends when it is taken.
        thrift = self.thrift_port or (None if self.kind == "wormcast" else THRIFT_PORT_FIRST + self.id)
        if thrift is not None:
            argv += ["--thrift-port", str(thrift)]
        argv += ["--", "--grpc-server-addr", self.address]
        if self.cpu_port is not None:
            argv += ["--cpu-port", str(self.cpu_port)]
        return [*argv, "--drop-port", str(self.drop_port)]

    def start(self, _controllers: list[Any]) -> None:
        """Start the switch; it forwards nothing until a controller gives it a program."""
        if self.shared is not None:
            return
        self.launch(self.command())

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the process and, as Mininet wants, the interfaces."""
        self.halt()
        super().stop(deleteIntfs)


class FabricHost(Host):
    """A host with one link into the fabric and a route for IP multicast over it."""

    def config(
        self, *, mtu: int | None = None, environment: dict[str, str] | None = None, **params: Any
    ) -> Any:
        """Mininet's own configuration, then what plain sockets need to use the fabric.

        `environment`: variables of the host's shell.
        """
        result = super().config(**params)
        interface = self.defaultIntf().name
        commands = [wiring.no_offload(interface), wiring.NO_IPV6]
        if mtu is not None:
            commands.append(f"ip link set dev {interface} mtu {mtu}")
        commands.append(f"ip route add {wiring.MULTICAST} dev {interface}")
        self.cmd("; ".join(commands + exports(environment)))
        return result


def exports(environment: dict[str, str] | None) -> list[str]:
    """Shell commands that set variables for what follows."""
    return [f"export {name}={shlex.quote(value)}" for name, value in (environment or {}).items()]


class LateShell(Node):
    """A node of a fabric: Mininet's shell of it starts with the first command, since hundreds take long.

    Mininet makes no network namespace for it: that of a host is there already (`Wires.make`).
    """

    enter: tuple[str, ...] = ()
    """What runs a command where the node is."""

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **{**params, "inNamespace": False})

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        enter = self.enter if self.shell is None else ()
        return super()._popen([*enter, *cmd], **params)

    def popen(self, *args: Any, **keywords: Any) -> Any:
        """As Mininet's: where the shell is, with what was mounted there, or without a shell to attach to."""
        attach = {"mncmd": ["mnexec", "-d"]} if self.shell is None else {}
        return super().popen(*args, **{**attach, **keywords})

    def startShell(self, mnopts: str | None = None) -> None:
        """Not yet."""

    def sendCmd(self, *args: Any, **keywords: Any) -> None:
        self._need_shell()
        super().sendCmd(*args, **keywords)

    def cmd(self, *args: Any, **keywords: Any) -> Any:
        if args == LOOPBACK_UP:
            # Mininet says it to every switch. In a sandbox it is up, and a shell for each takes long.
            return ""
        self._need_shell()
        return super().cmd(*args, **keywords)

    def _need_shell(self) -> None:
        if self.shell is None:
            super().startShell()
            for line in exports(self.params.get("environment")):
                super().cmd(line)

    def config(self, **_params: Any) -> dict[str, Any]:
        """Nothing is left to do."""
        return {}


class MadeSwitch(LateShell, P4Switch):
    """A switch of a fabric."""

    def command(self) -> list[str]:
        """As that of any; wormcast-switch lets frames wait in wormhole mode."""
        program, *rest = super().command()
        return [program, *(FOR_EVER if self.kind == "wormcast" else ()), *rest]

    def start(self, controllers: list[Any]) -> None:
        """As that of any; BMv2 is told over Thrift to let frames wait. Raises `ThriftError` where that fails."""
        super().start(controllers)
        if self.kind != "bmv2":
            return
        port = self.thrift_port or THRIFT_PORT_FIRST + self.id
        deadline = time.monotonic() + THRIFT_SECONDS_MAX
        # One that has ended is noticed, and named, by who waits until all is ready.
        while self.process is not None and self.process.poll() is None:
            try:
                asyncio.run(
                    set_queue("127.0.0.1", port, RECIRCULATE_PORT, BMV2_WAITING_FRAMES, BMV2_ROUNDS_PER_S)
                )
                break
            except NotThere:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


class MadeHost(LateShell, Host):
    """A host of a fabric, with one link and a route for IP multicast over it. `environment`: of its shell."""

    def __init__(self, name: str, **params: Any) -> None:
        self.enter = ("ip", "netns", "exec", name)
        super().__init__(name, **params)
