"""Native part of Wormcast: topologies, routes, multicast structures; what switches and agents must have.

Files (topology, routes, group, verify) are JSON text. `wormcast.routing` is the same with
dictionaries. Whatever is refused raises RoutingError. The interpreter lock is released
while planning.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from ipaddress import IPv4Address
from typing import NewType, Protocol, final

# Ids, for type checkers: at run time they are integers, and `wormcast.network.ids` has these names.

SwitchId = NewType("SwitchId", int)
"""Identifies a switch, 0 to SWITCH_ID_MAX."""
PortId = NewType("PortId", int)
"""A port of a switch, 0 to PORT_ID_MAX."""
HostId = NewType("HostId", int)
"""Identifies a host in the fabric, 0 to HOST_ID_MAX."""
GroupId = NewType("GroupId", int)
"""Identifies a group, 0 to GROUP_ID_MAX without GROUP_BROADCAST."""
Mgid = NewType("Mgid", int)
"""Multicast group id of a switch's replication engine."""

# What is read of networks and groups that are given: whatever has these attributes.

class SwitchLike(Protocol):
    """A switch with ports 0..ports-1."""

    @property
    def id(self) -> SwitchId: ...
    @property
    def ports(self) -> int: ...

class HostLike(Protocol):
    """A host on one switch port; `transit`: whether it may re-inject worms of others."""

    @property
    def id(self) -> HostId: ...
    @property
    def switch(self) -> SwitchId: ...
    @property
    def port(self) -> PortId: ...
    @property
    def transit(self) -> bool: ...

class LinkLike(Protocol):
    """A full-duplex link between two switch ports."""

    @property
    def a(self) -> SwitchId: ...
    @property
    def a_port(self) -> PortId: ...
    @property
    def b(self) -> SwitchId: ...
    @property
    def b_port(self) -> PortId: ...

class GridLike(Protocol):
    """Coordinates of the switches of a torus or mesh: switches along each dimension, and whether its ends are joined."""

    @property
    def radix(self) -> Sequence[int]: ...
    @property
    def wraps(self) -> bool: ...

class TopologyLike(Protocol):
    """A network. It may be disconnected and its ids may have holes."""

    @property
    def switches(self) -> Sequence[SwitchLike]: ...
    @property
    def hosts(self) -> Sequence[HostLike]: ...
    @property
    def links(self) -> Sequence[LinkLike]: ...
    @property
    def grid(self) -> GridLike | None: ...

class ParametersLike(Protocol):
    """Shape of a group's structure; 0 and "" leave a choice to the planner."""

    @property
    def k(self) -> int: ...
    @property
    def fan_out(self) -> int: ...
    @property
    def packets(self) -> int: ...
    @property
    def lambda_(self) -> int: ...
    @property
    def r(self) -> int: ...
    @property
    def variant(self) -> str: ...
    @property
    def guard(self) -> str: ...
    @property
    def least(self) -> str: ...
    @property
    def trees(self) -> int: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def rate_bits(self) -> int: ...

class GroupLike(Protocol):
    """A group as it is asked for."""

    @property
    def id(self) -> GroupId: ...
    @property
    def name(self) -> str: ...
    @property
    def scheme(self) -> str: ...
    @property
    def members(self) -> Sequence[HostId]: ...
    @property
    def parameters(self) -> ParametersLike: ...
    @property
    def class_d(self) -> IPv4Address | None: ...
    @property
    def sink(self) -> bool: ...
    @property
    def gather(self) -> bool: ...

class RoutingError(ValueError):
    """Input that is refused; the text names the value, the bound and the choices.

    Errors of topology files carry more: `code`, a word such as "port-used-twice", and
    `line` and `column`, from 1, or None where the mistake is at no one place.
    """

def kinds() -> list[str]:
    """Every kind of topology that generate_topology makes, and how it is written."""

def topology_formats() -> list[str]:
    """Names of the file formats of topologies."""

def algorithms() -> list[str]:
    """Names of the routing algorithms."""

ALGORITHM_DEFAULT: str
"""That of unicast routes unless another is named: one shortest up*/down* path a pair, without in-transit hosts."""

def check_routing(algorithm: str, root: int | None = None, balanced: bool = False) -> None:
    """Refuses what no network can have: an unknown algorithm, a switch that cannot be, a balance that there is not."""

def schemes() -> list[str]:
    """Names of the schemes."""

