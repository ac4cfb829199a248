"""Which hosts there are, where they hang and which take part. Pure; time is an argument.

A host is known by its name, and its agent by the secret it came with first. Its
place comes from the LLDP frames of its agent or is declared by the operator; its
agent's stream says that it is there. What
the controller suspects (`HostRegistry.state`) is shown and changes no group: a
paused host or switch is back in a moment. A host leaves the plans of its groups
when it is gone: not heard in the fabric for `GONE_AFTER_S`, and for as long
without a stream, or reported silent by a neighbour in a multicast structure.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wormcast_planner import HOST_ID_MAX

from wormcast.discovery.links import RESTORE_GRACE_S
from wormcast.discovery.lldp import NAME_BYTES_MAX, Announcement, Proof, prove
from wormcast.discovery.transit import TransitLoad
from wormcast.network.ids import HostId
from wormcast.network.topology import PortRef

SUSPECT_AFTER_S = 2.5
"""A host not heard for so long may be cut off itself: its reports of others are not believed. Agents announce
themselves about once a second."""
DETACH_GRACE_S = 1.0
"""An agent whose stream breaks counts as attached for so long, to dial again."""
GONE_AFTER_S = 30.0
"""A host is gone after so long without a sign of life (`--gone-after`)."""
GONE_AFTER_MIN_S, GONE_AFTER_MAX_S = 1.0, 86_400.0
HOST_STATES = ("up", "plain", "dead", "silent", "unlocated", "lost")
SECRET_BYTES = 32
"""Of an agent's secret."""
UNCLAIMED_MAX = 4096
"""Announcements of names that no agent registered; further ones are counted and dropped."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
NAME_BOUND = f"1 to {NAME_BYTES_MAX} letters, digits, '.', '_', '-', with a letter or digit at both ends, not digits alone"


class HostRefused(ValueError):
    """A registration or declaration that cannot be; `value` and `bound` say why."""

    def __init__(self, message: str, *, value: object, bound: str) -> None:
        super().__init__(message)
        self.value = value
        self.bound = bound


@dataclass(frozen=True)
class Caller:
    """What a registration shows of the agent that comes, beside what it says."""

    secret: bytes = field(default=b"", repr=False)
    """Empty: it keeps none."""
    challenge: bytes = b""
    """Made for this registration, and sent in answer to it."""
    address: str = ""


NOBODY = Caller()


@dataclass
class HostRecord:
    """All that is known of one host."""

    id: HostId
    name: str
    mac: bytes = b""
    mtu_bytes: int = 0
    version: str = ""
    agent: bool = False
    """Has registered an agent; otherwise a plain host the operator declared."""
    declared: bool = False
    """Its place was given by the operator and stays."""
    place: PortRef | None = None
    heard_at: float = float("-inf")
    heard_until: float = 0.0
    """The place counts as confirmed until then, unless declared."""
    attached: bool = False
    expected_until: float = 0.0
    """Counts as attached until then without a stream."""
    detached_at: float = float("-inf")
    """When its stream ended; of no meaning while it has one."""
    transit: bool = True
    """Its agent lets worms of others be routed through the host."""
    load: TransitLoad = field(default_factory=TransitLoad)
    """Whether it keeps up with them."""
    secret: bytes = field(default=b"", repr=False)
    """Its agent came with it first, and comes with it again; empty: it keeps none."""
    challenge: bytes = b""
    """Goes into the proofs of its announcements since the agent registered last; empty: it has not since the start."""
    proved: int = -1
    """Number of the last announcement with a proof."""
    address: str = ""
    """Where its agent registered from; empty: it has not since the start."""
    silent: str = ""
    """Why a neighbour holds it for dead; empty: it does not, or it has been heard since."""
    away_since: float | None = None
    """Of one that is gone: when it gave its last sign of life, in seconds since 1970; None: it is not, or not known."""


@dataclass(frozen=True)
class _Unclaimed:
    mac: bytes
    place: PortRef
    heard_at: float
    heard_until: float


class HostRegistry:
    """State machine of hosts."""

    def __init__(self, gone_after_s: float = GONE_AFTER_S) -> None:
        """`gone_after_s` is from `GONE_AFTER_MIN_S` to `GONE_AFTER_MAX_S`."""
        self.gone_after_s = gone_after_s
        self.limited: Collection[HostId] = ()
        """Hosts with a rate. Switches meter all that comes from them, so they send nothing for others."""
        self._hosts: dict[HostId, HostRecord] = {}
        self._names: dict[str, HostRecord] = {}
        self._places: dict[PortRef, HostRecord] = {}
        self._unclaimed: dict[str, _Unclaimed] = {}
        self.conflicts = 0
        """Announcements ignored: another host holds the port, or the name is fresh elsewhere."""
        self.reports_doubted = 0
        """Reports of silent hosts not believed, because the reporter may be cut off itself."""
        self.unclaimed_dropped = 0
        """Announcements dropped because `UNCLAIMED_MAX` names wait for a registration."""

    def restore(self, records: Iterable[HostRecord], present: Collection[HostId], now: float) -> None:
        """Takes remembered hosts for confirmed until a grace period is over; those `present` for just heard, the
        others for gone."""
        for record in records:
            record.attached = False
            if record.id in present:
                record.heard_until = record.expected_until = now + RESTORE_GRACE_S
                record.heard_at = record.detached_at = now
            self._hosts[record.id] = record
            self._names[record.name] = record
            if record.place is not None:
                self._places[record.place] = record

    def register(
        self,
        name: str,
        asked: int | None,
        mac: bytes,
        mtu_bytes: int,
        version: str,
        now: float,
        transit: bool = True,
        caller: Caller = NOBODY,
        *,
        guarded: bool = False,
    ) -> HostRecord:
        """An agent opened its stream. Raises `HostRefused`; the text is for the agent's operator.

        `guarded`: as for `announce`.
        """
        check_name(name)
        if len(mac) != 6:
            raise HostRefused(f"MAC of {len(mac)} bytes", value=mac.hex(), bound="6 bytes")
        if (length := len(caller.secret)) not in (0, SECRET_BYTES):
            raise HostRefused(f"secret of {length} bytes", value=length, bound=f"{SECRET_BYTES} bytes")
        known = self.named(name)
        if known is not None and known.agent:
            _check_owner(known, mac, caller)
        record = self._claim(name, asked)
        record.secret = caller.secret or record.secret
        record.challenge, record.proved, record.address = caller.challenge, -1, caller.address
        record.mac, record.mtu_bytes, record.version = mac, mtu_bytes, version
        record.agent = record.attached = True
        record.transit = transit
        record.silent = ""
        waiting = self._unclaimed.pop(name, None)
        stays = record.declared or (guarded and record.secret)
        if waiting is not None and waiting.heard_until > now and not stays:
            self._settle(record, waiting.place, waiting.heard_at, waiting.heard_until)
        return record

    def detach(self, host: HostId, now: float) -> None:
        """The agent's stream ended."""
        record = self._hosts.get(host)
        if record is not None and record.attached:
            record.attached = False
            record.detached_at = now
            record.expected_until = now + DETACH_GRACE_S

    def declare(self, name: str | None, place: PortRef, asked: int | None, now: float) -> HostRecord:
        """The operator says where a host is; without a name it is `host-<id>`. Raises `HostRefused`."""
        if name is None:
            asked = self._lowest_free() if asked is None else asked
            known = self._hosts.get(HostId(asked))
            name = f"host-{asked}" if known is None else known.name
        check_name(name)
        holder = self.at(place)
        if holder is not None and holder.name != name and self.is_heard(holder, now):
            raise HostRefused(
                f"port {place[1]} of switch {place[0]} has host {holder.name!r}",
                value=place[1],
                bound="a free port",
            )
        record = self._claim(name, asked)
        record.declared = True
        self._settle(record, place, now, now)
        return record

    def forget(self, host: HostId) -> None:
        """Removes a host; an agent that is still there has to register again."""
        record = self._hosts.pop(host, None)
        if record is not None:
            self._drop(record)

    def announce(
        self,
        name: str,
        mac: bytes,
        ttl_s: int,
        place: PortRef,
        now: float,
        proof: Proof | None = None,
        *,
        guarded: bool = False,
        is_down: Callable[[PortRef], bool] = lambda _: False,
    ) -> str:
        """An LLDP announcement came in at a switch port. Returns why it counts for nothing; empty: it counts.

        `guarded`: the guard is on, so a host moves only when its agent proves it, or, if that keeps no secret, when
        its old port `is_down`.
        """
        record = self.named(name)
        proved = record is not None and _verify(record, Announcement(name, mac, ttl_s), proof)
        holder = self.at(place)
        refused = ""
        if holder is not None and holder is not record and self.is_heard(holder, now):
            refused = f"port {place[1]} of switch {place[0]} has host {holder.name!r}"
        elif record is None:
            self._keep_unclaimed(name, _Unclaimed(mac, place, now, now + ttl_s), now)
        elif place != record.place and ttl_s == 0:
            refused = "a host says where it is that it leaves"
        elif place != record.place and record.declared:
            refused = "its place is declared"
        elif place != record.place and not proved:
            refused = self._doubt(record, mac, now, guarded, is_down)
        if refused:
            self.conflicts += 1
        elif record is not None and ttl_s == 0:
            record.heard_until = now
        elif record is not None:
            self._settle(record, place, now, now + ttl_s)
        return refused

    def _doubt(
        self, record: HostRecord, mac: bytes, now: float, guarded: bool, is_down: Callable[[PortRef], bool]
    ) -> str:
        """Why a host does not move on the word of a frame without a proof."""
        if guarded and record.secret:
            return "its agent has not proved it"
        if record.place is None or (guarded and is_down(record.place)):
            return ""
        if guarded:
            return "its agent keeps no secret to prove it with, and its old port is not down"
        if self._is_fresh(record, now) and (record.mac != mac or record.secret):
            return "it is heard at its port"
        return ""

    def report_silent(self, host: HostId, by: HostId, reason: str, now: float) -> bool:
        """A neighbour got no answer from the host. True when that is news and to be believed.

        Who is cut off gets no answer from anyone: the reports of a host that is
        silent, or has not been heard lately, are not believed.
        """
        record, witness = self._hosts.get(host), self._hosts.get(by)
        if record is None or witness is None or record.silent or record is witness:
            return False
        if witness.silent or not (witness.declared or now - witness.heard_at <= SUSPECT_AFTER_S):
            self.reports_doubted += 1
            return False
        record.silent = f"reported by host {by}: {reason}"
        return True

    def poll_timeout(self, now: float) -> float | None:
        """When `live` or `state` next change without an event."""
        times = [
            time
            for record in self._hosts.values()
            for time in (record.heard_until, record.expected_until, self._gone_at(record))
            if time > now
        ]
        return min(times, default=None)

    def note_away(self, now: float, utc: float) -> None:
        """Notes of hosts that are gone since when; `utc` is the time of day, in seconds since 1970."""
        for record in self._hosts.values():
            if not (record.agent and self.is_gone(record, now)):
                record.away_since = None
            elif record.away_since is None and (away_at := self._gone_at(record) - self.gone_after_s) >= 0:
                record.away_since = utc - (now - away_at)

    def away(self, now: float, utc: float) -> dict[HostId, str]:
        """Why agents are gone, where it is known since when."""
        self.note_away(now, utc)
        return {
            r.id: f"away since {datetime.fromtimestamp(r.away_since, UTC):%Y-%m-%d %H:%M:%S} UTC"
            for r in self._hosts.values()
            if r.away_since is not None
        }

    def live(self, now: float) -> frozenset[HostId]:
        """Hosts that have an agent and are not gone: these take part in their groups."""
        return frozenset(r.id for r in self._hosts.values() if r.agent and not self.is_gone(r, now))

    def is_gone(self, record: HostRecord, now: float) -> bool:
        """Whether its agent has given no sign of life for `gone_after_s`."""
        return now >= self._gone_at(record)

    def _gone_at(self, record: HostRecord) -> float:
        """When it is gone unless a sign of life comes; infinite while there is no reason to think so."""
        if record.attached and not record.silent:
            return float("inf")
        away_at = record.heard_at if record.attached else max(record.heard_at, record.detached_at)
        return away_at + self.gone_after_s

    def state(self, record: HostRecord, now: float) -> str:
        """up, plain (no agent), dead (agent detached), silent (reported), unlocated (not announced yet), lost (not any more)."""
        if record.silent:
            return "silent"
        if not record.agent:
            return "plain"
        if not record.attached and now >= record.expected_until:
            return "dead"
        if record.place is None:
            return "unlocated"
        if not record.declared and not self._is_fresh(record, now):
            return "lost"
        return "up"

    def re_injects(self, record: HostRecord, now: float) -> bool:
        """Whether worms of others are routed through it: it is up, its agent lets them and keeps up with them, and it may
        send at any rate."""
        may = record.transit and not record.load.busy and record.id not in self.limited
        return may and self.state(record, now) == "up"

    def is_heard(self, record: HostRecord, now: float) -> bool:
        """Whether it is at its place for sure: declared there, or heard lately."""
        return record.declared or self._is_fresh(record, now)

    def records(self) -> list[HostRecord]:
        """All hosts by id."""
        return [self._hosts[host] for host in sorted(self._hosts)]

    def get(self, host: HostId) -> HostRecord | None:
        return self._hosts.get(host)

    def named(self, name: str) -> HostRecord | None:
        return self._names.get(name)

    def at(self, place: PortRef) -> HostRecord | None:
        return self._places.get(place)

    def _claim(self, name: str, asked: int | None) -> HostRecord:
        record = self.named(name)
        if asked is None:
            return record if record is not None else self._create(name, self._lowest_free())
        if not 0 <= asked <= HOST_ID_MAX:
            raise HostRefused(f"host id {asked} is out of range", value=asked, bound=f"0 to {HOST_ID_MAX}")
        holder = self._hosts.get(HostId(asked))
        if holder is not None and holder.name != name:
            cure = "" if holder.attached else f". `wormcast host forget {holder.name}` frees it"
            raise HostRefused(
                f"host id {asked} belongs to {holder.name!r}; the lowest free one is {self._lowest_free()}{cure}",
                value=asked,
                bound="a free host id",
            )
        if record is None:
            return self._create(name, HostId(asked))
        if record.id != asked:
            del self._hosts[record.id]
            record.id = HostId(asked)
            self._hosts[record.id] = record
        return record

    def _create(self, name: str, host: HostId) -> HostRecord:
        record = self._hosts[host] = self._names[name] = HostRecord(host, name)
        return record

    def _drop(self, record: HostRecord) -> None:
        """It is known no more, by name or place."""
        del self._names[record.name]
        if record.place is not None:
            del self._places[record.place]

    def _lowest_free(self) -> HostId:
        for host in range(HOST_ID_MAX + 1):
            if host not in self._hosts:
                return HostId(host)
        raise HostRefused("every host id is taken", value=HOST_ID_MAX + 1, bound=f"{HOST_ID_MAX + 1} hosts")

    def _settle(self, record: HostRecord, place: PortRef, heard_at: float, heard_until: float) -> None:
        holder = self.at(place)
        if holder is not None and holder is not record:
            holder.place = None
        if record.place is not None:
            self._places.pop(record.place, None)
        record.place = place
        self._places[place] = record
        record.heard_at, record.heard_until = heard_at, heard_until
        record.silent = ""

    def _is_fresh(self, record: HostRecord, now: float) -> bool:
        return now < record.heard_until

    def _keep_unclaimed(self, name: str, entry: _Unclaimed, now: float) -> None:
        if name not in self._unclaimed and len(self._unclaimed) >= UNCLAIMED_MAX:
            self._unclaimed = {n: u for n, u in self._unclaimed.items() if u.heard_until > now}
            if len(self._unclaimed) >= UNCLAIMED_MAX:
                self.unclaimed_dropped += 1
                return
        self._unclaimed[name] = entry


