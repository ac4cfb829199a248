"""Who lags: what agents and switches know of how far members are with what an origin sends to a group."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from wormcast.directory.messages import BadMessage, clip
from wormcast.network.ids import GroupId, HostId
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.lag_walk import Branch, Walk, behind

Json = dict[str, Any]
QUESTIONS_MAX: Final = 16
"""Questions under way; further ones are refused."""
SECONDS_MAX: Final = 3.0
"""How long agents and switches have to answer. Who has not by then is named."""
ORIGINS_S: Final = 1.0
"""How long agents have to say who sends."""
LOOK_S: Final = 0.02
CHILDREN_MAX: Final = 1024
"""Children of an agent, and origins that it names."""
REVISION_LAG: Final = 2
"""Agents of this revision of agent.proto answer."""

BY_SWITCH: Final = "switch"
BY_HOST: Final = "host"
BY_ITSELF: Final = "itself"


class Directory(Protocol):
    """What sends messages to agents."""

    def ask_lag(self, host: HostId, request: Json) -> bool:
        """Asks the agent of a host, by the fields of `AskLag`; false if it is not attached."""


@dataclass
class Question:
    """One that is under way."""

    number: int
    group: GroupId
    members: tuple[HostId, ...]
    asked: frozenset[HostId]
    """Hosts whose agents were asked."""
    answers: dict[HostId, Any] = field(default_factory=dict)
    """`LagAnswer` of those that have answered."""
    origin: HostId | None = None
    walk: Walk | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def origins(self) -> list[HostId]:
        """Members of whose streams any of those that answered knows."""
        named = {origin for answer in self.answers.values() for origin in answer.origins}
        return sorted(HostId(origin) for origin in named if origin in self.members)


class LagQueries:
    """All questions of a controller."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._questions: dict[int, Question] = {}
        self._last = 0

    async def ask(
        self,
        group: GroupId,
        members: tuple[HostId, ...],
        able: Iterable[HostId],
        origin: HostId | None,
        branches: Callable[[HostId], tuple[int, list[Branch]]],
    ) -> Json:
        """Who lags in the stream of `origin`, or of the only member that has sent. `able`: members whose agents
        answer. `branches`: of the switches that gather the ACKs of an origin, with their epoch. Raises `RequestError`."""
        if len(self._questions) >= QUESTIONS_MAX:
            raise RequestError(
                503, f"{len(self._questions)} questions are under way, the most there may be", retry_after_s=1
            )
        self._last += 1
        question = Question(self._last, group, members, frozenset(able), origin=origin)
        self._questions[question.number] = question
        try:
            return await self._ask(question, branches)
        finally:
            del self._questions[question.number]

    async def _ask(self, question: Question, branches: Callable[[HostId], tuple[int, list[Branch]]]) -> Json:
        loop = asyncio.get_running_loop()
        if question.origin is None:
            await self._ask_agents(question, loop.time() + ORIGINS_S, lambda: False)
            question.origin = _only_origin(question)
            question.answers.clear()
        end = loop.time() + SECONDS_MAX
        origin = question.origin
        walked = asyncio.create_task(self._walk(question, end, branches))
        try:
            await self._ask_agents(question, end, walked.done)
            await walked
        finally:
            walked.cancel()
        if origin not in question.answers:
            raise RequestError(504, f"the agent of host {origin} does not answer", value=origin)
        if not question.answers[origin].HasField("stream"):
            raise _sends_nothing(question, origin)
        return show(question)

    async def _ask_agents(self, question: Question, end: float, enough: Callable[[], bool]) -> None:
        """Asks all agents what they know themselves, and waits until they have answered."""
        loop = asyncio.get_running_loop()
        request = {"number": question.number, "group": question.group, "origin": question.origin or 0}
        for host in question.asked:
            self._directory.ask_lag(host, request)
        while set(question.answers) < question.asked and loop.time() < end:
            question.news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(question.news.wait(), LOOK_S)
            if enough() and loop.time() > end - SECONDS_MAX / 2:
                return  # those that are silent still were waited for long enough

    async def _walk(
        self, question: Question, end: float, branches: Callable[[HostId], tuple[int, list[Branch]]]
    ) -> None:
        """Asks switches by the origin's agent, once it has answered how far its stream is."""
        loop, origin = asyncio.get_running_loop(), question.origin
        assert origin is not None
        while origin not in question.answers and loop.time() < end:
            await asyncio.sleep(LOOK_S)
        answer = question.answers.get(origin)
        if answer is None or not answer.HasField("stream"):
            return
        epoch, tops = branches(origin)
        walk = question.walk = Walk(tops, answer.stream.held)
        while not walk.is_done(loop.time()) and loop.time() < end:
            if due := walk.due(loop.time()):
                request = {
                    "number": question.number,
                    "group": question.group,
                    "origin": origin,
                    "epoch": epoch,
                }
                asked = [(branch.number, branch.route, branch.port) for branch in due]
                self._directory.ask_lag(origin, {**request, "branches": asked})
            await asyncio.sleep(LOOK_S / 4)

    # -- what agents say --------------------------------------------------------

    def lag_answered(self, host: HostId, answer: Any) -> None:
        """An agent says what it knows. Raises `BadMessage`."""
        if len(answer.origins) > CHILDREN_MAX or len(answer.stream.children) > CHILDREN_MAX:
            raise BadMessage(f"it tells of more than {CHILDREN_MAX} children or origins")
        question = self._questions.get(answer.number)
        if question is not None and host in question.asked:
            answer.error = clip(answer.error)
            question.answers[host] = answer
            question.news.set()

    def branch_answered(self, host: HostId, answer: Any) -> None:
        """A switch has answered an origin."""
        question = self._questions.get(answer.number)
        if question is not None and host == question.origin and question.walk is not None:
            question.walk.take(answer.branch, (answer.held, answer.confirmed) if answer.known else None)