def needs_grid(scheme: str) -> bool:
    """Whether a scheme goes by the coordinates of a torus or mesh."""

def is_copied_by_switches(scheme: str) -> bool:
    """Whether switches copy the messages of a scheme; False of names that are no scheme."""

FAN_OUT_DEFAULT: int
LAMBDA_MAX: int
SHARED_TREES_MAX: int
"""tree: most children of a host, unless a group says otherwise."""

# Bounds of wire/src/ids.rs

ALTERNATIVES_MAX: int
"""Most routes of a pair of hosts."""

SWITCH_ID_MAX: int
HOST_ID_MAX: int
PORT_ID_MAX: int
GROUP_ID_MAX: int
MTU_MIN: int
MTU_MAX: int
"""Of a host: bytes of a frame after its Ethernet header. No veth carries more."""
GROUP_BROADCAST: GroupId
"""The number that means broadcast and is no group."""

def generate_topology(spec: str) -> str:
    """A topology file of this kind, as in "torus:4"."""

def read_topology_file(
    content: str,
    format: str | None = None,
    allow_split: bool = False,
    hosts_per_switch: int = 0,
    give_hosts: bool = False,
) -> tuple[str, list[str]]:
    """A topology file in any format, as JSON, and warnings; the format is found out if not given. `give_hosts`: every
    switch gets a host where a file of other tools has none."""

def write_topology_file(topology: str, format: str) -> str:
    """A topology file in another format."""

def check_topology(topology: str, allow_split: bool = False) -> str:
    """Checks a topology file; a split fabric is refused unless allowed."""

def damage_topology(
    topology: str, links: Sequence[tuple[int, int]], switches: Sequence[int], hosts: Sequence[int]
) -> str:
    """What remains without links (named by switch and port), switches and hosts."""

def plan_all_routes(
    topology: str,
    algorithm: str = ...,
    root: int | None = None,
    seed: int = 1,
    src: int | None = None,
    dst: int | None = None,
    balanced: bool = False,
) -> str:
    """A file of routes: between all hosts, or from one, or to one, or both."""

def plan_route(
    topology: str,
    src: int,
    dst: int,
    algorithm: str = ...,
    root: int | None = None,
    seed: int = 1,
) -> str:
    """One route, as an entry of a file of routes; of several, the first."""

def summarize_routes(
    topology: str,
    algorithm: str = ...,
    root: int | None = None,
    seed: int = 1,
    balanced: bool = False,
) -> str:
    """Figures over all routes: how long, how many in-transit hosts, which load; and how many pairs have
    longer routes because some hosts do not re-inject."""

def forwarding(topology: str, algorithm: str = ..., root: int | None = None) -> bytes:
    """First ports from every switch to every host, row by row; 255 where there is no way."""

def balance_report(topology: str, algorithm: str = ..., root: int | None = None) -> str:
    """Loads of all channels under the plain routes and under the balanced ones."""

def plan_balanced_routes(topology: str, algorithm: str = ..., root: int | None = None) -> str:
    """A file of the balanced routes between all hosts."""

def spanning_tree(topology: str, root: int | None = None) -> str:
    """The up*/down* spanning tree: root, roots, links (parent's side first), levels."""

def plan_group(topology: str, request: str, root: int | None = None, metrics: bool = False) -> str:
    """A group file from scheme, source, members and parameters; with metrics, what its
    sends cost the network."""

def cost_sets() -> list[str]:
    """Names of the sets of costs."""

def complete_costs(costs: str) -> str:
    """A file of costs with every field, from a set's name or what differs from one."""

def fit_costs(topology: str, costs: str, timed: str, root: int | None = None) -> str:
    """Costs by which messages take the times that were measured, as a file."""

def replay_group(topology: str, request: str, costs: str, root: int | None = None) -> str:
    """When each member has the message, and how the channels were used."""

def order_members(
    topology: str,
    members: Sequence[int],
    kind: str = "cco",
    root: int | None = None,
    seed: int = 0,
) -> list[int]:
    """Members in an order: "id" (or "ascending"), "cco", "dimension", "hamiltonian",
    "random" from a seed."""

def verify(
    topology: str,
    routes: str | None = None,
    algorithm: str | None = None,
    trees: Sequence[tuple[int, bytes]] = (),
    branching: str = "independent",
    root: int | None = None,
    groups: Sequence[str] = (),
    buffers: str = "spill",
    forwarding: str = "store",
    balanced: bool = False,
) -> str:
    """Deadlock check of routes from a file, of an algorithm, of TREE routes and of files
    of group plans."""

