"""Whether the order of a verify file holds for other people's tables and paths.

Knows nothing of how the order was found: follows every table from every switch, and every
path, hop by hop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wormcast.verify.foreign_files import Network, Path, Table, read_levels, read_paths, read_tables
from wormcast.verify.worms import Violation

Json = Mapping[str, Any]
Channel = tuple[str, str | None, str | None, str]
"""Node, port by which it is left, node behind if there is no network, virtual channel."""


class _Order:
    """The places of the channels, and how many steps kept to them."""

    def __init__(self, certificate: Json, network: Network | None) -> None:
        if not certificate["deadlock_free"]:
            raise ValueError("this file shows a deadlock; only a deadlock_free one holds an order")
        self.places: dict[Channel, int] = {}
        self.steps = 0
        for place, entry in enumerate(certificate["order"]):
            start = entry["from"]
            # With a network the port says it all.
            to = None if network else entry["to"]["node"]
            channel = (start["node"], start.get("port"), to, entry.get("vc", "0"))
            if self.places.setdefault(channel, place) != place:
                raise Violation("the order", _name(channel), _name(channel), "is there twice")

    def step(self, packet: str, held: Channel | None, needed: Channel) -> None:
        """A packet that holds one channel and needs the next."""
        if held is None:
            return
        self.steps += 1
        for channel in (held, needed):
            if channel not in self.places:
                raise Violation(packet, _name(held), _name(needed), f"{_name(channel)} is not in the order")
        if self.places[held] >= self.places[needed]:
            raise Violation(packet, _name(held), _name(needed), "the order has them the other way round")


def check_tables(
    network: Network,
    texts: Sequence[str],
    certificate: Json,
    ends: str = "hosts",
    records: str | None = None,
) -> dict[str, int]:
    """Counts the "worms" (destinations, each from all who send to it) and "steps" that keep
    to the order. Raises `Violation` if a packet does not, `ValueError` if a file cannot be
    read or is of another topology."""
    try:
        order = _Order(certificate, network)
        levels = None if records is None else read_levels(network, records)
        worms = 0
        for table in read_tables(network, texts):
            for destination, owner in table.owners.items():
                if ends == "hosts" and owner is not None and owner not in network.home:
                    continue
                worms += 1
                senders = [host for host in network.home if host != owner]
                if ends == "all":
                    senders += [switch for switch in network.switches if switch != owner]
                lanes = {
                    sender: {"0"} if levels is None else levels[sender, destination] for sender in senders
                }
                _follow(network, table, destination, order, lanes)
        return {"worms": worms, "steps": order.steps}
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(_unfit(error)) from error


def _follow(
    network: Network, table: Table, destination: str, order: _Order, lanes: Mapping[str, set[str]]
) -> None:
    """From everybody who sends, on their virtual channels, until where others went before."""
    waiting: list[tuple[str, str | None, str, Channel | None]] = []
    for sender, vcs in lanes.items():
        for vc in vcs:
            if sender in network.home:
                waiting.append((*network.home[sender], vc, (sender, None, None, vc)))
            else:
                waiting.append((sender, None, vc, None))
    packet = f"packet to {table.name} {destination}".replace("  ", " ")
    seen: set[Channel] = set()
    while waiting:
        switch, came_by, vc, held = waiting.pop()
        for port in table.ports.get(switch, {}).get(destination, ()):
            if table.never_back and held is not None and port == came_by and held[0] not in network.home:
                continue
            if (switch, port) not in network.behind:
                continue
            needed: Channel = (switch, port, None, vc)
            order.step(packet, held, needed)
            there = network.behind[switch, port]
            if needed not in seen:
                seen.add(needed)
                if there not in network.home:
                    waiting.append((there, network.arrives_by[switch, port], vc, needed))


def check_paths(text: str, certificate: Json, network: Network | None = None) -> dict[str, int]:
    """As `check_tables`, for the paths of a CSV file; "worms" counts paths."""
    try:
        order = _Order(certificate, network)
        worms = 0
        for path in read_paths(network, text):
            held = None
            for hop in range(len(path.ports)):
                needed = _channel(network, path, hop)
                order.step(f"path of line {path.line}", held, needed)
                if needed not in order.places:
                    raise Violation(
                        f"path of line {path.line}", _name(needed), _name(needed), "is not in the order"
                    )
                held = needed
            worms += 1
        return {"worms": worms, "steps": order.steps}
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(_unfit(error)) from error


def _channel(network: Network | None, path: Path, hop: int) -> Channel:
    node, there, port, vc = path.nodes[hop], path.nodes[hop + 1], path.ports[hop], path.vcs[hop]
    if network is None:
        return node, port, there, vc
    if node in network.home:
        port = None
    elif port is None:
        port = next(by for (at, by), behind in network.behind.items() if (at, behind) == (node, there))
    if network.behind[node, port] != there:
        raise ValueError(f"line {path.line}: {node} is not next to {there}")
    return node, port, None, vc


def _name(channel: Channel) -> str:
    node, port, _, vc = channel
    by = "" if port is None else f" by port {port}"
    return f"channel out of {node}{by}" + ("" if vc == "0" else f" on virtual channel {vc}")


def _unfit(error: Exception) -> str:
    text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return f"the files do not fit together: {text}"
