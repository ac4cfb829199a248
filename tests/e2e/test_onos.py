"""The application in a real ONOS core, beside a running fabric; targets/onos/README.md says what Central lacks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onos_core
import pytest
from onos_core import Onos, until
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(onos_core.missing() is not None, reason=str(onos_core.missing())),
]

JOIN_ONOS = onos_core.ROOT / "packaging" / "docker" / "join-onos"
CONFIG = "v1/network/configuration/apps/org.wormcast.onos/wormcast"
PIPECONF = "org.wormcast.pipeconf"
PLAIN = (6, 7)
JOIN = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(sys.argv[1]) + socket.inet_aton(sys.argv[2]))
print("joined", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric]) -> Fabric:
    """Hosts 6 and 7 have no agent."""
    fabric = make_fabric("testbed", rate_mbps=20.0, plain_hosts=frozenset(PLAIN))
    for host in fabric.options.topology["hosts"]:
        if host["id"] in PLAIN:
            fabric.post("hosts", {"id": host["id"], "switch": host["switch"], "port": host["port"]})
    return fabric


@pytest.fixture(scope="module")
def onos(fabric: Fabric, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Onos]:
    """ONOS with the application, which asks the fabric's controller."""
    directory = tmp_path_factory.mktemp("onos")
    with onos_core.relay(fabric.run_directory / "api.sock", 8080) as address, Onos(directory) as onos:
        onos.install(onos_core.required(directory))
        joined = subprocess.run(
            [sys.executable, JOIN_ONOS, onos_core.ADDRESS, address, onos_core.APPLICATION],
            capture_output=True,
            text=True,
        )
        assert joined.returncode == 0, joined.stdout + joined.stderr
        assert f"is active in {onos_core.ADDRESS} and follows {address}" in joined.stdout
        configure(onos, controller=address)
        yield onos


def configure(onos: Onos, **settings: Any) -> None:
    """Give the application its configuration and wait until a round went well with it."""
    onos.ask("POST", CONFIG, {"pollMs": 200, **settings})

    def settled() -> bool:
        status = onos.ask("GET", "wormcast/status")
        wanted = settings.get("mode", "beside")
        return status["mode"] == wanted and status["rounds"] > before and status["error"] is None

    before = onos.ask("GET", "wormcast/status")["rounds"] + 1
    until(settled, "the application does not come in step with the controller")


def groups_of(fabric: Fabric) -> dict[str, dict[str, Any]]:
    return {group["name"]: group for group in fabric.get("groups")["groups"]}


def test_the_application_is_active_and_its_pipeconf_is_registered(onos: Onos) -> None:
    application = onos.ask("GET", "v1/applications/org.wormcast.onos")
    assert (application["state"], application["version"]) == ("ACTIVE", "0.1.0")
    status = onos.ask("GET", "wormcast/status")
    assert (status["pipeconf"], status["leader"], status["mode"]) == (PIPECONF, True, "beside")
    assert PIPECONF in onos.command("pipeconfs")
    assert onos.errors() == []


def test_onos_knows_the_hosts_of_the_agents(onos: Onos, fabric: Fabric) -> None:
    agents = {host["mac"].upper(): host for host in fabric.get("hosts")["hosts"] if host["agent"]}
    assert len(agents) == len(fabric.agents)

    def known() -> Any:
        found = {host["mac"].upper(): host for host in onos.ask("GET", "v1/hosts")["hosts"]}
        return set(found) == set(agents) and found

    for mac, host in until(known, "ONOS does not know the hosts").items():
        (place,) = host["locations"]
        agent = agents[mac]
        assert (place["elementId"], place["port"]) == (f"wormcast:{agent['switch']}", str(agent["port"]))
    listed = onos.command("wormcast-hosts")
    assert all(f"name={host['name']}," in listed for host in agents.values()), listed