def verify_tables(
    topology: str, tables: Sequence[str], ends: str = "hosts", records: str | None = None
) -> str:
    """Deadlock check of forwarding tables: texts of dump_lfts, ibroute or OpenSM, or tables
    files; `records` is what saquery PR prints. A `RoutingError` has `text`, the number of the text it is in, or None."""

def verify_paths(paths: str, topology: str | None = None) -> str:
    """Deadlock check of the paths of a CSV file; errors as of `verify_tables`."""

def plan_change(
    topology: str,
    new: str,
    algorithm: str = ...,
    root: int | None = None,
    routes: str | None = None,
    new_root: int | None = None,
    planned: bool = False,
) -> str:
    """A change file: steps from the routes in force to those of the new topology."""

# What switches and agents must have

NOT_LIVE: str
NOT_PLANNED: str
PLAIN: str
"""Why members do not take part."""
TABLES_WITH_DEFAULT: list[str]
GROUP_NUMBERS_MAX: int
CLASS_D_MODES: list[str]
"""How class D addresses get their numbers, the default first."""
HASHED_FIRST: GroupId
"""First of the numbers of hashed addresses in wide mode; no group made in that mode has such an id."""

@final
class ClassDNumbers:
    """The number of every address that a group carries; `mode` is one of CLASS_D_MODES."""

    def __init__(self, mode: str = ..., assigned: Sequence[tuple[IPv4Address, int]] = ()) -> None: ...
    @property
    def mode(self) -> str: ...
    @property
    def is_wide(self) -> bool: ...
    @property
    def assigned(self) -> list[tuple[IPv4Address, GroupId]]:
        """Wide mode: addresses in ascending order, hashed ones too."""

    def number(self, address: IPv4Address) -> GroupId:
        """The number of an address; one that no group carries has that of its low 8 bits."""

def low_bits(address: IPv4Address) -> GroupId:
    """The low 8 bits of an address, its number in narrow mode (WORM §8.1)."""

def hashed(address: IPv4Address) -> GroupId:
    """The number in wide mode of an address without one of its own."""

def assign_class_d(mode: str, groups: Sequence[GroupLike], before: ClassDNumbers) -> ClassDNumbers:
    """Numbers for the addresses of these groups; addresses keep the number they had `before`.

    A new address gets the id of the first of its groups if that is free, else the highest
    number that nobody has, else a hash. The same groups and numbers give the same answer.
    """

def new_class_d_number(
    id: int, address: IPv4Address, ids: Collection[GroupId], own: Collection[GroupId]
) -> GroupId:
    """Wide mode: the number of the address of group `id`, which has none yet; `ids` are those of all groups, `own`
    the numbers that addresses have."""

@final
class Place:
    """Where a switch holds something: a table entry, a replication group or a default action. Can be a key."""

    @staticmethod
    def group(mgid: int) -> Place:
        """The place of a replication group."""

@final
class TableEntry:
    """One entry of a match-action table, named as in the P4Info."""

    def __init__(
        self,
        table: str,
        match: Sequence[tuple[str, int | tuple[int, int]]],
        action: str,
        parameters: Sequence[tuple[str, int]] = (),
        priority: int = 0,
    ) -> None: ...
    @property
    def table(self) -> str: ...
    @property
    def match(self) -> list[tuple[str, int | tuple[int, int]]]:
        """By field an exact value, or value and mask."""

    @property
    def action(self) -> str: ...
    @property
    def parameters(self) -> list[tuple[str, int]]: ...
    @property
    def priority(self) -> int: ...
    @property
    def mgid(self) -> Mgid | None:
        """The replication group it leads to."""

    @property
    def group(self) -> GroupId | None:
        """The group number it is about."""

