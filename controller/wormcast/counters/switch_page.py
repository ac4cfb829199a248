"""What wormcast-switch says of frames its ports lost, on its page of metrics."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import httpx

PAGE_SECONDS_MAX = 10.0

_SAMPLE = re.compile(r"wormcast_switch_port_([a-z_]+)\{([^}]*)\} ([0-9.e+]+)$")
_LABEL = re.compile(r'([a-z_]+)="([^"]*)"')
_CAUSES = {
    "receive_ring_full_frames_total": "receive_ring_full",
    "receive_too_long_frames_total": "receive_too_long",
    "no_link_frames_total": "no_link",
    "tail_drops_total": "egress_queue",
}

PortDrops = dict[int, dict[str, int]]


def parse_page(text: str) -> dict[int, PortDrops]:
    """Frames dropped by device, port and cause."""
    found: dict[int, PortDrops] = defaultdict(lambda: defaultdict(dict))
    for line in text.splitlines():
        sample = _SAMPLE.match(line)
        if sample is None:
            continue
        labels = dict(_LABEL.findall(sample[2]))
        cause = _cause(sample[1], labels)
        if cause is not None and labels.get("port", "").isascii() and labels.get("port", "").isdigit():
            found[int(labels["device"])][int(labels["port"])][cause] = int(float(sample[3]))
    return found


def _cause(name: str, labels: dict[str, str]) -> str | None:
    """What a sample counts, if it counts frames that were lost."""
    if name == "send_failures_total":
        return {"bad_length": "too_long", "interface_down": "interface_down"}.get(
            labels.get("reason", ""), "send_failed"
        )
    if name == "impaired_frames_total" and labels.get("kind") in ("lost", "overflowed"):
        return f"impaired_{labels['kind']}"
    return _CAUSES.get(name)


async def read_page(address: str) -> dict[int, PortDrops]:
    """Frames dropped by device, port and cause, asked at `host:port`. Raises `OSError`."""
    try:
        async with httpx.AsyncClient(timeout=PAGE_SECONDS_MAX, trust_env=False) as client:
            answer: Any = await client.get(f"http://{address}/metrics")
            answer.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OSError(f"no counters at http://{address}/metrics: {error or type(error).__name__}") from error
    return parse_page(answer.text)
