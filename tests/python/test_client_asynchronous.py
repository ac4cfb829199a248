"""The client for asyncio, with real agents."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Iterator

import pytest
from agent_lab.lab import Lab, group
from wormcast.client import (
    AgentUnavailableError,
    MessageBegin,
    MessageEnd,
    MessageLost,
    Progress,
    RefusedError,
)
from wormcast.client.asynchronous import AsyncReceiver, AsyncSender

LIMIT_S = 600
"""Only against hanging for ever."""
DATA = random.Random(3).randbytes(3_000_000)

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two hosts, two groups."""
    groups = [group(1, "repeat", [0, 1]), group(2, "repeat", [0, 1])]
    lab = Lab(2, groups, "--receiver-wait", "600")
    yield lab
    lab.close()


async def first(messages: AsyncIterator[tuple[int, bytes]]) -> tuple[int, bytes]:
    async for message in messages:
        return message
    raise AssertionError("nothing came")


def test_messages_go_and_come_side_by_side(lab: Lab) -> None:
    async def run() -> None:
        async with (
            AsyncSender(1, lab.socket(0)) as one,
            AsyncSender("group2", lab.socket(0)) as two,
            AsyncReceiver(1, lab.socket(1)) as here,
            AsyncReceiver(2, lab.socket(1), origin=0) as there,
        ):
            assert (one.group.number, there.group.number) == (1, 2)
            # The receiver of the first waits for as long as the second is at work.
            waiting = asyncio.create_task(first(here.messages()))
            arriving = asyncio.create_task(first(there.messages()))
            sending = asyncio.create_task(two.send(memoryview(DATA).cast("B", [3000, 1000])))
            assert await arriving == (0, DATA)
            assert not waiting.done()
            assert not sending.done()  # Confirmed when the next is asked for.
            await there.close()
            assert [outcome.delivered for outcome in (await sending).outcomes] == [False]
            sending = asyncio.create_task(one.send(b"hello"))
            assert await waiting == (0, b"hello")
            await here.close()
            await sending

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))


def test_events_are_settled_and_progress_is_told(lab: Lab) -> None:
    async def receive(receiver: AsyncReceiver) -> str:
        digest = hashlib.sha256()
        while True:
            event = await receiver.next_event()
            match event:
                case MessageEnd():
                    await receiver.settle(event.message.confirm)
                    return digest.hexdigest()
                case MessageBegin() | None:
                    pass
                case _:
                    digest.update(getattr(event, "data", b""))

    async def run() -> None:
        seen: list[Progress] = []

        async def watch(sender: AsyncSender) -> None:
            async for progress in sender.progress():
                seen.append(progress)

        async with AsyncReceiver(1, lab.socket(1)) as receiver:
            async with AsyncSender(1, lab.socket(0), rate_bits=16_000_000) as sender:
                watching = asyncio.create_task(watch(sender))
                receiving = asyncio.create_task(receive(receiver))
                await sender.write(DATA[:1000])
                await sender.write(bytearray(DATA[1000:]))
                stable = await sender.wait_stable(await sender.end())
                assert [outcome.delivered for outcome in stable.outcomes] == [True]
                assert await receiving == hashlib.sha256(DATA).hexdigest()
            await watching
        assert len(seen) > 3
        assert [one.sent_bytes for one in seen] == sorted(one.sent_bytes for one in seen)

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))


def test_what_is_cancelled_is_given_up(lab: Lab) -> None:
    async def run() -> None:
        async with AsyncReceiver(1, lab.socket(1)) as receiver, AsyncSender(1, lab.socket(0)) as sender:
            # The window is full, as nobody takes anything.
            writing = asyncio.create_task(sender.write(bytes(40_000_000)))
            begun = await receiver.next_event()
            assert isinstance(begun, MessageBegin)
            await asyncio.sleep(0.5)
            assert not writing.done()
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            await sender.close()
            while not isinstance(await receiver.next_event(), MessageLost):
                pass
            waiting = asyncio.create_task(receiver.next_event())
            await asyncio.sleep(0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))


def test_refusals_come_out_and_leave_nothing(lab: Lab) -> None:
    async def run() -> None:
        with pytest.raises(RefusedError, match="is not a member of group 9"):
            async with AsyncSender(9, lab.socket(0)):
                pass
        with pytest.raises(RefusedError, match="it must be 8000 to"):
            async with AsyncSender(1, lab.socket(0), rate_bits=1):
                pass
        with pytest.raises(AgentUnavailableError):
            async with AsyncReceiver(1, "/nowhere/agent.sock"):
                pass

    asyncio.run(asyncio.wait_for(run(), LIMIT_S))


def test_a_receiver_answers(lab: Lab) -> None:
    async def run() -> None:
        async with AsyncSender(1, lab.socket(0)) as sender, AsyncReceiver(1, lab.socket(1)) as receiver:
            sending = asyncio.create_task(sender.send(b"question"))
            while not isinstance(event := await receiver.next_event(LIMIT_S), MessageEnd):
                assert event is not None
            message = event.message
            await receiver.settle(lambda: message.answer("because"))
            await receiver.settle(message.confirm)
            assert not (await sending).failed
            assert await sender.wait_answers([1], LIMIT_S) == {1: "because"}

    asyncio.run(run())
