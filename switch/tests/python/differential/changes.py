"""Changes of what was written: entries, profiles, multicast groups, clone sessions, arrays and value
sets, between packets."""

from collections.abc import Callable
from functools import partial
from typing import Any

from differential.entries import ADDS, INVALID_SHARE, Writer
from differential.program import Array, Table

POINTS_MAX = 3  # between packets, where something is changed
CHANGES_MAX = 6  # at one of them
TIMEOUT_MS = 3_600_000  # so long that no entry grows old while a case runs
LAG_MAX = 3
Change = Callable[[], None]


class Changer:
    """Writes changes with the writer that wrote what they change."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.program, self.values, self.rng = writer.program, writer.values, writer.rng
        # BMv2 no longer counts what an entry refers to once its change was refused for what it should
        # refer to: either entries are changed in a case, or members and groups go.
        self.takes_away = self.rng.random() < 0.5
        self.changes = self._changes()

    def write(self) -> bool:
        """Some changes at some points; False where there is nothing to change."""
        if not self.changes or not self.writer.packets:
            return False
        count = len(self.writer.packets)
        for after in sorted(
            self.rng.sample(range(1, count + 1), min(count, self.rng.randint(1, POINTS_MAX)))
        ):
            self.writer.after = after
            for _ in range(self.rng.randint(1, CHANGES_MAX)):
                self.rng.choice(self.rng.choice(self.changes))()
        return True

    def _changes(self) -> list[list[Change]]:
        """What there is to change, as lists of which one is as likely as another."""
        program, bound = self.program, self._bind
        found: list[list[Change]] = []
        for table in program.tables:
            if table.actions and table.keys and not table.constant_entries:
                kinds = self._of_direct if table.kind == "simple" else self._of_indirect
                found.append(bound(table, *kinds, *self._of_any(table)))
        found += [bound(name, *self._of_profile(name)) for name in program.profile_actions()]
        if self.writer.replicates:
            found.append([self._node_new, self._node_update, self._node_destroy, self._dissociate, self._lag])
            found.append([self._group_new, self._group_destroy])
        if any(one.startswith("clone_") for one in program.primitives):
            found.append([self._session_add, self._session_add, self._session_delete])
        found += [bound(one, self._register_write, self._register_range) for one in program.registers]
        found += [bound(one, self._counter_write, self._counter_reset) for one in program.counters]
        found += [bound(one, self._meter_rates) for one in program.meters]
        found += [bound(name, *self._of_value_set) for name in program.value_sets]
        return found

    @staticmethod
    def _bind(what: Any, *changes: Callable[[Any], None]) -> list[Change]:
        return [partial(change, what) for change in changes]

    def _add(self, do: str, **arguments: Any) -> None:
        self.writer.add(do, **arguments)

    def _one_of(self, count: int) -> int:
        """One of so many things that were added, sometimes one more than there are."""
        return self.rng.randrange(count) if count and self.rng.random() > INVALID_SHARE else count

    def _entry(self, table: Table) -> int:
        done = self.writer.commands
        return self._one_of(sum(one["do"] in ADDS and one["table"] == table.name for one in done))

    @property
    def _of_direct(self) -> tuple[Callable[[Table], None], ...]:
        return (self._entry_new, self._modify, self._delete, self._default, self._default_reset)

    @property
    def _of_indirect(self) -> tuple[Callable[[Table], None], ...]:
        some = (self._entry_new, self._indirect_delete, self._indirect_default)
        return some if self.takes_away else (*some, self._indirect_modify)

    def _of_any(self, table: Table) -> list[Callable[[Table], None]]:
        found: list[Callable[[Table], None]] = [self._clear] if self.rng.random() < 0.3 else []
        found += [self._entry_counter, self._entry_counters] if table.counters else []
        found += [self._entry_rates] if table.meter else []
        return found + ([self._timeout] if table.timeouts else [])

    def _entry_new(self, table: Table) -> None:
        priorities = {one.get("priority") for one in self.writer.commands if one.get("table") == table.name}
        free = [one for one in range(100, 140) if one not in priorities]
        self.writer.entry(table, self.writer.key(table), self.rng.choice(free))

    def _modify(self, table: Table) -> None:
        action = self.program.actions[self.rng.choice(table.actions)]
        data = self.writer.data(action)
        self._add("table_modify", table=table.name, entry=self._entry(table), action=action.name, data=data)

    def _delete(self, table: Table) -> None:
        self._add("table_delete", table=table.name, entry=self._entry(table))

    def _default(self, table: Table) -> None:
        action = self.program.actions[self.rng.choice(table.actions)]
        data = self.writer.data(action)
        self._add("table_set_default", table=table.name, action=action.name, data=data)

    def _default_reset(self, table: Table) -> None:
        self._add("table_reset_default", table=table.name)

    def _clear(self, table: Table) -> None:
        self._add("table_clear", table=table.name)

    def _timeout(self, table: Table) -> None:
        do = "table_set_timeout" if table.kind == "simple" else "table_indirect_set_timeout"
        self._add(do, table=table.name, entry=self._entry(table), value=TIMEOUT_MS)

    def _entry_counter(self, table: Table) -> None:
        value = self.rng.choice([0, 1, 1 << 40])
        self._add("table_write_counter", table=table.name, entry=self._entry(table), value=value)

    def _entry_counters(self, table: Table) -> None:
        self._add("table_reset_counters", table=table.name)

    def _entry_rates(self, table: Table) -> None:
        rates = self.writer.rates()
        self._add("table_set_meter_rates", table=table.name, entry=self._entry(table), rates=rates)

    def _indirect_modify(self, table: Table) -> None:
        name, entry = table.profile or "", self._entry(table)
        # Those that are there: see `takes_away`.
        member, group = (
            self.rng.randrange(max(1, counts.get(name, 0)))
            for counts in (self.writer.members, self.writer.groups)
        )
        if self.writer.groups.get(name) and self.rng.random() < 0.5:
            self._add("table_indirect_modify_with_group", table=table.name, entry=entry, group=group)
        else:
            self._add("table_indirect_modify", table=table.name, entry=entry, member=member)

    def _indirect_delete(self, table: Table) -> None:
        self._add("table_indirect_delete", table=table.name, entry=self._entry(table))

    def _indirect_default(self, table: Table) -> None:
        if self.rng.random() < 0.3:
            self._add("table_indirect_reset_default", table=table.name)
        else:
            self._add(
                "table_indirect_set_default", table=table.name, member=self._member(table.profile or "")
            )

    def _member(self, profile: str) -> int:
        return self._one_of(self.writer.members.get(profile, 0))

    def _group(self, profile: str) -> int:
        return self._one_of(self.writer.groups.get(profile, 0))

    def _of_profile(self, profile: str) -> tuple[Callable[[str], None], ...]:
        found = (self._member_new, self._member_modify, self._member_modify)
        if not self.takes_away:
            return found
        if profile not in self.program.selecting:
            return (*found, self._member_delete)
        return (*found, self._member_delete, self._group_add, self._group_remove, self._group_delete)

    def _member_new(self, profile: str) -> None:
        self.writer.member(profile, self.program.profile_actions()[profile])

    def _member_modify(self, profile: str) -> None:
        action = self.program.actions[self.rng.choice(self.program.profile_actions()[profile])]
        data, member = self.writer.data(action), self._member(profile)
        self._add("act_prof_modify_member", profile=profile, member=member, action=action.name, data=data)

    def _member_delete(self, profile: str) -> None:
        self._add("act_prof_delete_member", profile=profile, member=self._member(profile))

    def _group_add(self, profile: str) -> None:
        member, group = self._member(profile), self._group(profile)
        self._add("act_prof_add_member_to_group", profile=profile, member=member, group=group)

    def _group_remove(self, profile: str) -> None:
        member, group = self._member(profile), self._group(profile)
        self._add("act_prof_remove_member_from_group", profile=profile, member=member, group=group)

    def _group_delete(self, profile: str) -> None:
        self._add("act_prof_delete_group", profile=profile, group=self._group(profile))

    def _node_new(self) -> None:
        self.writer.node(self.rng.choice(self.values.groups))

    def _node(self) -> int:
        """A node of a group that is there, or one more than there are: BMv2 ends the call with an
        exception that it has not declared where the group of a node is gone."""
        there = [at for at, group in enumerate(self.writer.nodes) if group is not None]
        return self.rng.choice(there) if there else len(self.writer.nodes)

    def _node_update(self) -> None:
        node = self._node()
        # One port of its own, so that no group has a replica twice.
        self._add("mc_node_update", node=node, ports=[200 + node % 50], lags=[])

    def _node_destroy(self) -> None:
        self._add("mc_node_destroy", node=self._node())

    def _dissociate(self) -> None:
        node = self._node()
        self._add("mc_node_dissociate", group=self.rng.choice(self.values.groups), node=node)

    def _lag(self) -> None:
        ports = self.rng.sample(range(8), self.rng.randint(1, 4))
        self._add("mc_set_lag_membership", lag=self.rng.randint(0, LAG_MAX), ports=sorted(ports))

    def _group_new(self) -> None:
        self._add("mc_mgrp_create", group=self.rng.choice(self.values.groups))

    def _group_destroy(self) -> None:
        group = self.rng.choice(self.values.groups)
        self._add("mc_mgrp_destroy", group=group)
        self.writer.nodes = [None if one == group else one for one in self.writer.nodes]

    def _session_add(self) -> None:
        self.writer.session(self.rng.choice(self.values.sessions))

    def _session_delete(self) -> None:
        self._add("mirroring_delete", session=self.rng.choice(self.values.sessions))

    def _register_write(self, register: Array) -> None:
        self.writer.register(register)

    def _register_range(self, register: Array) -> None:
        if self.rng.random() < 0.3:
            self._add("register_reset", register=register.name)
            return
        ends = sorted(self.rng.choices(range(min(register.size, 16) + 1), k=2))
        value = self.values.draw(min(register.width, 63))
        self._add("register_write_range", register=register.name, start=ends[0], end=ends[1], value=value)

    def _counter_write(self, counter: Array) -> None:
        index, value = self.writer.index(counter.size), self.rng.choice([0, 1, 1 << 40])
        self._add("counter_write", counter=counter.name, index=index, value=value)

    def _counter_reset(self, counter: Array) -> None:
        self._add("counter_reset", counter=counter.name)

    def _meter_rates(self, meter: Array) -> None:
        index = self.writer.index(meter.size)
        self._add("meter_set_rates", meter=meter.name, index=index, rates=self.writer.rates())

    @property
    def _of_value_set(self) -> tuple[Callable[[str], None], ...]:
        return (self._value_set_add, self._value_set_remove, self._value_set_clear)

    def _value_set_add(self, name: str) -> None:
        width = self.program.value_sets[name]
        self._add("parse_value_set_add", value_set=name, value=self._value(name, width), width=width)

    def _value_set_remove(self, name: str) -> None:
        width = self.program.value_sets[name]
        self._add("parse_value_set_remove", value_set=name, value=self._value(name, width), width=width)

    def _value_set_clear(self, name: str) -> None:
        self._add("parse_value_set_clear", value_set=name)

    def _value(self, name: str, width: int) -> int:
        """One that a packet has or that was added, mostly."""
        known = [value for packet in self.writer.packets for set_, value in packet.members if set_ == name]
        known += [
            one["value"] for one in self.writer.commands if one.get("value_set") == name and "value" in one
        ]
        return self.rng.choice(known) if known and self.rng.random() < 0.8 else self.values.draw(width)
