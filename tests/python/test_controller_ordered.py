"""Ordered groups over REST: the sequencer is shown, and stays for as long as it takes part."""

from __future__ import annotations

import httpx
from controller_lab.plans import decoded_group
from controller_lab.small import all_take_part, with_rest
from wormcast.network.groups import Parameters
from wormcast.network.ids import Epoch
from wormcast.reconcile.controller import Controller


def test_an_ordered_group_has_a_sequencer_that_stays() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        body = {"scheme": "circuit", "members": [1, 2], "parameters": {"ordered": True}}
        made = (await client.post("groups", json=body)).json()
        assert made["parameters"]["ordered"] is True
        await all_take_part(client, made["id"])

        async def sequencer() -> tuple[int, int] | None:
            shown = (await client.get(f"groups/{made['id']}")).json()
            planned = controller.planning.planned(shown["members"][-1], made["id"])
            assert planned is not None
            assert planned.sequencer is not None
            assert planned.sequencer[0] == shown["sequencer"]
            return planned.sequencer

        first = await sequencer()
        assert first is not None
        assert first[0] == 1
        await client.post(f"groups/{made['id']}/members", json={"members": [0]})
        await all_take_part(client, made["id"])
        assert await sequencer() == first, "one with a lower number has joined"
        await client.request("DELETE", f"groups/{made['id']}/members", json={"members": [1]})
        await all_take_part(client, made["id"])
        second = await sequencer()
        assert second is not None
        assert second[0] == 0
        assert second[1] > first[1]

    with_rest(test)


def test_guard_b_leads_through_the_root_and_orders() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        body = {"scheme": "switch", "members": [0, 1, 2], "parameters": {"guard": "B"}}
        made = (await client.post("groups", json=body)).json()
        await all_take_part(client, made["id"])
        shown = (await client.get(f"groups/{made['id']}")).json()
        planned = decoded_group(controller.planning.state.agents[made["members"][0]], made["name"])
        assert planned.roots == [shown["root"]]
        assert shown["sequencer"] == 0
        answer = await client.post("groups", json={**body, "scheme": "table"})
        assert answer.status_code == 422
        assert answer.json()["error"]["choices"] == ["A", "C"]

    with_rest(test)


def test_other_groups_have_none_and_it_is_true_or_false() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(2):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        made = (await client.post("groups", json={"scheme": "auto", "members": [0, 1]})).json()
        await all_take_part(client, made["id"])
        assert (await client.get(f"groups/{made['id']}")).json()["sequencer"] is None
        wrong = {"scheme": "auto", "members": [0, 1], "parameters": {"ordered": "perhaps"}}
        answer = await client.post("groups", json=wrong)
        assert answer.status_code == 422
        assert "ordered" in answer.text
        sink = {"scheme": "auto", "members": [0, 1], "sink": True, "parameters": {"ordered": True}}
        answer = await client.post("groups", json=sink)
        assert answer.status_code == 422
        assert "sink" in answer.text

    with_rest(test)


def test_a_state_file_from_before_has_no_ordered_groups() -> None:
    kept = {name: value for name, value in Parameters().to_json().items() if name != "ordered"}
    assert Parameters.from_json(kept) == Parameters()
    assert Parameters.from_json({**kept, "ordered": True}).ordered
