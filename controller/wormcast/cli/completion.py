"""What completions ask the running fabric: names of groups and hosts, quickly or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import click
from click.shell_completion import CompletionItem

from wormcast.cli.rest import Client, api_address

SECONDS_MAX = 0.5
"""The longest wait for an answer; whoever presses a key waits for it."""


def complete_groups(
    context: click.Context,
    parameter: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    """Groups that the controller has, by name, and by id where that is what is typed."""
    with contextlib.suppress(Exception):
        groups = _ask(context, "/groups")["groups"]
        return list(items_of(context, parameter, incomplete, groups))
    return []


def complete_hosts(
    context: click.Context,
    parameter: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    """Hosts that the controller knows."""
    with contextlib.suppress(Exception):
        return list(items_of(context, parameter, incomplete, _ask(context, "/hosts")["hosts"]))
    return []


def complete_switches(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    """Switches that the controller has."""
    with contextlib.suppress(Exception):
        ids = [str(switch["id"]) for switch in _ask(context, "/switches")["switches"]]
        return [CompletionItem(name) for name in ids if name.startswith(incomplete)]
    return []


def complete_own_groups(
    context: click.Context,
    parameter: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    """Groups of this host, from its agent; without one, those of the controller."""
    with contextlib.suppress(Exception):
        from wormcast.client import Agent

        with Agent(context.params.get("socket"), timeout_s=SECONDS_MAX) as agent:
            groups = [{"id": group.number, "name": group.name} for group in agent.groups()]
        if groups:
            return list(items_of(context, parameter, incomplete, groups))
    return complete_groups(context, parameter, incomplete)


def _ask(context: click.Context, path: str) -> Any:
    return Client(api_address(context.params.get("api")), timeout_s=SECONDS_MAX).get(path)


def items_of(
    context: click.Context, parameter: click.Parameter, incomplete: str, entries: list[dict[str, Any]]
) -> Iterator[CompletionItem]:
    """Of these the ones that fit what is typed and are not given yet."""
    given = context.params.get(parameter.name or "") or ()
    for entry in entries:
        name, number = str(entry["name"]), str(entry["id"])
        if isinstance(given, tuple) and {name, number} & set(map(str, given)):
            continue
        if name.startswith(incomplete):
            yield CompletionItem(name)
        elif incomplete and number.startswith(incomplete):
            yield CompletionItem(number)
