"""Answers of the REST API, from the controller's state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from wormcast_planner import NOT_PLANNED

from wormcast.api.plan_requests import (
    FALLBACK,
    is_without_number,
    sequencer,
    table_number,
    tree_root,
    trees_in_force,
)
from wormcast.discovery.hosts import HostRecord, iso_time
from wormcast.network.groups import Group
from wormcast.network.ids import HostId, SwitchId
from wormcast.reconcile.agent_status import AgentStatus
from wormcast.reconcile.controller import Controller
from wormcast.routing.fallback import runs_as

REFUSED_SHOWN = 32
"""Refused groups and entries shown of one host or switch; of more it says how many there are."""


def show_topology(controller: Controller) -> dict[str, Any]:
    """The topology file, with names and states of hosts added."""
    value = controller.network.topology().to_json()
    now = controller.clock.now()
    for host in value["hosts"]:
        record = controller.hosts.get(host["id"])
        if record is not None:
            host["name"] = record.name
            host["state"] = controller.hosts.state(record, now)
    return value


def show_switch(controller: Controller, switch: SwitchId) -> dict[str, Any]:
    session = controller.sessions[switch]
    spec = session.spec
    return {
        "id": spec.id,
        "address": spec.address,
        "device_id": spec.device_id,
        "ports": spec.ports,
        "interfaces": {str(port): name for port, name in spec.interfaces},
        "metrics": spec.metrics,
        "device_ports": {str(port): device for port, device in spec.device_ports},
        "up": switch in controller.monitor.switches(),
        "silent": switch in controller.monitor.silent(),
        "connected": session.connected,
        "ports_down": controller.monitor.ports_down(switch),
        "last_error": session.last_error,
        "updates_written": session.updates_written,
        "writes_refused": session.writes_refused,
        **session.tables.counts(),
        "in_step": session.connected and session.in_step,
        "read_back_s": None
        if session.read_back_at is None
        else round(time.monotonic() - session.read_back_at, 1),
        "strayed": session.strayed,
        "waited_for_s": round(controller.switch_writer.waiting_for().get(switch, 0.0), 1),
        "refused": [
            {"group": refusal.group, "reason": str(refusal)}
            for refusal in list(session.tables.refusals.values())[:REFUSED_SHOWN]
        ],
        "refused_total": len(session.tables.refusals),
    }


def show_host(controller: Controller, record: HostRecord) -> dict[str, Any]:
    now = controller.clock.now()
    status = controller.agents.get(record.id)
    refused = {} if status is None else status.refused
    return {
        "id": record.id,
        "name": record.name,
        "state": controller.hosts.state(record, now),
        "gone": record.agent and controller.hosts.is_gone(record, now),
        "away_since": iso_time(record.away_since),
        "reason": record.silent or None,
        "switch": None if record.place is None else record.place[0],
        "port": None if record.place is None else record.place[1],
        "declared": record.declared,
        "transit": record.transit,
        "transit_busy": record.load.busy,
        "re_injects": controller.hosts.re_injects(record, now),
        "rate_bps": controller.guard.guard.rates.get(record.id),
        "rate_kept_by": controller.guard.kept_by(record, 0 if status is None else status.revision),
        "agent": record.agent,
        "attached": record.attached,
        "mac": record.mac.hex(":") if record.mac else None,
        "mtu": record.mtu_bytes or None,
        "version": record.version or None,
        "plan_epoch": controller.agent_events.followed_epoch(record.id),
        "plan_error": (status.error or None) if status is not None else None,
        "groups": {
            "planned": controller.planning.groups_planned(record.id),
            "installed": 0 if status is None else status.installed_count(),
            "refused": [
                {"group": group, "reason": reason}
                for group, (_, reason) in sorted(refused.items())[:REFUSED_SHOWN]
            ],
            "refused_total": len(refused),
            "max": None if status is None else status.groups_max,
        },
    }


def show_route_uses(controller: Controller, host: HostId) -> list[dict[str, Any]]:
    """How many messages took each of a host's routes, by destination."""
    status = controller.agents.get(host)
    uses = {} if status is None else status.routes
    return [{"host": to, "messages": list(messages)} for to, messages in sorted(uses.items())]


def show_group(controller: Controller, group: Group) -> dict[str, Any]:
    """One group: what was asked for and who takes part."""
    numbers = _numbers(controller, group)
    reasons = _reasons(controller, group)
    now = controller.clock.now()
    members = []
    for member in group.members:
        record = controller.hosts.get(member)
        planned = controller.planning.planned(member, group.id)
        status = controller.agents.get(member)
        installed = status is not None and planned is not None and status.has_installed(planned)
        members.append(
            {
                "host": member,
                "name": record.name if record else None,
                "state": controller.hosts.state(record, now) if record else "unknown",
                "takes_part": member not in reasons,
                "reason": reasons.get(member),
                "away_since": iso_time(record.away_since) if record else None,
                "plan_epoch": controller.agent_events.followed_epoch(member),
                "planned": planned is not None,
                "installed": installed,
                **_show_receivers(status, group, installed),
                "refused": None if status is None else status.refusal(group),
            }
        )
    return {
        "id": group.id,
        "name": group.name,
        "scheme": group.scheme,
        "members": list(group.members),
        "left_out": [
            {name: member[name] for name in ("host", "name", "reason", "away_since")}
            for member in members
            if not member["takes_part"]
        ],
        "parameters": group.parameters.to_json(),
        "structures": _show_structures(controller, group),
        "mtu": _mtu(controller, group),
        "trees": trees_in_force(controller, group),
        "class_d": None if group.class_d is None else str(group.class_d),
        **_show_class_d(controller, group),
        "sink": group.sink,
        "gather": group.gather,
        "gathered": _show_gathered(controller, group) if group.gather else None,
        "epoch": controller.agent_plans.epoch,
        "root": tree_root(controller, group),
        "number": table_number(controller, group),
        "fallback": FALLBACK if is_without_number(controller, group) else None,
        "sequencer": sequencer(controller, group),
        "state": members,
        "switches_refused": [
            {"switch": switch, "reason": str(refusal)}
            for switch, session in sorted(controller.sessions.items())
            for refusal in session.tables.refusals.values()
            if refusal.group in numbers
        ],
    }


