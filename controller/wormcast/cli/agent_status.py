"""The agent's status as tables."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from wormcast.agent import Status


def print_status(status: Status) -> None:
    """Prints what the agent says of itself."""
    console = Console()
    link, controller = status["link"], status["controller"]
    host = "not registered" if status["host"] is None else f"host {status['host']}"
    console.print(f"[bold]{status['name']}[/]: {host}, wormcast-agent {status['version']}")
    state = "[green]up[/]" if link["up"] else "[red]down[/]"
    console.print(f"  link: {link['interface']} {state}, {link['mac']}, MTU {link['mtu_bytes']}")
    if controller["connected"]:
        console.print(
            f"  controller: {controller['address']} [green]connected[/] for {controller['since_s']} s"
        )
    else:
        why = controller["last_error"] or "not tried yet"
        console.print(f"  controller: {controller['address']} [red]not connected[/]: {why}")
    console.print(f"  plan: {status['plan_epoch'] or 'none'}; up for {status['uptime_s']} s")
    _print_groups(console, status)
    _print_failures(console, status)
    _print_counters(console, status)


def _print_groups(console: Console, status: Status) -> None:
    if not status["groups"]:
        console.print("  groups: none")
        return
    table = Table(title="groups and streams")
    for name in ("group", "scheme", "members", "origin", "sent", "received", "delivered", "retransmissions"):
        table.add_column(name, justify="left" if name in ("group", "scheme", "members") else "right")
    for group in status["groups"]:
        label = f"{group['group']} {group['name']}".strip()
        members = " ".join(str(member) for member in group["members"])
        streams = group["streams"] or [{}]
        for number, stream in enumerate(streams):
            first = (label, group["scheme"], members) if number == 0 else ("", "", "")
            names = ("origin", "data_sent_bytes", "data_received_bytes", "delivered_bytes", "retransmissions")
            table.add_row(*first, *(str(stream.get(name, "")) for name in names))
    console.print(table)


def _print_failures(console: Console, status: Status) -> None:
    for failed in status["failed_members"]:
        console.print(
            f"  [red]failed[/] {failed['age_s']} s ago: host {failed['host']} in group {failed['group']}, "
            f"stream of host {failed['origin']}: {failed['reason']}"
        )


def _print_counters(console: Console, status: Status) -> None:
    table = Table(title="counters that are not zero")
    table.add_column("counter")
    table.add_column("value", justify="right")
    for name, value in status["counters"].items():
        if value:
            table.add_row(name, str(value))
    console.print(table)
