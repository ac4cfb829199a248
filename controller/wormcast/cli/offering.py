"""The list goes before the files: receivers answer what of it they lack, and all of that is sent.

Answers are hints. Who has received the list and says nothing lacks everything; what became of the files at a member is
known by its confirmation of them alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from dataclasses import replace

import wormcast_bundle

from wormcast.cli.offered import WHY, read_answer
from wormcast.client import Agent, MemberState, Sender, StableMessage
from wormcast.client.files import Bundle, encode_file_start

ANSWERS_WAIT_S = 10.0
"""For answers of those who have confirmed the list: they are on their way, unless one was lost."""
REASONS_WAIT_S = 5.0
"""For what is said by those who have given the files up; who was killed says nothing."""
_LOOK_S = 0.2
GAVE_UP = "application gave up"
"""What an agent says of a member whose receiver has given a message up, for a reason that it does not know."""


def offer_list(
    agent: Agent, sender: Sender, offer: wormcast_bundle.Offer, name: str, unclaimed: set[int]
) -> list[MemberState]:
    """Sends the list, and notes what is lacking; the members, of which "delivered" is said of those who have the list."""
    _wait_for_controller(agent)
    encoded = offer.list
    start = encode_file_start(name, len(encoded), bundle=Bundle(len(offer), len(encoded)), offer=True)
    digest = hashlib.sha256(encoded).digest()
    sender.announce(len(start) + len(encoded) + len(digest))
    for part in (start, encoded, digest):
        sender.write(part)
    stable = sender.wait_stable(sender.end())
    members = states_of(stable)
    there = [one.host for one in stable.outcomes if one.delivered]
    _wait(agent, sender, there, ANSWERS_WAIT_S)
    offer.begin()
    for host in there:
        answer = read_answer(sender.answers.get(host, ""))
        if answer is None or not offer.note(answer):
            offer.note_all()
    wait_for_reasons(agent, sender, members, unclaimed)
    return [replace(one, reason=reason_of(sender, one.host, one.reason)) for one in members]


def states_of(stable: StableMessage) -> list[MemberState]:
    """What became of a message at its members."""
    return [
        MemberState(one.host, "delivered" if one.delivered else "failed", one.reason, one.left_out)
        for one in stable.outcomes
    ]


def wait_for_reasons(agent: Agent, sender: Sender, members: list[MemberState], unclaimed: set[int]) -> None:
    """Why receivers have given files up, they say themselves; where there are none nobody does."""
    given_up = {one.host for one in members if one.reason == GAVE_UP}
    _wait(agent, sender, given_up - unclaimed, REASONS_WAIT_S)


def _wait_for_controller(agent: Agent) -> None:
    """By it answers come. It may be starting again."""
    until = time.monotonic() + ANSWERS_WAIT_S
    while not agent.status()["controller"]["connected"] and time.monotonic() < until:
        time.sleep(_LOOK_S)


def _wait(agent: Agent, sender: Sender, hosts: Collection[int], seconds: float) -> None:
    """For answers of these that are on their way."""
    if hosts and not sender.group.sink and agent.status()["controller"]["connected"]:
        sender.wait_answers(hosts, seconds)


def reason_of(sender: Sender, host: int, reason: str | None) -> str | None:
    """Why a member failed: what it says itself, if it does."""
    said = sender.answers.get(host, "")
    if reason is None or not said.startswith(WHY):
        return reason
    return "".join(one if one.isprintable() else "_" for one in said.removeprefix(WHY))
