"""Between the planner's agent plans and the messages of agent.proto."""

from __future__ import annotations

from typing import Any

from wormcast.agentrpc import agent_pb2
from wormcast.fabric.ids import Epoch, HostId
from wormcast.fabric.state import AgentPlan


def encode_plans(plans: dict[HostId, AgentPlan], epoch: Epoch) -> dict[HostId, Any]:
    """The `Plan` message of every agent."""
    return {host: encode_plan(plan, epoch) for host, plan in plans.items()}


def encode_plan(plan: AgentPlan, epoch: Epoch) -> Any:
    """The `Plan` message."""
    return agent_pb2.Plan(
        epoch=epoch,
        host_id=plan.host,
        routes=[agent_pb2.Route(host=host, ports=ports) for host, ports in plan.routes],
        tree_routes=[agent_pb2.Route(host=host, ports=ports) for host, ports in plan.tree_routes],
        groups=[
            agent_pb2.Group(
                id=group.id,
                name=group.name,
                scheme=group.scheme,
                members=group.members,
                order=group.order,
                k=group.k,
                tree_edges=[
                    agent_pb2.TreeEdge(parent=parent, child=child) for parent, child in group.tree_edges
                ],
            )
            for group in plan.groups
        ],
    )
