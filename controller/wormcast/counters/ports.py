"""What the ports of the switches lost, by switch, port and cause, from every place that counts it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from wormcast.counters.kernel import InterfaceCounts, read_interfaces
from wormcast.counters.switch_page import PortDrops, read_page
from wormcast.network.ids import SwitchId
from wormcast.store.database import SwitchSpec


@dataclass(frozen=True)
class PortReadings:
    """`missing`: why some of a switch's counters cannot be read."""

    drops: dict[SwitchId, PortDrops] = field(default_factory=dict)
    missing: dict[SwitchId, list[str]] = field(default_factory=dict)


async def read_ports(specs: Iterable[SwitchSpec]) -> PortReadings:
    """Reads all at once; each page of metrics once, however many switches are on it."""
    specs = list(specs)
    pages = sorted({spec.metrics for spec in specs if spec.metrics is not None})
    answers = await asyncio.gather(*map(read_page, pages), return_exceptions=True)
    by_page = dict(zip(pages, answers, strict=True))
    kernel = await read_interfaces() if any(spec.interfaces for spec in specs) else {}
    readings = PortReadings()
    for spec in specs:
        readings.drops[spec.id], readings.missing[spec.id] = _of_switch(spec, by_page, kernel)
    return readings


def _of_switch(
    spec: SwitchSpec,
    pages: dict[str, dict[int, PortDrops] | BaseException],
    kernel: dict[str, InterfaceCounts],
) -> tuple[PortDrops, list[str]]:
    drops: PortDrops = {}
    missing = []
    if spec.metrics is None:
        missing.append(
            "the address of its metrics is not known, so what the switch itself drops is not counted"
        )
    else:
        page = pages[spec.metrics]
        if isinstance(page, BaseException):
            missing.append(str(page))
        else:
            drops = {port: dict(causes) for port, causes in page.get(spec.device_id, {}).items()}
    if not spec.interfaces:
        missing.append("its interfaces are not known, so what the kernel drops is not counted")
    for port, name in spec.interfaces:
        if name in kernel:
            drops.setdefault(port, {}).update(kernel[name].drops())
        else:
            missing.append(f"interface {name} of port {port} is not in the controller's network namespace")
    return {port: drops[port] for port in sorted(drops)}, missing
