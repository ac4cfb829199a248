"""Messages of agents, bounded at the door: what is inside them fits the controller's types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from wormcast_planner import ALTERNATIVES_MAX, GROUP_ID_MAX, HOST_ID_MAX, MTU_MAX

from wormcast.discovery.hosts import HostRefused
from wormcast.network.ids import GroupId, HostId

MESSAGE_BYTES_MAX = 1 << 20
"""Longest message of an agent: Statistics of 4,096 counters, or an answer that refuses 1,024 groups."""
COUNTERS_MAX = 8192
"""Counters in one message; further ones are not read."""
REFUSED_MAX = 1024
"""Refused groups in one answer; further ones are not read."""
TEXT_MAX = 1000
"""Characters kept of an error or reason."""
VERSION_MAX = 64
"""Characters of an agent's version."""
REVISION_LIMITS = 1
"""Agents of this revision of agent.proto keep to the limit of TREE routes that their plan names."""
REVISION_RATE = 3
"""Agents of this revision pace what they send by the rate that their plan names."""
ROUTE_USES_MAX = 256
"""Hosts to which one message says how often routes were used; further ones are not read."""
RECEIVERS_MAX = 4096
"""Open receivers in one message; further ones are not read. An agent opens 2,048 at most."""
ANSWER_BYTES_MAX = 64 << 10
"""Longest answer of a receiver to a message."""
NOTHING: Mapping[int, str] = MappingProxyType({})
"""No group is refused."""


RouteUses: TypeAlias = Mapping[HostId, tuple[int, ...]]
"""How many messages took each of the routes to a host."""
NO_USES: RouteUses = MappingProxyType({})


OpenReceivers: TypeAlias = Mapping[GroupId, frozenset[HostId] | None]
"""Groups in which a host has receivers open, and whose messages alone they take; None: those of all."""


class BadMessage(ValueError):
    """A message that no agent sends; it ends its stream and nothing else."""


def check_register(register: Any) -> None:
    """Checks what the registry does not; raises `HostRefused`."""
    if register.mtu > MTU_MAX:
        raise HostRefused(f"MTU {register.mtu} is out of range", value=register.mtu, bound=f"0 to {MTU_MAX}")
    version = register.version
    if len(version) > VERSION_MAX or not (version == "" or version.isprintable()):
        raise HostRefused(
            f"version {version[:VERSION_MAX]!r} is not valid",
            value=version[:VERSION_MAX],
            bound=f"up to {VERSION_MAX} printable characters",
        )


def read_refused(applied: Any) -> dict[int, str]:
    """Groups that an agent refuses, and why."""
    return {entry.group: clip(entry.reason) for entry in applied.refused[:REFUSED_MAX]}


def read_route_uses(statistics: Any) -> RouteUses:
    """How often an agent's routes were used; raises `BadMessage` for a host that cannot be."""
    uses = {}
    for use in statistics.routes[:ROUTE_USES_MAX]:
        if use.host > HOST_ID_MAX:
            raise BadMessage(f"it counts routes to host {use.host}; possible: 0 to {HOST_ID_MAX}")
        uses[HostId(use.host)] = tuple(use.messages[:ALTERNATIVES_MAX])
    return uses


def read_open_receivers(message: Any) -> OpenReceivers:
    """Which receivers an agent has; raises `BadMessage` for a group or host that cannot be."""
    found: dict[GroupId, frozenset[HostId] | None] = {}
    for one in message.receivers[:RECEIVERS_MAX]:
        if one.group > GROUP_ID_MAX or one.origin > HOST_ID_MAX:
            raise BadMessage(
                f"it has a receiver in group {one.group} for host {one.origin}; possible: groups 0 to {GROUP_ID_MAX}, "
                f"hosts 0 to {HOST_ID_MAX}"
            )
        group = GroupId(one.group)
        before = found.get(group, frozenset())
        found[group] = (
            before | {HostId(one.origin)} if before is not None and one.HasField("origin") else None
        )
    return found


def check_answer(answer: Any) -> None:
    """Raises `BadMessage` unless an answer is about a group and a host that can be, and no longer than answers are."""
    check_report_of(answer.group, host=answer.host)
    if (length := len(answer.text.encode())) > ANSWER_BYTES_MAX:
        raise BadMessage(f"it answers with {length} bytes; possible: 0 to {ANSWER_BYTES_MAX}")


def check_report(report: Any) -> None:
    """Raises `BadMessage` unless a report is about a group and hosts that can be."""
    check_report_of(report.group, origin=report.origin, host=report.host)


def check_report_of(group: int, **hosts: int) -> None:
    """Raises `BadMessage` unless these can be."""
    named = [(name, host, HOST_ID_MAX) for name, host in hosts.items()]
    for name, value, most in [("group", group, GROUP_ID_MAX), *named]:
        if value > most:
            raise BadMessage(f"it reports {name} {value}; possible: 0 to {most}")


def clip(text: str) -> str:
    """A text that may be shown and kept."""
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"