def _show_receivers(status: AgentStatus | None, group: Group, installed: bool) -> dict[str, Any]:
    """What a member receives. A receiver in a group that had this number before, which its agent may still have, is
    none in this one."""
    if status is None or status.receivers is None:
        return {"receives": None, "receives_from": []}
    origins = status.receivers.get(group.id, frozenset()) if installed else frozenset()
    return {"receives": origins is None, "receives_from": sorted(origins or ())}


def _mtu(controller: Controller, group: Group) -> int | None:
    """Bytes of its frames at most, where a link on its ways carries less than others; None: as hosts have it."""
    planned = (controller.planning.planned(member, group.id) for member in group.members)
    return next((one.mtu for one in planned if one is not None), None)


def _show_gathered(controller: Controller, group: Group) -> dict[str, Any]:
    """For which origins switches gather ACKs; for which they do not, and why."""
    planned = (controller.planning.planned(member, group.id) for member in group.members)
    gathered = next((one.gathered for one in planned if one is not None and one.gathered is not None), None)
    by_hosts = controller.planning.state.by_hosts_of(group.id)
    return {
        "epoch": None if gathered is None else gathered[0],
        "origins": [] if gathered is None else [host for host, _ in gathered[1]],
        "by_hosts": [{"host": host, "reason": reason} for host, reason in by_hosts.items()],
    }


def _show_structures(controller: Controller, group: Group) -> list[dict[str, Any]]:
    """The structures by which messages travel, for ascending lengths; how many messages took each of several."""
    planned = (controller.planning.planned(member, group.id) for member in group.members)
    known = next((one for one in planned if one is not None), None)
    if known is None:
        return []
    statuses = [controller.agents[member] for member in group.members if member in controller.agents]
    shown = []
    for number, structure in enumerate(known.structures):
        name = f"messages_by_structure.{number}"
        shape = {"k": structure.k, "lambda": structure.lambda_, "r": structure.r}
        shown.append(
            {
                "bytes_most": structure.bytes_most or None,
                "scheme": structure.scheme,
                "parameters": {name: value for name, value in shape.items() if value},
                "expected": [
                    {"bytes": size, "microseconds": round(time_us, 1)} for size, time_us in structure.expected
                ],
                "messages": sum(status.counters.get((name, group.id), 0) for status in statuses),
            }
        )
    return shown


def _numbers(controller: Controller, group: Group) -> set[int]:
    """Those a group has on switches."""
    numbers = set() if group.class_d is None else {int(controller.groups.class_d.number(group.class_d))}
    number = table_number(controller, group)
    return numbers if number is None else numbers | {number}


def _reasons(controller: Controller, group: Group) -> Mapping[HostId, str]:
    """Why members of a group do not take part, by host; those that do are not in it."""
    planned = controller.planning.view
    if planned is None or planned.by_id.get(group.id) != group:
        return dict.fromkeys(group.members, NOT_PLANNED)
    return controller.planning.shortfalls(group.id)


def _show_class_d(controller: Controller, group: Group) -> dict[str, Any]:
    """Number of a group's address, and the groups that get its packets too."""
    numbers = controller.groups.class_d
    if group.class_d is None:
        return {"class_d_mode": numbers.mode, "class_d_number": None, "class_d_shared_with": []}
    number = numbers.number(group.class_d)
    shared = [other.id for other in controller.groups.sharing(group)]
    return {"class_d_mode": numbers.mode, "class_d_number": number, "class_d_shared_with": shared}


def show_routing(controller: Controller) -> dict[str, Any]:
    """Unicast routes: what is wanted, and what came of it."""
    state = controller.planning.state
    wanted = controller.routing
    return {
        **wanted.to_json(),
        "roots": list(state.roots),
        "root_away": wanted.root is not None and wanted.root not in state.roots,
        "lengthened_pairs": state.lengthened,
        "runs_as": runs_as(controller.network.topology().to_json(), wanted.algorithm),
        **controller.agent_plans.steps.to_json(),
    }


def show_status(controller: Controller, version: str) -> dict[str, Any]:
    """The controller at a glance."""
    now = controller.clock.now()
    hosts = controller.hosts.records()
    return {
        "version": version,
        "epoch": controller.agent_plans.epoch,
        "algorithm": controller.routing.algorithm,
        "routing": show_routing(controller),
        "switches": len(controller.sessions),
        "switches_up": len(controller.monitor.switches()),
        "links": len(controller.monitor.links()),
        "hosts": len(hosts),
        "hosts_up": sum(controller.hosts.state(h, now) in ("up", "plain") for h in hosts),
        "groups": len(controller.groups.groups()),
        "class_d_mode": controller.groups.class_d.mode,
        "plan_error": controller.planning.figures.last_error or None,
        "state_problem": controller.state_problem(),
        "mtu_problems": controller.network.mtu_problems(),
        "late": controller.network.lateness.to_json(time.monotonic()),
        "waiting_for": list(controller.switch_writer.waiting_for()),
        "task_failures": controller.task_failures,
    }
