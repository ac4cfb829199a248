"""The network as it has been found: its topology, and what has changed since the last look."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from wormcast.discovery.hosts import HostRegistry, iso_time
from wormcast.discovery.links import LinkMonitor
from wormcast.network.ids import HostId, SwitchId
from wormcast.network.topology import Grid, Host, Link, PortRef, Switch, Topology


@dataclass(frozen=True)
class Network:
    """What watchers are notified of and the state file keeps."""

    switches: frozenset[SwitchId]
    silent: frozenset[SwitchId]
    links: frozenset[Link]
    hosts: dict[HostId, tuple[str, str, bool, float | None, PortRef | None]]
    """Name, state, whether it is gone, since when in seconds since 1970, place."""


NOTHING = Network(frozenset(), frozenset(), frozenset(), {})


class Discovered:
    """What links, switches and hosts there are, by their monitor and their registry."""

    def __init__(self, monitor: LinkMonitor, hosts: HostRegistry) -> None:
        self.monitor = monitor
        self.hosts = hosts
        self.grid: Grid | None = None
        """Coordinates of the switches, where the operator gave some."""

    def topology(self, now: float) -> Topology:
        """Switches that are up and answer, links between them that are up, and the hosts on them."""
        silent = self.monitor.silent()
        ports = {s: n for s, n in self.monitor.switches().items() if s not in silent}
        links = [link for link in self.monitor.links() if link.a in ports and link.b in ports]
        return self._build(ports, links, now)

    def known_topology(self, up: Topology, now: float) -> Topology:
        """What is up, and switches and links that are suspected to be away for a moment."""
        used = {end for link in up.links for end in link.ends()} | {(h.switch, h.port) for h in up.hosts}
        away = [link for link in self.monitor.known_links() if used.isdisjoint(link.ends())]
        return self._build(self.monitor.known_switches(), [*up.links, *away], now)

    def _build(self, ports: dict[SwitchId, int], links: Collection[Link], now: float) -> Topology:
        used = {end for link in links for end in link.ends()}
        hosts = [
            Host(r.id, r.place[0], r.place[1], self.hosts.re_injects(r, now))
            for r in self.hosts.records()
            if r.place is not None and r.place not in used and r.place[1] < ports.get(r.place[0], 0)
        ]
        return Topology(tuple(Switch(s, n) for s, n in ports.items()), tuple(hosts), tuple(links), self.grid)

    def describe(self, now: float, utc: float) -> Network:
        """What watchers are notified of, as it is now; `utc` is the time of day, in seconds since 1970."""
        self.hosts.note_away(now, utc)
        return Network(
            frozenset(self.monitor.switches()),
            self.monitor.silent(),
            self.monitor.links(),
            {
                r.id: (
                    r.name,
                    self.hosts.state(r, now),
                    r.agent and self.hosts.is_gone(r, now),
                    r.away_since,
                    r.place,
                )
                for r in self.hosts.records()
            },
        )


def changes(old: Network, new: Network) -> Iterator[tuple[str, dict[str, Any]]]:
    """What has changed, as kinds of events with their fields."""
    for kind, switches in (
        ("switch_up", new.switches - old.switches),
        ("switch_down", old.switches - new.switches),
        ("switch_silent", new.silent - old.silent),
        ("switch_answers", old.silent & new.switches - new.silent),
    ):
        for switch in sorted(switches):
            yield kind, {"switch": switch}
    for kind, links in (("link_up", new.links - old.links), ("link_down", old.links - new.links)):
        for link in sorted(links):
            yield kind, {"a": link.a, "a_port": link.a_port, "b": link.b, "b_port": link.b_port}
    for host in sorted(new.hosts.keys() | old.hosts.keys()):
        if (now := new.hosts.get(host)) != old.hosts.get(host):
            name, state, gone, since, place = now or (old.hosts[host][0], "forgotten", True, None, None)
            at = {} if place is None else {"switch": place[0], "port": place[1]}
            yield (
                "host",
                {
                    "host": host,
                    "name": name,
                    "state": state,
                    "gone": gone,
                    "away_since": iso_time(since),
                    **at,
                },
            )