def iso_time(utc: float | None) -> str | None:
    """Seconds since 1970 as REST gives them, such as 2026-01-31T14:03:12Z."""
    return None if utc is None else f"{datetime.fromtimestamp(utc, UTC):%Y-%m-%dT%H:%M:%SZ}"


def check_name(name: str) -> None:
    """Raises `HostRefused` unless the name can stand in commands, URLs and LLDP frames."""
    if len(name.encode()) > NAME_BYTES_MAX or not _NAME.fullmatch(name) or name.isdigit():
        raise HostRefused(
            f"host name {name[:NAME_BYTES_MAX]!r} is not valid",
            value=name[:NAME_BYTES_MAX],
            bound=NAME_BOUND,
        )


def _check_owner(record: HostRecord, mac: bytes, caller: Caller) -> None:
    """Raises `HostRefused` unless the agent that comes is the one that has the name. Without a secret the hardware
    address tells; with it two that are there at once are one agent and a copy of it."""
    is_it = hmac.compare_digest(record.secret, caller.secret) if record.secret else record.mac == mac
    if is_it and (record.mac == mac or not record.attached):
        return
    owner = f"an agent {_where(record.address, record.mac)}"
    if is_it:
        cure = "it has the secret of that one: give it another name, and a state directory of its own"
    elif record.attached:
        cure = "give it another name"
    else:
        cure = f"give it another name, or, if that agent is gone for good or has lost its secret, say so: `wormcast host forget {record.name}`"
    raise HostRefused(
        f"the name {record.name!r} belongs to {owner}, which is {'connected' if record.attached else 'away'}; this agent "
        f"{_where(caller.address, mac)} is another one; {cure}",
        value=record.name,
        bound="a name that no other agent has",
    )


def _where(address: str, mac: bytes) -> str:
    hardware = f"with hardware address {mac.hex(':')}"
    return f"at {address} {hardware}" if address else hardware


def _verify(record: HostRecord, announcement: Announcement, proof: Proof | None) -> bool:
    """Whether an announcement has a proof, and is newer than the last that had."""
    if proof is None or not record.secret or not record.challenge or proof.number <= record.proved:
        return False
    wanted = prove(announcement, record.secret, record.challenge, proof.number).proof
    if wanted is None or not hmac.compare_digest(wanted.check, proof.check):
        return False
    record.proved = proof.number
    return True
