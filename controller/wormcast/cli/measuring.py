"""`wormcast costs measure`: times messages in groups made for it, and finds the costs that fit the times."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from wormcast import routing
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import Client, segment
from wormcast.client import Agent, Sender
from wormcast.counted import counted

SCHEMES = ("repeat", "circuit", "switch")
"""A sender that copies, hosts that pass on one after the other, switches that copy: among them each cost shows in one
and not in another."""
MEMBERS_MOST = 16
"""Of a group that is measured."""
NAME = "costs-measure"
"""How names of the groups begin."""
SHORTEST, SHORT, STEP = 64, 1024, 4
"""Lengths of messages: the first, the second, and each further one so many times the one before."""
SECONDS_OF_A_LENGTH = 2.0
"""A length is repeated in a group for about so long, within the bounds below."""
REPEATS_LEAST, REPEATS_MOST = 3, 15
REST_S = 0.005
"""Before each message: the one before is confirmed, and its members still tell each other so."""
SECONDS_MOST = 2.0
"""A group does without longer messages once one is expected to take so long."""
PATIENCE_S = 60.0
"""Until groups are installed, or a message is confirmed."""
MTU_DEFAULT = 1500
"""That of which the packets of the set `agents` are."""


@dataclass
class Measured:
    """Times of messages of one length in one group."""

    scheme: str
    members: list[int]
    size: int
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)

    @property
    def error(self) -> float:
        """Standard error of the median, as a share of it: from the quartiles, as of normal times."""
        if len(self.seconds) < 2:
            return 1.0
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return float(1.25 * (high - low) / 1.35 / len(self.seconds) ** 0.5 / self.median)

    def to_timed(self, source: int) -> dict[str, Any]:
        """As `routing.fit_costs` takes it."""
        request = {"scheme": self.scheme, "source": source, "members": self.members}
        return {"request": request, "bytes": self.size, "ns": self.median * 1e9, "error": self.error}


def measure(
    api: str, socket: Path | None, most: int, wanted: Sequence[str], *, dry_run: bool, quiet: bool
) -> dict[str, Any]:
    """Measures from this host, with the hosts `wanted` or all, messages of up to `most` bytes; puts the costs in force
    unless it is a dry run. Raises `Refusal` and the client's `AgentError`."""
    client = Client(api, timeout_s=PATIENCE_S)
    hosts = client.get("/hosts")["hosts"]
    with Agent(socket, timeout_s=PATIENCE_S) as agent:
        source = agent.host
        if source is None:
            raise Refusal(
                "the agent here has no controller yet; `wormcast status` tells more", code="no-plan"
            )
        chosen = choose_members(source, hosts, wanted)
        with temporary_groups(client, source, chosen) as groups:
            measured = time_messages(agent, groups, lengths(most), quiet=quiet)
    before = with_payload(client.get("/costs"), [h["mtu"] for h in hosts if h["id"] in chosen])
    timed = [one.to_timed(source) for one in measured]
    fit = routing.fit_costs(client.get("/topology"), timed, before)
    if not dry_run:
        client.send("PUT", "/costs", fit["costs"])
    return report(fit, measured, in_force=not dry_run)


def choose_members(source: int, hosts: Sequence[dict[str, Any]], wanted: Sequence[str]) -> list[int]:
    """Those that are measured, the source first; raises `Refusal`."""
    up = {host["id"]: host["name"] for host in hosts if host["agent"] and host["state"] == "up"}
    names = {name: number for number, name in up.items()}
    if wanted:
        chosen = []
        for key in wanted:
            number = names.get(key, int(key) if key.isdecimal() else -1)
            if number not in up:
                raise Refusal(
                    f"there is no host {key!r} with an agent that is up",
                    code="not-found",
                    value=key,
                    choices=[f"{number} ({name})" for number, name in up.items()],
                )
            chosen.append(number)
    else:
        # From here on, around: those near the source and those far from it.
        chosen = sorted(up, key=lambda number: (number < source, number))
    others = list(dict.fromkeys(number for number in chosen if number != source))
    if not others or source not in up:
        raise Refusal(
            f"hosts with an agent that is up: {', '.join(map(str, up)) or 'none'}; measuring takes two or more, this "
            f"host ({source}) among them",
            code="too-few-hosts",
            value=len(up),
            bound="2 hosts or more",
        )
    return [source, *others[: MEMBERS_MOST - 1]]


