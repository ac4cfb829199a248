"""The operator's bound of what a host sends to a group: over REST, in plans, in the state file."""

from __future__ import annotations

from pathlib import Path

import click
import httpx
import pytest
from controller_lab.plans import decoded_group
from controller_lab.small import all_take_part, with_rest
from wormcast.cli.bit_rate import read_rate_bits, show_rate
from wormcast.network.groups import Group, Parameters
from wormcast.network.ids import Epoch, GroupId, HostId
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database


def test_the_rate_of_a_group_is_in_its_plans_and_changes_while_it_is_there() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(2):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))

        def planned(name: str) -> int:
            rates = {
                decoded_group(plan, name).rate_bits for plan in controller.planning.state.agents.values()
            }
            (rate,) = rates
            return int(rate)

        body = {"members": [0, 1], "name": "slow", "parameters": {"rate_bits": 20_000_000}}
        made = (await client.post("groups", json=body)).json()
        assert made["parameters"]["rate_bits"] == 20_000_000
        await all_take_part(client, made["id"])
        assert planned("slow") == 20_000_000
        for rate in (8_000, 0, 10**12):
            changed = await client.put("groups/slow/rate", json={"rate_bits": rate})
            assert changed.json()["parameters"]["rate_bits"] == rate
            assert planned("slow") == rate
        for wrong in (1, 7_999, 10**12 + 1, -1):
            refused = await client.put("groups/slow/rate", json={"rate_bits": wrong})
            assert refused.status_code == 422
            error = refused.json()["error"]
            assert (error["value"], error["bound"]) == (wrong, "8000 to 1000000000000, or 0 for any rate")
        assert (await client.put("groups/none/rate", json={"rate_bits": 0})).status_code == 404
        assert planned("slow") == 10**12, "what is refused changes nothing"

    with_rest(test)


def test_the_rate_is_kept(tmp_path: Path) -> None:
    group = Group(GroupId(1), "slow", "tree", (HostId(0), HostId(1)), Parameters(rate_bits=5_000_000))
    database = Database(tmp_path / "state.db")
    database.change_groups([group], [], None)
    database.close()
    assert Database(tmp_path / "state.db").groups() == [group]
    kept = {name: value for name, value in Parameters().to_json().items() if name != "rate_bits"}
    assert Parameters.from_json(kept).rate_bits == 0, "a state file from before"


@pytest.mark.parametrize(
    ("text", "bits", "shown"),
    [
        ("20M", 20_000_000, "20 Mb/s"),
        ("8000", 8_000, "8 kb/s"),
        ("1.5Gbit", 1_500_000_000, "1.5 Gb/s"),
        ("12345", 12_345, "12.345 kb/s"),
    ],
)
def test_rates_are_read_and_shown(text: str, bits: int, shown: str) -> None:
    context, option = click.Context(click.Command("c")), click.Option(["--rate"])
    assert read_rate_bits(context, option, text) == bits
    assert show_rate(bits) == shown
    for wrong in ("7999", "2T", "-1M", "", "1e9", "1001G"):
        with pytest.raises(click.BadParameter, match="is not a number of bits a second from 8000 to 1000G"):
            read_rate_bits(context, option, wrong)