def _only_origin(question: Question) -> HostId:
    origins = question.origins()
    if len(origins) > 1:
        raise RequestError(
            409,
            f"{len(origins)} members send to group {question.group}; name one as the origin",
            choices=origins,
        )
    if not origins:
        raise RequestError(
            409,
            f"nobody whose agent answers has sent anything to group {question.group}",
            value=question.group,
            bound=f"a group to which one of {list(question.members)} has sent",
        )
    return origins[0]


def _sends_nothing(question: Question, origin: HostId) -> RequestError:
    return RequestError(
        409,
        f"host {origin} has sent nothing to group {question.group}",
        value=origin,
        choices=question.origins(),
    )


# -- what is shown ---------------------------------------------------------------


@dataclass(frozen=True)
class Word:
    """What somebody knows of a member."""

    held: int
    confirmed: int
    by: Json


def show(question: Question) -> Json:
    """What is known of each member, those most behind first; packets are counted from the first one on."""
    origin = question.origin
    assert origin is not None
    own = question.answers[origin].stream
    words, given_up, silent = _collect(question, own)
    end = max([own.held, *(word.held for found in words.values() for word in found)])
    rows = []
    for member in question.members:
        if member == origin:
            continue
        row: Json = {
            "host": member,
            "acknowledged": None,
            "stable": None,
            "behind": None,
            "unstable": None,
            "by": None,
        }
        if found := words.get(member):
            best = max(found, key=lambda word: (word.held, word.confirmed, -word.by.get("members", 1)))
            row |= {
                "acknowledged": best.held - own.first,
                "stable": best.confirmed - own.first,
                "behind": max(0, end - best.held),
                "unstable": max(0, end - best.confirmed),
                "by": best.by,
            }
        else:
            row["why"] = silent.get(member, "nobody knows anything of it")
        if member in given_up:
            row["given_up"] = True
        rows.append(row)
    # What is not known may be behind by anything.
    rows.sort(
        key=lambda row: (
            row["behind"] is not None,
            -(row["behind"] or 0),
            -(row["unstable"] or 0),
            row["host"],
        )
    )
    asked = [] if question.walk is None else question.walk.asked
    return {
        "group": question.group,
        "origin": origin,
        "sent": end - own.first,
        "stable": own.confirmed - own.first,
        "members": rows,
        "no_answer": sorted(question.asked - set(question.answers)),
        "branches": [
            {
                "switch": branch.switch,
                "port": branch.port,
                "members": branch.members(),
                **_numbers(own, branch.known),
                **({} if branch.state() is None else {"why": branch.state()}),
            }
            for branch in asked
        ],
    }


def _numbers(own: Any, known: tuple[int, int] | None) -> Json:
    if known is None:
        return {"acknowledged": None, "stable": None}
    held, confirmed = (_position(own, number) for number in known)
    return {"acknowledged": held - own.first, "stable": confirmed - own.first}


def _position(own: Any, number: int) -> int:
    """A position of the origin's, from its number modulo 2^32."""
    return int(own.held - behind(own.held, number))


def _collect(question: Question, own: Any) -> tuple[dict[int, list[Word]], set[int], dict[int, str]]:
    """What is known of members, by them; who is given up; why nothing may be known of others. What others have been
    answered counts before what a member says of itself: it is what the origin goes by."""
    words: dict[int, list[Word]] = {}
    given_up: set[int] = set()
    silent: dict[int, str] = {}
    # Those nearest to members first: of ways that say the same they count.
    for branch in reversed([] if question.walk is None else question.walk.asked):
        members = branch.members()
        if (why := branch.state()) is not None:
            silent = dict.fromkeys(members, f"switch {branch.switch}, port {branch.port}: {why}") | silent
        if branch.known is None:
            continue
        held, confirmed = (_position(own, number) for number in branch.known)
        by = {"way": BY_SWITCH, "switch": branch.switch, "port": branch.port, "members": len(members)}
        for member in members:
            words.setdefault(member, []).append(Word(held, confirmed, by))
    for host, answer in sorted(question.answers.items()):
        for child in answer.stream.children:
            by = {"way": BY_HOST, "host": host, "members": child.below + 1}
            held, confirmed = _position(own, child.held), _position(own, child.confirmed)
            if child.given_up:
                given_up.add(child.host)
            words.setdefault(child.host, []).append(Word(held, confirmed, by))
    for host, answer in question.answers.items():
        if host not in words and answer.HasField("stream"):
            held, confirmed = _position(own, answer.stream.held), _position(own, answer.stream.confirmed)
            words[host] = [Word(held, confirmed, {"way": BY_ITSELF})]
    return words, given_up, silent
