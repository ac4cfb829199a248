"""Answers of the REST API, as OpenAPI describes them (`openapi.ANSWERS`).

They describe, and hold nobody up: what `views` shows goes out as it is, and tests hold it against these.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """All fields are there, and no others."""

    model_config = ConfigDict(extra="forbid")


class Index(Answer):
    """Where the API is: what a browser that comes to `/v1` is shown."""

    version: str
    description: Annotated[str, Field(description="where OpenAPI describes all of it")]
    links: Annotated[dict[str, str], Field(description="paths that take GET and need no name, by name")]
    templates: Annotated[dict[str, str], Field(description="the same of paths that need one")]


class Link(Answer):
    """A full-duplex link between two switch ports."""

    a: int
    a_port: int
    b: int
    b_port: int


class Links(Answer):
    """Links that are up."""

    links: list[Link]


class TopologySwitch(Answer):
    """A switch that is up."""

    id: int
    ports: int


class TopologyHost(Answer):
    """A host that has a place."""

    id: int
    switch: int
    port: int
    transit: Annotated[bool, Field(description="absent: true")] = True
    name: str | None = None
    state: str | None = None


class TopologyGrid(Answer):
    """Coordinates of the switches of a torus or mesh."""

    radix: list[int]
    wraps: bool


class Topology(Answer):
    """A topology file, with names and states of hosts."""

    switches: list[TopologySwitch]
    hosts: list[TopologyHost]
    links: list[Link]
    grid: TopologyGrid | None = None


class Refused(Answer):
    """What a switch refuses, or which group an agent does not take."""

    group: int | None = None
    reason: str


class Installed(Answer):
    """How much of the plan there is."""

    entries: int
    groups: int


class Switch(Answer):
    """A configured switch and its session."""

    id: int
    address: str
    device_id: int
    ports: int
    interfaces: Annotated[dict[str, str], Field(description="by port")]
    metrics: str | None
    device_ports: Annotated[dict[str, int], Field(description="by port")]
    up: bool
    silent: bool
    connected: bool
    ports_down: Annotated[list[int] | None, Field(description="null: the switch does not say")]
    last_error: str | None
    updates_written: int
    writes_refused: int
    planned: Installed
    installed: Installed
    in_step: bool
    read_back_s: Annotated[
        float | None, Field(description="since when all that it holds has been read back; null: not yet")
    ]
    strayed: Annotated[int, Field(description="how much was found other than written, and written again")]
    waited_for_s: float
    refused: list[Refused]
    refused_total: int


class Switches(Answer):
    """Several switches."""

    switches: list[Switch]


class Crossed(Answer):
    """What went over a port in one direction."""

    packets: int
    bytes: int


class PortCounters(Answer):
    """Counters of a port."""

    port: int
    interface: str | None
    mtu: int | None
    ingress: Crossed
    egress: Crossed
    drops: Annotated[dict[str, int], Field(description="by cause, of the kernel and of the switch")]


class SwitchCounters(Answer):
    """What a switch forwarded and dropped; of the P4 program what is not zero."""

    switch: int
    drops: Annotated[dict[str, int], Field(description="by reason")]
    filtered: Annotated[dict[str, int], Field(description="by kind of worm")]
    kinds: Annotated[dict[str, int], Field(description="by kind of worm")]
    trains: Annotated[dict[str, int], Field(description="by event")]
    ports: list[PortCounters]
    missing: Annotated[list[str], Field(description="what could not be read, and why")]


class HostGroups(Answer):
    """Groups of a host's agent."""

    planned: int
    installed: int
    refused: list[Refused]
    refused_total: int
    max: int | None


class Host(Answer):
    """A host."""

    id: int
    name: str
    state: Literal["up", "plain", "dead", "silent", "unlocated", "lost"]
    gone: bool
    away_since: Annotated[str | None, Field(description="of one that is gone: its last sign of life")]
    reason: str | None
    switch: int | None
    port: int | None
    declared: bool
    transit: bool
    transit_busy: bool
    re_injects: bool
    rate_bps: int | None
    rate_kept_by: list[Literal["agent", "switch"]]
    agent: bool
    attached: bool
    mac: str | None
    mtu: int | None
    version: str | None
    plan_epoch: int | None
    plan_error: str | None
    groups: HostGroups


class RouteUses(Answer):
    """How many messages took each route to a host."""

    host: int
    messages: list[int]


class HostWithRoutes(Host):
    """A host, and how often its routes were taken."""

    routes_used: list[RouteUses]


class Hosts(Answer):
    """All hosts."""

    hosts: list[Host]


class ExpectedTime(Answer):
    """How long a message of a length is expected to take."""

    bytes: int
    microseconds: float


class Structure(Answer):
    """A structure by which messages travel."""

    bytes_most: Annotated[int | None, Field(description="messages up to this length; null: all longer ones")]
    scheme: str
    parameters: dict[str, float]
    expected: list[ExpectedTime]
    messages: int


class Member(Answer):
    """A member of a group, and whether it takes part."""

    host: int
    name: str | None
    state: str
    takes_part: bool
    reason: str | None
    away_since: str | None
    plan_epoch: int | None
    planned: bool
    installed: bool
    refused: str | None


class LeftOut(Answer):
    """A member of a group that takes no part, and why."""

    host: int
    name: str | None
    reason: str
    away_since: str | None


class HostReason(Answer):
    """Something about a host, and why."""

    host: int
    reason: str


class SwitchReason(Answer):
    """Something about a switch, and why."""

    switch: int
    reason: str


