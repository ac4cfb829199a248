"""What others do to the tables of a switch is found, said and mended. On each switch that is installed."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from controller_lab.namespace import LINKS, SWITCHES, THRIFT_PORT_FIRST, Lab, Target, targets
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.p4rt.session import READ_BACK_ROUND_S, rest_s

CALL = 0x80010001
"""Thrift's strict binary protocol, version 1, call."""
I32, STRING, BOOL = 8, 11, 2


@pytest.fixture(scope="module", params=targets(), ids=lambda target: target.name)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three switches in a ring with the controller on them, and a group."""
    target: Target = request.param
    if target.binary is None:
        pytest.skip(f"{target.name} is not installed")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with Lab(target, tmp_path_factory.mktemp("lab")) as lab:
        lab.start_controller()
        lab.until(lambda: lab.links() == set(LINKS))
        for n in range(SWITCHES):
            lab.post("hosts", {"name": f"p{n}", "switch": n, "port": 0, "id": 10 + n})
        lab.post("groups", {"scheme": "switch", "members": [10, 11, 12], "class_d": "239.1.2.3"})
        lab.until(lambda: all(is_whole(switch) for switch in lab.get("switches")["switches"]))
        yield lab


def is_whole(switch: dict[str, Any]) -> bool:
    return switch["in_step"] and switch["installed"] == switch["planned"]


def strayed(lab: Lab, switch: int) -> list[dict[str, Any]]:
    events = lab.get("events?after=0&follow=false")["events"]
    return [e for e in events if e["kind"] == "switch_strayed" and e["switch"] == switch]


def clear(lab: Lab, switch: int, table: str) -> None:
    """bm_mt_clear_entries(0, table, false), as simple_switch_CLI's `table_clear`."""
    named = [text.encode() for text in ("standard:bm_mt_clear_entries", table)]
    call = struct.pack(">Ii", CALL, len(named[0])) + named[0] + struct.pack(">i", 0)
    call += struct.pack(">bhi", I32, 1, 0) + struct.pack(">bhi", STRING, 2, len(named[1])) + named[1]
    call += struct.pack(">bhb", BOOL, 3, 0) + b"\0"
    answer = bytes.fromhex(lab.ask("talk", port=THRIFT_PORT_FIRST + switch, data=call.hex()))
    assert struct.unpack(">I", answer[:4])[0] & 0xFF == 2, f"{table}: {answer!r}"


@pytest.mark.network
def test_tables_that_are_emptied_behind_its_back_are_found_and_said_and_filled_again(lab: Lab) -> None:
    before = lab.get("switches/0")
    assert before["installed"]["entries"] > 10
    for table in find_artifacts().schema.tables:
        clear(lab, 0, table.name)
    if lab.target.name == "simple_switch_grpc":
        # Its server of P4Runtime keeps a list of its own, in which these entries still are: it takes none of them again.
        lab.until(lambda: strayed(lab, 0) and any("exists" in reason for reason in refused(lab, 0)))
        assert not lab.get("switches/0")["in_step"]
        assert strayed(lab, 1) == strayed(lab, 2) == [], "nobody touched these"
        return
    lab.until(lambda: sum(e["missing"] for e in strayed(lab, 0)) == before["installed"]["entries"])
    lab.until(lambda: is_whole(lab.get("switches/0")))
    after = lab.get("switches/0")
    assert after["strayed"] == before["installed"]["entries"]
    assert after["installed"] == before["installed"]
    # What was written again is there: a whole round finds nothing more.
    began = time.monotonic()
    lab.until(lambda: lab.get("switches/0")["read_back_s"] < time.monotonic() - began)
    assert lab.get("switches/0")["strayed"] == after["strayed"]
    assert strayed(lab, 1) == strayed(lab, 2) == [], "nobody touched these"


def refused(lab: Lab, switch: int) -> list[str]:
    events = lab.get("events?after=0&follow=false")["events"]
    return [e["reason"] for e in events if e["kind"] == "switch_refused" and e["switch"] == switch]


def test_a_part_each_second_and_all_within_a_minute() -> None:
    parts = len(list(find_artifacts().schema.tables)) + 3
    assert rest_s(parts, 4) == 1.0
    for switches in (1, 100, 1024):
        assert rest_s(parts, switches) * parts <= READ_BACK_ROUND_S
