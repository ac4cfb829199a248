"""Lists of hosts as pdsh writes them: `h1,h2,h5`, `h[1-12]`, `h[01-04,7]`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem

from wormcast.cli.completion import complete_hosts
from wormcast.cli.refusal import Refusal
from wormcast.decimal import DIGITS_MAX, read_decimal

HOSTS_MAX = 1024
"""Hosts of a list: a group has no more members."""
FORM = "write names or numbers between commas or spaces, with ranges in brackets: h1,h5 or h[1-4,7]"

_SEPARATOR = re.compile(r"[,\s]+")
_ITEM = re.compile(r"([^][,\s]*)(?:\[([^][]*)\])?([^][,\s]*)")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")

Host = int | str
"""A number or a name."""


def parse_hosts(text: str) -> list[Host]:
    """The hosts of a list, in its order; `Refusal`."""
    hosts: dict[Host, str] = {}
    for name in _names(text.strip()):
        number = read_decimal(name)
        host = name if number is None else number
        if host in hosts:
            raise _refuse(name, f"host {name!r} is named twice", "each host once")
        if len(hosts) == HOSTS_MAX:
            raise _refuse(text, f"more than {HOSTS_MAX} hosts are named", f"{HOSTS_MAX} hosts")
        hosts[host] = name
    return list(hosts)


def _names(text: str) -> Iterator[str]:
    if not text:
        raise _refuse(text, f"no host is named; {FORM}")
    place = 0
    while True:
        item = _ITEM.match(text, place)
        assert item is not None
        place = item.end()
        separator = _SEPARATOR.match(text, place)
        if not item[0] or (separator is None and place < len(text)):
            raise _refuse(text, f"{text!r} is not a list of hosts; {FORM}")
        yield from _expand(item[0], item[1], item[2], item[3])
        if separator is None:
            return
        place = separator.end()


def _expand(item: str, before: str, ranges: str | None, after: str) -> Iterator[str]:
    if not _NAME.fullmatch(f"{before}{'' if ranges is None else 0}{after}"):
        raise _refuse(item, f"{item!r} is no name of a host; {FORM}")
    if ranges is None:
        yield before
        return
    for part in ranges.split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise _refuse(item, f"{part!r} in {item!r} is neither a number nor a range; {FORM}")
        first, last = (read_decimal(digits) for digits in (found[1], found[2] or found[1]))
        if first is None or last is None:
            raise _refuse(item, f"a number in {item!r} is too long", f"{DIGITS_MAX} digits")
        if first > last:
            raise _refuse(item, f"{part} in {item!r} goes backwards; write {last}-{first}")
        if last - first >= HOSTS_MAX:
            text = f"{part} in {item!r} are {last - first + 1} hosts"
            raise _refuse(item, text, f"{HOSTS_MAX} hosts")
        # As in pdsh: 01-12 are 01, 02, …
        width = len(found[1]) if found[1].startswith("0") else 0
        for number in range(first, last + 1):
            yield f"{before}{number:0{width}}{after}"


def _refuse(value: str, text: str, bound: str | None = None) -> Refusal:
    more = f"; possible: {bound}" if bound else ""
    return Refusal(f"--to: {text}{more}", code="usage", value=value, bound=bound)


def complete_host_list(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Hosts that the controller knows, for the last one of a list."""
    begun = incomplete[: max(incomplete.rfind(","), incomplete.rfind(" ")) + 1]
    given = set(_SEPARATOR.split(begun))
    items = complete_hosts(context, parameter, incomplete[len(begun) :])
    return [CompletionItem(begun + item.value) for item in items if item.value not in given]
