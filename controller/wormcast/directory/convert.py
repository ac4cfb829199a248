"""Between the planner's agent plans and the messages of agent.proto."""

from __future__ import annotations

from typing import Any

from wormcast_planner import AgentGroup, AgentPlan, AgentStructure

from wormcast.agentrpc import agent_pb2
from wormcast.network.ids import Epoch, HostId

KEPT_SPARE = 1024
"""Encoded groups that are kept beyond those in use, until all unused ones are forgotten."""


class PlanEncoder:
    """Encodes plans of agents; groups and routes that are the same objects as before only once."""

    def __init__(self) -> None:
        self._groups: dict[int, tuple[AgentGroup, bytes]] = {}
        self._routes: dict[HostId, tuple[AgentPlan, bytes]] = {}

    def encode(self, plan: AgentPlan, epoch: Epoch) -> Any:
        """The `Plan` message."""
        # Encoded messages one after another are the message that has the fields of all.
        groups = b"".join(self._encode_group(group) for group in plan.groups)
        head = agent_pb2.Plan(epoch=epoch, host_id=plan.host).SerializeToString()
        return agent_pb2.Plan.FromString(head + self._encode_routes(plan) + groups)

    def forget_unused(self, plans: dict[HostId, AgentPlan]) -> None:
        """Forgets what no plan has, once it is much."""
        self._routes = {host: kept for host, kept in self._routes.items() if host in plans}
        if len(self._groups) > 2 * sum(len(plan.groups) for plan in plans.values()) + KEPT_SPARE:
            used = {id(group) for plan in plans.values() for group in plan.groups}
            self._groups = {key: kept for key, kept in self._groups.items() if key in used}

    def _encode_group(self, group: AgentGroup) -> bytes:
        kept = self._groups.get(id(group))  # the object is kept too, so its id is not used again
        if kept is None:
            kept = (group, agent_pb2.Plan(groups=[_group_message(group)]).SerializeToString())
            self._groups[id(group)] = kept
        return kept[1]

    def _encode_routes(self, plan: AgentPlan) -> bytes:
        kept = self._routes.get(plan.host)
        if kept is None or not kept[0].has_routes_of(plan):
            kept = (plan, plan.encode_routes())
            self._routes[plan.host] = kept
        return kept[1]


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
    )


def _structure_message(structure: AgentStructure) -> Any:
    edges = [agent_pb2.TreeEdge(parent=parent, child=child) for parent, child in structure.tree_edges]
    return agent_pb2.Structure(
        bytes_most=structure.bytes_most,
        scheme=structure.scheme,
        order=structure.order,
        k=structure.k,
        r=structure.r,
        rings=structure.rings,
        tree_edges=edges,
        expected=[agent_pb2.Expected(bytes=size, microseconds=us) for size, us in structure.expected],
        **{"lambda": structure.lambda_},
    )
