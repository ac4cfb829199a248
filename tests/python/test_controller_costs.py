"""Groups go by the costs of the fabric, which are shown and set over REST."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
from click.testing import CliRunner
from controller_lab.small import all_take_part, with_rest
from wormcast import routing
from wormcast.cli.main import main
from wormcast.network.ids import Epoch
from wormcast.reconcile.controller import Controller


def test_auto_goes_by_the_costs_of_the_fabric() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        made = (await client.post("groups", json={"scheme": "auto", "members": [0, 1, 2]})).json()
        await all_take_part(client, made["id"])
        shown = (await client.get(f"groups/{made['id']}")).json()["structures"]
        assert shown[-1]["bytes_most"] is None, "the last is for any"
        assert all(one["expected"] and one["messages"] == 0 for one in shown)
        assert (await client.get("costs")).json() == routing.costs("agents")
        answer = await client.put("costs", json={"set": "agents", "message_receive_ns": 9e9})
        assert answer.json()["message_receive_ns"] == 9e9
        slower = (await client.get(f"groups/{made['id']}")).json()["structures"]
        assert slower[0]["expected"][0]["microseconds"] > 9e6
        wrong = await client.put("costs", json={"set": "guess"})
        assert wrong.status_code == 422
        assert "agents" in wrong.json()["error"]["message"]
        assert (await client.get("costs")).json()["message_receive_ns"] == 9e9

    with_rest(test)


def test_the_lambda_of_postal_follows_from_the_costs_unless_it_is_given() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        groups = []
        for parameters in ({}, {"lambda": 7}):
            body = {"scheme": "postal", "members": [0, 1, 2], "parameters": parameters}
            groups.append((await client.post("groups", json=body)).json()["id"])
            await all_take_part(client, groups[-1])

        async def shown() -> list[tuple[list[int], int]]:
            """λ of the trees of each group, and the longest message that does not take the last one."""
            found = [(await client.get(f"groups/{group}")).json()["structures"] for group in groups]
            return [
                ([one["parameters"]["lambda"] for one in trees], max(one["bytes_most"] or 0 for one in trees))
                for trees in found
            ]

        ((short, _, long), before), given = await shown()
        assert given == ([7], 0)
        assert short > long == 1, "a host sends several short packets until one has been received"
        # A switch that takes ten times as long as a host may send a packet.
        costs = routing.costs("agents")
        send_ns = costs["packet_payload_bytes"] * 8e9 / costs["host_link_bits_per_s"]
        await client.put("costs", json={"set": "agents", "switch_hop_ns": 10 * send_ns})
        (_, after), given = await shown()
        assert given == ([7], 0)
        assert after >= 2 * before, "few levels count for longer messages"

    with_rest(test)


def test_data_is_json_where_that_is_asked_for(tmp_path: Path) -> None:
    """Also where standard output is no terminal, as here."""
    plain = CliRunner().invoke(main, ["costs", "--costs", "nic"])
    assert plain.exit_code == 0
    assert plain.stdout.startswith("costs of nic\ncost ")
    asked = CliRunner().invoke(main, ["costs", "--costs", "nic", "--json"])
    file = tmp_path / "costs.json"
    assert CliRunner().invoke(main, ["costs", "--costs", "nic", "-o", str(file)]).stdout == ""
    assert json.loads(asked.stdout) == json.loads(file.read_text()) == routing.costs("nic")
