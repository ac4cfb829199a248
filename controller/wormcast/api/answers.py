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
    up: Annotated[bool, Field(description="its session is open, or was lost within the last second")]
    silent: Annotated[
        bool, Field(description="it returns no echo: its tables stay as they are, and routes avoid it")
    ]
    connected: bool
    ports_down: Annotated[list[int] | None, Field(description="null: the switch does not say")]
    last_error: str | None
    updates_written: int
    writes_refused: int
    planned: Installed
    installed: Installed
    in_step: Annotated[bool, Field(description="it holds the plan")]
    read_back_s: Annotated[
        float | None, Field(description="since when all that it holds has been read back; null: not yet")
    ]
    strayed: Annotated[int, Field(description="how much was found other than written, and written again")]
    waited_for_s: Annotated[float, Field(description="for how long the plan has waited for it")]
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
    installed: Annotated[int, Field(description="as its agent says")]
    refused: list[Refused]
    refused_total: int
    max: Annotated[int | None, Field(description="how many its agent takes")]


class Host(Answer):
    """A host."""

    id: int
    name: str
    state: Annotated[
        Literal["up", "plain", "dead", "silent", "unlocated", "lost"],
        Field(
            description="up: its stream is open and its LLDP is heard; plain: it has no agent; dead: its stream is closed; silent: a neighbour in a group got no answer from it; unlocated: its LLDP has not been heard yet; lost: it is not heard any more"
        ),
    ]
    gone: Annotated[
        bool, Field(description="without a sign of life for so long that it takes no part in groups")
    ]
    away_since: Annotated[str | None, Field(description="of one that is gone: its last sign of life")]
    reason: Annotated[str | None, Field(description="why a neighbour in a group holds it for silent")]
    switch: int | None
    port: int | None
    declared: Annotated[bool, Field(description="its port was given by the operator")]
    transit: Annotated[bool, Field(description="its agent allows worms of others")]
    transit_busy: Annotated[
        bool,
        Field(
            description="its buffer for them has been full: routes avoid it until it has been calm for 30 s"
        ),
    ]
    re_injects: Annotated[bool, Field(description="routes may go through it")]
    rate_bps: Annotated[int | None, Field(description="how fast it may send; null: at any rate")]
    rate_kept_by: Annotated[
        list[Literal["agent", "switch"]],
        Field(description="agent: it paces what it sends; switch: it drops what is above"),
    ]
    agent: bool
    attached: bool
    mac: str | None
    mtu: int | None
    version: str | None
    plan_epoch: int | None
    plan_error: Annotated[str | None, Field(description="why its agent refuses the plan as a whole")]
    groups: HostGroups


class RouteUses(Answer):
    """How many messages took each route to a host."""

    host: int
    messages: Annotated[
        list[int], Field(description="by route, as of the agent's last report, about one a second")
    ]


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
    takes_part: Annotated[bool, Field(description="it is in the plan in force")]
    reason: str | None
    away_since: str | None
    plan_epoch: int | None
    planned: bool
    installed: bool
    receives: Annotated[
        bool | None,
        Field(
            description="it has a receiver open in the group as it is planned now, for messages of all other members; null: "
            "its agent is not connected, or does not say"
        ),
    ]
    receives_from: Annotated[
        list[int], Field(description="where its receivers are open for these members alone")
    ]
    refused: Annotated[
        str | None,
        Field(
            description="why its agent does not take the group: it is left out until the group changes or it registers again"
        ),
    ]


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
    origins: Annotated[list[int], Field(description="those whose ACKs are gathered")]
    by_hosts: Annotated[list[HostReason], Field(description="those whose ACKs come by hosts alone")]


class Group(Answer):
    """A group: what was asked for, and who takes part."""

    id: int
    name: str
    scheme: str
    members: Annotated[list[int], Field(description="as configured")]
    left_out: Annotated[list[LeftOut], Field(description="those of the members that take no part now")]
    parameters: dict[str, Any]
    structures: list[Structure]
    mtu: int | None
    trees: list[list[Link]]
    class_d: str | None
    class_d_mode: str
    class_d_number: int | None
    class_d_shared_with: Annotated[
        list[int],
        Field(description="groups whose address has the same number: switches deliver to all their members"),
    ]
    sink: bool
    gather: bool
    gathered: Annotated[Gathered | None, Field(description="of a group with gather: how that is")]
    epoch: int
    root: int | None
    number: int | None
    fallback: Annotated[str | None, Field(description="why a group of scheme table goes by TREE routes")]
    sequencer: Annotated[
        int | None, Field(description="of an ordered group: the member that gives the order")
    ]
    state: Annotated[list[Member], Field(description="each member")]
    switches_refused: Annotated[list[SwitchReason], Field(description="tried again after 1, 2, … 60 s")]


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
    step: Annotated[int, Field(description="the one under way")]
    steps: int
    what: str
    method: str
    routes: Annotated[int, Field(description="pairs of hosts that get other routes")]
    stopped: Annotated[int, Field(description="pairs of hosts that stop for the first step")]
    waiting_for: Annotated[list[int], Field(description="hosts that have not confirmed it")]
    waiting_count: int


class RoutingState(Setting):
    """Unicast routes: what is wanted, and what came of it."""

    roots: Annotated[list[int], Field(description="root of each connected part, in force")]
    root_away: Annotated[bool, Field(description="the wanted root is not up; its part has chosen another")]
    lengthened_pairs: Annotated[
        int,
        Field(description="pairs of hosts with longer routes in force because some hosts do not re-inject"),
    ]
    runs_as: Annotated[
        str | None,
        Field(
            description="where no host re-injects: what the routes of an algorithm that cuts paths at hosts are then"
        ),
    ]
    change: Change | None
    left_behind: Annotated[
        list[int], Field(description="hosts that a step went on without: they may still use older routes")
    ]
    left_behind_count: int


class Late(Answer):
    """Worst delays of the last seconds."""

    seconds: float
    controller_ms: Annotated[int, Field(description="of the controller's own work")]
    agents: Annotated[int, Field(description="how many agents reported theirs")]
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
    waiting_for: Annotated[list[int], Field(description="switches that hold up the plan")]
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
    """Something that happened; further fields are those of its kind.

    A change of routes tells `change_planned` (`steps`, `method`, `routes`: pairs of hosts concerned, `stopped`: pairs that
    stop for the first step), `change_step` (agents are being sent a step), `agent_slow` (one has not confirmed it),
    `agent_left_behind` (the step goes on without it), `agent_caught_up`, `change_drained` (worms of the step before have
    left, `after_ms` since it began) and `change_done`, unless another change replaces it.

    `transfer` tells that a file has been sent, or will not be: by `transfer`, its number at `/v1/transfers`, with its
    state there.

    Failures are `plan_failed`, `plan_refused` (by an agent), `switch_refused`, `switch_strayed` (somebody else changed
    what it holds, which is written again), `task_failed`, `state_lost`; they name the group or the switch.
    """

    model_config = ConfigDict(extra="allow")
    number: int
    time_s: float
    kind: str


class Events(Answer):
    """The kept events."""

    events: list[Event]
