"""`wormcast status` and `wormcast host list` are whole on a terminal of 80 columns."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from wormcast.cli.agent_status import WIDTH, print_status
from wormcast.cli.host import print_hosts


def status(members: int, groups: int) -> dict[str, Any]:
    """Of an agent that has done a lot."""
    large = 10**14
    streams = [
        {
            "origin": 60_000 + origin,
            "data_sent_bytes": large,
            "data_received_bytes": large + 1,
            "delivered_bytes": large + 2,
            "retransmissions": 10**9,
            "behind": [
                {"host": 61_000 + origin, "below": 400 * origin, "bytes": large - member}
                for member in range(2)
            ],
            "behind_left_out": 7,
        }
        for origin in range(3)
    ]
    return {
        "name": "a-host-with-quite-a-long-name.example.org",
        "version": "0.1.0",
        "host": 65_534,
        "plan_epoch": 123_456,
        "uptime_s": 1_000_000,
        "link": {"interface": "enp0s31f6", "up": True, "mac": "02:57:4f:52:4d:00", "mtu_bytes": 9000},
        "controller": {
            "address": "unix:/run/wormcast/a/directory/that/has/a/name/agents.sock",
            "connected": False,
            "since_s": 3,
            "last_error": "the controller at this address does not answer, and has not done so for long",
        },
        "groups": [
            {
                "group": 65_000 + number,
                "name": "n" * 60,
                "scheme": "k-binomial",
                "members": list(range(60_000, 60_000 + members)),
                "structures": [
                    {
                        "scheme": scheme,
                        "bytes_most": most,
                        "expected": [{"bytes": 95_000_000, "microseconds": 12_345_678.9}],
                    }
                    for scheme, most in [("k-binomial", 95_000_000), ("mu-torus", None)]
                ],
                "senders": 1,
                "receivers": 2,
                "streams": streams,
            }
            for number in range(groups)
        ],
        "routes": [{"host": 60_000 + host, "messages": [large] * 20} for host in range(groups)],
        "routes_left_out": groups,
        "counters": {"drops.receive_queue_full": large, "link.received_bytes": large, "zero": 0},
        "failed_members": [
            {
                "group": 65_000,
                "origin": 60_000,
                "host": 60_001,
                "reason": "joined or restarted after the message began",
                "host_dead": False,
                "age_s": 12,
            }
        ],
    }


@pytest.mark.parametrize(("members", "groups"), [(2, 0), (8, 1), (300, 3)])
def test_no_line_is_wider_and_no_value_is_cut(
    capsys: pytest.CaptureFixture[str], members: int, groups: int
) -> None:
    value = status(members, groups)
    print_status(value)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    words = " ".join(lines).split()
    for routes in value["routes"]:
        assert f"{routes['host']}:" in words
        assert words.count(str(routes["messages"][0])) >= 20
    for group in value["groups"]:
        assert {str(group["group"]), *map(str, group["members"])} <= set(words)
        for stream in group["streams"]:
            assert {str(number) for number in stream.values() if isinstance(number, int)} <= set(words)
            for member in stream["behind"]:
                named = f"stream of host {stream['origin']}: host {member['host']}"
                below = f" or one of {member['below']} below it" if member["below"] else ""
                assert f"{named}{below} is {member['bytes']} bytes behind" in " ".join(words)
            assert f"stream of host {stream['origin']}: 7 more are behind" in " ".join(words)
    assert {"drops.receive_queue_full", str(10**14)} <= set(words)
    assert "zero" not in words
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_list_of_hosts_fits(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    host = {"transit": False, "transit_busy": False, "re_injects": False, "rate_bps": None}
    names = [
        "h65534",
        "host-with-a-name",
        *(["a-host-with-quite-a-long-name.example.org"] if terminal else []),
    ]
    reason = "it has not answered host 65533, its neighbour in group 65000, for 4.0 s"
    print_hosts(
        [
            {**host, "id": 65_534, "name": name, "state": "unlocated", "reason": reason}
            | {"switch": 65_534, "port": 253, "mac": "02:57:4f:52:00:00"}
            for name in names
        ]
    )
    lines = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= WIDTH, "\n".join(lines)
    text = " ".join(" ".join(lines).split())
    assert text.count("65534:253 opted out 02:57:4f:52:00:00") == len(names)
    assert text.count(f"host 65534 is unlocated: {reason}") == len(names)
