"""REST: what is asked is done and shown; wrong use is answered with the value, the bound and the choices."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import jsonschema
import pytest
from controller_lab.small import all_take_part, with_rest
from wormcast.api.body_limit import BODY_BYTES_MAX
from wormcast.api.views import show_group
from wormcast.network.group_body import GroupBody
from wormcast.network.groups import SCHEMES, SCHEMES_ANYWHERE
from wormcast.network.ids import Epoch
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.events import QUEUE_MAX, WATCHERS_MAX, EventLog, WatcherLimit
from wormcast.routing import schemas
from wormcast_planner import NOT_PLANNED, PLAIN, is_copied_by_switches

WRONG: list[tuple[str, str, object, int, dict[str, Any]]] = [
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [0, 99]},
        422,
        {"message": "there is no host 99; there are 0, 1, 2", "value": 99, "choices": [0, 1, 2]},
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": ["h0", "nobody"]},
        422,
        {
            "message": "there is no host 'nobody'; there are h0, h1, h2",
            "value": "nobody",
            "choices": ["h0", "h1", "h2"],
        },
    ),
    (
        "POST",
        "groups",
        {"id": 255, "scheme": "tree", "members": [0]},
        422,
        {
            "message": "group 255 is broadcast and cannot be configured; possible: 0 to 65535, not 255",
            "value": 255,
            "bound": "0 to 65535, not 255",
        },
    ),
    (
        "POST",
        "groups",
        {"id": 70000, "scheme": "tree", "members": [0]},
        422,
        {
            "message": "group 70000 is out of range; possible: 0 to 65535, not 255",
            "value": 70000,
            "bound": "0 to 65535, not 255",
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "flood", "members": [0]},
        422,
        {
            "message": "unknown scheme 'flood'; there are repeat, circuit, tree, k-binomial, postal, u-torus, s-torus, "
            "md-torus, mu-torus, switch, table, broadcast, auto",
            "value": "flood",
            "choices": list(SCHEMES),
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [1, "h1"]},
        422,
        {
            "message": "host 'h1' is named twice; possible: each host once",
            "value": "h1",
            "bound": "each host once",
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": []},
        422,
        {
            "message": "a group without members; possible: 1 member or more",
            "value": [],
            "bound": "1 member or more",
        },
    ),
    ("POST", "groups", {"scheme": "tree"}, 422, {"message": "body.members: missing"}),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [0.5]},
        422,
        {"message": "body.members.0: neither an integer nor text", "value": 0.5},
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [0], "colour": "red"},
        422,
        {"message": "body.colour: unknown field", "value": "red"},
    ),
    (
        "POST",
        "groups",
        {"scheme": "u-torus", "members": [0]},
        422,
        {
            "message": "scheme u-torus goes by coordinates, and this fabric has no grid: it is for a torus or mesh, "
            "whose grid stands with its switches; there are repeat, circuit, tree, k-binomial, postal, switch, "
            "table, broadcast, auto",
            "value": "u-torus",
            "choices": list(SCHEMES_ANYWHERE),
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "postal", "members": [0], "parameters": {"lambda": 1025}},
        422,
        {"message": "parameter lambda is 1025; possible: 0 to 1024", "value": 1025, "bound": "0 to 1024"},
    ),
    (
        "POST",
        "switches",
        {"switches": [], "grid": {"radix": [0]}},
        422,
        {
            "message": "grid of [0]; possible: one size or more, each 1 to 65534",
            "value": [0],
            "bound": "one size or more, each 1 to 65534",
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [0], "parameters": {"fan_out": 0}},
        422,
        {"message": "parameter fan_out is 0; possible: 1 to 16", "value": 0, "bound": "1 to 16"},
    ),
    (
        "POST",
        "groups",
        {"scheme": "circuit", "members": [0], "parameters": {"variant": "ordered"}},
        422,
        {
            "message": "parameter variant is 'ordered'; there are omit-last, return",
            "value": "ordered",
            "choices": ["omit-last", "return"],
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [0], "parameters": {"variant": "return"}},
        422,
        {
            "message": "parameter variant is 'return' with scheme tree; possible: scheme circuit",
            "value": "return",
            "bound": "scheme circuit",
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [0], "class_d": "224.0.0.5"},
        422,
        {
            "message": "224.0.0.5 is not a class D address that leaves a link; possible: 224.0.1.0 to 239.255.255.255",
            "value": "224.0.0.5",
            "bound": "224.0.1.0 to 239.255.255.255",
        },
    ),
    (
        "POST",
        "groups",
        {"scheme": "tree", "members": [0], "name": "7"},
        422,
        {
            "message": "group name '7' is not valid; possible: 1 to 64 letters, digits, '.', '_', '-', not digits alone",
            "value": "7",
            "bound": "1 to 64 letters, digits, '.', '_', '-', not digits alone",
        },
    ),
    (
        "POST",
        "groups",
        b"{scheme: tree",
        400,
        {
            "message": "the body is not JSON: line 1, column 2: Expecting property name enclosed in double quotes; "
            "possible: a JSON object",
            "bound": "a JSON object",
        },
    ),
    (
        "GET",
        "groups/9",
        None,
        404,
        {"message": "there is no group '9'; there are none", "value": "9", "choices": []},
    ),
    (
        "POST",
        "hosts",
        {"switch": 0, "port": 200},
        422,
        {"message": "switch 0 has no port 200; possible: 0 to 3", "value": 200, "bound": "0 to 3"},
    ),
    (
        "POST",
        "hosts",
        {"switch": 7, "port": 0},
        404,
        {"message": "there is no switch 7; there are 0, 1", "value": 7, "choices": [0, 1]},
    ),
    (
        "POST",
        "hosts",
        {"name": "x", "switch": 0, "port": 0},
        409,
        {
            "message": "port 0 of switch 0 has host 'h0'; possible: a free port",
            "value": 0,
            "bound": "a free port",
        },
    ),
    (
        "POST",
        "hosts",
        {"name": "x", "switch": 0, "port": 3},
        409,
        {
            "message": "port 3 of switch 0 leads to a switch; possible: a free port",
            "value": 3,
            "bound": "a free port",
        },
    ),
    (
        "POST",
        "switches",
        {"id": 2, "address": "nowhere", "ports": 8},
        422,
        {
            "message": "switch address 'nowhere' is not valid; possible: host:port or unix:/path",
            "value": "nowhere",
            "bound": "host:port or unix:/path",
        },
    ),
    (
        "POST",
        "switches",
        {"switches": [{"id": 2, "address": "a:1", "ports": 255}]},
        422,
        {
            "message": "switch ports 255 is out of range; possible: 1 to 254",
            "value": 255,
            "bound": "1 to 254",
        },
    ),
    (
        "POST",
        "switches",
        {"id": 0, "address": "elsewhere:1", "ports": 8},
        409,
        {"message": "switch 0 exists at 127.0.0.1:40000; remove it first", "value": 0},
    ),
    (
        "POST",
        "switches",
        {"switches": [{"id": 1, "ports": 8}]},
        422,
        {"message": "body.switches.0.address: missing"},
    ),
    (
        "GET",
        "switches/x",
        None,
        422,
        {
            "message": "path.switch: input should be a valid integer, unable to parse string as an integer",
            "value": "x",
        },
    ),
    ("PATCH", "groups", {}, 405, {"message": "/v1/groups does not take this method", "value": "PATCH"}),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "error"), WRONG)
def test_wrong_use_is_explained(
    method: str, path: str, body: object, status: int, error: dict[str, Any]
) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        answer = await client.request(
            method, path, content=content, headers={"content-type": "application/json"}
        )
        given = answer.json()["error"]
        assert {name: given[name] for name in given if name not in ("code", "line", "column")} == error
        jsonschema.validate(answer.json(), schemas.load("refusal"), cls=jsonschema.Draft202012Validator)
        assert answer.status_code == status
        assert controller.groups.groups() == []
        assert len(controller.sessions) == 2

    with_rest(test)


def test_bodies_are_bounded_whether_their_length_is_announced_or_not() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        chunk = b" " * (1 << 20)

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(BODY_BYTES_MAX // len(chunk) + 2):
                yield chunk

        for content in (b" " * (BODY_BYTES_MAX + 1), endless()):
            answer = await client.post("groups", content=content)
            assert answer.status_code == 413
            assert answer.json()["error"]["bound"] == f"{BODY_BYTES_MAX} bytes"

    with_rest(test)


def test_unknown_paths_name_the_known_ones() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        answer = await client.get("group")
        assert answer.status_code == 404
        error = answer.json()["error"]
        assert error["value"] == "/v1/group"
        assert "/v1/groups" in error["choices"]

    with_rest(test)


def test_groups_are_created_changed_and_deleted() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        made = await client.post(
            "groups", json={"scheme": "switch", "members": ["h2", 0], "class_d": "239.0.0.9"}
        )
        assert made.status_code == 201
        value = made.json()
        assert (value["id"], value["name"], value["members"]) == (9, "group-9", [0, 2])
        assert (value["class_d_mode"], value["class_d_number"]) == ("narrow", 9)
        await all_take_part(client, value["id"])
        assert (await client.get("groups/group-9")).json()["id"] == 9
        twice = await client.post("groups", json={"id": 9, "scheme": "tree", "members": [0]})
        assert twice.status_code == 409
        again = await client.post("groups", json={"name": "group-9", "scheme": "tree", "members": [0]})
        assert again.status_code == 409
        added = await client.post("groups/9/members", json={"members": [1]})
        assert added.json()["members"] == [0, 1, 2]
        assert (await client.post("groups/9/members", json={"members": [1]})).status_code == 409
        assert (await client.delete("groups/9/members/h0")).json()["members"] == [1, 2]
        missing = await client.delete("groups/9/members/0")
        assert missing.json()["error"]["choices"] == [1, 2]
        assert (await client.put("groups/9/members", json={"members": [2]})).json()["members"] == [2]
        last = await client.delete("groups/9/members/2")
        assert (last.status_code, last.json()["error"]["message"]) == (
            409,
            "group 9 would be empty; delete it instead",
        )
        assert (await client.delete("groups/9")).status_code == 204
        assert (await client.get("groups")).json() == {"groups": []}
        kinds = [e["kind"] for e in (await client.get("events?follow=false")).json()["events"]]
        assert [k for k in kinds if k.startswith("group_")] == [
            "group_created",
            *["group_changed"] * 3,
            "group_deleted",
        ]
        assert controller.planning.figures.failures == 0

    with_rest(test)


def test_a_group_without_a_wish_gets_the_lowest_free_id_that_no_address_uses() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        body = {"scheme": "tree", "members": [0]}
        assert (await client.post("groups", json={**body, "id": 7, "class_d": "239.0.0.1"})).json()["id"] == 7
        assert [(await client.post("groups", json=body)).json()["id"] for _ in range(3)] == [0, 2, 3]

    with_rest(test)


def test_groups_show_with_whom_they_share_a_number() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        body = {"scheme": "switch", "members": [0]}
        for number, address in ((9, "239.0.0.9"), (20, "239.1.1.9"), (21, "239.1.1.10")):
            assert (await client.post("groups", json={**body, "id": number, "class_d": address})).is_success
        plain = (await client.post("groups", json={**body, "id": 10})).json()
        assert (plain["class_d_number"], plain["class_d_shared_with"]) == (None, [])
        shown = [(await client.get(f"groups/{n}")).json() for n in (9, 20, 21)]
        assert [g["class_d_number"] for g in shown] == [9, 9, 10]
        assert [g["class_d_shared_with"] for g in shown] == [[20], [9], [10]]
        assert (await client.get("status")).json()["class_d_mode"] == "narrow"

    with_rest(test)


def test_the_network_is_shown_in_the_file_forms() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in (0, 2):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        topology = (await client.get("topology")).json()
        assert topology["switches"] == [{"id": 0, "ports": 4}, {"id": 1, "ports": 4}]
        assert topology["links"] == [{"a": 0, "a_port": 3, "b": 1, "b_port": 3}]
        places = [(h["id"], h["switch"], h["port"], h["name"]) for h in topology["hosts"]]
        assert places == [(0, 0, 0, "h0"), (1, 0, 1, "h1"), (2, 1, 0, "h2")]
        async with asyncio.timeout(600):
            while not (
                routes := (await client.get("routes", params={"src": "h0", "dst": 2})).json()["routes"]
            ):
                await asyncio.sleep(0.02)
        assert [(r["ports"], r["switches"]) for r in routes] == [([3, 0], [0, 1])]
        assert (await client.get("verify")).json()["deadlock_free"] is True
        assert (await client.delete("hosts/h1")).status_code == 204
        assert [h["id"] for h in (await client.get("hosts")).json()["hosts"]] == [0, 2]
        assert (await client.post("hosts", json={"switch": 1, "port": 1})).json()["name"] == "host-1"
        assert (await client.delete("switches/1")).status_code == 204
        assert [s["id"] for s in (await client.get("switches")).json()["switches"]] == [0]
        assert (await client.get("topology")).json()["links"] == []

    with_rest(test)


def test_members_of_a_group_that_no_plan_has_yet_do_not_take_part() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        request = GroupBody(scheme="tree", members=[0, 1])
        shown = show_group(controller, controller.groups.create_all([request])[0])
        assert [(m["takes_part"], m["reason"]) for m in shown["state"]] == [(False, NOT_PLANNED)] * 2
        await controller.reconciler.settle()
        # Nor do they while a plan without the change is in force.
        shown = show_group(controller, controller.groups.add(shown["id"], [2]))
        assert [m["reason"] for m in shown["state"]] == [NOT_PLANNED] * 3
        await controller.reconciler.settle()
        assert all(m["takes_part"] for m in (await client.get(f"groups/{shown['id']}")).json()["state"])

    with_rest(test)


@pytest.mark.parametrize("scheme", SCHEMES_ANYWHERE)
def test_plans_of_groups_are_shown_in_the_file_form(scheme: str) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        plain = await client.post("groups", json={"scheme": scheme, "members": [0, 1], "id": 1})
        assert [m["reason"] for m in plain.json()["state"]] == [PLAIN] * 2
        assert (await client.get("groups/1/plan")).status_code == 409
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        made = await client.post("groups", json={"scheme": scheme, "members": [0, 1, 2], "id": 2})
        await all_take_part(client, made.json()["id"])
        plan = (await client.get("groups/2/plan", params={"source": "h1"})).json()
        assert (plan["id"], plan["source"]) == (2, 1)
        assert plan["scheme"] == scheme or scheme == "auto"
        if is_copied_by_switches(plan["scheme"]):
            assert plan["tree"]["switch"] == 0
            assert (
                plan["parameters"].get("group") == made.json()["number"] == (2 if scheme == "table" else None)
            )
        else:
            assert {edge["to"] for edge in plan["edges"]} >= {0, 2}
        assert (await client.get("verify")).json()["deadlock_free"] is True
        wrong = await client.get("groups/1/plan", params={"source": "h2"})
        assert wrong.json()["error"]["choices"] == [0, 1]

    with_rest(test)


def test_routes_that_can_deadlock_are_found_out() -> None:
    ring = {
        "switches": [{"id": n, "ports": 3} for n in range(3)],
        "hosts": [{"id": n, "switch": n, "port": 0} for n in range(3)],
        "links": [{"a": n, "a_port": 1, "b": (n + 1) % 3, "b_port": 2} for n in range(3)],
    }
    around = [
        {
            "src": n,
            "dst": (n + 2) % 3,
            "switches": [n, (n + 1) % 3, (n + 2) % 3],
            "ports": [1, 1, 0],
            "in_transit": [],
        }
        for n in range(3)
    ]

    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        body = {"topology": ring, "routes": {"algorithm": "osud", "root": 0, "routes": around}}
        answer = (await client.post("verify", json=body)).json()
        assert answer["deadlock_free"] is False
        assert answer["cycle"]
        del body["routes"]
        assert (await client.post("verify", json=body)).json()["deadlock_free"] is True
        broken = await client.post("verify", json={"topology": {"switches": [{"id": 0}]}})
        assert broken.status_code == 422
        unknown = await client.get("routes", params={"algorithm": "shortest"})
        assert unknown.status_code == 422
        assert "osud" in unknown.json()["error"]["message"]

    with_rest(test)


def test_metrics_are_what_prometheus_reads() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        controller.packets.lldp_rejected['a "quoted" reason'] += 2
        text = (await client.get("metrics")).text
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert 'wormcast_lldp_rejected_total{reason="a \\"quoted\\" reason"} 2' in lines
        assert 'wormcast_hosts{state="plain"} 3' in lines
        assert "wormcast_links_up 1" in lines
        assert "wormcast_agent_plan_changes_sent_total 0" in lines
        assert all(line.rpartition(" ")[0] and float(line.rpartition(" ")[2]) >= 0 for line in lines)

    with_rest(test)


def test_openapi_describes_every_path_with_an_error() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        schema = (await client.get("openapi.json")).json()
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                assert operation["summary"], (method, path)
                assert "422" in operation["responses"], (method, path)
        assert schema["components"]["schemas"]["GroupBody"]["examples"]

    with_rest(test)


def test_watchers_get_every_event_until_they_fall_behind() -> None:
    async def main() -> None:
        log = EventLog()
        with log.watch() as fast, log.watch() as slow:
            log.add("first", 1.0, switch=1)
            assert (await anext(fast)).to_json() == {"number": 1, "time_s": 1.0, "kind": "first", "switch": 1}
            for _ in range(QUEUE_MAX + 5):
                log.add("more", 2.0)
                await anext(fast)
            assert log.cut_off == 1
            assert len([event async for event in slow]) == QUEUE_MAX
        with contextlib.ExitStack() as stack:
            for _ in range(WATCHERS_MAX):
                stack.enter_context(log.watch())
            with pytest.raises(WatcherLimit):
                stack.enter_context(log.watch())

    asyncio.run(main())
