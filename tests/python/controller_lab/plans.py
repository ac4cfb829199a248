"""Plans as agents read them."""

from __future__ import annotations

from wormcast.agentrpc import agent_pb2
from wormcast_planner import AgentPlan


def decoded(plan: AgentPlan) -> agent_pb2.Plan:
    """What an agent is sent."""
    return agent_pb2.ControllerMessage.FromString(plan.encode(1)).plan


def decoded_group(plan: AgentPlan, name: str) -> agent_pb2.Group:
    (group,) = (group for group in decoded(plan).groups if group.name == name)
    return group
