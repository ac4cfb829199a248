"""Metrics in the text format of Prometheus."""

from __future__ import annotations

import asyncio

from wormcast.api.connections import Connection
from wormcast.api.counters import DROP_NAMES, KIND_NAMES, ProgramCounters, read_program
from wormcast.counters.ports import read_ports
from wormcast.discovery.hosts import HOST_STATES
from wormcast.metrics_page import MetricsPage, Sample
from wormcast.offload.pool import WorkerPool
from wormcast.p4rt.session import SwitchSession
from wormcast.reconcile.controller import Controller

COUNTER_READ_TIMEOUT_S = 10.0
"""A switch that takes longer to read its counters is left out of this scrape."""


async def render_metrics(controller: Controller, pool: WorkerPool) -> str:
    """The page of /v1/metrics."""
    page = MetricsPage()
    _add_network(page, controller)
    _add_plans(page, controller)
    _add_rest(page, pool)
    _add_transfers(page, controller)
    await _add_agents(page, controller)
    await _add_switch_counters(page, list(controller.sessions.values()))
    return page.text()


def _add_network(page: MetricsPage, controller: Controller) -> None:
    sessions = sorted(controller.sessions.items())
    monitor, hosts = controller.monitor, controller.hosts
    now = controller.clock.now()
    states: dict[str, int] = dict.fromkeys(HOST_STATES, 0)
    for record in hosts.records():
        states[hosts.state(record, now)] += 1
    up = monitor.switches()
    page.add(
        "switch_up", "gauge", "1 if the switch is up", (({"switch": s}, float(s in up)) for s, _ in sessions)
    )
    page.add(
        "switch_connected",
        "gauge",
        "1 if there is a P4Runtime session",
        (({"switch": s}, float(x.connected)) for s, x in sessions),
    )
    page.add(
        "switch_connects_total",
        "counter",
        "P4Runtime sessions",
        (({"switch": s}, x.connects) for s, x in sessions),
    )
    page.add(
        "switch_updates_total",
        "counter",
        "P4Runtime updates written",
        (({"switch": s}, x.updates_written) for s, x in sessions),
    )
    page.add(
        "switch_writes_refused_total",
        "counter",
        "P4Runtime writes refused",
        (({"switch": s}, x.writes_refused) for s, x in sessions),
    )
    page.add(
        "probes_dropped_total",
        "counter",
        "packet-outs dropped, outbox full",
        (({"switch": s}, x.probes_dropped) for s, x in sessions),
    )
    page.add(
        "mtu_problems",
        "gauge",
        "places where an MTU is too small for what hosts send",
        [({}, len(controller.network.mtu_problems()))],
    )
    page.add("links_up", "gauge", "links up", [({}, len(monitor.links()))])
    page.add("hosts", "gauge", "hosts by state", (({"state": s}, n) for s, n in states.items()))
    page.add(
        "probes_rejected_total", "counter", "probes that name no known port", [({}, monitor.probes_rejected)]
    )
    page.add(
        "lldp_rejected_total",
        "counter",
        "LLDP frames ignored",
        (({"reason": r}, n) for r, n in sorted(controller.packets.lldp_rejected.items())),
    )
    page.add(
        "igmp_rejected_total",
        "counter",
        "IGMP packets ignored",
        (({"reason": r}, n) for r, n in sorted(controller.packets.igmp_rejected.items())),
    )
    page.add(
        "igmp_overflows_total",
        "counter",
        "IGMP reports beyond what is kept",
        [({}, controller.packets.igmp.overflows)],
    )
    page.add(
        "packet_ins_dropped_total",
        "counter",
        "LLDP frames and IGMP packets not read, more came from their port than may",
        [({}, controller.packets.rates.dropped)],
    )
    page.add("host_conflicts_total", "counter", "announcements ignored, place taken", [({}, hosts.conflicts)])
    page.add(
        "host_reports_doubted_total",
        "counter",
        "reports of silent hosts not believed",
        [({}, hosts.reports_doubted)],
    )
    page.add(
        "host_unclaimed_dropped_total",
        "counter",
        "announcements dropped, too many names",
        [({}, hosts.unclaimed_dropped)],
    )


def _add_plans(page: MetricsPage, controller: Controller) -> None:
    planning = controller.planning
    page.add("plan_epoch", "gauge", "epoch of the agent plans", [({}, controller.agent_plans.epoch)])
    page.add("plans_total", "counter", "plans made", [({}, planning.figures.plans)])
    page.add("plan_failures_total", "counter", "plans that failed", [({}, planning.figures.failures)])
    page.add("plan_seconds_total", "counter", "time spent planning", [({}, planning.figures.seconds)])
    page.add(
        "store_failures_total",
        "counter",
        "changes not written to the state file",
        [
            (
                {},
                controller.network.store_failures
                + controller.agent_plans.epochs_not_kept
                + planning.figures.orders_not_kept,
            )
        ],
    )
    page.add(
        "task_failures_total", "counter", "background tasks started again", [({}, controller.task_failures)]
    )
    page.add("groups", "gauge", "configured groups", [({}, len(controller.groups.groups()))])
    page.add(
        "group_shortfalls", "gauge", "members that do not take part", [({}, planning.state.shortfall_count)]
    )
    page.add(
        "gather_shortfalls",
        "gauge",
        "origins whose ACKs come by hosts alone, in groups whose ACKs switches gather",
        [({}, planning.state.by_hosts_count)],
    )
    page.add(
        "watchers_cut_off_total",
        "counter",
        "event watchers that fell behind",
        [({}, controller.events.cut_off)],
    )


