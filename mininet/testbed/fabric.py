"""A whole fabric in Mininet: P4 switches, hosts with agents, and a controller."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import httpx
from mininet.net import Mininet
from wormcast.client import Agent, AgentError
from wormcast.mininet import programs, sandbox
from wormcast.mininet.happenings import Happenings
from wormcast.mininet.links import Link, LinkCounters, links_of, read_counters, shape
from wormcast.mininet.nodes import MadeHost, MadeSwitch, SharedAgents, SharedSwitches, stop_process
from wormcast.mininet.options import Options as Options
from wormcast.mininet.options import parse_impair as parse_impair
from wormcast.mininet.options import parse_mtus as parse_mtus
from wormcast.mininet.options import parse_rate_mbps as parse_rate_mbps
from wormcast.mininet.options import parse_wait as parse_wait
from wormcast.mininet.wiring import (
    MadeInterface,
    MadeLink,
    Wires,
    WiringError,
    batch,
    host_address,
    host_mac,
    namespace,
)
from wormcast.p4rt.thrift import ThriftError

STATE_NAME = "state.db"
# Only against waiting for ever: a slow machine takes its time.
READY_SECONDS_MAX = 600.0
PLAN_SECONDS_MAX = 120.0
API_SECONDS_MAX = 120.0
API_ANSWER_SECONDS_MAX = 120.0
REST_TIMES = 4
"""Who waits for the controller, and hears of nothing, leaves it in peace for so many times what the last answer took."""
CONTROL = "control.sock"
"""Of `run_directory`: what takes requests from other terminals."""
# Above so many, one process runs all of them: what a process needs by itself would add up.
SWITCHES_APART_MAX = 32
AGENTS_APART_MAX = 64
NAMED_MAX = 8


class FabricError(RuntimeError):
    """The fabric did not come up, or something in it ended; the text names the log to read."""


class NoAnswer(FabricError):
    """The controller runs and has not answered a request."""


class Fabric:
    """Brings a fabric up on entry and takes it down on exit; needs to run in a sandbox.

    Host and switch numbers are the ids of the topology. Logs of all daemons are in
    `directory`/logs; sockets in a directory of their own, since their paths must be short,
    which in a sandbox is gone with it.
    """

    def __init__(self, options: Options, directory: Path) -> None:
        self.options = options
        self.directory = directory.resolve()
        self.logs = self.directory / "logs"
        parent = sandbox.RUN_DIRECTORY if sandbox.inside() else None
        self.run_directory = Path(tempfile.mkdtemp(prefix="wormcast-", dir=parent))
        self.links = links_of(options.topology)
        self.net: Mininet | None = None
        self.wires: Wires | None = None
        self.switches: dict[int, MadeSwitch] = {}
        self.shared: SharedSwitches | None = None
        self.hosts: dict[int, MadeHost] = {}
        self.agents: dict[int, subprocess.Popen[bytes]] = {}
        """Those with a process each."""
        self.shared_agents: SharedAgents | None = None
        self.controller: subprocess.Popen[bytes] | None = None
        self.open_logs: list[IO[bytes]] = []
        self.changing = threading.Lock()
        """Held by who starts or stops a daemon, and by who looks which have ended."""
        self.api = httpx.Client(
            base_url="http://controller/v1",
            transport=httpx.HTTPTransport(uds=str(self.run_directory / "api.sock")),
            timeout=API_ANSWER_SECONDS_MAX,
        )
        self._answered_in_s = 0.0
        """The controller's last answer, from the request on."""

    # --- life -----------------------------------------------------------------------

    def __enter__(self) -> Fabric:
        self.start()
        return self

    def start(self) -> None:
        """Bring everything up; `wait_ready` waits until it is."""
        shutil.rmtree(self.logs, ignore_errors=True)
        for file in self.directory.glob(f"{STATE_NAME}*"):  # of a fabric before
            file.unlink()
        self.logs.mkdir(parents=True)
        try:
            try:
                self._build_network()
            except WiringError as error:
                raise FabricError(str(error)) from None
            except ThriftError as error:
                raise FabricError(f"a switch does not let frames wait: {error}") from None
            self.start_controller()
            self.start_agents()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything this fabric started; safe to call twice."""
        for process in [*self.agents.values(), *([self.controller] if self.controller else [])]:
            if process.poll() is None:
                process.terminate()
        for process in [*self.agents.values(), *([self.controller] if self.controller else [])]:
            stop_process(process)
        self.agents.clear()
        self.controller = None
        for shared in (self.shared, self.shared_agents):
            if shared is not None:
                shared.halt()
        self.shared = self.shared_agents = None
        if self.net is not None:
            self.net.stop()
            self.net = None
        if self.wires is not None:
            self.wires.remove()
            self.wires = None
        for log in self.open_logs:
            log.close()
        self.open_logs.clear()
        self.api.close()
        shutil.rmtree(self.run_directory, ignore_errors=True)

    def _build_network(self) -> None:
        topology = self.options.topology
        check_kernel(self.options.rate_mbps)
        # Mininet would tune the whole machine, which a sandbox can and may not do.
        Mininet.inited = True
        net = Mininet(controller=None, switch=MadeSwitch, host=MadeHost, link=MadeLink, waitConnected=False)
        if share_a_process(self.options.switch, topology, self.options.share_processes):
            self.shared = SharedSwitches(self.logs, self.run_directory / "switches-of-one-process.json")
        for entry in topology["switches"]:
            self.switches[entry["id"]] = net.addSwitch(
                f"s{entry['id']}",
                id=entry["id"],
                kind=self.options.switch,
                log_directory=self.logs,
                impair=self.options.impair,
                seed=self.options.seed,
                log_level=self.options.log_level,
                shared=self.shared,
            )
        for entry in topology["hosts"]:
            number = entry["id"]
            self.hosts[number] = net.addHost(f"h{number}", environment=self._environment(number))
        self.wires = Wires(self.links, self.options.mtus, self.options.rate_mbps)
        self.net = net
        self.wires.make()
        for link in self.links:
            self._add_link(link)
        net.start()
        if self.shared is not None:
            self.shared.start(list(self.switches.values()))

    def _add_link(self, link: Link) -> None:
        """Tell Mininet of a link that is there."""
        assert self.net is not None
        near: dict[str, Any] = {"port1": link.port, "intfName1": link.interface}
        far: dict[str, Any] = {"port2": link.far_port or 0, "intfName2": link.far_interface}
        if link.host is None:
            assert link.far_switch is not None
            far_node: Any = self.switches[link.far_switch]
        else:
            far_node = self.hosts[link.host]
            far |= {"addr2": host_mac(link.host), "params2": {"ip": host_address(link.host)}}
        self.net.addLink(
            self.switches[link.switch], far_node, cls=MadeLink, intf=MadeInterface, **near, **far
        )

    def _shape(self, interface: str) -> str:
        assert self.options.rate_mbps is not None
        return shape(interface, self.options.rate_mbps, self.options.mtus.fabric)

    # --- controller and agents --------------------------------------------------------

    @property
    def directory_address(self) -> str:
        """Where the controller takes agents' registrations."""
        return f"unix:{self.run_directory}/controller.sock"

    @property
    def api_address(self) -> str:
        """REST, reachable from every host's namespace since it is a Unix socket."""
        return f"unix:{self.run_directory}/api.sock"

    def agent_socket(self, host: int) -> Path:
        """The local API socket of the agent on `host`."""
        return self.run_directory / f"h{host}.sock"

    @property
    def agent_state(self) -> Path:
        """Where agents keep their secrets, each in a file of its own."""
        return self.run_directory / "agents"

    def start_controller(self) -> None:
        """Start the controller, with the state it kept if it ran before."""
        switches = self.run_directory / "switches.json"
        entries = [self.switches[s["id"]].entry(s["ports"]) for s in self.options.topology["switches"]]
        file: dict[str, Any] = {"switches": entries}
        if grid := self.options.topology.get("grid"):
            file["grid"] = {"radix": grid["radix"], "wraps": grid.get("wraps", False)}
        switches.write_text(json.dumps(file))
        argv = [programs.find("wormcast"), "controller", "run", "--switches", str(switches)]
        argv += ["--agents", self.directory_address, "--listen", self.api_address]
        state = self.directory / STATE_NAME
        argv += ["--state", str(state), *self.options.controller_arguments]
        if self.options.switching is not None and not state.exists():
            # From then on it is as kept there, which may be another.
            argv += ["--switching", self.options.switching]
        self.controller = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self._log("controller"),
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C at a prompt is not for it
        )

    def stop_controller(self) -> None:
        """End the controller; the fabric goes on forwarding."""
        if self.controller is not None:
            stop_process(self.controller)
            self.controller = None

    def start_agents(self) -> None:
        """Start the agents of all hosts that are to have one: a process each, or one for all of them."""
        hosts = [host for host in self.hosts if host not in self.options.plain_hosts]
        if len(hosts) <= AGENTS_APART_MAX and not self.options.share_processes:
            for host in hosts:
                self.start_agent(host)
            return
        if self.shared_agents is None:
            file = self.run_directory / "agents-of-one-process.json"
            self.shared_agents = SharedAgents(self.logs, file)
        arguments = ["--controller", self.directory_address, "--state-dir", str(self.agent_state)]
        arguments += self.options.agent_arguments
        self.shared_agents.start([self._agent(host) for host in hosts], arguments)

    def _agent(self, host: int) -> dict[str, Any]:
        """What is the agent's of `host` alone."""
        entry = next(h for h in self.options.topology["hosts"] if h["id"] == host)
        return {
            "name": f"h{host}",
            "interface": f"h{host}-eth0",
            "namespace": namespace(host),
            "socket": str(self.agent_socket(host)),
            "host_id": host,
            "no_transit": not entry.get("transit", True),
        }

    def start_agent(self, host: int) -> None:
        """Start the agent of `host`. Raises `FabricError` where it shares its process with all others."""
        if self.shared_agents is not None:
            raise FabricError(f"the agent of h{host} shares its process with all others")
        own = self._agent(host)
        argv = [programs.find(programs.AGENT), "--interface", own["interface"], "--socket", own["socket"]]
        argv += ["--name", own["name"], "--host-id", str(host), "--controller", self.directory_address]
        argv += ["--no-transit"] if own["no_transit"] else []
        argv += ["--state-dir", str(self.agent_state), *self.options.agent_arguments]
        self.agents[host] = self.hosts[host].popen(
            argv, stdin=subprocess.DEVNULL, stdout=self._log(f"h{host}"), stderr=subprocess.STDOUT
        )

    def kill_agent(self, host: int) -> None:
        """Kill the agent of `host` as a crash would (SIGKILL)."""
        if self.shared_agents is not None:
            raise FabricError(f"the agent of h{host} shares its process with all others")
        process = self.agents.pop(host)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def _log(self, name: str) -> IO[bytes]:
        log = (self.logs / f"{name}.log").open("ab")
        self.open_logs.append(log)
        return log

    def check_alive(self) -> None:
        """Raise `FabricError` if a daemon that should run has ended."""
        for text in self.ended().values():
            raise FabricError(text)

    def ended(self) -> dict[int, str]:
        """The daemons that should run and have ended: by process id, which one, how, and where its log is."""
        daemons = [("the controller", "controller", self.controller)]
        if self.shared is not None:
            daemons.append(("the process of all switches", "switches", self.shared.process))
        if self.shared_agents is not None:
            daemons.append(("the process of all agents", "agents", self.shared_agents.process))
        daemons += [(f"switch s{n}", f"s{n}", s.process) for n, s in self.switches.items()]
        daemons += [(f"the agent of h{n}", f"h{n}", process) for n, process in list(self.agents.items())]
        return {
            process.pid: f"{what} ended ({how(process.returncode)}): {self._tail(log)}"
            for what, log, process in daemons
            if process is not None and process.poll() is not None
        }

    def _tail(self, name: str) -> str:
        path = self.logs / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines()[-5:] if path.exists() else []
        return f"see {path}" + "".join(f"\n    {line}" for line in lines)

    # --- state over REST ----------------------------------------------------------------

    def get(self, path: str) -> Any:
        """GET a REST resource; raise `FabricError` with the controller's own message."""
        return self._request("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """POST to a REST resource."""
        return self._request("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        """PUT a REST resource."""
        return self._request("PUT", path, body)

    def delete(self, path: str, body: Any = None) -> Any:
        """DELETE a REST resource, or those that `body` names."""
        return self._request("DELETE", path, body)

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        response = self._answer(method, path, body)
        if response.is_error:
            raise FabricError(f"{method} /v1/{path.lstrip('/')}: {response.status_code} {response.text}")
        return response.json() if response.content else None

    def _answer(self, method: str, path: str, body: Any) -> httpx.Response:
        """Ask the controller; one that is just starting gets time to open its socket."""
        deadline = time.monotonic() + API_SECONDS_MAX
        while True:
            asked = time.monotonic()
            try:
                answer = self.api.request(method, path, json=body)
                self._answered_in_s = time.monotonic() - asked
                return answer
            except httpx.ConnectError as error:
                if time.monotonic() > deadline or self.controller is None:
                    raise FabricError(f"no controller at {self.api_address}: {error}") from None
                self.check_alive()
                time.sleep(0.02)
            except httpx.TransportError as error:
                self.check_alive()
                said = str(error) or type(error).__name__
                raise NoAnswer(
                    f"the controller did not answer {method} /v1/{path.lstrip('/')}: {said}"
                ) from None

    def wait_ready(
        self, seconds_max: float = READY_SECONDS_MAX, watch: Callable[[str], None] | None = None
    ) -> dict[str, Any]:
        """Wait until the controller has found every switch, link and host; return the topology.

        A host counts once its agent takes part: one that its neighbours reported silent still
        has its place in the topology and is in no plan. `watch` is called with what is missing.
        """
        want = self.options.topology
        hosts = {h["id"] for h in want["hosts"]} - self.options.plain_hosts
        missing = "the controller does not answer"
        over = time.monotonic() + seconds_max
        for _ in self._poll(seconds_max):
            try:
                found: dict[str, Any] = self.get("topology")
            except NoAnswer:
                if watch is not None and time.monotonic() < over:
                    watch(missing)
                continue
            gaps = {
                "switches": {s["id"] for s in want["switches"]} - {s["id"] for s in found["switches"]},
                "hosts": hosts - {h["id"] for h in found["hosts"] if h["state"] == "up"},
                "links": link_keys(want) - link_keys(found),
            }
            if not any(gaps.values()):
                return found
            missing = "missing " + "; ".join(name_some(k, v) for k, v in gaps.items() if v)
            if watch is not None and time.monotonic() < over:
                watch(missing)
        raise FabricError(
            f"fabric not ready after {seconds_max:g} s: {missing}; see {self.logs}/controller.log"
        )

    def wait_group(self, group: int, seconds_max: float = PLAN_SECONDS_MAX) -> None:
        """Wait until every member of `group` takes part and its agent follows the newest plan."""
        missing: list[str] = []
        for _ in self._poll(seconds_max):
            state = self.get(f"groups/{group}")
            missing = [gap for member in state["state"] if (gap := plan_gap(member, state["epoch"]))]
            if not missing:
                return
        raise FabricError(
            f"no plan of group {group} at every member after {seconds_max:.0f} s: {'; '.join(missing)}"
        )

    def agent_status(self, host: int) -> dict[str, Any] | None:
        """What the agent of `host` says of itself; None while it does not answer."""
        try:
            with Agent(self.agent_socket(host)) as agent:
                return agent.status()
        except (OSError, AgentError):
            return None

    def _poll(self, seconds_max: float, every: float = 0.1) -> Any:
        deadline = time.monotonic() + seconds_max
        with Happenings(self.run_directory / "api.sock") as happenings:
            while time.monotonic() < deadline:
                self.check_alive()
                yield
                # Asking must not be what keeps the controller busy.
                time.sleep(self._answered_in_s)
                happenings.wait(max(every, REST_TIMES * self._answered_in_s))

    # --- on hosts and links -----------------------------------------------------------

    def popen(self, host: int, argv: Sequence[str], **keywords: Any) -> subprocess.Popen[Any]:
        """Start a command on `host`; `wormcast` there talks to that host's agent."""
        environment = {**os.environ, **self._environment(host)}
        process: subprocess.Popen[Any] = self.hosts[host].popen(list(argv), env=environment, **keywords)
        return process

    def environment(self) -> dict[str, str]:
        """What makes `wormcast` work in the fabric, but for what asks a host's agent."""
        return {"PATH": f"{programs.BIN}:{os.environ['PATH']}", "WORMCAST_API": self.api_address}

    def _environment(self, host: int) -> dict[str, str]:
        """What makes `wormcast` work on `host`."""
        return {**self.environment(), "WORMCAST_SOCKET": str(self.agent_socket(host))}

    def run(
        self, host: int, argv: Sequence[str], seconds_max: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on `host` to its end and capture what it prints."""
        process = self.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += f"\nkilled after {seconds_max} s"
        return subprocess.CompletedProcess(list(argv), process.returncode, out, err)

    def set_link(self, link: Link, up: bool) -> None:
        """Plug or cut `link`, at both ends.

        Under BMv2 the interfaces stay up and pass nothing, because BMv2 stops receiving on
        all its ports when one of its interfaces goes down.
        """
        for node, interface in self._ends(link):
            if self.options.switch != "bmv2":
                self._on(node, f"ip link set {interface} {'up' if up else 'down'}")
            elif not up:
                self._on(node, f"tc qdisc replace dev {interface} root handle 1: bfifo limit 1")
            elif self.options.rate_mbps is not None:
                self._on(node, self._shape(interface))
            else:
                # As the kernel gives each interface one.
                self._on(node, f"tc qdisc replace dev {interface} root noqueue")
        if up and link.host is not None and self.wires is not None and self.options.switch != "bmv2":
            # The kernel forgot it when the interface went down.
            route = self.wires.multicast_route(link.far_interface)
            self._on(self.hosts[link.host], f"ip route replace {route}")

    def _on(self, node: Any, command: str) -> None:
        """Run a command where a node is, beside its shell. Raises `FabricError`."""
        done = subprocess.run([*node.enter, *command.split()], capture_output=True, text=True)
        if done.returncode != 0:
            raise FabricError(f"`{command}` at {node.name}: {done.stderr.strip()}")

    def _ends(self, link: Link) -> list[tuple[Any, str]]:
        far: Any
        if link.host is not None:
            far = self.hosts[link.host]
        else:
            assert link.far_switch is not None
            far = self.switches[link.far_switch]
        return [(self.switches[link.switch], link.interface), (far, link.far_interface)]

    def kill_switch(self, number: int) -> None:
        """End the process of a switch, as a crash would."""
        if self.shared is not None:
            raise FabricError(f"switch s{number} shares its process with all others")
        self.switches[number].halt()

    def revive_switch(self, number: int) -> None:
        """Start the process of a switch again; it comes back without a program."""
        if self.shared is not None:
            self.shared.halt()
            self.shared.start(list(self.switches.values()))
        else:
            self.switches[number].halt()
            try:
                self.switches[number].start([])
            except ThriftError as error:
                raise FabricError(f"switch s{number} does not let frames wait: {error}") from None

    def counters(self) -> LinkCounters:
        """Bytes and frames over every link, in each direction, so far."""
        return read_counters(self.links)

    def describe(self) -> dict[str, Any]:
        """What `wormcast on` and its like need: hosts, their network namespaces inside the sandbox, where to ask."""
        return {
            "hosts": {f"h{n}": namespace(n) for n in self.hosts},
            "sockets": {f"h{n}": str(self.agent_socket(n)) for n in self.hosts},
            "switches": [f"s{n}" for n in self.switches],
            "control": str(self.run_directory / CONTROL),
            "api": self.api_address,
        }


def share_a_process(switch: str, topology: dict[str, Any], wanted: bool = False) -> bool:
    """Whether one process runs all switches of a fabric; `wanted`: also where they are few."""
    return switch == "wormcast" and (wanted or len(topology["switches"]) > SWITCHES_APART_MAX)


def plan_gap(member: dict[str, Any], epoch: int) -> str | None:
    """What keeps a member, as the controller shows it, from following the plan of `epoch`; None: nothing."""
    if not member["takes_part"]:
        return f"host {member['host']} does not take part: {member['reason']}"
    if member["plan_epoch"] != epoch:
        return f"host {member['host']} follows plan {member['plan_epoch']}, not {epoch}"
    return None


def check_kernel(rate_mbps: float | None) -> None:
    """Raise `FabricError` if the kernel has not what links are made of, and name the module that is missing.

    In a container a module is the machine's matter, and Mininet's own message names neither.
    """
    steps = [("veth", "ip", "link add wc-a type veth peer name wc-b")]
    if rate_mbps is not None:
        steps.append(("sch_tbf", "tc", shape("wc-a", rate_mbps, 1500).removeprefix("tc ")))
    made = False
    try:
        for module, tool, command in steps:
            try:
                batch(tool, [command])
            except WiringError as error:
                said = " ".join(str(error).split())
                raise FabricError(
                    f"this machine's kernel cannot do `{tool} {command}`; on the machine itself: modprobe {module} ({said})"
                ) from None
            made = True
    finally:
        if made:
            batch("ip", ["link del wc-a"])


def how(code: int) -> str:
    """How a process ended, from its return code."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def name_some(kind: str, ids: Iterable[Any]) -> str:
    """So many of a kind, the first ones by name."""
    every = sorted(ids)
    if kind == "links":
        names = [f"s{a}:{a_port}-s{b}:{b_port}" for a, a_port, b, b_port in every[:NAMED_MAX]]
    else:
        names = [f"{kind[0]}{number}" for number in every[:NAMED_MAX]]
    more = ", …" if len(every) > NAMED_MAX else ""
    return f"{len(every)} {kind} ({', '.join(names)}{more})"


def link_keys(topology: dict[str, Any]) -> set[tuple[int, int, int, int]]:
    """The links of a topology file, each as its two ends in ascending order."""
    keys = set()
    for link in topology["links"]:
        ends = sorted([(link["a"], link["a_port"]), (link["b"], link["b_port"])])
        keys.add((*ends[0], *ends[1]))
    return keys
