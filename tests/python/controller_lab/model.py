"""A switch that executes updates as strictly as P4Runtime asks."""

from __future__ import annotations

from wormcast_planner import MulticastGroup, PortRate, SwitchState, TableDefault, Update


class FakeSwitch:
    """Executes updates; one that P4Runtime would refuse is an AssertionError."""

    def __init__(self, state: SwitchState | None = None) -> None:
        self.state = state or SwitchState()

    def write(self, update: Update) -> None:
        entity, operation = update.entity, update.operation
        groups = {group.mgid for group in self.state.multicast()}
        if isinstance(entity, TableDefault | PortRate):
            assert operation == "modify"
        elif isinstance(entity, MulticastGroup):
            assert (entity.mgid in groups) == (operation != "insert"), update
            assert entity.ports or operation == "delete", "a group without ports"
            if operation == "delete":
                users = [entry for entry in self.state.entries() if entry.mgid == entity.mgid]
                assert not users, f"{update} pulls the group from under an entry"
        elif operation != "delete" and entity.mgid is not None:
            assert entity.mgid in groups, f"{update} names no group"
        self.state.execute(update)
