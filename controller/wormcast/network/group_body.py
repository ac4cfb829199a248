"""A group as REST has it, and as whoever makes one asks for it."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr
from wormcast_planner import FAN_OUT_DEFAULT, HOST_ID_MAX, LAMBDA_MAX, SHARED_TREES_MAX

from wormcast.network.body import Body
from wormcast.network.groups import (
    COPIED,
    FAN_OUT_MAX,
    GROUP_BOUND,
    K_MAX,
    PACKETS_MAX,
    RATE_BITS_MAX,
    RATE_BITS_MIN,
    SCHEME_DEFAULT,
    SCHEMES,
)

RATE = f"most bits of messages that a host sends to the group a second, {RATE_BITS_MIN} to {RATE_BITS_MAX}; 0: any rate"


class GroupRateBody(Body):
    """The rate of a group."""

    rate_bits: Annotated[StrictInt, Field(description=RATE)]


class ParametersBody(Body):
    """Shape of the structure; what is absent is chosen."""

    k: Annotated[
        StrictInt | None, Field(description=f"k-binomial: most children of a host, 1 to {K_MAX}")
    ] = None
    fan_out: Annotated[
        StrictInt | None,
        Field(description=f"tree: most children of a host, 1 to {FAN_OUT_MAX}; {FAN_OUT_DEFAULT} if absent"),
    ] = None
    packets: Annotated[
        StrictInt | None,
        Field(
            description=f"k-binomial: packets in a typical message, from which k follows, up to {PACKETS_MAX}"
        ),
    ] = None
    lambda_: Annotated[
        StrictInt | None,
        Field(
            alias="lambda",
            description=f"postal: time until a message has been received, in send times, 1 to {LAMBDA_MAX}; "
            "by the costs of the fabric if absent",
        ),
    ] = None
    r: Annotated[
        StrictInt | None,
        Field(
            description=f"mu-torus: members of a chain, 1 to {HOST_ID_MAX}; as many as a ring has if absent"
        ),
    ] = None
    variant: Annotated[
        StrictStr | None,
        Field(
            description="circuit: omit-last, or return, where messages go on to their origin, which compares what "
            "comes back with what it sent; omit-last if absent"
        ),
    ] = None
    guard: Annotated[
        StrictStr | None,
        Field(
            description="switch, table, broadcast: A copies along the spanning tree, B the same through its root, "
            "and the group is ordered (not table), C along trees of the group's own; A if absent"
        ),
    ] = None
    least: Annotated[
        StrictStr | None,
        Field(description="guard C: what these trees have little of, links or depth; links if absent"),
    ] = None
    trees: Annotated[
        StrictInt | None,
        Field(
            description=f"switch with guard C: over how many trees messages spread, 1 to {SHARED_TREES_MAX}; "
            "1 if absent"
        ),
    ] = None
    ordered: Annotated[
        StrictBool | None,
        Field(description="all members read the messages of all origins in one order; false if absent"),
    ] = None
    rate_bits: Annotated[StrictInt | None, Field(description=RATE)] = None


class GroupBody(Body):
    """A group."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "name": "images",
                    "scheme": "k-binomial",
                    "members": [0, 1, 2, 3],
                    "parameters": {"packets": 64},
                },
                {"id": 7, "scheme": "switch", "members": ["h0", "h5"], "class_d": "239.1.2.7"},
            ]
        },
    )
    id: Annotated[StrictInt | None, Field(description=f"{GROUP_BOUND}; a free one if absent")] = None
    name: Annotated[StrictStr | None, Field(description="unique; group-<id> if absent")] = None
    scheme: Annotated[StrictStr, Field(description=", ".join(SCHEMES))] = SCHEME_DEFAULT
    members: Annotated[list[StrictInt | StrictStr], Field(description="hosts by id or name")]
    parameters: ParametersBody | None = None
    class_d: Annotated[
        StrictStr | None,
        Field(
            description="IP multicast address whose packets the group carries; where addresses share a number "
            "(narrow mode: the same low 8 bits) the switches deliver to the union of their groups' members"
        ),
    ] = None
    sink: Annotated[
        StrictBool,
        Field(
            description="to measure: where no receiver is open, agents take the messages of the group and drop them; "
            "the group is not kept across restarts of the controller"
        ),
    ] = False
    gather: Annotated[
        StrictBool,
        Field(
            description=f"{', '.join(COPIED)}: switches gather the ACKs of the messages that they copy, so that an origin "
            "gets one in place of many; false if absent"
        ),
    ] = False