class Gathered(Answer):
    """For which origins switches gather ACKs."""

    epoch: int | None
    origins: list[int]
    by_hosts: list[HostReason]


class Group(Answer):
    """A group: what was asked for, and who takes part."""

    id: int
    name: str
    scheme: str
    members: list[int]
    left_out: Annotated[list[LeftOut], Field(description="those of the members that take no part now")]
    parameters: dict[str, Any]
    structures: list[Structure]
    mtu: int | None
    trees: list[list[Link]]
    class_d: str | None
    class_d_mode: str
    class_d_number: int | None
    class_d_shared_with: list[int]
    sink: bool
    gather: bool
    gathered: Gathered | None
    epoch: int
    root: int | None
    number: int | None
    fallback: str | None
    sequencer: int | None
    state: list[Member]
    switches_refused: list[SwitchReason]


class Groups(Answer):
    """Several groups."""

    groups: list[Group]


class Deleted(Answer):
    """Ids of the groups that are gone."""

    deleted: list[int]


class Members(Answer):
    """Ids of the members."""

    members: list[int]


class Setting(Answer):
    """Which unicast routes are wanted."""

    algorithm: str
    root: int | None
    balanced: bool


class Change(Answer):
    """A change of routes that is under way."""

    change: int
    step: int
    steps: int
    what: str
    method: str
    routes: int
    stopped: int
    waiting_for: list[int]
    waiting_count: int


class RoutingState(Setting):
    """Unicast routes: what is wanted, and what came of it."""

    roots: list[int]
    root_away: bool
    lengthened_pairs: int
    runs_as: str | None
    change: Change | None
    left_behind: list[int]
    left_behind_count: int


class Rate(Answer):
    """How fast a host may send."""

    host: int
    bps: int


class PortLeads(Answer):
    """What a port leads to, as the operator says."""

    switch: int
    port: int
    leads_to: Annotated[Literal["link", "host"] | None, Field(description="null: what is found there")]


class Guard(Answer):
    """What is asked of the guard."""

    on: bool
    closed: list[int]
    rates: list[Rate]
    ports: Annotated[
        list[PortLeads], Field(description="absent: the operator has said of no port what it leads to")
    ] = []


class Switching(Answer):
    """How switches pass worms on."""

    mode: Literal["packet", "wormhole"]
    scheme: Literal["plain", "flush", "interrupt"] | None
    train_frames: int
    tree_train_frames: int
    settled: bool
    warnings: list[str]


class Late(Answer):
    """Worst delays of the last seconds."""

    seconds: float
    controller_ms: int
    agents: int
    agents_ms: int


class Status(Answer):
    """The controller at a glance."""

    version: str
    epoch: int
    algorithm: str
    routing: RoutingState
    switches: int
    switches_up: int
    links: int
    hosts: int
    hosts_up: int
    groups: int
    class_d_mode: str
    plan_error: str | None
    state_problem: Annotated[str | None, Field(description="why nothing can be kept any more")]
    mtu_problems: list[str]
    late: Late
    waiting_for: list[int]
    task_failures: int


class Membership(Answer):
    """A port behind which an address is wanted."""

    group: str
    switch: int
    port: int


class Memberships(Answer):
    """What hosts want, as they said by IGMP."""

    members: list[Membership]


class Event(BaseModel):
    """Something that happened; further fields are those of its kind."""

    model_config = ConfigDict(extra="allow")
    number: int
    time_s: float
    kind: str


class Events(Answer):
    """The kept events."""

    events: list[Event]


class Known(Answer):
    """By whom it is known how far a member is."""

    way: Literal["switch", "host", "itself"]
    switch: int | None = None
    port: int | None = None
    host: int | None = None
    members: int | None = None


class MemberLag(Answer):
    """How far a member is."""

    host: int
    acknowledged: int | None
    stable: int | None
    behind: int | None
    unstable: int | None
    by: Known | None
    why: str | None = None
    given_up: bool | None = None


class BranchLag(Answer):
    """How far all members behind a port of a switch are."""

    switch: int
    port: int
    members: list[int]
    acknowledged: int | None
    stable: int | None
    why: str | None = None


class Lag(Answer):
    """How far each member is with what an origin sends."""

    group: int
    origin: int
    sent: int
    stable: int
    members: list[MemberLag]
    no_answer: list[int]
    branches: list[BranchLag]


class MaskedValue(Answer):
    """A value under a mask."""

    value: int
    mask: int


class Entry(Answer):
    """A table entry."""

    table: str
    match: dict[str, int | MaskedValue]
    priority: int
    action: str
    parameters: dict[str, int]


class Replica(BaseModel):
    """A copy that a replication group makes."""

    model_config = ConfigDict(extra="forbid")
    port: int
    instance: int
    backups: list[Any]


class Multicast(Answer):
    """A replication group."""

    mgid: int
    ports: list[int]
    replicas: list[Replica]


class Default(Answer):
    """The default action of a table."""

    table: str
    action: str
    parameters: dict[str, int]


class SwitchPlan(Answer):
    """What a switch must hold."""

    id: int
    entries: list[Entry]
    multicast: list[Multicast]
    defaults: list[Default]


class PlannedGroup(Answer):
    """A group of such a plan, and the number of its address."""

    id: int
    class_d: str
    number: int
    members: list[int]


class Plan(Answer):
    """What switches must hold that another controller programs."""

    switches: list[SwitchPlan]
    groups: list[PlannedGroup]
    failures: list[str]
