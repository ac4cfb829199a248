"""`wormcast send --to`: lists of hosts, the group that they get, and what is refused; and who receives, as agents say."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_lab.lab import Lab, environment, group
from controller_lab.agents import attached
from controller_lab.running import rest, running, until
from controller_lab.small import add_fabric, make_group, with_rest
from wormcast.agentrpc import agent_pb2
from wormcast.cli.host_list import HOSTS_MAX, parse_hosts
from wormcast.cli.refusal import Refusal
from wormcast.directory import messages
from wormcast.network.named_by_members import is_named_by_members, names_of
from wormcast.reconcile import group_registry
from wormcast.reconcile.controller import Controller


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("h1,h2,h5", ["h1", "h2", "h5"]),
        ("h1 h2,  7", ["h1", "h2", 7]),
        ("h[1-3]", ["h1", "h2", "h3"]),
        ("h[1-2,7],a", ["h1", "h2", "h7", "a"]),
        ("[1-2]", [1, 2]),
        ("h[08-11]", ["h08", "h09", "h10", "h11"]),
        ("rack-[1-2].a", ["rack-1.a", "rack-2.a"]),
        ("h[5]", ["h5"]),
    ],
)
def test_lists_of_hosts(text: str, hosts: list[int | str]) -> None:
    assert parse_hosts(text) == hosts


def test_the_longest_list() -> None:
    assert len(parse_hosts(f"h[1-{HOSTS_MAX}]")) == HOSTS_MAX


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no host is named; write names or numbers between commas or spaces"),
        (" ", "no host is named"),
        ("h1,,h2,", "'h1,,h2,' is not a list of hosts"),
        ("h1,", "'h1,' is not a list of hosts"),
        ("h[1-3", "'h[1-3' is not a list of hosts"),
        ("h1-3]", "'h1-3]' is not a list of hosts"),
        ("h[1][2]", "'h[1][2]' is not a list of hosts"),
        ("h[3-1]", "3-1 in 'h[3-1]' goes backwards; write 1-3"),
        ("h[]", "'' in 'h[]' is neither a number nor a range"),
        ("h[1-2-3]", "'1-2-3' in 'h[1-2-3]' is neither a number nor a range"),
        ("h[a-c]", "'a-c' in 'h[a-c]' is neither"),
        ("h[²]", "'²' in 'h[²]' is neither"),
        ("-h", "'-h' is no name of a host"),
        ("h[1-2]-", "'h[1-2]-' is no name of a host"),
        (f"h[1-{HOSTS_MAX + 1}]", f"are {HOSTS_MAX + 1} hosts; possible: {HOSTS_MAX} hosts"),
        ("h[1-700],g[1-700]", f"more than {HOSTS_MAX} hosts are named; possible: {HOSTS_MAX} hosts"),
        (f"h[1-{9**30}]", "is too long; possible: 18 digits"),
        ("h1,h2,h1", "host 'h1' is named twice; possible: each host once"),
        ("h[1-4],h3", "host 'h3' is named twice"),
        ("1,01", "host '01' is named twice"),
    ],
)
def test_lists_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(Refusal) as refusal:
        parse_hosts(text)
    assert said in refusal.value.message
    assert refusal.value.error["value"] is not None


def test_names_are_those_of_the_members_and_fit_the_rules() -> None:
    assert next(names_of([0, 1, 5])) == "to-0-1-5"
    long = [next(names_of(range(first, 1000))) for first in range(3)]
    assert len(set(long)) == 3
    assert long == [next(names_of(range(first, 1000))) for first in range(3)], "they are stable"
    names = [name for members in ([0, 1], range(65535)) for name in itertools.islice(names_of(members), 3)]
    assert all(group_registry._NAME.fullmatch(name) and not name.isdigit() for name in names)


def test_the_same_members_have_the_same_group_and_no_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_registry, "NAMED_BY_MEMBERS_MAX", 3)

    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            add_fabric(controller)
            groups = controller.groups

            async def of(*members: int | str) -> Any:
                answer = await client.put("groups", json={"members": list(members)})
                return answer.json() if answer.status_code == 200 else answer

            first = await of("h1", 0)
            assert (first["name"], first["members"], first["scheme"]) == ("to-0-1", [0, 1], "auto")
            assert [(await of(1, 0))["id"], (await of("h0", "h1"))["id"]] == [first["id"]] * 2
            assert [e.kind for e in controller.events.history(0)].count("group_created") == 1

            # A name that an operator has given, and members that one has changed.
            make_group(groups, "repeat", [0, 1, 2], name="to-0-2")
            other = await of(0, 2)
            assert (other["name"], other["members"]) == ("to-0-2.2", [0, 2])
            assert (await of(0, 2))["id"] == other["id"]
            groups.add("to-0-1", [2])
            again = await of(0, 1)
            assert (again["name"], again["members"]) == ("to-0-1.2", [0, 1])
            assert groups.get("to-0-1").members == (0, 1, 2)
            assert [g.name for g in groups.groups() if is_named_by_members(g)] == ["to-0-2.2", "to-0-1.2"]

            # Both of another group's members, by a name or the other.
            made = make_group(groups, "repeat", [1, 2], name="to-1-2")
            assert (await of(2, 1))["id"] == made.id
            full = await of(0, 1, 2)
            assert full.status_code == 507
            assert "there are 3 groups named by their members" in full.text
            assert "wormcast group delete" in full.text
            assert (await of(0, 1))["id"] == again["id"], "those that are there are used"
            groups.delete("to-1-2")
            assert (await of(0, 1, 2))["name"] == "to-0-1-2"

    asyncio.run(main())


def test_what_rest_refuses() -> None:
    async def check(client: Any, controller: Controller) -> None:
        for members, said in (
            ([], "a group without members"),
            (["h0", "h9"], "there is no host 'h9'; there are h0, h1, h2"),
            ([0, 9], "there is no host 9; there are 0, 1, 2"),
            ([0, "h0"], "host 'h0' is named twice; possible: each host once"),
        ):
            answer = await client.put("groups", json={"members": members})
            assert answer.status_code == 422
            assert said in answer.json()["error"]["message"]
        assert controller.groups.groups() == []

    with_rest(check)


async def open_receivers(agent: Any, *receivers: tuple[int, int | None]) -> None:
    told = [agent_pb2.OpenReceiver(group=group, origin=origin) for group, origin in receivers]
    await agent.send(open_receivers=agent_pb2.OpenReceivers(receivers=told))


def test_who_receives_is_as_its_agent_says_now(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/agents.sock"

    async def main() -> None:
        async with running(None, (address,)) as controller, rest(controller) as client:
            add_fabric(controller)
            number = make_group(controller.groups, "repeat", [0, 1]).id

            async def receives() -> tuple[Any, Any]:
                (member,) = [
                    m for m in (await client.get(f"groups/{number}")).json()["state"] if m["host"] == 1
                ]
                return member["receives"], member["receives_from"]

            async def becomes(*expected: Any) -> None:
                async with asyncio.timeout(600):
                    while await receives() != expected:
                        await asyncio.sleep(0.01)

            await becomes(None, [])
            async with attached(address, "h1") as agent:
                await until(lambda: agent.host == 1)
                assert await receives() == (None, []), "it has not said"
                await open_receivers(agent, (number, None))
                await becomes(False, [])
                # It counts once the agent has the group as it is planned.
                controller.wanted.notice()
                await until(lambda: agent.plans and agent.plans[-1].groups)
                applied = agent_pb2.PlanApplied(epoch=agent.plans[-1].epoch)
                await agent.send(plan_applied=applied)
                await becomes(True, [])
                await open_receivers(agent, (number, 0), (number + 1, None))
                await becomes(False, [0])
                await open_receivers(agent, (number, 0), (number, 2))
                await becomes(False, [0, 2])
                await open_receivers(agent, (number, 0), (number, None))
                await becomes(True, [])
                await open_receivers(agent)
                await becomes(False, [])
                await open_receivers(agent, (number, None))
                await becomes(True, [])
            await becomes(None, [])
            async with attached(address, "h1") as agent:
                await until(lambda: agent.host == 1)
                assert await receives() == (None, []), "what was told on another stream is forgotten"
                await open_receivers(agent, (70_000, None))
                await agent.ended.wait()
            assert controller.directory.bad_messages == 1

    asyncio.run(main())


def test_receivers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "RECEIVERS_MAX", 2)
    told = agent_pb2.OpenReceivers(receivers=[agent_pb2.OpenReceiver(group=n) for n in range(3)])
    assert messages.read_open_receivers(told) == {0: None, 1: None}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab(2, [group(1, "repeat", [0, 1])])
    yield lab
    lab.close()


@pytest.mark.network
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "give one of --group and --to; neither is given"),
        (("--group", "1", "--to", "h1"), 2, "give one of --group and --to; both are given"),
        (("--to", ""), 2, "no host is named"),
        (("--to", "h0"), 2, "h0 (host 0) is this host itself; name others to send to"),
        (("--to", "0"), 2, "h0 (host 0) is this host itself"),
        (("--to", "h0,0"), 2, "h0 (host 0) is this host itself"),
        (
            ("-w", f"n[1-{HOSTS_MAX}]"),
            2,
            f"{HOSTS_MAX} hosts beside this one are named; possible: {HOSTS_MAX - 1} hosts",
        ),
        (("--to", "h1"), 69, "no controller at unix:/nowhere/rest.sock"),
        (("--group", "1", "--wait-for-members", "1"), 69, "no controller at unix:/nowhere/rest.sock"),
        (("--group", "1", "--wait-for-members", "0"), 2, "0 is not a number of seconds above 0"),
        (("--group", "1", "--api", "x:1"), 2, "--api has no effect with --group alone"),
    ],
)
def test_what_send_refuses(lab: Lab, tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    address = {**environment(), "WORMCAST_API": "unix:/nowhere/rest.sock"}
    process: subprocess.Popen[bytes] = lab.start(0, "send", str(file), *words, "--json", env=address)
    out, error = process.communicate(timeout=600)
    assert (process.returncode, out) == (code, b""), error
    assert said in json.loads(error)["error"]["message"]
