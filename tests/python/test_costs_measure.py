"""`wormcast costs measure` up to where a fabric is needed, and what the fit says from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from controller_lab.plans import decoded_group
from controller_lab.small import all_take_part, with_rest
from wormcast import routing
from wormcast.cli.main import main
from wormcast.cli.measuring import Measured, choose_members, group_sizes, lengths, with_payload
from wormcast.cli.refusal import Refusal
from wormcast.network.ids import Epoch
from wormcast.reconcile.controller import Controller

TOPOLOGY = routing.make("testbed")


def host(number: int, state: str = "up", *, agent: bool = True) -> dict[str, Any]:
    return {"id": number, "name": f"h{number}", "state": state, "agent": agent, "mtu": 1500}


def test_members_are_the_next_hosts_that_are_up() -> None:
    hosts = [host(0), host(1, "silent"), host(2), host(3, agent=False), host(5), host(7)]
    assert choose_members(5, hosts, []) == [5, 7, 0, 2]
    assert choose_members(5, hosts, ["h2", "0", "5"]) == [5, 2, 0]
    many = [host(number) for number in range(40)]
    assert choose_members(30, many, []) == [*range(30, 40), *range(6)]
    with pytest.raises(Refusal, match=r"'h3'.*agent that is up"):
        choose_members(5, hosts, ["h3"])
    with pytest.raises(Refusal, match="two or more"):
        choose_members(5, [host(5), host(1, "silent")], [])
    with pytest.raises(Refusal, match="two or more"):
        choose_members(5, hosts, ["5"])


def test_groups_and_messages_cover_what_there_is() -> None:
    assert group_sizes(2) == [2]
    assert group_sizes(3) == [2, 3]
    assert group_sizes(16) == [2, 9, 16]
    assert lengths(64 << 10) == [64, 1024, 4096, 16384, 65536]
    assert lengths(100_000)[-1] == 65536


def test_packets_are_those_of_the_smallest_mtu() -> None:
    costs = routing.costs("agents")
    assert with_payload(costs, [1500, 1500]) == costs
    assert with_payload(costs, [9000, 1600, None])["packet_payload_bytes"] == 1544
    assert with_payload(costs, [])["packet_payload_bytes"] == 1444


def test_a_median_has_an_error() -> None:
    exact, spread = (
        Measured("repeat", [0, 1], 64, [1e-3, 1e-3 + width, 1e-3 - width] * 5) for width in (0.0, 3e-4)
    )
    assert exact.error == 0.0
    assert 0.02 < spread.error < 0.2
    assert spread.to_timed(1)["ns"] == pytest.approx(1e6)
    assert Measured("repeat", [0, 1], 64, [1.0]).error == 1.0


def test_the_fit_finds_costs_again() -> None:
    known = {
        "set": "agents",
        "message_send_ns": 4e5,
        "message_receive_ns": 4e5,
        "link_bits_per_s": 50_000_000,
    }
    known["host_link_bits_per_s"] = known["link_bits_per_s"]
    timed = []
    for scheme in ("repeat", "circuit", "switch"):
        for count in (2, 8):
            for size in lengths(1 << 20):
                packets = -(-size // 1444)
                parameters = {"packets": packets, "payload": 1444, "bytes": None}
                request = {"scheme": scheme, "source": 0, "members": list(range(count))}
                shape = {name: value for name, value in parameters.items() if value}
                if packets == 1:
                    shape = {"packets": 1, "payload": size}
                took = routing.replay(TOPOLOGY, {**request, "parameters": shape}, known)["completion_us"]
                timed.append({"request": request, "bytes": size, "ns": took * 1e3, "error": 0.01})
    fit = routing.fit_costs(TOPOLOGY, timed)
    assert fit["costs"]["message_send_ns"] == pytest.approx(4e5, rel=0.1)
    assert fit["costs"]["link_bits_per_s"] == pytest.approx(50e6, rel=0.1)
    assert routing.costs(fit["costs"]) == fit["costs"], "it is a costs file"
    assert len(fit["estimates"]) == len(timed)
    named = {name for one in fit["found"] for name in one["names"]}
    assert named <= fit["costs"].keys()
    unchanged = fit["costs"].keys() - named
    before = routing.costs("agents")
    assert all(fit["costs"][name] == before[name] for name in unchanged)


@pytest.mark.parametrize(
    ("timed", "words"),
    [
        ([], ["at least 1"]),
        ([{"request": {"scheme": "repeat", "source": 0, "members": [0, 1]}, "bytes": 64}], ["timed[0].ns"]),
        (
            [{"request": {"scheme": "fast", "source": 0, "members": [0, 1]}, "bytes": 1, "ns": 1}],
            ["fast", "circuit"],
        ),
        (
            [{"request": {"scheme": "repeat", "source": 0, "members": [0, 1]}, "bytes": -1, "ns": 1}],
            ["timed[0].bytes", "-1"],
        ),
    ],
)
def test_times_that_are_none_are_refused(timed: list[dict[str, Any]], words: list[str]) -> None:
    with pytest.raises(routing.RoutingError) as refused:
        routing.fit_costs(TOPOLOGY, timed)
    assert all(word in str(refused.value) for word in words), refused.value


def test_a_sink_is_shown_told_and_not_kept() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        for name, sink in (("plain", False), ("dropped", True)):
            body = {"name": name, "scheme": "repeat", "members": [0, 1], "sink": sink}
            made = (await client.post("groups", json=body)).json()
            assert made["sink"] is sink
            await all_take_part(client, made["id"])
            plan = controller.planning.state.agents[controller.hosts.records()[0].id]
            assert decoded_group(plan, name).sink is sink
        await client.post("groups/dropped/members", json={"members": [2]})
        assert [group.name for group in controller._database.groups()] == ["plain"]
        assert (await client.delete("groups/dropped")).status_code == 204
        wrong = await client.post("groups", json={"members": [0], "sink": "perhaps"})
        assert wrong.status_code == 422
        assert "sink" in wrong.text

    with_rest(test)


def test_without_a_controller_or_an_agent_it_says_so(tmp_path: Path) -> None:
    nowhere = f"unix:{tmp_path}/api.sock"
    result = CliRunner().invoke(main, ["costs", "measure", "--api", nowhere, "--json"])
    assert result.exit_code == 69
    assert json.loads(result.stderr)["error"]["code"] == "unavailable"
    result = CliRunner().invoke(main, ["costs", "measure", "--most", "10"])
    assert result.exit_code == 2
    assert "65536" in result.stderr
