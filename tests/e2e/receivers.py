"""Waiting for receivers: who sends before they are open has nobody to send to."""

from __future__ import annotations

import time
from collections.abc import Iterable

from wormcast.mininet.fabric import Fabric

SECONDS_MAX = 600.0


def wait_for_receivers(fabric: Fabric, places: Iterable[tuple[int, int]]) -> None:
    """Until there is a receiver at each place, a host and a group."""
    missing, deadline = set(places), time.monotonic() + SECONDS_MAX
    while missing:
        assert time.monotonic() < deadline, missing
        for host in {host for host, _group in missing}:
            status = fabric.agent_status(host) or {"groups": []}
            missing -= {(host, group["group"]) for group in status["groups"] if group["receivers"]}
        time.sleep(0.05)