def test_a_group_made_in_onos_is_in_switches_and_agents_and_carries_a_file(
    onos: Onos, fabric: Fabric, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    body = {"name": "from-onos", "scheme": "switch", "members": [0, 2, 5]}
    group = onos.ask("POST", "wormcast/groups", body)
    fabric.wait_group(group["id"])
    assert groups_of(fabric)["from-onos"]["members"] == [0, 2, 5]
    path = random_file(200_000)
    receivers = {}
    for host in (2, 5):
        (tmp_path / str(host)).mkdir()
        argv = [
            "wormcast",
            "recv",
            "--group",
            "from-onos",
            "--output",
            str(tmp_path / str(host)),
            "--count",
            "1",
        ]
        receivers[host] = fabric.popen(host, argv, stdout=subprocess.DEVNULL)
    wait_for_receivers(fabric, [(host, group["id"]) for host in receivers])
    sent = fabric.run(0, ["wormcast", "send", str(path), "--group", "from-onos"])
    assert sent.returncode == 0, sent.stderr
    for host, receiver in receivers.items():
        assert receiver.wait(600) == 0
        assert (tmp_path / str(host) / path.name).read_bytes() == path.read_bytes()
    assert "name=from-onos," in onos.command("wormcast-groups")
    onos.ask("POST", f"wormcast/groups/{group['id']}/members", {"members": ["h1"]})
    assert groups_of(fabric)["from-onos"]["members"] == [0, 1, 2, 5]
    onos.ask("DELETE", "wormcast/groups/from-onos")
    assert "from-onos" not in groups_of(fabric)


def test_what_the_controller_refuses_is_told_with_its_words(onos: Onos) -> None:
    for body, status, words in (
        ({"members": [99]}, 422, "there is no host 99"),
        ({"scheme": "flood", "members": [0]}, 422, "unknown scheme"),
    ):
        answer = onos.http.post("wormcast/groups", json=body)
        assert (answer.status_code, words in answer.json()["message"]) == (status, True), answer.text
    answer = onos.http.post("wormcast/groups", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 400
    answer = onos.http.delete("wormcast/groups/nobody")
    assert answer.status_code == 404
    assert "no host 99" in onos.command("wormcast-group-add 99")


def test_a_plain_host_that_joins_by_igmp_becomes_a_member_and_leaves_again(
    onos: Onos, fabric: Fabric
) -> None:
    address, host = "239.5.6.7", 6
    joined = fabric.popen(
        host,
        [sys.executable, "-c", JOIN, address, fabric.hosts[host].IP()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    name = f"onos-{address}"
    try:
        assert joined.stdout.readline() == "joined\n"
        group = until(lambda: groups_of(fabric).get(name), "IGMP makes no group")
        assert (group["members"], group["class_d"]) == ([host], address)
        assert address in onos.ask("GET", "wormcast/status")["members"]
        # A group that the controller has lost is made again.
        fabric.delete(f"groups/{name}")
        until(lambda: name in groups_of(fabric), "the group is not made again")
    finally:
        joined.stdin.close()
        joined.wait()
    until(lambda: name not in groups_of(fabric), "the group outlives its last member")


def test_a_configuration_that_cannot_be_is_refused(onos: Onos) -> None:
    for wrong in ({"mode": "both"}, {"pollMs": 1}, {"controller": "nowhere"}, {"colour": "blue"}):
        answer = onos.http.post(CONFIG, json=wrong)
        assert answer.is_error, wrong
    configure(onos, controller="http://127.0.0.1:8080")


def devices(onos: Onos, count: int) -> list[str]:
    """A ring of devices that stand in for switches, each with the pipeconf of the program."""
    names = [f"standin:{number}" for number in range(count)]
    basic = {name: {"basic": {"driver": "standin", "pipeconf": PIPECONF}} for name in names}
    links = {}
    for number in range(count):
        ends = f"{names[number]}/7", f"{names[(number + 1) % count]}/6"
        for one, other in (ends, ends[::-1]):
            links[f"{one}-{other}"] = {"basic": {}}
    onos.ask("POST", "v1/network/configuration", {"devices": basic, "links": links})

    def there() -> bool:
        found = {device["id"] for device in onos.ask("GET", "v1/devices")["devices"] if device["available"]}
        return found >= set(names) and len(onos.ask("GET", "v1/links")["links"]) >= 2 * count

    until(there, "the devices do not come")
    return names


def flows_of(onos: Onos, device: str) -> list[dict[str, Any]]:
    """Flow rules of a device. Where there are none ONOS says that there is no such device."""
    answer = onos.http.get(f"v1/flows/{device}")
    flows: list[dict[str, Any]] = answer.json()["flows"] if answer.is_success else []
    return flows


def rules(onos: Onos, device: str) -> set[str]:
    """Tables of the flow rules that a device has taken."""
    flows = flows_of(onos, device)
    return {rule["tableName"] for rule in flows if rule["state"] == "ADDED"}


def test_flow_objectives_become_entries_and_replication_groups(onos: Onos) -> None:
    (device,) = devices(onos, 1)[:1]
    next_objective = {
        "appId": "org.wormcast.test",
        "type": "BROADCAST",
        "operation": "ADD",
        "id": 20_001,
        "treatments": [{"instructions": [{"type": "OUTPUT", "port": port}]} for port in (1, 2)],
    }
    answer = onos.http.post(f"v1/flowobjectives/{device}/next", json=next_objective)
    assert answer.is_success, answer.text

    def group() -> Any:
        found = [one for one in onos.ask("GET", f"v1/groups/{device}")["groups"] if int(one["id"]) == 20_001]
        return found and found[0]

    made = until(group, "no replication group")
    ports = {b["treatment"]["instructions"][0]["port"] for b in made["buckets"]}
    assert (made["type"], ports) == ("ALL", {"1", "2"})
    forward = {
        "appId": "org.wormcast.test",
        "priority": 10,
        "isPermanent": True,
        "timeout": 0,
        "flag": "VERSATILE",
        "operation": "ADD",
        "nextId": 20_001,
        "selector": {"criteria": [{"type": "IPV4_DST", "ip": "239.8.8.8/32"}]},
    }
    answer = onos.http.post(f"v1/flowobjectives/{device}/forward", json=forward)
    assert answer.is_success, answer.text
    until(lambda: rules(onos, device) >= {"ingress.class_d", "ingress.groups"}, "no flow rules")


def test_alone_onos_programs_the_switches_from_the_plan(onos: Onos, fabric: Fabric) -> None:
    names = devices(onos, 3)
    configure(onos, controller="http://127.0.0.1:8080", mode="alone")
    try:
        topology = {
            "switches": [{"id": number, "ports": 8} for number in range(3)],
            "hosts": [{"id": 6 * n + port, "switch": n, "port": port} for n in range(3) for port in range(6)],
            "links": [{"a": n, "a_port": 7, "b": (n + 1) % 3, "b_port": 6} for n in range(3)],
        }
        plan = fabric.post("plan", {"topology": topology, "groups": [], "class_d": "wide"})
        for number, device in enumerate(names):
            wanted = plan["switches"][number]
            # Switches of ONOS write no records of hops, so they need no number for them, and stay in packet mode.
            unset = {"egress.trace", "ingress.wormhole"}
            defaults = [entry for entry in wanted["defaults"] if entry["table"] not in unset]
            assert [entry["table"] for entry in defaults] == ["ingress.tree_sets"]
            rules_wanted = len(wanted["entries"]) + len(defaults)

            def held(device: str = device, wanted: Any = wanted, rules_wanted: int = rules_wanted) -> bool:
                # A default action is a rule without a key; other tests left rules of their own.
                ours = [
                    rule
                    for rule in flows_of(onos, device)
                    if rule["appId"] == "org.wormcast.onos" and rule["state"] == "ADDED"
                ]
                groups = {
                    int(one["id"]): {int(b["treatment"]["instructions"][0]["port"]) for b in one["buckets"]}
                    for one in onos.ask("GET", f"v1/groups/{device}")["groups"]
                    if one["appId"] == "org.wormcast.onos" and one["state"] == "ADDED"
                }
                return len(ours) == rules_wanted and groups == {
                    group["mgid"]: set(group["ports"]) for group in wanted["multicast"]
                }

            until(held, f"{device} does not hold what the plan says")
        assert onos.errors() == []
    finally:
        configure(onos, controller="http://127.0.0.1:8080")


def test_deactivated_it_takes_its_hosts_along_and_comes_back(onos: Onos, fabric: Fabric) -> None:
    assert onos.ask("GET", "v1/hosts")["hosts"]
    onos.ask("DELETE", "v1/applications/org.wormcast.onos/active")
    until(lambda: not onos.ask("GET", "v1/hosts")["hosts"], "its hosts stay")
    assert PIPECONF not in onos.command("pipeconfs")
    onos.activate("org.wormcast.onos")
    until(
        lambda: len(onos.ask("GET", "v1/hosts")["hosts"]) == len(fabric.agents), "the hosts do not come back"
    )
    assert PIPECONF in onos.command("pipeconfs")
    assert onos.errors() == []


@pytest.mark.skipif(
    not os.environ.get(onos_core.BUNDLES),
    reason=f"{onos_core.BUNDLES} names no folder with ONOS's P4Runtime and BMv2 drivers",
)
def test_with_the_drivers_entries_are_in_a_switch(onos: Onos) -> None:
    """A switch of its own, which ONOS alone programs over P4Runtime."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    address = ["--grpc-server-addr", f"127.0.0.1:{port}", "--cpu-port", "510"]
    switch = subprocess.Popen([os.environ["WORMCAST_SWITCH"], "--no-p4", "--device-id", "1", "--", *address])
    try:
        device = "device:onos-alone"
        onos.activate("org.onosproject.drivers.bmv2")
        basic = {
            "managementAddress": f"grpc://127.0.0.1:{port}?device_id=1",
            "driver": "bmv2",
            "pipeconf": PIPECONF,
        }
        onos.ask("POST", "v1/network/configuration", {"devices": {device: {"basic": basic}}})
        configure(onos, controller="http://127.0.0.1:8080", mode="alone")
        until(
            lambda: any(
                rule["state"] == "ADDED" and rule["appId"] == "org.wormcast.onos"
                for rule in flows_of(onos, device)
            ),
            "no entry is in the switch",
        )
    finally:
        switch.terminate()
        switch.wait()
        configure(onos, controller="http://127.0.0.1:8080")
