"""Files that hosts send, as their agents report them: the last ones are kept, under way or ended.

Each agent numbers the files it begins to send. What has ended by its count and has not been reported is missing here, and
counted. Like events, records are kept in memory.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from wormcast_planner import GROUP_ID_MAX, HOST_ID_MAX

from wormcast.agentrpc import agent_pb2
from wormcast.directory.messages import BadMessage, clip
from wormcast.network.ids import GroupId, HostId
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.events import EventLog

Json = dict[str, Any]
TRANSFERS_MAX: Final = 1000
"""Records kept. The oldest that has ended goes first."""
NAMED_MAX: Final = 16
"""Files under way that an agent names; further ones are not read."""
MEMBERS_MAX: Final = 2048
"""Members that a report names."""
TEXT_MAX: Final = 200
"""Characters kept of a name, and of a scheme."""

UNDER_WAY: Final = "under_way"
STABLE: Final = "stable"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
STREAM_ENDED: Final = "stream_ended"
AGENT_GONE: Final = "agent_gone"
UNKNOWN: Final = "unknown"
STATES: Final = (UNDER_WAY, STABLE, FAILED, CANCELLED, STREAM_ENDED, AGENT_GONE, UNKNOWN)
_REPORTED = {
    agent_pb2.TRANSFER_UNDER_WAY: UNDER_WAY,
    agent_pb2.TRANSFER_STABLE: STABLE,
    agent_pb2.TRANSFER_FAILED: FAILED,
    agent_pb2.TRANSFER_CANCELLED: CANCELLED,
    agent_pb2.TRANSFER_STREAM_ENDED: STREAM_ENDED,
}
GONE = "the agent has started anew, or another has taken its place"
NOT_REPORTED = "the agent has not reported how it ended"


@dataclass(frozen=True)
class Missed:
    """Members that do not have a file, for one reason."""

    reason: str
    """Empty: nobody knows whether they have it."""
    left_out: bool
    """They took no part when it began."""
    hosts: array[int]


@dataclass
class Transfer:
    """A file that a host sends or has sent."""

    number: int
    life: int
    """Of the agent that reported it."""
    count: int
    """Its number there."""
    origin: HostId
    group: GroupId
    group_name: str
    scheme: str
    message: int
    name: str
    bytes: int | None
    began_ms: int
    """Since 1970, by the clock of the origin."""
    lasted_us: int
    retransmissions: int | None
    state: str
    reason: str
    delivered: array[int]
    missed: list[Missed]

    def missing(self, left_out: bool) -> int:
        """How many members will not have it, of those that took part when it began or of the others."""
        return sum(len(one.hosts) for one in self.missed if one.reason and one.left_out == left_out)

    def unknown(self) -> int:
        """Of how many members nobody knows whether they have it."""
        return sum(len(one.hosts) for one in self.missed if not one.reason)

    def members(self) -> list[Json]:
        """What is known of each member, by host."""
        members: list[Json] = [
            {"host": host, "state": "delivered", "reason": None} for host in self.delivered
        ]
        for one in self.missed:
            state = "unknown" if not one.reason else "left_out" if one.left_out else "failed"
            members += [{"host": host, "state": state, "reason": one.reason or None} for host in one.hosts]
        return sorted(members, key=lambda member: member["host"])

    def outcome(self) -> Json:
        """The state and how many members have it."""
        return {
            "state": self.state,
            "origin": self.origin,
            "group": self.group,
            "group_name": self.group_name,
            "name": self.name,
            "bytes": self.bytes,
            "seconds": round(self.lasted_us / 1e6, 6),
            "delivered": len(self.delivered),
            "failed": self.missing(left_out=False),
            "left_out": self.missing(left_out=True),
            "unknown": self.unknown(),
        }

    def to_json(self, connected: bool) -> Json:
        """The form of `/v1/transfers`. `connected`: whether the agent of the origin is."""
        began = (EPOCH + timedelta(milliseconds=self.began_ms)).isoformat(timespec="milliseconds")
        return {
            "number": self.number,
            **self.outcome(),
            "reason": self.reason or None,
            "message": self.message,
            "scheme": self.scheme,
            "began": began.replace("+00:00", "Z"),
            "retransmissions": self.retransmissions,
            "agent_connected": connected if self.state == UNDER_WAY else None,
        }


@dataclass
class _Life:
    """A life of an agent: the files it has counted, and those that are recorded."""

    life: int
    before: int | None = None
    """Files that had ended when this controller first heard of it; None: it has not heard their number."""
    ended: int = 0
    recorded: int = 0
    under_way: dict[int, Transfer] = field(default_factory=dict)
    """Records by number."""

    def missing(self) -> int:
        """Files that have ended and have no record."""
        return 0 if self.before is None else max(0, self.ended - self.before - self.recorded)


class TransferRegistry:
    """All records, by number; see `TransferWatcher`."""

    def __init__(
        self,
        events: EventLog,
        members_of: Callable[[GroupId], Iterable[HostId]],
        is_connected: Callable[[HostId], bool],
    ) -> None:
        self._events = events
        self._members_of = members_of
        self._is_connected = is_connected
        self._records: dict[int, Transfer] = {}
        self._lives: dict[HostId, _Life] = {}
        self._last = 0
        self._missing_before = 0
        """Of lives that are over."""
        self.ended = dict.fromkeys(STATES[1:], 0)
        """How many have ended, by state."""
        self.bytes = 0
        """Of files that at least one member has."""
        self.failed_members = 0

    # -- reports ------------------------------------------------------------

    def transfer_reported(self, host: HostId, report: Any) -> None:
        state = _REPORTED.get(report.state)
        if state is None or state == UNDER_WAY:
            return  # an agent of a later version may know other ends
        _check(host, report)
        life = self._life(host, report.life)
        known = life.under_way.pop(report.number, None)
        record = _read(report, state, known.number if known else self._take_number())
        if known or self._make_room():
            self._records[record.number] = record
            life.recorded += 1
        self._note_end(record)

    def transfers_counted(self, host: HostId, count: Any) -> None:
        named = count.first[:NAMED_MAX]
        for report in named:
            _check(host, report)
        if count.under_way > count.begun:
            raise BadMessage(f"{count.under_way} of {count.begun} files are under way")
        life = self._life(host, count.life)
        life.ended = count.begun - count.under_way
        if life.before is None:
            life.before = max(0, life.ended - life.recorded)
        # One that was named stays so until it has ended, and that is reported before.
        for number in life.under_way.keys() - {report.number for report in named}:
            life.recorded += 1
            self._end(life.under_way.pop(number), UNKNOWN, NOT_REPORTED)
        for report in named:
            self._name(host, life, report)

    def _name(self, host: HostId, life: _Life, report: Any) -> None:
        known = life.under_way.get(report.number)
        if known is not None:
            known.bytes = report.bytes if report.HasField("bytes") else None
            known.lasted_us = report.lasted_us
            return
        if not self._make_room():
            return
        record = _read(report, UNDER_WAY, self._take_number())
        record.delivered = array("H")
        others = [member for member in self._members_of(record.group) if member != host]
        record.missed = [Missed("", False, array("H", others))] if others else []
        self._records[record.number] = life.under_way[report.number] = record

    def _life(self, host: HostId, number: int) -> _Life:
        """What is known of an agent in this life. All that was under way in another one has ended with it."""
        life = self._lives.get(host)
        if life is not None and life.life != number:
            for record in life.under_way.values():
                self._end(record, AGENT_GONE, GONE)
            self._missing_before += life.missing()
            life = None
        if life is None:
            life = self._lives[host] = _Life(number)
        return life

    # -- records ------------------------------------------------------------

    def _take_number(self) -> int:
        self._last += 1
        return self._last

    def _make_room(self) -> bool:
        """Forgets the oldest that has ended if there are too many; false if all are under way."""
        if len(self._records) < TRANSFERS_MAX:
            return True
        oldest = next((one.number for one in self._records.values() if one.state != UNDER_WAY), None)
        if oldest is not None:
            del self._records[oldest]
        return oldest is not None

    def _end(self, record: Transfer, state: str, reason: str) -> None:
        record.state, record.reason = state, reason
        self._note_end(record)

    def _note_end(self, record: Transfer) -> None:
        self.ended[record.state] += 1
        self.bytes += record.bytes or 0 if record.delivered else 0
        self.failed_members += record.missing(left_out=False)
        self._events.add("transfer", time.time(), transfer=record.number, **record.outcome())

    # -- what is shown ------------------------------------------------------

    def __iter__(self) -> Iterator[Transfer]:
        """Records in the order of their numbers."""
        return iter(sorted(self._records.values(), key=lambda record: record.number))

    def missing(self) -> int:
        """Files that have ended since this controller started, and have no record."""
        return self._missing_before + sum(life.missing() for life in self._lives.values())

    def show(self, record: Transfer) -> Json:
        return record.to_json(self._is_connected(record.origin))

    def get(self, number: int) -> Transfer:
        """Raises `RequestError`."""
        if number not in self._records:
            raise RequestError(
                404,
                f"there is no transfer {number}; the last {TRANSFERS_MAX} are kept",
                value=number,
                choices=[record.number for record in self],
            )
        return self._records[number]


def _check(host: HostId, report: Any) -> None:
    """Raises `BadMessage` unless a report is about a group and hosts that can be."""
    hosts = [*report.delivered, *(host for one in report.missed for host in one.hosts)]
    if report.origin != host:
        raise BadMessage(f"it reports a file that host {report.origin} sends")
    if len(hosts) > MEMBERS_MAX or len(report.missed) > MEMBERS_MAX:
        raise BadMessage(f"it reports a file to {len(hosts)} members; possible: 0 to {MEMBERS_MAX}")
    if max(hosts, default=0) > HOST_ID_MAX:
        raise BadMessage(f"it reports a file to host {max(hosts)}; possible: 0 to {HOST_ID_MAX}")
    if report.group > GROUP_ID_MAX:
        raise BadMessage(f"it reports a file to group {report.group}; possible: 0 to {GROUP_ID_MAX}")


def _read(report: Any, state: str, number: int) -> Transfer:
    return Transfer(
        number,
        report.life,
        report.number,
        HostId(report.origin),
        GroupId(report.group),
        _shown(report.group_name),
        _shown(report.scheme),
        report.message,
        _shown(report.name),
        report.bytes if report.HasField("bytes") else None,
        min(report.began_ms, BEGAN_MS_MAX),
        report.lasted_us,
        report.retransmissions if report.HasField("retransmissions") else None,
        state,
        clip(report.reason),
        array("H", report.delivered),
        [Missed(clip(one.reason), one.left_out, array("H", one.hosts)) for one in report.missed],
    )


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
BEGAN_MS_MAX: Final = 253_402_300_799_999
"""The last moment of the year 9999, which is the last that a date can tell."""


def _shown(text: str) -> str:
    """A text that may be shown and kept."""
    return "".join(one if one.isprintable() else "_" for one in text[:TEXT_MAX])
