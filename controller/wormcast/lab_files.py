"""Any topology as a lab of containers: a file for containerlab, or a folder for Kathará.

Each switch is a container with wormcast-switch, each host one with wormcast-agent, and one more runs the controller.
They find each other over a management network; the links of the topology carry nothing but worms.

Sources: containerlab.dev/manual/topo-def-file, and the manual page kathara-lab.conf(5).
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

IMAGE = "wormcast"
GRPC_PORT, AGENTS_PORT, REST_PORT = 50051, 9600, 8080
CPU_PORT = 510
MTUS = {"containerlab": (1500, 1600), "kathara": (1400, 1500)}
"""Of hosts, and of links between switches, which Kathará gives 1,500 bytes at most."""
MANAGEMENT = ipaddress.IPv4Network("172.20.20.0/22")
NODES_MAX = MANAGEMENT.num_addresses - 3
"""Of a lab for Kathará: each has an address in the management network. The first is the controller's."""


@dataclass(frozen=True)
class Node:
    """A container: its name, what runs in it, and the interfaces that this waits for."""

    name: str
    interfaces: tuple[str, ...]
    prepare: tuple[str, ...]
    command: str

    @property
    def script(self) -> str:
        """What its shell does: wait for the interfaces, prepare them, become the program."""
        waits = [f"until [ -e /sys/class/net/{name} ]; do sleep 0.1; done" for name in self.interfaces]
        return "; ".join([*waits, *self.prepare, f"exec {self.command}"])


def ends(topology: dict[str, Any]) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """The links, each as two ends: node and port."""
    for link in topology["links"]:
        yield (f"s{link['a']}", link["a_port"]), (f"s{link['b']}", link["b_port"])
    for host in topology["hosts"]:
        yield (f"s{host['switch']}", host["port"]), (f"h{host['id']}", 0)


def nodes(
    topology: dict[str, Any], first: int, controller: str, address_of: dict[str, str], mtus: tuple[int, int]
) -> list[Node]:
    """All containers, the controller first. The interface of port p is `eth<p + first>`. `controller`: where
    agents find the controller. `address_of`: where the controller finds each switch. `mtus`: see `MTUS`."""
    ports: dict[str, list[int]] = {f"s{switch['id']}": [] for switch in topology["switches"]}
    for end, far in ends(topology):
        for node, port in (end, far):
            ports.setdefault(node, []).append(port)
    switches = []
    for switch in topology["switches"]:
        number = switch["id"]
        address = f"{address_of[f's{number}']}:{GRPC_PORT}"
        switches.append({"id": number, "address": address, "device_id": number, "ports": switch["ports"]})
    text = json.dumps({"switches": switches})
    made = [
        Node(
            "controller",
            (),
            (f"echo '{text}' > /tmp/switches.json",),
            f"wormcast controller run --switches /tmp/switches.json --state :memory: --agents 0.0.0.0:{AGENTS_PORT} "
            f"--listen 0.0.0.0:{REST_PORT}",
        )
    ]
    for switch in topology["switches"]:
        name = f"s{switch['id']}"
        interfaces = {port: f"eth{port + first}" for port in sorted(ports[name])}
        attached = " ".join(f"-i {port}@{interface}" for port, interface in interfaces.items())
        made.append(
            Node(
                name,
                tuple(interfaces.values()),
                tuple(f"ip link set {interface} mtu {mtus[1]} up" for interface in interfaces.values()),
                f"wormcast-switch --no-p4 {attached} --device-id {switch['id']} -- "
                f"--grpc-server-addr 0.0.0.0:{GRPC_PORT} --cpu-port {CPU_PORT}",
            )
        )
    for host in topology["hosts"]:
        name, interface = f"h{host['id']}", f"eth{first}"
        number = host["id"]
        made.append(
            Node(
                name,
                (interface,),
                (
                    # veth leaves checksums to hardware that is not there; frames pass through raw sockets.
                    f"ethtool -K {interface} tx off rx off gso off tso off gro off",
                    f"ip addr add 10.0.{number // 250}.{number % 250 + 1}/16 dev {interface}",
                    f"ip link set {interface} mtu {mtus[0]} up",
                    f"ip route add 224.0.0.0/4 dev {interface}",
                ),
                f"wormcast-agent --interface {interface} --controller {controller} --name {name} --host-id {number}"
                + ("" if host.get("transit", True) else " --no-transit"),
            )
        )
    return made


