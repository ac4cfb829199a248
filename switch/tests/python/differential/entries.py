"""Commands that fill a program's tables, groups, sessions, meters and registers, made from its
packets, so that a good share of them hits."""

from random import Random
from typing import Any

from differential.packets import Packet
from differential.program import Action, Array, FieldName, Key, Program, Table
from differential.values import Values

Json = dict[str, Any]
ENTRIES_MAX = 8  # of a table
MEMBERS_MAX = 4  # of a profile
NODES_MAX = 3  # of a multicast group
SESSION_MAX = 1 << 15
# So slow that no token comes while a case runs: colours do not depend on time.
METER_RATE = 1e-9
TERNARY = ("ternary", "range", "optional")
INVALID_SHARE = 0.02
ADDS = ("table_add", "table_indirect_add", "table_indirect_add_with_group")
LAG_SHARE = 0.15  # of nodes that have a link aggregation group
LAG_MAX = 3
TWICE_SHARE = 0.1  # of entries that are there already that are added all the same


class Writer:
    """The commands of one case."""

    def __init__(self, program: Program, values: Values, packets: list[Packet]) -> None:
        self.program = program
        self.values = values
        self.rng: Random = values.rng
        self.packets = packets
        self.commands: list[Json] = []
        self.groups: dict[str, int] = {}  # how many each profile has
        self.members: dict[str, int] = {}
        self.nodes: list[int | None] = []  # of multicast groups; None: of a group that is gone
        self.after = 0  # packets that come before what is added

    @property
    def replicates(self) -> bool:
        """Whether multicast groups do something."""
        uses = "mcast_grp" in str(self.program.json["actions"])
        return uses or "clone" in " ".join(self.program.primitives)

    def write(self) -> list[Json]:
        self._replication()
        self._sessions()
        self._arrays()
        self._value_sets()
        for profile, actions in self.program.profile_actions().items():
            self._profile(profile, actions)
        for table in self.program.tables:
            self._table(table)
        return self.commands

    def add(self, do: str, **arguments: Any) -> None:
        after: Json = {"after": self.after} if self.after else {}
        self.commands.append({"do": do, **arguments, **after})

    def _replication(self) -> None:
        if not self.replicates:
            return
        for lag in range(LAG_MAX + 1):
            if self.rng.random() < 0.3:
                ports = self.rng.sample(range(8), self.rng.randint(1, 4))
                self.add("mc_set_lag_membership", lag=lag, ports=sorted(ports))
        for group in self.values.groups:
            if self.rng.random() < 0.2:
                continue
            self.add("mc_mgrp_create", group=group)
            for _ in range(self.rng.randint(0, NODES_MAX)):
                self.node(group)

    def node(self, group: int) -> None:
        """A node of a group, unless it would have a replica twice, which is refused here
        (drop-in.md)."""
        ports = [one for one in self.values.ports if one < 256]
        chosen = sorted(self.rng.sample(ports, self.rng.randint(0, min(3, len(ports)))))
        rid, lags = self.rng.choice([0, 1, 1, 5, 65535]), []
        if self.rng.random() < LAG_SHARE:
            chosen, lags = [], [self.rng.randint(0, LAG_MAX)]
            rid = 100 + len(self.nodes)  # of its own: its ports may be those of other nodes
        if any(
            one["do"] == "mc_node_create"
            and one["group"] == group
            and one["rid"] == rid
            and set(one["ports"]) & set(chosen)
            for one in self.commands
        ):
            return
        self.add("mc_node_create", group=group, rid=rid, ports=chosen, lags=lags)
        self.nodes.append(group)

    def _sessions(self) -> None:
        if not any(one.startswith("clone_") for one in self.program.primitives):
            return
        for session in self.values.sessions:
            if session < SESSION_MAX and self.rng.random() < 0.85:
                self.session(session)

    def session(self, session: int) -> None:
        """A clone session to a port, a multicast group or both."""
        port, group = self.values.port(), self.rng.choice(self.values.groups)
        ways = [{"port": port}, {"group": group}, {"port": port, "group": group}]
        # With both, BMv2's copy to the port has the `egress_rid` of the group's last one.
        both = 0 if "egress_rid" in self.program.text.decode() else 1
        self.add("mirroring_add", session=session, **self.rng.choices(ways, [6, 2, both])[0])

    def _arrays(self) -> None:
        for register in self.program.registers:
            for _ in range(self.rng.randint(0, 3)):
                self.register(register)
        for meter in self.program.meters:
            if self.rng.random() < 0.7:
                self.add("meter_array_set_rates", meter=meter.name, rates=self.rates())

    def register(self, register: Array) -> None:
        value = self.values.draw(min(register.width, 63))
        self.add("register_write", register=register.name, index=self.index(register.size), value=value)

    def index(self, size: int) -> int:
        """One of the first cells of an array, sometimes one that is not there."""
        if self.rng.random() < INVALID_SHARE:
            return size
        return self.rng.randrange(min(size, 16)) if size else 0

    def rates(self) -> list[tuple[float, int]]:
        """Committed and peak rate and burst; BMv2 wants the bursts whole and the rates rising."""
        bursts = sorted(self.rng.choices([1, 2, 3, 64, 200, 1000], k=2))
        return [(METER_RATE, bursts[0]), (2 * METER_RATE, bursts[1])]

    def _value_sets(self) -> None:
        for name, width in self.program.value_sets.items():
            wanted = [value for packet in self.packets for set_, value in packet.members if set_ == name]
            wanted = list(dict.fromkeys(wanted))[:2]
            for value in [*wanted, self.values.draw(width)]:
                self.add("parse_value_set_add", value_set=name, value=value, width=width)

    def _profile(self, profile: str, actions: tuple[int, ...]) -> None:
        self.members[profile] = self.groups[profile] = 0
        for _ in range(self.rng.randint(1, MEMBERS_MAX)):
            self.member(profile, actions)
        selects = profile in self.program.selecting
        for group in range(self.rng.randint(1, 2) if selects else 0):
            self.add("act_prof_create_group", profile=profile)
            self.groups[profile] += 1
            count = self.rng.randint(min(1, self.members[profile]), self.members[profile])
            for member in self.rng.sample(range(self.members[profile]), count):
                self.add("act_prof_add_member_to_group", profile=profile, member=member, group=group)

    def member(self, profile: str, actions: tuple[int, ...]) -> None:
        """A member of a profile that has room for one: BMv2 does not know how large they are."""
        if self.members[profile] >= self.program.profile_sizes.get(profile, MEMBERS_MAX):
            return
        action = self.program.actions[self.rng.choice(actions)]
        self.add("act_prof_create_member", profile=profile, action=action.name, data=self.data(action))
        self.members[profile] += 1

    def data(self, action: Action) -> list[tuple[int, int]]:
        """Arguments for an action, and their widths."""
        data = []
        for at, width in enumerate(action.widths):
            targets = [name for parameter, name in action.targets if parameter == at]
            value = self.values.of_field(targets[0] if targets else ("", ""), width)
            if at in action.ports and self.rng.random() < 0.95:
                value = self.values.port()
            elif at in action.groups and self.rng.random() < 0.9:
                value = self.rng.choice(self.values.groups)
            elif at in action.sessions and self.rng.random() < 0.9:
                value = self.rng.choice(self.values.sessions)
            data.append((value & (1 << width) - 1, width))
        return data

    def _table(self, table: Table) -> None:
        if not table.actions or (not table.keys and table.constant_default):
            return
        if table.kind == "simple" and not table.constant_default and self.rng.random() < 0.4:
            action = self.program.actions[self.rng.choice(table.actions)]
            self.add("table_set_default", table=table.name, action=action.name, data=self.data(action))
        if not table.keys or (table.constant_entries and self.rng.random() < 1 - INVALID_SHARE):
            return
        most = min(ENTRIES_MAX, table.size)
        priorities = self.rng.sample(range(1, 100), ENTRIES_MAX + 1)
        for at in range(self.rng.randint(min(1, most), most)):
            key = self.key(table)
            again = any(one.get("table") == table.name and one.get("key") == key for one in self.commands)
            if again and self.rng.random() > TWICE_SHARE:
                continue
            self.entry(table, key, priorities[at])
            if table.meter:
                last = sum(one.get("table") == table.name and "key" in one for one in self.commands) - 1
                self.add("table_set_meter_rates", table=table.name, entry=last, rates=self.rates())
        self._change(table)

    def entry(self, table: Table, key: list[Json], priority: int) -> None:
        common: Json = {"table": table.name, "key": key}
        if any(part["kind"] in TERNARY for part in key):
            common["priority"] = priority
        if table.kind == "simple":
            action = self.program.actions[self.rng.choice(table.actions)]
            self.add("table_add", **common, action=action.name, data=self.data(action))
            return
        profile = table.profile or ""
        if self.groups.get(profile) and self.rng.random() < 0.7:
            group = self.rng.randrange(self.groups[profile])
            self.add("table_indirect_add_with_group", **common, group=group)
        else:
            member = self.rng.randrange(max(1, self.members.get(profile, 0)))
            self.add("table_indirect_add", **common, member=member)

    def _change(self, table: Table) -> None:
        """Changes or takes away an entry of some tables."""
        added = sum(one["do"] == "table_add" and one["table"] == table.name for one in self.commands)
        if not added or self.rng.random() > 0.2:
            return
        entry = self.rng.randrange(added)
        if self.rng.random() < 0.5:
            self.add("table_delete", table=table.name, entry=entry)
            return
        action = self.program.actions[self.rng.choice(table.actions)]
        data = self.data(action)
        self.add("table_modify", table=table.name, entry=entry, action=action.name, data=data)

    def key(self, table: Table) -> list[Json]:
        """The key of an entry, mostly one that some packet has."""
        packet = self.rng.choice(self.packets) if self.packets and self.rng.random() < 0.75 else None
        return [self._part(key, packet.fields if packet else {}) for key in table.keys]

    def _part(self, key: Key, fields: dict[FieldName, int]) -> Json:
        width, top = key.width, (1 << key.width) - 1
        value = fields.get(key.field)
        if value is None:
            value = self.values.of_field(key.field, width)
            if key.field[1] in ("ingress_port", "egress_port", "egress_spec"):
                value = self.values.port()
        value &= top
        if key.field[1] == "$valid$" and not fields:
            value = self.rng.choice([1, 1, 0])
        part: Json = {"kind": key.kind, "width": width, "value": value}
        if key.kind == "lpm":
            part["length"] = self.rng.choice([width, width, 0, self.rng.randint(0, width)])
            part["value"] &= top << width - part["length"] & top
        elif key.kind in ("ternary", "optional"):
            masks = [top, top, 0, top ^ top >> max(1, width // 2), self.rng.getrandbits(width)]
            part["mask"] = self.rng.choice(masks)
            part["value"] &= part["mask"]
        elif key.kind == "range":
            ends = [value, self.rng.choice([value, self.values.draw(width), top, 0])]
            part = {"kind": key.kind, "width": width, "low": min(ends), "high": max(ends)}
        return part
