"""SPEC.md §2–§4 once more, as one plain function of Python: what a switch makes of a frame.

The oracle of the random tests. It is itself tested against every vector of
worm_switch.json, none of which it had a part in making.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from typing import Any

from oracle.class_d import class_d_mac, is_link_local
from oracle.codec import TRAIN_LEN, Worm, WormError, decode_worm
from oracle.trace import Record, add_record
from oracle.tree import RouteError, split_tree
from reference_gather import ReferenceGather
from reference_guard import ReferenceGuard
from wormcast.wire import (
    CE_QUEUE_DEPTH,
    CLASS_D_SOURCE,
    CPU_PORT,
    ETHERTYPE_IPV4,
    ETHERTYPE_LLDP,
    ETHERTYPE_WORM,
    INSTANCE_BRANCH,
    IP_PROTOCOL_IGMP,
    MAX_HOPS,
    MGID_BROADCAST,
    MGID_TREE_ALL,
    MGID_TREE_SET,
    NEIGHBOUR_NONE,
    RECIRCULATE_PORT,
    WORM_MAC,
    DropReason,
    Flag,
    Kind,
    Role,
)

Json = dict[str, Any]
ETHERNET_LEN = 14
IPV4_LEN = 20


@dataclass
class Outcome:
    """What a vector of worm_switch.json expects."""

    out: list[tuple[int, bytes]] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    recirculated: int = 0

    def drop(self, reason: DropReason) -> "Outcome":
        self.drops[reason.name] += 1
        return self


class ReferenceSwitch:
    """A switch with a state of worm_switch.json."""

    def __init__(self, state: Json) -> None:
        self.tables: dict[str, list[Json]] = {}
        for entry in state["tables"]:
            self.tables.setdefault(entry["table"], []).append(entry)
        self.replicas = {
            group["id"]: [(replica["port"], replica["instance"]) for replica in group["replicas"]]
            for group in state["multicast_groups"]
        }
        self.ports = {
            entry["key"]["port"]: self._leaves_by(entry) for entry in self.tables.get("ingress.ports", [])
        }
        self.hosts = set(self._keys("egress.edge_ports", "standard_metadata.egress_port"))
        self.roles = {
            entry["key"]["standard_metadata.ingress_port"]: entry["parameters"]["role"]
            for entry in self.tables.get("ingress.port_roles", [])
        }
        self.neighbours = {
            entry["key"]["standard_metadata.ingress_port"]: entry["parameters"]["neighbour"]
            for entry in self.tables.get("ingress.port_roles", [])
        }
        self.groups = {
            entry["key"]["group"]: entry["parameters"]["mgid"]
            for entry in self.tables.get("ingress.groups", [])
        }
        self.tree_sets = set(self._keys("ingress.tree_sets", "port_set"))
        self.tree_ports = sorted(port for port, _ in self.replicas.get(MGID_TREE_ALL, []))
        self.class_d = sorted(self.tables.get("ingress.class_d", []), key=lambda entry: -entry["priority"])
        defaults = {entry["table"]: entry["parameters"] for entry in state["defaults"]}
        # Without a default entry every port counts as known.
        self.mask_set = "ingress.tree_sets" in defaults
        self.guard = ReferenceGuard(self.tables, state)
        self.gather = ReferenceGather(self.tables)
        self.number = int(defaults["egress.trace"]["switch"], 16) if "egress.trace" in defaults else None

    def _leaves_by(self, entry: Json) -> int:
        if entry["action"] == "ingress.port_known":
            return int(entry["key"]["port"])
        ((port, _),) = self.replicas[entry["parameters"]["mgid"]]
        return int(port)

    def _keys(self, table: str, name: str) -> Iterable[int]:
        return [entry["key"][name] for entry in self.tables.get(table, [])]

    def handle(
        self, ingress_port: int, frame: bytes, deq_qdepth: int = 0, egress_port: int | None = None
    ) -> Outcome:
        """What comes of a frame; `egress_port` is that of a packet-out."""
        outcome = Outcome()
        if egress_port is not None:
            outcome.out.append((egress_port, frame))
            return outcome
        if len(frame) < ETHERNET_LEN:
            return outcome.drop(DropReason.TRUNCATED)
        ethertype = int.from_bytes(frame[12:14], "big")
        if ethertype == ETHERTYPE_WORM:
            self._handle_worm(outcome, ingress_port, frame, deq_qdepth)
        elif ethertype == ETHERTYPE_IPV4:
            self._handle_ipv4(outcome, ingress_port, frame, deq_qdepth)
        elif ethertype == ETHERTYPE_LLDP:
            outcome.out.append((CPU_PORT, frame))
        else:
            outcome.drop(DropReason.NOT_A_WORM)
        return outcome

    def _handle_worm(self, outcome: Outcome, ingress_port: int, frame: bytes, deq_qdepth: int) -> None:
        try:
            worm = replace(decode_worm(frame[ETHERNET_LEN:]), dst=frame[:6], src=frame[6:12])
        except WormError as error:
            # The switch reads the IP header of a class D packet before it sums up.
            truncated = error.reason is DropReason.CHECKSUM and _inner_ip_truncated(frame[ETHERNET_LEN:])
            outcome.drop(DropReason.TRUNCATED if truncated else error.reason)
            return
        if _inner_ip_truncated(frame[ETHERNET_LEN:]):
            outcome.drop(DropReason.TRUNCATED)
            return
        while True:
            if worm.hops >= MAX_HOPS:
                outcome.drop(DropReason.HOPS_EXCEEDED)
                return
            known = worm.kind in Kind.__members__.values()
            outcome.kinds[Kind(worm.kind).name if known else str(worm.kind)] += 1
            if not outcome.recirculated:
                reason = self.guard.refuse(ingress_port, worm, len(frame), is_plain=False)
                if reason is not None:
                    outcome.drop(reason)
                    return
            refused = self._refuse_train(worm) if worm.train else None
            if refused is not None:
                outcome.drop(refused)
                return
            if not known:
                outcome.drop(DropReason.KIND_UNKNOWN)
                return
            worm = replace(worm, hops=worm.hops + 1)
            if worm.train and worm.route[:1] != bytes([RECIRCULATE_PORT]):
                worm = replace(worm, train=self._way_back(worm.train, ingress_port))
            if worm.kind == Kind.GATHER and not worm.route:
                gathered = self.gather.take(worm, ingress_port)
                if gathered is None:
                    return
                if isinstance(gathered, DropReason):
                    outcome.drop(gathered)
                    return
                worm = gathered
            on_a_path = worm.kind in (Kind.UNICAST, Kind.CONTROL, Kind.GATHER) or (
                worm.kind == Kind.BROADCAST and worm.route
            )
            if not on_a_path:
                self._replicate(outcome, ingress_port, worm, deq_qdepth)
                return
            if not worm.route:
                outcome.drop(DropReason.ROUTE_EMPTY)
                return
            port, worm = worm.route[0], replace(worm, route=worm.route[1:])
            if port != RECIRCULATE_PORT:
                break
            outcome.recirculated += 1
            worm = self._recorded(worm, ingress_port, port, deq_qdepth)
        if port not in self.ports:
            outcome.drop(DropReason.PORT_UNKNOWN)
            return
        to = self.ports[port]
        outcome.out.append((to, self._leaving(worm, ingress_port, to, deq_qdepth)))

    def _replicate(self, outcome: Outcome, ingress_port: int, worm: Worm, deq_qdepth: int) -> None:
        if worm.kind == Kind.TREE:
            self._replicate_tree(outcome, ingress_port, worm, deq_qdepth)
            return
        if worm.kind == Kind.BROADCAST:
            replicas = self.replicas.get(MGID_BROADCAST, [])
        else:
            if len(worm.route) != 2:
                outcome.drop(DropReason.GROUP_MALFORMED)
                return
            group = int.from_bytes(worm.route, "big")
            if group not in self.groups:
                outcome.drop(DropReason.GROUP_UNKNOWN)
                return
            replicas = self.replicas[self.groups[group]]
        neighbour = self.neighbours.get(ingress_port, NEIGHBOUR_NONE)
        for port, instance in replicas:
            back = port == ingress_port or (neighbour != NEIGHBOUR_NONE and instance == neighbour)
            if worm.kind == Kind.GROUP and back:
                outcome.filtered[Kind.GROUP.name] += 1
                continue
            frame = self._leaving(worm, ingress_port, port, deq_qdepth)
            if worm.kind == Kind.GROUP and worm.next == ETHERTYPE_IPV4 and port in self.hosts:
                address = IPv4Address(worm.payload[16:20])
                # Any address: the sender of a worm may have put another there.
                mac = class_d_mac(IPv4Address(int(address) & 0x0FFFFFFF | 0xE0000000))
                frame = mac + worm.src + ETHERTYPE_IPV4.to_bytes(2, "big") + worm.payload
            outcome.out.append((port, frame))

    def _replicate_tree(self, outcome: Outcome, ingress_port: int, worm: Worm, deq_qdepth: int) -> None:
        try:
            copies = dict(split_tree(worm.route))
        except RouteError:
            outcome.drop(DropReason.TREE_MALFORMED)
            return
        bitmap = sum(1 << port for port in copies)
        exact = max(copies) < 8 and bitmap in self.tree_sets
        if not exact and self.mask_set and set(copies) - set(self.tree_ports):
            outcome.drop(DropReason.PORT_UNKNOWN)
        group = MGID_TREE_SET + bitmap if exact else MGID_TREE_ALL
        self._send_branches(outcome, ingress_port, worm, copies, group, deq_qdepth)

    def _send_branches(
        self,
        outcome: Outcome,
        ingress_port: int,
        worm: Worm,
        copies: dict[int, bytes],
        group: int,
        deq_qdepth: int,
    ) -> None:
        for port, instance in self.replicas.get(group, []):
            branch = instance - INSTANCE_BRANCH if instance >> 8 == INSTANCE_BRANCH >> 8 else port
            if branch in copies:
                copy = replace(worm, route=copies[branch])
                outcome.out.append((port, self._leaving(copy, ingress_port, port, deq_qdepth)))
            else:
                outcome.filtered[Kind.TREE.name] += 1

    def _refuse_train(self, worm: Worm) -> DropReason | None:
        """Why a frame of a train goes no further, in packet mode."""
        if worm.kind in (Kind.UNICAST, Kind.TREE) and is_whole(worm):
            return None
        return DropReason.TRAIN_REFUSED

    def _way_back(self, train: bytes, ingress_port: int) -> bytes:
        """The train header with one switch more to go back through."""
        return train[:2] + bytes([train[2] + 1 & 0xFF]) + train[3:5] + train[6:] + bytes([ingress_port])

    def _leaving(self, worm: Worm, ingress_port: int, port: int, deq_qdepth: int) -> bytes:
        """The frame that leaves by a port."""
        return self._recorded(_marked(worm, deq_qdepth), ingress_port, port, deq_qdepth).to_frame()

    def _recorded(self, worm: Worm, ingress_port: int, port: int, deq_qdepth: int) -> Worm:
        """The worm with the record of this switch, times left at 0, if the switch knows its number."""
        if self.number is None:
            return worm
        return add_record(worm, Record(self.number, worm.hops, ingress_port, port, queue=deq_qdepth))

    def _handle_ipv4(self, outcome: Outcome, ingress_port: int, frame: bytes, deq_qdepth: int) -> None:
        packet = frame[ETHERNET_LEN:]
        if len(packet) < IPV4_LEN:
            outcome.drop(DropReason.TRUNCATED)
            return
        address = IPv4Address(packet[16:20])
        if self.roles.get(ingress_port) != Role.HOST or packet[0] >> 4 != 4:
            outcome.drop(DropReason.NOT_A_WORM)
        elif packet[9] == IP_PROTOCOL_IGMP:
            outcome.out.append((CPU_PORT, frame))
        elif not address.is_multicast:
            outcome.drop(DropReason.NOT_A_WORM)
        elif is_link_local(address):
            outcome.drop(DropReason.CLASS_D_LINK_LOCAL)
        else:
            for entry in self.class_d:
                key = entry["key"]["hdr.ipv4.dst"]
                if int(address) & key["mask"] == key["value"]:
                    worm = Worm(
                        kind=Kind.GROUP,
                        route=entry["parameters"]["group"].to_bytes(2, "big"),
                        payload=packet,
                        hops=1,
                        source=CLASS_D_SOURCE,
                        next=ETHERTYPE_IPV4,
                        dst=WORM_MAC.to_bytes(6, "big"),
                        src=frame[6:12],
                    )
                    reason = self.guard.refuse(ingress_port, worm, len(frame), is_plain=True)
                    if reason is None:
                        self._replicate(outcome, ingress_port, worm, deq_qdepth)
                    else:
                        outcome.drop(reason)
                    return
            outcome.drop(DropReason.CLASS_D_UNKNOWN)


def _marked(worm: Worm, deq_qdepth: int) -> Worm:
    """The worm with CE where the queue it leaves is past the threshold."""
    return replace(worm, flags=worm.flags | Flag.CE) if deq_qdepth >= CE_QUEUE_DEPTH else worm


def is_whole(worm: Worm) -> bool:
    """Whether a worm has one frame."""
    return worm.flags & (Flag.HEAD | Flag.TAIL) == Flag.HEAD | Flag.TAIL


def _inner_ip_truncated(data: bytes) -> bool:
    """Whether a GROUP worm announces an IPv4 packet and ends inside its header."""
    if len(data) < 14 or data[0] != 0x10 | Kind.GROUP or data[2] != 2:
        return False
    packet_at = 14 + TRAIN_LEN * bool(data[1] & Flag.TRAIN)
    return int.from_bytes(data[8:10], "big") == ETHERTYPE_IPV4 and len(data) - packet_at < IPV4_LEN