@final
class TableDefault:
    """What a table does on a miss."""

    def __init__(self, table: str, action: str, parameters: Sequence[tuple[str, int]] = ()) -> None: ...
    @property
    def table(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def parameters(self) -> list[tuple[str, int]]: ...

@final
class MulticastGroup:
    """A replication group and the copies it makes: of each its port, its instance, and the ports that stand in
    for its port, each a backup replica of the same instance."""

    def __init__(self, mgid: int, replicas: Sequence[tuple[int, int, Sequence[int]]]) -> None: ...
    @property
    def mgid(self) -> Mgid: ...
    @property
    def ports(self) -> frozenset[PortId]:
        """Without those that stand in for others."""
    @property
    def replicas(self) -> tuple[tuple[PortId, int, tuple[PortId, ...]], ...]: ...

@final
class PortRate:
    """How fast worms may come by a port: bytes a second, None: any. It is modified only."""

    def __init__(self, port: int, bytes: int | None = None) -> None: ...
    @property
    def port(self) -> PortId: ...
    @property
    def bytes(self) -> int | None: ...

@final
class Update:
    """One write to one switch; `stage` is 0 (permit), 1 (shrink), 2 (grow), 3 (retire) or 4 (revoke), `operation`
    insert, modify or delete."""

    @property
    def stage(self) -> int: ...
    @property
    def operation(self) -> str: ...
    @property
    def entity(self) -> TableEntry | TableDefault | MulticastGroup | PortRate: ...
    @property
    def place(self) -> Place: ...
    @property
    def is_default(self) -> bool:
        """Whether it writes a default action."""

@final
class SwitchState:
    """Tables and replication groups of one switch."""

    def copy(self) -> SwitchState:
        """A copy that can change on its own."""

    def put_entry(self, entry: TableEntry) -> None:
        """Puts an entry in the place of its key."""

    def put_default(self, default: TableDefault) -> None:
        """Puts a default action in the place of its table."""

    def put_group(self, group: MulticastGroup) -> None:
        """Puts a replication group in the place of its number."""

    def put_rate(self, rate: PortRate) -> None:
        """Puts the rate of a port in the place of the one before."""

    def rates(self) -> dict[PortId, int]:
        """Ports that worms may come by only so fast: bytes a second of each."""

    def execute(self, update: Update) -> None:
        """What a switch does with an update it accepted."""

    def read_back(self, part: str, found: SwitchState) -> tuple[int, int, int]:
        """Puts a part as it was found in the place of what was taken to be there: `groups`, `defaults`, `rates`, or the
        entries of the table of that name. How much is missing, changed and extra."""

    def entries(self) -> list[TableEntry]: ...
    def multicast(self) -> list[MulticastGroup]: ...
    def has_group(self, mgid: int) -> bool:
        """Whether there is such a replication group."""

    def counts(self) -> tuple[int, int]:
        """How many entries and replication groups there are."""

    def number_of(self, mgid: int) -> GroupId | None:
        """The group number that leads to a replication group."""

def difference(
    desired: SwitchState, actual: SwitchState, within: Sequence[Place] | None = None
) -> list[Update]:
    """Updates that turn `actual` into `desired`, by stage; empty when nothing differs.

    Within a stage replication groups come before the entries that name them, and go after
    them. Updates of a stage assume those of the stages before it. `within` is where the two
    may differ; None: anywhere.
    """

@final
class AgentGroup:
    """A group as one agent has to know it."""

    @property
    def id(self) -> GroupId: ...
    @property
    def number(self) -> int | None:
        """Scheme table: the number by which switches copy its messages."""

    @property
    def trees(self) -> list[list[tuple[SwitchId, PortId, SwitchId, PortId]]]:
        """Scheme switch: links of each of its own trees."""

    @property
    def mtu(self) -> int | None:
        """Bytes of its frames after the Ethernet header at most, MTU_MIN to MTU_MAX; None: what the interfaces carry."""

    @property
    def sequencer(self) -> tuple[HostId, int] | None:
        """Ordered group: who says in which order messages are read, and since which epoch."""

    @property
    def gathered(self) -> tuple[int, list[tuple[HostId, int]]] | None:
        """ACKs that switches gather: the epoch, and each origin with the number of its switch; None: hosts alone
        acknowledge."""

    @property
    def structures(self) -> list[AgentStructure]:
        """How its messages reach them."""

@final
class AgentStructure:
    """A scheme with its parameters; parameters of other schemes are 0."""

    @property
    def bytes_most(self) -> int:
        """The longest message that takes it; 0: any."""

    @property
    def expected(self) -> list[tuple[int, float]]:
        """Where it was chosen for its time: bytes of messages, and the microseconds expected for each."""

    @property
    def scheme(self) -> str: ...
    @property
    def k(self) -> int: ...
    @property
    def lambda_(self) -> int: ...
    @property
    def r(self) -> int: ...

@final
class AgentPlan:
    """Everything one agent has to know, without the epoch."""

    @property
    def host(self) -> HostId: ...
    @property
    def train_frames(self) -> int:
        """Frames of a train of any kind at most; 1: there are none."""

    @property
    def unicast_train_frames(self) -> int:
        """Frames of a UNICAST train at most, no fewer than that; 1: there are none."""

    @property
    def groups(self) -> list[AgentGroup]:
        """Its groups by number."""

    def group(self, id: int) -> AgentGroup | None:
        """The group with this number."""

    def has_groups_of(self, other: AgentPlan) -> bool:
        """Whether its groups are those of another plan, as that has them."""

    def encode(self, epoch: int) -> bytes:
        """A `ControllerMessage` of agent.proto with the whole plan."""

    def encode_change(self, epoch: int, before: AgentPlan, base: int) -> bytes | None:
        """A `ControllerMessage` with what is other than in the plan `before`, which has the epoch `base`; None where
        that message cannot say it."""

def encode_registered(host_id: int, challenge: bytes) -> bytes:
    """A `ControllerMessage` of agent.proto that answers Register, as all of these, encoded."""

def encode_refused(reason: str) -> bytes:
    """That refuses an agent."""

def encode_trace(
    *,
    number: int,
    attempt: int,
    origin: int = 0,
    host: int | None = None,
    group: int | None = None,
    bytes: int | None = None,
    route: int | None = None,
) -> bytes:
    """That asks for probes."""

def encode_ask_lag(
    *,
    number: int,
    group: int,
    origin: int,
    epoch: int = 0,
    branches: Sequence[tuple[int, bytes, int]] = ...,
) -> bytes:
    """That asks who lags; the number of each branch, the route to its switch and its port there."""

@final
class FabricState:
    """What every switch and every agent must have; as it is made here, nothing."""

    @property
    def switches(self) -> dict[SwitchId, SwitchState]: ...
    @property
    def agents(self) -> dict[HostId, AgentPlan]: ...
    @property
    def parts(self) -> list[frozenset[SwitchId]]:
        """Switches that are joined, by their lowest."""

    @property
    def roots(self) -> list[SwitchId]:
        """The root of each of these parts."""

    @property
    def lengthened(self) -> int:
        """Pairs of hosts with longer routes because some hosts do not re-inject."""

    @property
    def failures(self) -> list[str]:
        """What could not be planned and is left out or as it was."""

    @property
    def touched(self) -> dict[SwitchId, list[Place]] | None:
        """Where this state differs from the one the same planner gave before; None: anywhere."""

    @property
    def digest(self) -> str:
        """A fingerprint of all agent plans: equal plans, equal digest, in every run."""

    @property
    def bridge(self) -> dict[HostId, AgentPlan] | None:
        """Plans that agents must have first, while the order of switches changes: their routes keep to the old
        order and the new. None if it does not change."""

    @property
    def bridge_digest(self) -> str:
        """A fingerprint of these plans; empty if there are none."""

    @property
    def method(self) -> str:
        """How the order was found: kept-order, repaired-order, new-order."""

    @property
    def stopped(self) -> int:
        """Pairs of hosts without a route on the bridge that have one in the end."""

    @property
    def routes_changed(self) -> int:
        """Pairs of hosts whose routes are other in the end than in the state before."""

    @property
    def routes_bridged(self) -> int:
        """Pairs of hosts whose routes are other on the bridge than in the state before."""

    def routes_file(
        self, topology: str, algorithm: str, root: int | None, src: int | None = None, dst: int | None = None
    ) -> str | None:
        """The routes file of these plans, in which pairs without a route over this topology are unreachable. Those
        from a host, to one, or all; None if that would be more than 2^20 routes."""

    def verify(self, topology: str, others: Sequence[tuple[FabricState, bool]] = ()) -> str:
        """The verify file of all that agents may send by these plans, and of what switches copy; with those of
        `others`, or where it says so of their bridges, of all mixtures."""

    @property
    def crossed_max(self) -> int:
        """Switches that a worm crosses at most, by routes of this plan and the one before."""

    @property
    def drains(self) -> bool:
        """Whether links are held back until older worms have left: `Planner.drained` is to be called."""

    @property
    def order(self) -> str:
        """The order of switches in force, to be stored before agents are sent plans."""

    @property
    def next_order(self) -> str | None:
        """The order that is in force after `Planner.settle`; None if it does not change."""

    @property
    def shortfall_count(self) -> int:
        """Members that a group has and its plan cannot serve."""

    def shortfalls(self, most: int = ...) -> list[tuple[GroupId, HostId, str]]:
        """Group, host and reason of members that are not served, `most` of them."""

    def shortfalls_of(self, group: int) -> dict[HostId, str]:
        """Why members of a group do not take part, by host."""

    def by_hosts_of(self, group: int) -> dict[HostId, str]:
        """Why ACKs for origins of a group that gathers come by hosts alone, by host."""

    @property
    def by_hosts_count(self) -> int:
        """Such origins in all groups."""

class CapacityLike(Protocol):
    """What one agent takes: groups, members of one, and which groups it refuses and why."""

    @property
    def groups(self) -> int: ...
    @property
    def members(self) -> int: ...
    @property
    def refused(self) -> dict[GroupId, str]: ...

@final
class Planner:
    """Plans one network again and again.

    It keeps what does not depend on a change: for the change of a group the routes, trees and
    all other groups stay as they are. The order of switches stays for as long as it serves, and
    so do routes that a failure leaves whole. Plans and groups of agents that come out the same are
    the same objects.
    """

    def __init__(self, algorithm: str, root: int | None = None, balanced: bool = False) -> None: ...
    def set_costs(self, costs: str) -> None:
        """Groups of scheme auto go by these costs from now on: a file of them, as text. Raises `RoutingError`."""

    def set_sequencer_epoch(self, epoch: int) -> None:
        """Sequencers that are chosen from now on have epochs of this number or more: one that no earlier planner of
        this network has reached."""

    def set_gather_epochs(self, first: int, end: int) -> None:
        """Epochs of gathered ACKs from `first` to `end` - 1 may be taken from now on. Groups with one before `first`,
        which an earlier planner of this network may have taken too, get another. A plan takes one at most."""

    @property
    def next_gather_epoch(self) -> int:
        """The one that the next plan takes, if it takes one."""

    def set_mtu_limits(self, links: Mapping[tuple[SwitchId, PortId], int]) -> None:
        """Links carry less than the longest frames that hosts send, from now on.

        By switch and port, both ends of each: bytes of a frame after its Ethernet header, 0 to 65,535.
        Groups whose ways cross one learn how long their frames may be. Raises `RoutingError` for a
        switch or port that cannot be.
        """

    def set_switching(self, mode: str, scheme: str | None, trains: bool) -> None:
        """Switches pass worms on in this way, from now on: packet without a scheme, wormhole with plain, flush, interrupt,
        or unicast: UNICAST worms wait and are trains, no others, and there are no groups for STOP and GO. Agents send `trains` or do not; whoever asks for them has all switches in wormhole mode before, and until agents
        have stopped. Raises `RoutingError`."""

    def set_tree_route_max(self, bytes: int) -> None:
        """Switches take TREE routes of so many bytes at most from now on, 3 to 255; agents split what needs more.
        Raises `RoutingError`."""

    def set_guard(self, on: bool, closed: AbstractSet[GroupId], rates: Mapping[HostId, int]) -> None:
        """Switches admit what this asks for: whether the guard is on, groups that are closed to plain hosts though
        they have an address, and bytes a second of hosts."""

    def set_down(self, ends: Collection[tuple[SwitchId, PortId]]) -> None:
        """The known links at these ports carry nothing, because a port of theirs is down. Both ends of a link are
        named. Raises `RoutingError` for a switch or port that cannot be."""

    def set_routing(self, algorithm: str, root: int | None, balanced: bool) -> None:
        """Plans with these unicast routes from now on."""

    def restore_order(self, order: str) -> None:
        """Goes on from an order that was in force in an earlier life. Raises `RoutingError`."""

    def drained(self) -> bool:
        """All agents follow the last plan and older worms have left: links that were held back for their sake may be
        used. Whether there are such links, so that a new plan has to be made."""

    def settle(self) -> None:
        """All agents follow the bridge and older worms have left: the next order is in force."""

    def plan(
        self,
        topology: TopologyLike,
        known: TopologyLike,
        groups: Sequence[GroupLike],
        agents: AbstractSet[HostId],
        live: AbstractSet[HostId],
        capacities: Mapping[HostId, CapacityLike],
        class_d: ClassDNumbers,
        away: Mapping[HostId, str] = ...,
    ) -> FabricState:
        """What every switch and every agent must have.

        `topology` is what is up, `known` that and what is suspected to be away for a moment.
        `agents` are hosts that have an agent, `live` those that take part in their groups; of
        `capacities` an agent that is not named takes anything. `away` is what is said of others that are not live.
        """
