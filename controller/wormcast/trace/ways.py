"""What a worm's route says, and what its records say, on the wiring of a network. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wormcast.wire import END_OF_ROUTE, RECIRCULATE_PORT, TRACE_QUEUE_MAX, TRACE_STAY_MAX, Kind

Json = dict[str, Any]
CLOCK = 1 << 32
"""Clocks of switches in records are modulo this many µs."""


class Out(NamedTuple):
    """A port by which a worm leaves a switch."""

    switch: int
    port: int


class Wiring:
    """What is behind each port of a topology file."""

    def __init__(self, topology: Mapping[str, Any]) -> None:
        self.home = {host["id"]: Out(host["switch"], host["port"]) for host in topology["hosts"]}
        self.host_at = {place: host for host, place in self.home.items()}
        self.far: dict[Out, Out] = {}
        for link in topology["links"]:
            a, b = Out(link["a"], link["a_port"]), Out(link["b"], link["b_port"])
            self.far[a], self.far[b] = b, a

    def behind(self, out: Out) -> Json | None:
        """The host or the switch there, as JSON; None where nothing is known."""
        if out in self.host_at:
            return {"host": self.host_at[out]}
        far = self.far.get(out)
        return None if far is None else {"switch": far.switch, "port": far.port}

    def enters(self, out: Out) -> Out | None:
        """Where a worm that leaves by a port enters next, a host's own switch if it passes that on."""
        return out if out in self.host_at else self.far.get(out)

    def ways_of(self, source: int, kind: int, route: bytes) -> dict[int, list[Out]]:
        """By host, the ports that the route leads through; empty for kinds whose tables say where to."""
        start = self.home.get(source)
        if start is None:
            return {}
        found: dict[int, list[Out]] = {}
        paths = (
            [list(route)] if kind == Kind.UNICAST else list(tree_paths(route)) if kind == Kind.TREE else []
        )
        for path in paths:
            way, end = self._follow(start.switch, path)
            if end is not None:
                found[end] = way
        return found

    def _follow(self, switch: int, ports: Sequence[int]) -> tuple[list[Out], int | None]:
        way: list[Out] = []
        for number, port in enumerate(ports):
            out = Out(switch, port)
            way.append(out)
            if port == RECIRCULATE_PORT:
                continue
            if number + 1 == len(ports):
                return way, self.host_at.get(out)
            behind = self.enters(out)
            if behind is None:
                break
            switch = behind.switch
        return way, None


def tree_paths(route: bytes) -> Iterator[list[int]]:
    """The ports to each host of a TREE route, which is well made."""
    open_: list[tuple[list[int], bytes]] = [([], route.removesuffix(bytes([END_OF_ROUTE])))]
    while open_:
        before, rest = open_.pop()
        while len(rest) >= 2:
            port, length = rest[0], rest[1]
            sub_route, rest = rest[2 : 2 + length], rest[2 + length :]
            if sub_route:
                open_.append(([*before, port], sub_route))
            else:
                yield [*before, port]


def join_hops(wiring: Wiring, source: int, records: Sequence[Json], hops: int) -> list[Json]:
    """One entry a switch crossed, oldest first; those without a record have nothing but their `hop`.

    `apart_us` is the time since the worm left the hop before, by two clocks; `surprise` says what the
    network as known has otherwise.
    """
    by_hop = {record["hop"]: record for record in records}
    joined: list[Json] = []
    before: Json | None = None
    expected = wiring.home.get(source)
    for hop in range(1, hops + 1):
        record = by_hop.get(hop)
        if record is None:
            joined.append({"hop": hop})
            before, expected = None, None
            continue
        here = Out(record["switch"], record["ingress_port"])
        out = Out(record["switch"], record["egress_port"])
        entry = {
            **record,
            "stay_at_least": record["stay_us"] == TRACE_STAY_MAX,
            "queue_at_least": record["queue"] == TRACE_QUEUE_MAX,
            "to": {"switch": out.switch} if out.port == RECIRCULATE_PORT else wiring.behind(out),
        }
        if before is not None:
            entered = record["left_us"] - record["stay_us"]
            apart = (entered - before["left_us"]) % CLOCK
            entry["apart_us"] = apart - CLOCK if apart >= CLOCK // 2 else apart
        if expected is not None and expected != here:
            entry["surprise"] = (
                f"it should enter switch {expected.switch} by port {expected.port}, as the network is known"
            )
        joined.append(entry)
        before = record
        expected = here if out.port == RECIRCULATE_PORT else wiring.enters(out)
    return joined


def outs(hops: Sequence[Json]) -> list[Out]:
    """The ports by which recorded hops left."""
    return [Out(hop["switch"], hop["egress_port"]) for hop in hops if "switch" in hop]


def lost_text(wiring: Wiring, host: int, way: Sequence[Out], seen: set[Out]) -> str:
    """A sentence about a host from which nothing came; `seen`: where other copies of the worm left."""
    if not way:
        return f"nothing came back from host {host}"
    links = " → ".join(f"s{out.switch}:{out.port}" for out in way)
    text = f"nothing came back from host {host}; its way is {links} → host {host}"
    reached = [out for out in way if out in seen]
    if reached:
        behind = wiring.behind(reached[-1]) or {}
        at = f"switch {behind['switch']}" if "switch" in behind else f"port {reached[-1].port}"
        text += f"; other copies came as far as {at}"
    return text
