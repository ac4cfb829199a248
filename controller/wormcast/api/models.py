"""Bodies of the REST API, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag
from wormcast_planner import (
    PORT_ID_MAX,
    SWITCH_ID_MAX,
    RoutingError,
    algorithms,
)

from wormcast.network.body import Body
from wormcast.network.group_body import GroupBody
from wormcast.network.groups import (
    GROUP_BOUND,
    SCHEMES,
)
from wormcast.network.ids import SwitchId
from wormcast.network.routing import Routing
from wormcast.network.topology import Grid, GridError
from wormcast.reconcile.errors import RequestError

GROUPS_MAX = 4096
"""Groups of one request."""


class SwitchBody(Body):
    """A switch and where its P4Runtime server listens."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"id": 0, "address": "127.0.0.1:50051", "device_id": 0, "ports": 8}]},
    )
    id: Annotated[StrictInt, Field(description=f"0 to {SWITCH_ID_MAX}")]
    address: Annotated[StrictStr, Field(description="host:port or unix:/path")]
    device_id: Annotated[StrictInt, Field(description="P4Runtime device id")] = 0
    ports: Annotated[
        StrictInt, Field(description=f"how many ports it has, numbered from 0; 1 to {PORT_ID_MAX + 1}")
    ]
    interfaces: Annotated[
        dict[StrictStr, StrictStr] | None,
        Field(
            description="names of its ports' interfaces by port, where they are in the controller's network "
            "namespace: their MTUs are checked and what the kernel drops there is counted"
        ),
    ] = None
    metrics: Annotated[
        StrictStr | None, Field(description="host:port of the page of metrics of wormcast-switch")
    ] = None
    device_ports: Annotated[
        dict[StrictStr, StrictInt] | None,
        Field(
            description="with the program for Tofino: the chip's number of each port, of 254 (recirculation) and of "
            "510 (CPU)"
        ),
    ] = None


class GridBody(Body):
    """Coordinates of the switches of a torus or mesh: ids count through them, the first dimension first."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"radix": [4, 4], "wraps": True}]}
    )
    radix: Annotated[list[StrictInt], Field(description="switches along each dimension")]
    wraps: Annotated[StrictBool, Field(description="whether the ends are joined: a torus")] = False


class SwitchesBody(Body):
    """Several switches: the form of the file `wormcast controller run --switches` takes."""

    switches: list[SwitchBody]
    grid: Annotated[
        GridBody | None,
        Field(description="coordinates of all switches, for the torus schemes; as before if absent"),
    ] = None


def _one_or_more(body: Any) -> str:
    return "several" if isinstance(body, dict) and "switches" in body else "one"


OneOrMoreSwitches = Annotated[
    Annotated[SwitchBody, Tag("one")] | Annotated[SwitchesBody, Tag("several")], Discriminator(_one_or_more)
]


class HostBody(Body):
    """A host without an agent, or one whose place is to be fixed."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "printer", "switch": 2, "port": 5}]}
    )
    name: Annotated[StrictStr | None, Field(description="unique; host-<id> if absent")] = None
    switch: StrictInt
    port: StrictInt
    id: Annotated[StrictInt | None, Field(description="lowest free one if absent")] = None


class GroupsBody(Body):
    """Several groups: all are made, or none."""

    groups: Annotated[list[GroupBody], Field(max_length=GROUPS_MAX)]


def _one_list_or_more(body: Any) -> str:
    if isinstance(body, list):
        return "list"
    return "several" if isinstance(body, dict) and "groups" in body else "one"


OneOrMoreGroups = Annotated[
    Annotated[GroupBody, Tag("one")]
    | Annotated[GroupsBody, Tag("several")]
    | Annotated[Annotated[list[GroupBody], Field(max_length=GROUPS_MAX)], Tag("list")],
    Discriminator(_one_list_or_more),
]


class GroupKeysBody(Body):
    """Groups by id or name: all are deleted, or none."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"groups": [4, "images"]}]})
    groups: Annotated[list[StrictInt | StrictStr], Field(min_length=1, max_length=GROUPS_MAX)]


class MembersBody(Body):
    """Hosts by id or name."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"members": [4, "h7"]}]})
    members: list[StrictInt | StrictStr]


class RoutingBody(Body):
    """Which unicast routes the fabric is to use."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"algorithm": "rmit", "root": 3}]}
    )
    algorithm: Annotated[StrictStr, Field(description=f"one of {', '.join(algorithms())}")]
    root: Annotated[
        StrictInt | None,
        Field(
            description="root switch; null: each connected part chooses, as one does that the root is not in"
        ),
    ] = None
    balanced: Annotated[
        StrictBool, Field(description="paths, and unless it is given the root, that lower the largest load")
    ] = False


def read_routing(body: RoutingBody) -> Routing:
    """The same, checked. Raises `RequestError`."""
    if body.algorithm not in (known := algorithms()):
        raise RequestError(
            422, f"there is no algorithm {body.algorithm!r}", value=body.algorithm, choices=known
        )
    if body.root is not None and not 0 <= body.root <= SWITCH_ID_MAX:
        raise RequestError(
            422, f"switch {body.root} is out of range", value=body.root, bound=f"0 to {SWITCH_ID_MAX}"
        )
    try:
        root = None if body.root is None else SwitchId(body.root)
        return Routing(body.algorithm, root, body.balanced)
    except RoutingError as error:
        raise RequestError(422, str(error), value=body.algorithm) from None


def read_grid(body: GridBody) -> Grid:
    """The same, checked. Raises `RequestError`."""
    try:
        return Grid(tuple(body.radix), body.wraps)
    except GridError as error:
        raise RequestError(422, str(error), value=error.value, bound=error.bound) from None


class VerifyBody(Body):
    """Routes to check, in the form of the routes file, and the topology they run on."""

    topology: Annotated[dict[str, Any] | None, Field(description="topology file; the fabric's if absent")] = (
        None
    )
    routes: Annotated[dict[str, Any] | None, Field(description="routes file; those in force if absent")] = (
        None
    )


class PlanGroupBody(Body):
    """A group of a network that another controller programs."""

    id: Annotated[StrictInt | None, Field(description=f"{GROUP_BOUND}; a free one if absent")] = None
    members: Annotated[list[StrictInt], Field(description="hosts of the topology, by id")]
    class_d: Annotated[StrictStr, Field(description="IP multicast address whose packets the group carries")]


class PlanBody(Body):
    """A network and its groups, for a controller that programs the switches itself."""

    topology: Annotated[dict[str, Any] | None, Field(description="topology file; the fabric's if absent")] = (
        None
    )
    groups: Annotated[list[PlanGroupBody], Field(description="up to 4096")] = []  # noqa: RUF012 - pydantic copies it
    class_d: Annotated[StrictStr, Field(description="narrow or wide: how addresses become numbers")] = (
        "narrow"
    )


class ErrorDetail(BaseModel):
    """What was wrong and what would do."""

    code: Annotated[str, Field(description="a word that tells one mistake from another and stays the same")]
    message: str
    line: Annotated[int | None, Field(description="where the body is not JSON, from 1")]
    column: int | None
    value: Any = None
    bound: str | None = None
    choices: list[Any] | None = None


class ErrorAnswer(BaseModel):
    """Every answer with a status of 400 or above."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "code": "outside-bounds",
                        "message": "unknown scheme 'flood'",
                        "line": None,
                        "column": None,
                        "value": "flood",
                        "choices": list(SCHEMES),
                    }
                }
            ]
        }
    )
    error: ErrorDetail
