"""Rates as users type them."""

from __future__ import annotations

import re

import click

from wormcast.network.groups import RATE_BITS_MAX, RATE_BITS_MIN

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def read_rate_bits(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> int | None:
    """Bits a second of `20M`, `500k` or `1.5G`; a callback of click."""
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([kMG]?)(?:bit/s|bit|b/s)?", value.strip())
    bits = round(float(match[1]) * UNITS[match[2]]) if match else 0
    if not RATE_BITS_MIN <= bits <= RATE_BITS_MAX:
        raise click.BadParameter(
            f"{value!r} is not a number of bits a second from {RATE_BITS_MIN} to {RATE_BITS_MAX // 10**9}G; "
            "write it as 20M, 500k or 1.5G"
        )
    return bits


def show_rate(bits: int) -> str:
    """As messages have it, with a unit that leaves few digits."""
    unit, size = next((one, size) for one, size in reversed(UNITS.items()) if bits >= size or size == 1)
    return f"{bits / size:g} {unit}b/s"
