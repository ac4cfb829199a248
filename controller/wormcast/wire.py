"""Numbers of the wire (wire/SPEC.md) and of the data plane. Copies of p4src/shared/ids.p4 and sizes.p4.

Names are those of the P4 sources, except where an enum here spells out the group
(KIND_TREE there, Kind.TREE here). tests/conformance/test_p4_artifacts.py compares them.
"""

from enum import IntEnum, IntFlag
from typing import Final

WORM_MAC: Final = 0x03574F524D00
ETHERTYPE_WORM: Final = 0x88B5
ETHERTYPE_HOST: Final = 0x88B6
ETHERTYPE_IPV4: Final = 0x0800
ETHERTYPE_LLDP: Final = 0x88CC

WORM_VERSION: Final = 1
PORT_MAX: Final = 253
RECIRCULATE_PORT: Final = 254
END_OF_ROUTE: Final = 255
GROUP_BROADCAST: Final = 255

CLASS_D_SOURCE: Final = 0xFFFF
CLASS_D_MAC_PREFIX: Final = 0x01005E
IP_PROTOCOL_IGMP: Final = 2

CPU_PORT: Final = 510
DROP_PORT: Final = 511

MGID_BROADCAST: Final = 1
MGID_TREE_ALL: Final = 2
MGID_INTERRUPT: Final = 3
MGID_TREE_SET: Final = 0x0100
MGID_PORT: Final = 0x0200
MGID_HOLD: Final = 0x0300
MGID_GROUP_FIRST: Final = 0x4000
MGID_GROUP_LAST: Final = 0x7FFF

INSTANCE_PLAIN: Final = 1
INSTANCE_BRANCH: Final = 0x0100
INSTANCE_NEIGHBOUR: Final = 2
NEIGHBOUR_NONE: Final = 0

NEXT_CONTROL: Final = 0x0001
CONTROL_STOP: Final = 1
CONTROL_GO: Final = 2
CONTROL_RESET: Final = 3

GATHER_ACK: Final = 1
GATHER_REQUEST: Final = 2
GATHER_ANSWER: Final = 3
GATHER_REFRESH: Final = 0x01
GATHER_KNOWN: Final = 0x02

WORMHOLE_PLAIN: Final = 1
WORMHOLE_FLUSH: Final = 2
WORMHOLE_INTERRUPT: Final = 3
WORMHOLE_INTERRUPT_ROOT: Final = 4
ROOT_TURN: Final = 254

MAX_HOPS: Final = 64
MAX_BRANCHES: Final = 16
MAX_ROUTE: Final = 255
ABSORBED_MAX: Final = 32
ABSORBED_TRAIN: Final = 8
MAX_BACK: Final = 15
TURN_LOST_US: Final = 1_000_000
NEXT_TURN_LOST_US: Final = 200_000
LINE_LOST_US: Final = 20_000
CE_QUEUE_DEPTH: Final = 32
TRACE_STAY_MAX: Final = 0xFFFFFF
TRACE_QUEUE_MAX: Final = 0xFFFF

TOFINO_MAX_PATH: Final = 64
TOFINO_MAX_ROUTE: Final = 127
TOFINO_TREE_PORTS: Final = 32

PORTS_SIZE: Final = 256
PORT_ROLES_SIZE: Final = 256
TREE_SETS_SIZE: Final = 256
GROUPS_SIZE: Final = 16384
CLASS_D_SIZE: Final = 4096
EDGE_PORTS_SIZE: Final = 256
GUARD_SIZE: Final = 256
SOURCES_SIZE: Final = 4096
OPEN_GROUPS_SIZE: Final = 16384
GROUP_SENDERS_SIZE: Final = 65536
GATHER_SIZE: Final = 16384
DEVICE_PORTS_SIZE: Final = 512

DROPS_CELLS: Final = 32
PORT_CELLS: Final = 512
KIND_CELLS: Final = 16
TRAIN_CELLS: Final = 16
GATHER_SLOTS: Final = 1024
GATHER_CELLS: Final = 16384


class Kind(IntEnum):
    """How a worm is routed (SPEC.md §3)."""

    UNICAST = 0
    TREE = 1
    BROADCAST = 2
    GROUP = 3
    CONTROL = 4
    GATHER = 5


class Flag(IntFlag):
    """Bits of the flags byte (SPEC.md §2.1)."""

    CLASS2 = 0x01
    HEAD = 0x02
    TAIL = 0x04
    RESUMED = 0x08
    CE = 0x10
    TRACE = 0x20
    TRAIN = 0x40
    ABORT = 0x80


class Role(IntEnum):
    """What a switch port leads to (p4src/CONTRACT.md, `ingress.port_roles`)."""

    NONE = 0
    SWITCH = 1
    HOST = 2


class DropReason(IntEnum):
    """Why a switch dropped a frame: index of its counter `drops`."""

    NONE = 0
    NOT_A_WORM = 1
    TRUNCATED = 2
    VERSION_UNKNOWN = 3
    CHECKSUM = 4
    HOPS_EXCEEDED = 5
    KIND_UNKNOWN = 6
    ROUTE_EMPTY = 7
    PORT_UNKNOWN = 8
    TREE_MALFORMED = 9
    GROUP_MALFORMED = 10
    GROUP_UNKNOWN = 11
    CLASS_D_LINK_LOCAL = 12
    CLASS_D_UNKNOWN = 13
    TRAIN_REFUSED = 14
    TRAIN_BROKEN = 15
    TRAIN_RESET = 16
    HELD_FULL = 17
    SOURCE_REFUSED = 18
    KIND_REFUSED = 19
    ROUTE_TOO_LONG = 20
    GROUP_REFUSED = 21
    RATE_EXCEEDED = 22
    HOST_UNKNOWN = 23
    BEYOND_TARGET = 24
    GATHER_UNKNOWN = 25
    GATHER_STALE = 26
    ABSORB_FULL = 27
    ROUTE_REFUSED = 28


class TrainEvent(IntEnum):
    """What happened to trains and channels in wormhole mode: index of the counter `trains`."""

    HELD = 0
    STOP_SENT = 1
    GO_SENT = 2
    STOP_HEARD = 3
    GO_HEARD = 4
    RESET_SENT = 5
    RESET_PASSED = 6
    ABORTED = 7
    TAIL_LOST = 8
    EXPIRED = 9
    FLUSHED = 10
    TURN_LOST = 11
    INTERRUPTED = 12
    GIVEN_BACK = 13
