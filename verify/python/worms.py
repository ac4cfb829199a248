"""The paths of worms through a topology, followed port by port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

END_OF_ROUTE = 0xFF

Json = Mapping[str, Any]


class Violation(Exception):
    """A worm that does not keep to the order: which, what it holds, and what it needs."""

    def __init__(self, worm: str, held: str, needed: str, reason: str) -> None:
        super().__init__(f"{worm} holds {held} and needs {needed}: {reason}")
        self.worm, self.held, self.needed, self.reason = worm, held, needed, reason


class Step(NamedTuple):
    """A worm that holds one resource and needs another."""

    worm: str
    held: str
    needed: str


@dataclass
class Tree:
    """The channels of a worm that switches copy, each with the one before it."""

    worm: str
    source: int
    parents: dict[str, str | None] = field(default_factory=dict)
    is_several: bool = False
    """Whether these are worms of one source that follow each other along one tree."""

    def grow(self, held: str, needed: str) -> None:
        if needed in self.parents:
            raise ValueError(f"{self.worm} takes {needed} twice")
        self.parents[needed] = held

    def steps(self) -> Iterator[Step]:
        for needed, held in self.parents.items():
            if held is not None:
                yield Step(self.worm, held, needed)


def resource_name(entry: Json) -> str:
    """A resource of a verify file, in words."""
    if "buffer" in entry:
        return _buffer(entry["buffer"]["host"], entry["buffer"]["class"])
    if "turn" in entry:
        return _turn(entry["turn"]["switch"])
    start = entry["from"]
    return _injection(start["host"]) if "host" in start else _channel(start["switch"], start["port"])


def _buffer(host: int, of_class: int | None) -> str:
    return f"buffer of host {host}" + ("" if of_class is None else f", class {of_class}")


def _turn(switch: int) -> str:
    return f"turn at switch {switch}"


def _injection(host: int) -> str:
    return f"channel out of host {host}"


def _channel(switch: int, port: int) -> str:
    return f"channel out of switch {switch} by port {port}"


class Network:
    """What is wired to what, and what switches and hosts do with blocked worms."""

    def __init__(self, topology: Json, model: Json, turns: Sequence[int] = ()) -> None:
        self.model = model
        self.home: dict[int, tuple[int, int]] = {}
        self.behind: dict[tuple[int, int], tuple[str, int, int]] = {}
        for host in topology["hosts"]:
            self.home[host["id"]] = (host["switch"], host["port"])
            self.behind[host["switch"], host["port"]] = ("host", host["id"], 0)
        for link in topology["links"]:
            self.behind[link["a"], link["a_port"]] = ("switch", link["b"], link["b_port"])
            self.behind[link["b"], link["b_port"]] = ("switch", link["a"], link["a_port"])
        self.turns = set(turns)
        if any(at in self.turns and at != root for root in self.turns for at in self._levels(root)):
            raise Violation("two multicasts", "one turn", "another", "one part of the fabric has one")

    def message(self, worm: str, route: Json, held: int | None, needed: int | None) -> Iterator[Step]:
        """From host to host; `held` and `needed` are classes of the buffers at the ends."""
        pieces = list(self._pieces(route))
        host, of_class = route["src"], held or 1
        lies_in = self._room(host, held)
        for number, (channels, end) in enumerate(pieces):
            if number + 1 == len(pieces):
                room = self._room(end, needed)
            else:
                of_class = 2 if end < host else of_class
                room = self._room(end, of_class)
            yield from (Step(worm, *pair) for pair in pairwise(channels))
            if lies_in is not None:
                # The worm may be blocked at any of them, and the buffer is held until all is sent.
                yield from (Step(worm, lies_in, channel) for channel in channels)
            if room is not None and self.model["forwarding"] == "cut-through":
                yield Step(worm, channels[-1], room)
            elif room is not None and lies_in is not None:
                yield Step(worm, lies_in, room)
            host, lies_in = end, room

    def relayed(self, source: int, relay: Json) -> Iterator[Step]:
        """To a host that sends to the group for the source; it holds the message in class 2."""
        host, worm = relay["host"], f"message of {source} to relay {relay['host']}"
        ports = list(bytes.fromhex(relay["route"]))
        yield from self.message(worm, {"src": source, "dst": host, "ports": ports}, 1, 2)
        room = self._room(host, 2)
        if room is not None:
            yield Step(worm, room, _injection(host))

    def multicasts(self, group: Json) -> Iterator[Tree]:
        """The worms of a group that switches copy."""
        source = group["source"]
        if group.get("edges") is not None:
            return
        if group.get("entries") is not None:
            source = group["relay"]["host"] if group.get("relay") else source
            ports = {entry["switch"]: entry["ports"] for entry in group["entries"]}
            # A relay sends one after the other; nobody waits for a turn in the network.
            yield self._tree(source, ports, by_turns=not group.get("relay"))
        elif group.get("to_root") is not None:
            yield self._tree(source, list(bytes.fromhex(group["to_root"])))
        else:
            for part in group["routes"]:
                yield self._tree(source, bytes.fromhex(part["route"]))

    def _room(self, host: int, of_class: int | None) -> str | None:
        if of_class is None or self.model["buffers"] == "spill":
            return None
        return _buffer(host, of_class if self.model["buffers"] == "classes" else None)

    def _pieces(self, route: Json) -> Iterator[tuple[list[str], int]]:
        """The channels from one place where a whole worm can lie to the next, and its host."""
        channels, at, end = [_injection(route["src"])], self.home[route["src"]][0], -1
        for port in route["ports"]:
            if end >= 0:
                yield channels, end
                channels, end = [_injection(end)], -1
            channels.append(_channel(at, port))
            kind, to, _ = self.behind[at, port]
            if kind == "switch":
                at = to
            else:
                end = to
        if end != route["dst"]:
            raise ValueError(f"a route from {route['src']} does not end at {route['dst']}")
        yield channels, end

    def _tree(self, source: int, header: Any, *, by_turns: bool = True) -> Tree:
        tree = Tree(f"multicast of {source}", source, {_injection(source): None})
        arriving = [(_injection(source), *self.home[source], header)]
        unturned = by_turns and self.model["branching"] == "interrupted"
        while arriving:
            held, switch, came_by, header = arriving.pop()
            if unturned and switch in self.turns:
                tree.grow(held, turn := _turn(switch))
                held, unturned = turn, False
            copies = self._copies(switch, came_by, header)
            if unturned and (len(copies) != 1 or self.behind[switch, copies[0][0]][0] == "host"):
                raise Violation(tree.worm, held, "a turn", "it branches or ends before it has one")
            for port, rest in copies:
                tree.grow(held, channel := _channel(switch, port))
                kind, to, to_port = self.behind[switch, port]
                if kind == "switch":
                    arriving.append((channel, to, to_port, rest))
        return tree

    def _copies(self, switch: int, came_by: int, header: Any) -> list[tuple[int, Any]]:
        """Ports that copies leave by, and what they carry: a table, bytes of a TREE route, or
        the ports to the root, which end in a list of levels for the way down."""
        if isinstance(header, dict):
            return [(port, header) for port in sorted(set(header[switch])) if port != came_by]
        if isinstance(header, bytes):
            return self._branches(header)
        if header and not isinstance(header[0], dict):
            return [(header[0], header[1:])]
        levels = header[0] if header else self._levels(switch)
        ports = sorted(port for at, port in self.behind if at == switch)
        return [(port, [levels]) for port in ports if self._leads_down(levels, switch, port)]

    def _branches(self, route: bytes) -> list[tuple[int, Any]]:
        copies, at = [], 0
        while route[at] != END_OF_ROUTE:
            port, length = route[at], route[at + 1]
            copies.append((port, route[at + 2 : at + 2 + length] + bytes([END_OF_ROUTE])))
            at += 2 + length
        return copies

    def _levels(self, root: int) -> dict[int, int]:
        levels, queue = {root: 0}, [root]
        for at in queue:
            for (switch, _), (kind, to, _) in self.behind.items():
                if switch == at and kind == "switch" and to not in levels:
                    levels[to] = levels[at] + 1
                    queue.append(to)
        return levels

    def _leads_down(self, levels: dict[int, int], switch: int, port: int) -> bool:
        """Whether a broadcast goes on by this port: to a host, or a child of the spanning
        tree, whose parent is its lowest neighbour one level up, by the lowest port."""
        kind, to, to_port = self.behind[switch, port]
        above = [
            (up, by)
            for (at, by), (what, up, _) in self.behind.items()
            if at == to and what == kind == "switch" and levels[up] + 1 == levels[to]
        ]
        return kind == "host" or (bool(above) and min(above) == (switch, to_port))