def _add_rest(page: MetricsPage, pool: WorkerPool) -> None:
    page.add("rest_jobs_total", "counter", "plans and checks done for requests", [({}, pool.done)])
    page.add(
        "rest_jobs_ended_total", "counter", "plans and checks ended before they were done", [({}, pool.ended)]
    )
    page.add(
        "rest_jobs_refused_total",
        "counter",
        "plans and checks refused, too many at a time",
        [({}, pool.turned_away)],
    )
    for name, count in (
        ("timed_out", Connection.timed_out),
        ("closed_for_room", Connection.closed_for_room),
        ("turned_away", Connection.turned_away),
    ):
        page.add(f"rest_connections_{name}_total", "counter", "connections that REST closed", [({}, count)])


def _add_transfers(page: MetricsPage, controller: Controller) -> None:
    transfers = controller.transfers
    page.add(
        "transfers_total",
        "counter",
        "files whose transfer has ended, by how",
        (({"state": state}, count) for state, count in transfers.ended.items()),
    )
    page.add(
        "transfers_not_recorded", "gauge", "files that ended and have no record", [({}, transfers.missing())]
    )
    page.add(
        "transfer_bytes_total",
        "counter",
        "bytes of files that a member has at least",
        [({}, transfers.bytes)],
    )
    page.add(
        "transfer_failed_members_total",
        "counter",
        "members that did not get a file",
        [({}, transfers.failed_members)],
    )


async def _add_agents(page: MetricsPage, controller: Controller) -> None:
    agents = sorted(controller.agents.items())
    page.add("agents_attached", "gauge", "agents with a stream", [({}, len(controller.directory.attached()))])
    slow = sorted(controller.agent_events.slow_reports.items())
    page.add(
        "member_slow_total",
        "counter",
        "reports that a host takes messages slower than they come",
        (({"host": str(host)}, count) for host, count in slow),
    )
    page.add("agents_refused_total", "counter", "registrations refused", [({}, controller.directory.refused)])
    page.add(
        "agent_bad_messages_total",
        "counter",
        "messages of agents that ended their stream",
        [({}, controller.directory.bad_messages)],
    )
    page.add(
        "agent_plans_too_long_total",
        "counter",
        "plans not sent, too long",
        [({}, controller.directory.plans_too_long)],
    )
    page.add(
        "agent_answers_dropped_total",
        "counter",
        "answers of receivers that no origin got",
        [({}, controller.directory.answers_dropped)],
    )
    page.add(
        "agent_groups_refused",
        "gauge",
        "groups an agent does not take",
        (({"host": h}, len(a.refused)) for h, a in agents),
    )
    page.add(
        "agent_plans_sent_total", "counter", "plans sent to agents", [({}, controller.directory.plans_sent)]
    )
    page.add(
        "agent_plan_changes_sent_total",
        "counter",
        "of these, sent as changes",
        [({}, controller.directory.changes_sent)],
    )
    page.add(
        "agent_plan_epoch", "gauge", "plan an agent follows", (({"host": h}, a.epoch) for h, a in agents)
    )
    page.begin("agent_counter_total", "counter", "counters of the agents")
    for host, agent in agents:
        counters = sorted(agent.counters.items())
        page.extend(
            "agent_counter_total",
            (({"host": host, "group": group, "name": name}, value) for (name, group), value in counters),
        )
        await asyncio.sleep(0)  # an agent has thousands of them: probes and streams get their turn
    page.add(
        "agent_counters_dropped_total",
        "counter",
        "counters of agents not kept, too many names",
        (({"host": h}, a.counters_dropped) for h, a in agents),
    )


async def _add_switch_counters(page: MetricsPage, sessions: list[SwitchSession]) -> None:
    async def read(session: SwitchSession) -> ProgramCounters:
        try:
            return await read_program(session, COUNTER_READ_TIMEOUT_S)
        except OSError:  # a scrape shows what could be read
            return {}

    counters = list(zip(sessions, await asyncio.gather(*map(read, sessions)), strict=True))

    def cells(name: str, label: str, names: dict[int, str] | None, column: int) -> list[Sample]:
        return [
            ({"switch": session.spec.id, label: names.get(index, index) if names else index}, values[column])
            for session, found in counters
            for index, values in sorted(found.get(name, {}).items())
        ]

    page.add("switch_drops_total", "counter", "frames dropped", cells("drops", "reason", DROP_NAMES, 0))
    page.add(
        "switch_filtered_total", "counter", "copies ended at egress", cells("filtered", "kind", KIND_NAMES, 0)
    )
    page.add("switch_kinds_total", "counter", "worms by kind", cells("kinds", "kind", KIND_NAMES, 0))
    for direction in ("ingress", "egress"):
        name = f"{direction}_ports"
        page.add(
            f"switch_{direction}_packets_total",
            "counter",
            f"{direction} packets",
            cells(name, "port", None, 0),
        )
        page.add(
            f"switch_{direction}_bytes_total", "counter", f"{direction} bytes", cells(name, "port", None, 1)
        )
    readings = await read_ports(session.spec for session in sessions)
    page.add(
        "switch_port_drops_total",
        "counter",
        "frames a port lost outside the program",
        (
            ({"switch": switch, "port": port, "cause": cause}, count)
            for switch, ports in sorted(readings.drops.items())
            for port, causes in ports.items()
            for cause, count in causes.items()
        ),
    )