def containerlab(topology: dict[str, Any], name: str = "wormcast", image: str = IMAGE) -> str:
    """A topology file of containerlab: YAML, written as JSON, which is YAML too.

    Its management network has names for all containers; eth0 is theirs, port p is eth<p + 1>. In the container of a
    host, `wormcast` finds its agent; REST is at port 8080 of the container `clab-NAME-controller`.
    """
    address_of = {f"s{switch['id']}": f"clab-{name}-s{switch['id']}" for switch in topology["switches"]}
    where = f"clab-{name}-controller"
    environment = {"WORMCAST_API": f"{where}:{REST_PORT}"}
    containers = {
        node.name: {
            "kind": "linux",
            "image": image,
            "env": environment,
            "cmd": f"bash -c {json.dumps(node.script)}",
        }
        for node in nodes(topology, 1, f"{where}:{AGENTS_PORT}", address_of, MTUS["containerlab"])
    }
    links = [{"endpoints": [f"{a}:eth{p + 1}", f"{b}:eth{q + 1}"]} for (a, p), (b, q) in ends(topology)]
    return json.dumps({"name": name, "topology": {"nodes": containers, "links": links}}, indent=1) + "\n"


def kathara(topology: dict[str, Any], name: str = "wormcast", image: str = IMAGE) -> dict[str, str]:
    """A lab of Kathará: texts by file name.

    Port p is eth<p>; Kathará numbers a device's interfaces without gaps, so ports without a link lead to a collision
    domain of their own. The last interface is for management.

    Raises ValueError where there are more containers than addresses.
    """
    names = [
        "controller",
        *(f"s{s['id']}" for s in topology["switches"]),
        *(f"h{h['id']}" for h in topology["hosts"]),
    ]
    if len(names) > NODES_MAX:
        raise ValueError(f"{len(names)} containers are more than the {NODES_MAX} addresses of {MANAGEMENT}")
    addresses = {name: str(MANAGEMENT[2 + n]) for n, name in enumerate(names)}
    wires: dict[str, dict[int, str]] = {name: {} for name in names}
    for number, (end, far) in enumerate(ends(topology)):
        for device, port in (end, far):
            wires[device][port] = f"link{number}"
    lines = [
        f'LAB_NAME="{name}"',
        'LAB_DESCRIPTION="Reliable multicast on programmable Ethernet"',
    ]
    files: dict[str, str] = {}
    controller = addresses["controller"]
    for node in nodes(topology, 0, f"{controller}:{AGENTS_PORT}", addresses, MTUS["kathara"]):
        ports = wires[node.name]
        above = max(ports, default=-1) + 1
        for port in range(above):
            wire = ports.get(port, f"{node.name}x{port}")
            lines.append(f'{node.name}[{port}]="{wire}"')
        lines += [f'{node.name}[{above}]="management"', f'{node.name}[image]="{image}"']
        # Not what the image would run by itself: Kathará types the startup file into a shell.
        lines.append(f'{node.name}[entrypoint]="bash"')
        lines.append(f'{node.name}[env]="WORMCAST_API={controller}:{REST_PORT}"')
        management = f"ip addr add {addresses[node.name]}/{MANAGEMENT.prefixlen} dev eth{above}; ip link set eth{above} up"
        files[f"{node.name}.startup"] = f"{management}\n({node.script}) >/var/log/wormcast.log 2>&1 &\n"
    return {"lab.conf": "\n".join(lines) + "\n", **files}