def group_sizes(count: int) -> list[int]:
    """How many members the groups have: two, all, and one in between."""
    return sorted({2, (count + 2) // 2, count})


def lengths(most: int) -> list[int]:
    """Bytes of the messages."""
    found = [SHORTEST]
    size = SHORT
    while size <= most:
        found.append(size)
        size *= STEP
    return found


def with_payload(costs: dict[str, Any], mtus: Sequence[int | None]) -> dict[str, Any]:
    """Costs for packets that these hosts send."""
    standard = routing.costs("agents")["packet_payload_bytes"]
    least = min((mtu for mtu in mtus if mtu), default=MTU_DEFAULT)
    return {**costs, "packet_payload_bytes": standard + least - MTU_DEFAULT}


@contextlib.contextmanager
def temporary_groups(client: Client, source: int, members: Sequence[int]) -> Iterator[list[dict[str, Any]]]:
    """Groups in which agents take messages by themselves, until the end, however it comes."""
    prefix = f"{NAME}-{source}-"
    left_over = [
        group["id"]
        for group in client.get("/groups")["groups"]
        if group.get("sink") and group["name"].startswith(prefix)
    ]
    if left_over:
        client.send("DELETE", "/groups", {"groups": left_over})
    bodies = [
        {
            "name": f"{prefix}{scheme}-{count}",
            "scheme": scheme,
            "members": sorted(members[:count]),
            "sink": True,
        }
        for count in group_sizes(len(members))
        for scheme in SCHEMES
    ]
    with _terminated_as_interrupted():
        try:
            made = client.send("POST", "/groups", {"groups": bodies})["groups"]
            for group in made:
                _wait_installed(client, group["name"])
            yield made
        finally:
            there = {group["name"] for group in client.get("/groups")["groups"]}
            rest = [body["name"] for body in bodies if body["name"] in there]
            if rest:
                client.send("DELETE", "/groups", {"groups": rest})


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Has a signal to end do what Ctrl-C does, so that the groups go."""
    before = {}
    with contextlib.suppress(ValueError):  # in another thread than the main one
        for number in (signal.SIGTERM, signal.SIGHUP):
            before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_installed(client: Client, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        state = client.get(f"/groups/{segment(name)}")["state"]
        if all(member["takes_part"] and member["installed"] for member in state):
            return
        if time.monotonic() > deadline:
            late = [m for m in state if not (m["takes_part"] and m["installed"])]
            reasons = "; ".join(f"host {m['host']}: {m['reason'] or 'has no plan of it yet'}" for m in late)
            raise Refusal(
                f"group {name} was not ready within {PATIENCE_S:g} s: {reasons}; choose others with --members",
                code="timeout",
                value=[member["host"] for member in late],
            )
        time.sleep(0.05)


def time_messages(
    agent: Agent, groups: Sequence[dict[str, Any]], sizes: Sequence[int], *, quiet: bool
) -> list[Measured]:
    """Messages of every length in every group. Groups take turns, in an order drawn anew for each round, so that what
    else the machine does, and what the message before leaves to do, meets all alike."""
    senders = {group["id"]: agent.open_sender(group["id"]) for group in groups}
    for sender in senders.values():
        _time(sender, b"warm")
    found: list[Measured] = []
    last: dict[int, Measured] = {}
    order = random.Random(1)
    for size in sizes:
        open_now: dict[int, Measured] = {}
        repeats = {}
        for group in groups:
            # At worst the time grows with the length.
            before = last.get(group["id"])
            seconds = 0.0 if before is None else before.median * size / before.size
            if seconds <= SECONDS_MOST or size <= SHORT:
                open_now[group["id"]] = Measured(group["scheme"], group["members"], size)
                wanted = int(SECONDS_OF_A_LENGTH / max(seconds, 1e-9))
                repeats[group["id"]] = min(REPEATS_MOST, max(REPEATS_LEAST, wanted))
        if not quiet:
            click.echo(f"messages of {size:,} bytes in {counted(len(open_now), 'group')}", err=True)
        data = os.urandom(size)
        for turn in range(REPEATS_MOST):
            due = [number for number in open_now if turn < repeats[number]]
            for number in order.sample(due, len(due)):
                time.sleep(REST_S)
                open_now[number].seconds.append(_time(senders[number], data))
        last = open_now
        found += open_now.values()
        if not open_now:
            break
    for sender in senders.values():
        sender.close()
    return found


def _time(sender: Sender, data: bytes) -> float:
    """Seconds until every member has confirmed a message."""
    begin = time.monotonic()
    stable = sender.send(data, timeout_s=PATIENCE_S)
    took = time.monotonic() - begin
    if stable.failed:
        failed = stable.failed[0]
        raise Refusal(
            f"host {failed.host} did not take a message of {len(data)} bytes ({sender.group.scheme}): {failed.reason}; "
            "choose others with --members",
            code="member-failed",
            value=failed.host,
        )
    return took


def report(fit: dict[str, Any], measured: Sequence[Measured], *, in_force: bool) -> dict[str, Any]:
    """What `--json` prints."""
    rows = [
        {
            "scheme": one.scheme,
            "members": one.members,
            "bytes": one.size,
            "messages": len(one.seconds),
            "microseconds": round(one.median * 1e6, 1),
            "error": round(one.error, 4),
            "before_microseconds": round(estimate["before_ns"] / 1e3, 1),
            "after_microseconds": round(estimate["after_ns"] / 1e3, 1),
        }
        for one, estimate in zip(measured, fit["estimates"], strict=True)
    ]
    return {"in_force": in_force, "costs": fit["costs"], "found": fit["found"], "measured": rows}
