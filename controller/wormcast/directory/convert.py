"""Between the planner's agent plans and the messages of agent.proto."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from wormcast_planner import AgentGroup, AgentPlan, AgentStructure

from wormcast.agentrpc import agent_pb2
from wormcast.network.ids import Epoch

KEPT_SPARE = 1024
"""Encoded groups that are kept beyond those in use, until all unused ones are forgotten."""


@dataclass(frozen=True)
class Told:
    """What an agent is to follow."""

    plan: AgentPlan
    epoch: Epoch


class PlanEncoder:
    """Encodes plans of agents; groups that are the same objects as before only once."""

    def __init__(self) -> None:
        self._groups: dict[int, tuple[AgentGroup, bytes]] = {}

    def encode(self, told: Told) -> bytes:
        """The `Plan` message, encoded."""
        # Encoded messages one after another are the message that has the fields of all.
        head = agent_pb2.Plan(epoch=told.epoch, host_id=told.plan.host).SerializeToString()
        groups = (_field(5, self._encode_group(group)) for group in told.plan.groups)
        return b"".join((head, told.plan.encode_routes(), *groups))

    def encode_change(self, before: Told, told: Told) -> bytes | None:
        """The `PlanChange` message from a plan to another one, encoded; None where it has to be told whole."""
        if (routes := told.plan.encode_route_change(before.plan)) is None:
            return None
        changed, gone = told.plan.groups_changed(before.plan)
        head = agent_pb2.PlanChange(base=before.epoch, epoch=told.epoch, no_groups=gone)
        groups = (_field(9, self._encode_group(group)) for group in changed)
        return b"".join((head.SerializeToString(), routes, *groups))

    def prepare(self, groups: Iterable[AgentGroup]) -> None:
        """Encodes groups ahead: of many large ones it takes a while."""
        for group in groups:
            self._encode_group(group)

    def forget_unused(self, plans: Collection[AgentPlan]) -> None:
        """Forgets what no plan has, once it is much."""
        if len(self._groups) > 2 * sum(len(plan.groups) for plan in plans) + KEPT_SPARE:
            used = {id(group) for plan in plans for group in plan.groups}
            self._groups = {key: kept for key, kept in self._groups.items() if key in used}

    def _encode_group(self, group: AgentGroup) -> bytes:
        kept = self._groups.get(id(group))  # the object is kept too, so its id is not used again
        if kept is None:
            kept = (group, _group_message(group).SerializeToString())
            self._groups[id(group)] = kept
        return kept[1]


def controller_message(body: str, encoded: bytes) -> bytes:
    """A `ControllerMessage` with this body, from the body encoded."""
    return _field(agent_pb2.ControllerMessage.DESCRIPTOR.fields_by_name[body].number, encoded)


def _field(number: int, encoded: bytes) -> bytes:
    """An encoded message as a field of another one: its tag, its length, the message."""
    prefix = bytearray()
    for value in (number << 3 | 2, len(encoded)):
        while value >= 0x80:
            prefix.append(value & 0x7F | 0x80)
            value >>= 7
        prefix.append(value)
    return bytes(prefix) + encoded


def _group_message(group: AgentGroup) -> Any:
    return agent_pb2.Group(
        id=group.id,
        name=group.name,
        members=group.members,
        structures=[_structure_message(structure) for structure in group.structures],
        number=group.number,
        trees=[
            agent_pb2.SharedTree(
                links=[
                    agent_pb2.TreeLink(a=a, a_port=a_port, b=b, b_port=b_port)
                    for a, a_port, b, b_port in tree
                ]
            )
            for tree in group.trees
        ],
        roots=group.roots,
        sequencer=(
            None
            if group.sequencer is None
            else agent_pb2.Sequencer(host=group.sequencer[0], reign=group.sequencer[1])
        ),
        leaves=[agent_pb2.Leaf(host=host, switch=switch, port=port) for host, switch, port in group.leaves],
        mtu=group.mtu,
        sink=group.sink,
        gathered=None if group.gathered is None else _gathered_message(*group.gathered),
        left_out=[agent_pb2.LeftOut(host=host, reason=reason) for host, reason in group.left_out],
    )


def _gathered_message(epoch: int, origins: Iterable[tuple[int, int]]) -> Any:
    rows = [agent_pb2.GatheredOrigin(host=host, source=source) for host, source in origins]
    return agent_pb2.Gathered(epoch=epoch, origins=rows)


def _structure_message(structure: AgentStructure) -> Any:
    edges = [agent_pb2.TreeEdge(parent=parent, child=child) for parent, child in structure.tree_edges]
    return agent_pb2.Structure(
        bytes_most=structure.bytes_most,
        scheme=structure.scheme,
        order=structure.order,
        variant=structure.variant,
        k=structure.k,
        r=structure.r,
        rings=structure.rings,
        tree_edges=edges,
        expected=[agent_pb2.Expected(bytes=size, microseconds=us) for size, us in structure.expected],
        **{"lambda": structure.lambda_},
    )
