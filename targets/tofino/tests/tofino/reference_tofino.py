"""What a switch with the Tofino program makes of a frame: SPEC.md, but for the differences that
p4src/CONTRACT.md lists. Each is one rule here."""

from oracle.checksum import internet_checksum
from oracle.codec import HEADER_LEN, TRAIN_LEN, Worm
from reference import ETHERNET_LEN, Json, Outcome, ReferenceSwitch, is_whole
from wormcast.wire import (
    CE_QUEUE_DEPTH,
    END_OF_ROUTE,
    ETHERTYPE_WORM,
    MAX_HOPS,
    MGID_TREE_ALL,
    MGID_TREE_SET,
    NEXT_CONTROL,
    RECIRCULATE_PORT,
    TOFINO_MAX_PATH,
    TOFINO_MAX_ROUTE,
    TOFINO_TREE_PORTS,
    WORM_VERSION,
    DropReason,
    Flag,
    Kind,
)

CELLS_A_FRAME = {"tna.p4": 512 // CE_QUEUE_DEPTH, "t2na.p4": 256 // CE_QUEUE_DEPTH}
"""By the chip's declarations: as many cells as make CE_QUEUE_CELLS of CE_QUEUE_DEPTH frames."""
PATHS = (Kind.UNICAST, Kind.CONTROL, Kind.BROADCAST)


class TofinoReference(ReferenceSwitch):
    """The oracle of the Tofino program. Queues are given in frames and recorded in cells."""

    declarations = "tna.p4"
    may_wait = False
    """Whether worms wait here for their turn: tofino2.p4 in wormhole mode."""

    def __init__(self, state: Json) -> None:
        super().__init__(state)
        self.guard.looks_ahead = False

    def handle(
        self, ingress_port: int, frame: bytes, deq_qdepth: int = 0, egress_port: int | None = None
    ) -> Outcome:
        """A route that is too long is not read, so neither are its checksum and its end. Trains of other kinds
        than UNICAST and control headers are not known."""
        worm = frame[ETHERNET_LEN:]
        is_worm = (
            egress_port is None
            and len(worm) >= HEADER_LEN
            and frame[12:14] == ETHERTYPE_WORM.to_bytes(2, "big")
            and worm[0] >> 4 == WORM_VERSION
        )
        is_train = bool(is_worm and worm[1] & Flag.TRAIN)
        if is_train and worm[0] & 0xF != Kind.UNICAST:
            plain = frame[:15] + bytes([worm[1] & (0xFF ^ Flag.TRAIN)]) + frame[16:]
            truncated = DropReason.TRUNCATED.name in self.handle(ingress_port, plain, deq_qdepth).drops
            return Outcome().drop(DropReason.TRUNCATED if truncated else DropReason.TRAIN_REFUSED)
        if is_worm and worm[2] > (TOFINO_MAX_PATH if worm[0] & 0xF in PATHS else TOFINO_MAX_ROUTE):
            if len(worm) <= HEADER_LEN + TRAIN_LEN * is_train and worm[0] & 0xF in PATHS:
                # Not even the first port byte.
                return Outcome().drop(DropReason.TRUNCATED)
            if worm[10:12] == b"\xff\xff":  # never right, whatever the route
                return Outcome().drop(DropReason.CHECKSUM)
            return Outcome().drop(
                DropReason.HOPS_EXCEEDED if worm[3] >= MAX_HOPS else DropReason.BEYOND_TARGET
            )
        if is_worm and worm[0] & 0xF == Kind.GATHER:
            return self._of_no_kind(ingress_port, frame)
        if is_worm and worm[0] & 0xF == Kind.CONTROL and worm[8:10] == NEXT_CONTROL.to_bytes(2, "big"):
            route_end = HEADER_LEN + worm[2]
            summed = worm[:10] + bytes(2) + worm[HEADER_LEN:route_end]
            if len(worm) >= route_end and internet_checksum(summed) != int.from_bytes(worm[10:12], "big"):
                return Outcome().drop(DropReason.CHECKSUM)
        outcome = super().handle(ingress_port, frame, deq_qdepth, egress_port)
        if is_worm and worm[0] & 0xF == Kind.UNICAST and self.may_wait:
            # A head takes its place in its second pass.
            outcome.recirculated += bool(outcome.out) or DropReason.PORT_UNKNOWN.name in outcome.drops
        return outcome

    def _refuse_train(self, worm: Worm) -> DropReason | None:
        if not self.may_wait or is_whole(worm):
            return super()._refuse_train(worm)
        if not worm.flags & Flag.HEAD:
            return DropReason.TRAIN_BROKEN
        return DropReason.ABSORB_FULL if worm.route[:1] == bytes([RECIRCULATE_PORT]) else None

    def _way_back(self, train: bytes, ingress_port: int) -> bytes:  # noqa: ARG002
        """It is not recorded, and the header says so."""
        return train[:2] + bytes([train[2] | 0x80]) + train[3:]

    def _replicate_tree(self, outcome: Outcome, ingress_port: int, worm: Worm, deq_qdepth: int) -> None:
        copies, refused = split(worm.route)
        if refused is not None:
            outcome.drop(refused)
            return
        bitmap = sum(1 << port for port in copies)
        exact = bitmap < 256 and bitmap in self.tree_sets
        if not exact and self.mask_set and set(copies) - set(self.tree_ports):
            outcome.drop(DropReason.PORT_UNKNOWN)
        group = MGID_TREE_SET + bitmap if exact else MGID_TREE_ALL
        self._send_branches(outcome, ingress_port, worm, copies, group, deq_qdepth)

    def _recorded(self, worm: Worm, ingress_port: int, port: int, deq_qdepth: int) -> Worm:
        return super()._recorded(worm, ingress_port, port, deq_qdepth * CELLS_A_FRAME[self.declarations])

    def _of_no_kind(self, ingress_port: int, frame: bytes) -> Outcome:
        """A GATHER worm, which is not known: what it says is payload, and not in the checksum."""
        worm = frame[ETHERNET_LEN:]
        route_end = HEADER_LEN + worm[2]
        if len(worm) < route_end:
            return Outcome().drop(DropReason.TRUNCATED)
        summed = worm[:10] + bytes(2) + worm[HEADER_LEN:route_end]
        if internet_checksum(summed) != int.from_bytes(worm[10:12], "big"):
            return Outcome().drop(DropReason.CHECKSUM)
        if worm[3] >= MAX_HOPS:
            return Outcome().drop(DropReason.HOPS_EXCEEDED)
        outcome = Outcome()
        outcome.kinds[Kind.GATHER.name] += 1
        read = Worm(Kind.GATHER, worm[HEADER_LEN:route_end], source=int.from_bytes(worm[4:6], "big"))
        refused = self.guard.refuse(ingress_port, read, len(frame), is_plain=False)
        return outcome.drop(DropReason.KIND_UNKNOWN if refused is None else refused)


class Tofino2Reference(TofinoReference):
    """The oracle of tofino2.p4, for frames that come one by one into a switch where no other worm is."""

    declarations = "t2na.p4"

    def __init__(self, state: Json) -> None:
        super().__init__(state)
        self.may_wait = any(entry["action"] == "ingress.wormhole_mode" for entry in state.get("defaults", []))


def split(route: bytes) -> tuple[dict[int, bytes], DropReason | None]:
    """Routes of the copies by port, or why there are none.

    Branches may come in any order and be more than 16; of two with one port the first counts.
    Sub-routes have an even length.
    """
    copies: dict[int, bytes] = {}
    at = 0
    while at < len(route) - 1 and route[at] != END_OF_ROUTE:
        port = route[at]
        if port == RECIRCULATE_PORT:
            return {}, DropReason.TREE_MALFORMED
        if port >= TOFINO_TREE_PORTS:
            return {}, DropReason.BEYOND_TARGET
        length = route[at + 1]
        sub_route = route[at + 2 : at + 2 + length]
        if length % 2 or len(sub_route) < length:
            return {}, DropReason.TREE_MALFORMED
        copies.setdefault(port, sub_route + bytes([END_OF_ROUTE]) if length else b"")
        at += 2 + length
    if at != len(route) - 1 or route[at] != END_OF_ROUTE or not copies:
        return {}, DropReason.TREE_MALFORMED
    return copies, None
