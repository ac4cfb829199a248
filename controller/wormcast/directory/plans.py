"""The plans that agents are to follow."""

from __future__ import annotations

from dataclasses import dataclass

from wormcast_planner import AgentPlan

from wormcast.network.ids import Epoch


@dataclass(frozen=True)
class IssuedPlan:
    """What an agent is to follow. The planner encodes it: a `ControllerMessage` of agent.proto."""

    plan: AgentPlan
    epoch: Epoch

    def encode(self) -> bytes:
        return self.plan.encode(self.epoch)

    def encode_change(self, before: IssuedPlan) -> bytes | None:
        """What is other than in a plan before; None where it has to be sent whole."""
        return self.plan.encode_change(self.epoch, before.plan, before.epoch)
