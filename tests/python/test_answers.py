"""Answers of receivers to messages: the controller passes them on between members of a group, and keeps none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from controller_lab.agents import TestAgent, attached
from controller_lab.running import running, until
from controller_lab.small import add_fabric, make_group
from wormcast.agentrpc import agent_pb2
from wormcast.directory import server
from wormcast.directory.messages import ANSWER_BYTES_MAX


def answers(agent: TestAgent) -> list[tuple[int, int, str]]:
    told = [message.answer for message in agent.received if message.WhichOneof("body") == "answer"]
    return [(answer.group, answer.host, answer.text) for answer in told]


async def answer(agent: TestAgent, group: int, host: int, text: str = "text") -> None:
    await agent.send(answer=agent_pb2.Answer(group=group, host=host, text=text))


def test_answers_go_between_members_and_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"unix:{tmp_path}/agents.sock"

    async def main() -> None:
        async with running(None, (address,)) as controller:
            add_fabric(controller)
            number = make_group(controller.groups, "repeat", [0, 1]).id
            other = make_group(controller.groups, "repeat", [1, 2]).id
            directory = controller.directory
            async with attached(address, "h0") as zero, attached(address, "h1") as one:
                await until(lambda: (zero.host, one.host) == (0, 1))
                longest = "x" * ANSWER_BYTES_MAX
                for text in ("a", "", longest):
                    await answer(one, number, 0, text)
                await until(lambda: len(answers(zero)) == 3)
                # It is from whoever sends it, whatever it says.
                assert answers(zero) == [(number, 1, text) for text in ("a", "", longest)]
                # To no member, of no member, in no group, to nobody who is there.
                for group, host in ((other, 0), (number, 2), (number + 9, 0), (other, 2)):
                    await answer(one, group, host)
                await answer(zero, other, 1)
                await until(lambda: directory.answers_dropped == 5)
                # Who does not read gets as many as there is room for.
                monkeypatch.setattr(server, "ANSWERS_WAITING_BYTES_MAX", 10)
                await answer(one, number, 0, "too long")
                await until(lambda: directory.answers_dropped == 6)
                assert len(answers(zero)) == 3
                assert not answers(one)
            for wrong in ({"group": 70_000, "host": 0}, {"group": number, "host": 1 << 20}):
                await refused(address, agent_pb2.Answer(**wrong))
            await refused(address, agent_pb2.Answer(group=number, host=0, text=longest + "x"))
            assert directory.bad_messages == 3

    async def refused(address: str, wrong: Any) -> None:
        async with attached(address, "h1") as agent:
            await until(lambda: agent.host == 1)
            await agent.send(answer=wrong)
            await asyncio.wait_for(agent.ended.wait(), 600)

    asyncio.run(main())
