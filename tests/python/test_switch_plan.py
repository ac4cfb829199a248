"""POST /v1/plan: what the switches of a network must hold that another controller programs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from controller_lab.running import rest, running, take_for_up
from controller_lab.small import make_group
from wormcast import routing
from wormcast.network.ids import PortId, SwitchId
from wormcast.offload.switch_plan import switch_plan
from wormcast.store.database import SwitchSpec
from wormcast_planner import MulticastGroup

TORUS = routing.make("torus:3")
GROUPS: list[Any] = [
    {"members": [0, 3, 8], "class_d": "239.1.2.3"},
    {"members": [1, 5], "class_d": "239.9.2.3"},
]


def reached(
    plan: dict[str, Any], topology: dict[str, Any], source: dict[str, Any], address: int
) -> list[int]:
    """Hosts that a packet of a host comes to, followed through the entries of the plan."""
    switches = {switch["id"]: switch for switch in plan["switches"]}
    hosts = {(host["switch"], host["port"]): host["id"] for host in topology["hosts"]}
    links: dict[tuple[int, int], tuple[int, int]] = {}
    for link in topology["links"]:
        a, b = (link["a"], link["a_port"]), (link["b"], link["b_port"])
        links |= {a: b, b: a}

    def look(switch: int, table: str, matches: Any, parameter: str) -> int:
        found = [e for e in switches[switch]["entries"] if e["table"] == table and matches(e["match"])]
        best = max(found, key=lambda entry: entry["priority"])
        return int(best["parameters"][parameter])

    def is_address(match: Any) -> bool:
        field = match["hdr.ipv4.dst"]
        return bool(address & field["mask"] == field["value"])

    group = look(source["switch"], "ingress.class_d", is_address, "group")
    todo, found = [(source["switch"], source["port"])], []
    for switch, came in todo:
        mgid = look(switch, "ingress.groups", lambda match: match["group"] == group, "mgid")
        ports = next(g["ports"] for g in switches[switch]["multicast"] if g["mgid"] == mgid)
        for port in ports:
            if port == came:
                continue
            if (switch, port) in hosts:
                found.append(hosts[switch, port])
            else:
                todo.append(links[switch, port])
        assert len(todo) < 100, "a loop"
    return sorted(found)


@pytest.mark.parametrize("kind", ["torus:3", "irregular:12:5", "star:4", "line:3"])
def test_packets_that_follow_the_plan_reach_each_member_once(kind: str) -> None:
    topology = routing.make(kind)
    ids = [host["id"] for host in topology["hosts"]]
    members = ids[::2] or ids
    plan = switch_plan(
        topology, [{"members": members, "class_d": "239.1.2.3"}], "wide", {"algorithm": "osud"}
    )
    assert plan["failures"] == []
    for host in topology["hosts"]:
        arrived = reached(plan, topology, host, 0xEF010203)
        assert arrived == [m for m in members if m != host["id"]]


def test_narrow_addresses_share_a_number_and_wide_ones_do_not() -> None:
    def numbers(mode: str) -> list[int]:
        return [
            group["number"] for group in switch_plan(TORUS, GROUPS, mode, {"algorithm": "osud"})["groups"]
        ]

    assert numbers("narrow") == [3, 3]
    assert len(set(numbers("wide"))) == 2


def test_the_plan_is_that_of_the_controller_itself() -> None:
    """What another controller is told is what this one writes into its own switches."""

    async def main() -> None:
        async with running() as controller:
            controller.put_switches([SwitchSpec(SwitchId(0), "127.0.0.1:40000", 0, 4)])
            take_for_up(controller, SwitchId(0))
            for port in range(3):
                controller.declare_host(f"h{port}", 0, PortId(port), None)
            make_group(controller.groups, "switch", ("h0", "h2"), 7, class_d="239.1.2.3")
            await controller.reconciler.replan()
            held = controller.planning.state.switches[SwitchId(0)]
            async with rest(controller) as client:
                group = {"id": 7, "members": [0, 2], "class_d": "239.1.2.3"}
                answer = (await client.post("plan", json={"groups": [group]})).json()
            (switch,) = answer["switches"]
            assert len(switch["entries"]) == len(held.entries()) > 5
            assert [
                MulticastGroup(g["mgid"], [(r["port"], r["instance"], r["backups"]) for r in g["replicas"]])
                for g in sorted(switch["multicast"], key=lambda g: g["mgid"])
            ] == held.multicast()
            assert all(g["ports"] == [r["port"] for r in g["replicas"]] for g in switch["multicast"])
            defaults = {entry["table"]: entry["parameters"] for entry in switch["defaults"]}
            assert defaults == {
                "ingress.tree_sets": {"low": 15, "high": 0},
                "egress.trace": {"switch": 0},
                "ingress.wormhole": {},
            }

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "not a JSON object"),
        ({"grups": []}, "unknown field"),
        ({"groups": 5}, "list"),
        ({"groups": [5]}, "members and class_d"),
        ({"groups": [{"members": [99], "class_d": "239.1.1.1"}]}, "no host 99"),
        ({"groups": [{"members": ["h0"], "class_d": "239.1.1.1"}]}, "an integer"),
        ({"groups": [{"members": [0], "class_d": "10.0.0.1"}]}, "239.255.255.255"),
        ({"groups": [{"members": [0]}]}, "not an IPv4 address"),
        ({"groups": [{"members": [], "class_d": "239.1.1.1"}]}, "without members"),
        ({"groups": [{"id": 255, "members": [0], "class_d": "239.1.1.1"}]}, "broadcast"),
        ({"groups": [{"id": 1, "members": [0], "class_d": "239.1.1.1"}] * 2}, "twice"),
        ({"groups": [{"members": [0], "class_d": "239.1.1.1", "name": "x"}]}, "unknown field"),
        ({"class_d": "broad"}, "narrow"),
        ({"topology": {"switches": [{"id": 0}]}}, "ports"),
        ({"topology": {"switches": [{"id": 0, "ports": 4}] * 4097}}, "too many"),
    ],
)
def test_wrong_bodies_are_refused_with_the_bound(body: Any, words: str) -> None:
    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            if isinstance(body, dict) and "topology" not in body:
                body["topology"] = TORUS
            answer = await client.post("plan", json=body)
            assert answer.status_code == 422, answer.text
            assert words in answer.text

    asyncio.run(main())
