"""Who lags: the walk along the branches of switches, and what REST says while agents answer, late, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from controller_lab.agents import TestAgent, attached
from controller_lab.running import rest, running, until
from controller_lab.small import add_fabric, all_take_part
from wormcast.agentrpc import agent_pb2
from wormcast.reconcile import lag_queries
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.lag_walk import (
    ATTEMPTS_MAX,
    OUTSTANDING_MAX,
    TABLE_GATHER,
    Branch,
    Walk,
    behind,
    find_branches,
)


@dataclass
class Entry:
    """An entry of a switch."""

    match: list[tuple[str, int | tuple[int, int]]]
    parameters: list[tuple[str, int]]
    table: str = TABLE_GATHER


def entry(port: int, branch: int, group: int = 3, origin: int = 0) -> Entry:
    match: list[tuple[str, int | tuple[int, int]]] = [("group", group), ("origin", origin), ("port", port)]
    return Entry(match, [("branch", branch), ("epoch", 9)])


# s0: origin at port 0, host 1 at port 1, by ports 3 and 4 to s1; s1: host 2 at port 0, by port 5 to s2; s2: hosts 5 and 6.
ENTRIES = {
    0: [entry(1, 0), entry(4, 1), entry(3, 1), entry(2, 0, group=4), Entry([], [], "ingress.groups")],
    1: [entry(0, 0), entry(5, 1)],
    2: [entry(0, 0), entry(1, 1)],
}
PORTS = {
    (0, 1): ("host", 1),
    (0, 3): ("switch", 1),
    (0, 4): ("switch", 1),
    (1, 0): ("host", 2),
    (1, 5): ("switch", 2),
    (2, 0): ("host", 5),
    (2, 1): ("host", 6),
}


def tree() -> list[Branch]:
    epoch, tops = find_branches(lambda switch: ENTRIES[switch], lambda *end: PORTS.get(end), 3, 0, 0)
    assert epoch == 9
    return tops


def places(branches: list[Branch]) -> list[tuple[int, int]]:
    return [(branch.switch, branch.port) for branch in branches]


def test_branches_are_found_with_the_ports_to_them_and_parallel_links_are_one() -> None:
    host, on = tree()
    assert (host.host, host.route, host.members()) == (1, b"", [1])
    assert (on.port, on.route, on.members()) == (3, b"", [2, 5, 6])
    assert [(b.host, b.route) for b in on.below] == [(2, b"\3"), (None, b"\3")]
    assert [(b.host, b.route, b.port) for b in on.below[1].below] == [(5, b"\3\5", 0), (6, b"\3\5", 1)]
    assert find_branches(lambda _: [], lambda *_: None, 3, 0, 0) == (0, [])


def test_a_walk_goes_on_where_something_lags_and_nowhere_else() -> None:
    tops = tree()
    walk = Walk(tops, 1000)
    assert places(walk.due(0.0)) == [(0, 1), (0, 3)]
    walk.take(tops[0].number, (990, 990))
    walk.take(tops[1].number, (1000, 900))
    assert places(walk.due(0.0)) == [(1, 0), (1, 5)]
    last = tops[1].below
    walk.take(last[0].number, (900, 900))
    walk.take(last[1].number, (1000, 1001))
    assert walk.due(0.0) == []
    assert walk.is_done(0.0)
    assert places(walk.asked) == [(0, 1), (0, 3), (1, 0), (1, 5)]


def test_a_request_that_is_lost_comes_again_and_is_given_up_by_name() -> None:
    tops = tree()
    walk, now, asked = Walk(tops, 1000), 0.0, 0
    for branch in tops:
        branch.below = []
    while not walk.is_done(now):
        due = walk.due(now)
        asked += len([branch for branch in due if branch is tops[1]])
        if tops[0] in due and tops[0].attempts == 2:
            walk.take(tops[0].number, None)
        now += 0.05
    assert asked == ATTEMPTS_MAX
    assert now < 2
    assert [branch.state() for branch in tops] == ["nothing acknowledged", "no answer"]


def test_what_is_behind_a_branch_without_an_answer_is_asked_itself() -> None:
    tops = tree()
    walk = Walk(tops, 1000)
    walk.due(0.0)
    assert places(walk.due(0.2)) == [(0, 1), (0, 3), (1, 0), (1, 5)]


def test_no_more_branches_are_asked_at_once_than_a_question_holds() -> None:
    tops = [Branch(number, 0, b"", number) for number in range(200)]
    walk = Walk(tops, 10)
    first = walk.due(0.0)
    assert len(first) == OUTSTANDING_MAX
    assert walk.due(0.0) == []
    for branch in first[:10]:
        walk.take(branch.number, (10, 10))
    assert len(walk.due(0.0)) == 10
    walk.take(199, (10, 10))
    assert not tops[199].answered, "nobody has asked about it"


@pytest.mark.parametrize(
    ("end", "number", "packets"), [(5, 3, 2), (2, 2**32 - 1, 3), (3, 5, -2), (2**32 + 7, 7, 0)]
)
def test_numbers_are_counted_across_their_end(end: int, number: int, packets: int) -> None:
    assert behind(end, number) == packets


# -- with agents --------------------------------------------------------------------


class Answering:
    """Agents of three hosts; host 0 sends, host 2 lags, and switches are as they are told."""

    def __init__(self, agents: dict[int, TestAgent]) -> None:
        self.agents = agents
        self.silent: set[int] = set()
        self.sends = {0}
        self.known: dict[int, tuple[int, int] | None] = {}
        """Of branches by the host at their port; those that are not here do not answer."""
        self.requests: list[Any] = []
        self.taken = dict.fromkeys(agents, 0)

    async def run(self) -> None:
        while True:
            for host, agent in self.agents.items():
                for message in agent.received[self.taken[host] :]:
                    self.taken[host] += 1
                    if message.WhichOneof("body") == "ask_lag" and host not in self.silent:
                        await self.answer(host, message.ask_lag)
            await asyncio.sleep(0.005)

    async def answer(self, host: int, asked: Any) -> None:
        told = agent_pb2.LagAnswer(number=asked.number, origins=sorted(self.sends))
        first = (1 << 32) + 1000
        if asked.origin in self.sends and host == asked.origin:
            children = [agent_pb2.ChildLag(host=1, below=1, held=first + 90, confirmed=first + 40)]
            told.stream.CopyFrom(
                agent_pb2.StreamLag(first=first, held=first + 100, confirmed=first + 40, children=children)
            )
        elif asked.origin in self.sends:
            told.stream.CopyFrom(agent_pb2.StreamLag(first=first, held=first + 95, confirmed=first + 95))
        for branch in asked.branches:
            self.requests.append(branch)
            there = {(b"", 1): 1, (b"\3", 0): 2, (b"", 3): 20}[branch.route, branch.port]
            if there in self.known:
                known = self.known[there]
                held, confirmed = known or (0, 0)
                number = {"number": asked.number, "branch": branch.number}
                said = {"known": known is not None, "held": held, "confirmed": confirmed}
                await self.agents[host].send(branch_answer=agent_pb2.BranchAnswer(**number, **said))
        await self.agents[host].send(lag_answer=told)


def with_agents(
    tmp_path: Path,
    test: Callable[[httpx.AsyncClient, Controller, Answering], Awaitable[None]],
    gather: bool = True,
    revision: int = 2,
) -> None:
    async def main() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with (
            running(agents=(address,)) as controller,
            rest(controller) as client,
            contextlib.AsyncExitStack() as stack,
        ):
            add_fabric(controller)
            agents = {}
            for n in range(3):
                fields = {"revision": 2 if n else revision}
                agents[n] = await stack.enter_async_context(attached(address, f"h{n}", **fields))
                await until(lambda agent=agents[n]: agent.host is not None)
            answering = Answering(agents)
            runner = asyncio.create_task(answering.run())
            body = {"name": "news", "scheme": "switch", "members": [0, 1, 2], "gather": gather}
            assert (await client.post("groups", json=body)).status_code == 201
            await all_take_part(client, 0)
            try:
                await test(client, controller, answering)
            finally:
                runner.cancel()

    asyncio.run(main())


def test_switches_name_who_lags(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, _: Controller, answering: Answering) -> None:
        answering.known = {1: (1100, 1100), 20: (1010, 1005), 2: (1010, 1005)}  # 20: the port to switch 1
        shown = (await client.get("groups/news/lag?origin=h0")).json()
        assert (shown["group"], shown["origin"], shown["sent"], shown["stable"]) == (0, 0, 100, 40)
        last, first = shown["members"]
        assert last == {
            "host": 2,
            "acknowledged": 10,
            "stable": 5,
            "behind": 90,
            "unstable": 95,
            "by": {"way": "switch", "switch": 1, "port": 0, "members": 1},
        }
        assert (first["host"], first["behind"], first["by"]["switch"], first["by"]["port"]) == (1, 0, 0, 1)
        assert [(b["switch"], b["port"], b["acknowledged"]) for b in shown["branches"]] == [
            (0, 1, 100),
            (0, 3, 10),
            (1, 0, 10),
        ]
        assert shown["no_answer"] == []
        # Without an origin it is the only one that has sent.
        assert (await client.get("groups/0/lag")).json()["members"] == shown["members"]

    with_agents(tmp_path, test)


def test_who_is_silent_is_named_and_what_others_know_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_queries, "SECONDS_MAX", 1.0)

    async def test(client: httpx.AsyncClient, _: Controller, answering: Answering) -> None:
        answering.silent = {1, 2}
        answering.known = {20: None, 2: None}
        shown = (await client.get("groups/news/lag?origin=0")).json()
        assert shown["no_answer"] == [1, 2]
        unknown, known = shown["members"]
        assert unknown["host"] == 2
        assert (unknown["acknowledged"], unknown["behind"], unknown["by"]) == (None, None, None)
        assert unknown["why"] == "switch 1, port 0: nothing acknowledged"
        assert known["by"] == {"way": "host", "host": 0, "members": 2}
        assert (known["acknowledged"], known["stable"], known["behind"]) == (90, 40, 10)
        (why,) = [b["why"] for b in shown["branches"] if b["members"] == [1]]
        assert why == "no answer"
        assert len([b for b in answering.requests if (b.route, b.port) == (b"", 1)]) > 1

    with_agents(tmp_path, test)


def test_where_hosts_acknowledge_they_are_asked_alone(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, _: Controller, answering: Answering) -> None:
        shown = (await client.get("groups/news/lag")).json()
        assert (shown["branches"], answering.requests) == ([], [])
        by_host, by_itself = shown["members"]
        assert (by_host["host"], by_host["behind"], by_host["by"]["way"]) == (1, 10, "host")
        assert (by_itself["host"], by_itself["behind"], by_itself["by"]) == (2, 5, {"way": "itself"})

    with_agents(tmp_path, test, gather=False)


def test_wrong_questions_are_refused_with_what_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_queries, "SECONDS_MAX", 0.5)
    monkeypatch.setattr(lag_queries, "ORIGINS_S", 0.5)

    async def test(client: httpx.AsyncClient, controller: Controller, answering: Answering) -> None:
        async def refused(path: str) -> tuple[int, dict[str, Any]]:
            answer = await client.get(path)
            return answer.status_code, answer.json()["error"]

        status, error = await refused("groups/weather/lag")
        assert (status, error["choices"]) == (404, ["news"])
        status, error = await refused("groups/news/lag?origin=9")
        assert (status, error["choices"]) == (404, [0, 1, 2])
        await client.post("groups", json={"name": "pair", "members": [0, 1]})
        status, error = await refused("groups/pair/lag?origin=2")
        assert (status, error["choices"]) == (422, [0, 1])
        status, error = await refused("groups/news/lag?origin=1")
        assert (status, error["message"].split(";")[0]) == (409, "host 1 has sent nothing to group 0")
        assert error["choices"] == [0]
        answering.sends = {0, 1}
        status, error = await refused("groups/news/lag")
        assert (status, error["choices"]) == (409, [0, 1])
        answering.sends = set()
        status, error = await refused("groups/news/lag")
        assert status == 409
        assert error["message"].startswith("nobody whose agent answers has sent anything to group 0")
        answering.silent = {0}
        status, error = await refused("groups/news/lag?origin=0")
        assert (status, error["message"]) == (504, "the agent of host 0 does not answer")
        controller.hosts.detach(controller.hosts.records()[0].id, controller.clock.now())
        status, error = await refused("groups/news/lag?origin=0")
        assert (status, error["choices"]) == (409, [1, 2])
        assert error["message"].startswith("the agent of host 0 is not connected")

    with_agents(tmp_path, test)


def test_an_agent_that_does_not_know_the_question_is_named(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, _: Controller, answering: Answering) -> None:
        answer = await client.get("groups/news/lag?origin=0")
        assert answer.status_code == 409
        assert "it knows revision 1 of agent.proto" in answer.json()["error"]["message"]
        assert answer.json()["error"]["choices"] == [1, 2]
        answering.sends = {1}
        shown = (await client.get("groups/news/lag?origin=1")).json()
        (unknown,) = [row for row in shown["members"] if row["host"] == 0]
        assert "cannot say who lags" in unknown["why"]

    with_agents(tmp_path, test, gather=False, revision=1)
