"""Hosts that claim to be what they are not, on real switches: raw sockets on hosts are the attackers."""

from __future__ import annotations

import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from wormcast.mininet import programs
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer
from wormcast.mininet.wiring import namespace

VICTIM, ATTACKER, ACCOMPLICE = 3, 7, 5
MIB = 2**20
SECONDS_MAX = 600.0


def announcement(name: str, mac: bytes, ttl_s: int) -> bytes:
    """A frame of LLDP by which an agent announces its host."""

    def tlv(kind: int, value: bytes) -> bytes:
        return (kind << 9 | len(value)).to_bytes(2, "big") + value

    tlvs = (
        tlv(1, b"\7host:" + name.encode())
        + tlv(2, b"\3" + mac)
        + tlv(3, ttl_s.to_bytes(2, "big"))
        + tlv(0, b"")
    )
    return (bytes.fromhex("0180c200000e") + mac + b"\x88\xcc" + tlvs).ljust(60, b"\0")


RELAY = textwrap.dedent(
    """
    # Hands on the probes of two hosts' ports, at once and again, as hosts that work together would.
    import ctypes, select, socket, sys, time
    libc, ends = ctypes.CDLL(None, use_errno=True), []
    for name in sys.argv[1:3]:
        with open(f"/run/netns/{name}") as namespace:
            assert libc.setns(namespace.fileno(), 0x40000000) == 0, ctypes.get_errno()
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88CC))
        s.bind((f"{name}-eth0", 0x88CC))
        ends.append(s)
    kept, until, handed_on = [], time.monotonic() + float(sys.argv[3]), 0
    while time.monotonic() < until:
        for s in select.select(ends, [], [], 0.2)[0]:
            frame, address = s.recvfrom(2048)
            if address[2] == socket.PACKET_OUTGOING or b"switch:" not in frame:
                continue
            other = ends[1 - ends.index(s)]
            for again in (frame, frame, *kept[-20:]):
                other.send(again)
                handed_on += 1
            kept.append(frame)
    print(handed_on)
    """
)
SENDER = textwrap.dedent(
    """
    import socket, sys, time
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((sys.argv[1], 0))
    frame, gap, until, sent = bytes.fromhex(sys.argv[2]), float(sys.argv[3]), time.monotonic() + float(sys.argv[4]), 0
    while time.monotonic() < until:
        try:
            s.send(frame)
            sent += 1
        except OSError:
            pass
        if gap:
            time.sleep(gap)
    print(sent)
    """
)
JOIN = textwrap.dedent(
    """
    import socket, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(sys.argv[1]) + socket.inet_aton(sys.argv[2]))
    print("joined", flush=True)
    sys.stdin.read()
    """
)


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=50.0 if switch == "wormcast" else 5.0)


@pytest.fixture(params=[False, True], ids=["guard off", "guard on"])
def guarded(request: pytest.FixtureRequest, fabric: Fabric) -> Iterator[bool]:
    fabric.put("guard", {"on": request.param})
    yield request.param
    fabric.put("guard", {"on": False})


def until(what: Callable[[], object], said: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not what():
        assert time.monotonic() < deadline, said()
        time.sleep(0.1)


def host(fabric: Fabric, number: int) -> dict[str, Any]:
    return fabric.get(f"hosts/{number}")


def place(fabric: Fabric, number: int) -> tuple[int, int]:
    entry = next(h for h in fabric.options.topology["hosts"] if h["id"] == number)
    return entry["switch"], entry["port"]


@contextmanager
def new_events(fabric: Fabric) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """Those of a kind since now."""
    events = fabric.get("events?follow=false")["events"]
    last = max((event["number"] for event in events), default=0)
    yield lambda kind: [
        event for event in fabric.get(f"events?follow=false&after={last}")["events"] if event["kind"] == kind
    ]


def all_events(fabric: Fabric, kind: str) -> list[dict[str, Any]]:
    return [event for event in fabric.get("events?follow=false")["events"] if event["kind"] == kind]


def all_up(fabric: Fabric) -> bool:
    return {h["state"] for h in fabric.get("hosts")["hosts"]} == {"up"}


def test_two_hosts_that_hand_on_probes_make_no_link(fabric: Fabric, guarded: bool) -> None:
    del guarded
    until(lambda: all_up(fabric))
    links = fabric.get("links")
    with new_events(fabric) as told:
        argv = [sys.executable, "-c", RELAY, namespace(ATTACKER), namespace(ACCOMPLICE), "6"]
        relay = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert int(relay.stdout) > 50
        refused = all_events(fabric, "link_refused")  # told once in a while, so maybe with the guard off
        places = sorted([place(fabric, ATTACKER), place(fabric, ACCOMPLICE)])
        assert {tuple(sorted([(e["a"], e["a_port"]), (e["b"], e["b_port"])])) for e in refused} == {
            tuple(places)
        }
        assert any("wormcast guard port" in event["reason"] for event in refused)
        assert told("link_up") == []
    assert fabric.get("links") == links
    until(lambda: all_up(fabric))
    file = fabric.directory / "behind.bin"
    file.write_bytes(bytes(MIB))
    transfer(fabric, "switch", file, ATTACKER, [VICTIM, ACCOMPLICE])


def test_a_host_does_not_move_on_the_word_of_another(fabric: Fabric, guarded: bool) -> None:
    del guarded
    until(lambda: all_up(fabric))
    mac = bytes.fromhex(host(fabric, VICTIM)["mac"].replace(":", ""))
    frame = announcement(f"h{VICTIM}", mac, 4)
    with new_events(fabric) as told:
        argv = [sys.executable, "-c", SENDER, f"h{ATTACKER}-eth0", frame.hex(), "0.1", "5"]
        sent = fabric.run(ATTACKER, argv)
        assert int(sent.stdout) > 5, sent.stderr
        assert all_events(fabric, "host_refused")[0]["name"] == f"h{VICTIM}"
        assert [e for e in told("host") if e["host"] in (VICTIM, ATTACKER) and e.get("state") != "up"] == []
        assert {(e["switch"], e["port"]) for e in told("host") if e["host"] == VICTIM} <= {
            place(fabric, VICTIM)
        }
    found = host(fabric, VICTIM)
    assert (found["switch"], found["port"]) == place(fabric, VICTIM)


def test_a_second_agent_of_a_name_is_refused_and_a_restart_is_not(fabric: Fabric, guarded: bool) -> None:
    name, log, impostor = f"h{VICTIM}", fabric.directory / f"second-{guarded}.log", 2 if guarded else 4
    until(lambda: all_up(fabric))
    argv = [programs.find(programs.AGENT), "--interface", f"h{impostor}-eth0", "--name", name]
    argv += ["--controller", fabric.directory_address, "--socket", str(fabric.run_directory / "second.sock")]
    argv += ["--state-dir", str(fabric.run_directory / f"second-{guarded}")]
    with new_events(fabric) as told, log.open("wb") as output:
        second = fabric.hosts[impostor].popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            until(lambda: told("agent_refused"), log.read_text)
            time.sleep(3.0)
            said = log.read_text()
            for number in (VICTIM, impostor):
                assert host(fabric, number)["mac"] in said
            assert f"the name '{name}' belongs to an agent" in said
            assert "which is connected" in said
            # It is away: its name is still its own.
            fabric.kill_agent(VICTIM)
            until(lambda: host(fabric, VICTIM)["state"] == "dead")
            time.sleep(3.0)
            assert host(fabric, VICTIM)["state"] in ("dead", "lost")
            assert f"`wormcast host forget {name}`" in log.read_text()
            assert len(told("agent_refused")) == 2, "each reason once"
            fabric.start_agent(VICTIM)
            until(lambda: host(fabric, VICTIM)["state"] == "up")
            assert (host(fabric, VICTIM)["switch"], host(fabric, VICTIM)["port"]) == place(fabric, VICTIM)
        finally:
            second.kill()
            second.wait()
    assert all_up(fabric)


def test_the_operator_gives_a_name_to_another_agent(fabric: Fabric) -> None:
    """The owner's secret is lost, as with a new disk."""
    until(lambda: all_up(fabric))
    fabric.kill_agent(VICTIM)
    secret = fabric.agent_state / f"agent-h{VICTIM}.secret"
    before = secret.read_bytes()
    secret.unlink()
    with new_events(fabric) as told:
        fabric.start_agent(VICTIM)
        until(lambda: told("agent_refused"))
        until(lambda: host(fabric, VICTIM)["state"] == "dead")
    fabric.delete(f"hosts/h{VICTIM}")
    until(lambda: all_up(fabric) and any(h["id"] == VICTIM for h in fabric.get("hosts")["hosts"]))
    assert secret.read_bytes() != before


def test_a_flood_is_named_and_other_hosts_stay(fabric: Fabric, guarded: bool) -> None:
    del guarded
    until(lambda: all_up(fabric))
    frame = announcement("flood", b"\2\0\0\0\0\x66", 4)
    with new_events(fabric) as told:
        argv = [sys.executable, "-c", SENDER, f"h{ATTACKER}-eth0", frame.hex(), "0", "8"]
        sent = fabric.run(ATTACKER, argv)
        assert int(sent.stdout) > 3000, sent.stderr
        (began,) = told("packet_flood")
        assert (began["switch"], began["port"], began["name"]) == (*place(fabric, ATTACKER), f"h{ATTACKER}")
        until(lambda: told("packet_flood_over"))
        others = [e for e in told("host") if e["host"] != ATTACKER]
        assert others == [], "no other host was lost"
        assert told("link_down") == []


def igmp(fabric: Fabric) -> list[tuple[str, tuple[int, int]]]:
    return [(m["group"], (m["switch"], m["port"])) for m in fabric.get("igmp")["members"]]


def test_what_a_host_leaves_is_asked_for_and_kept_while_another_wants_it(fabric: Fabric) -> None:
    until(lambda: all_up(fabric))
    address = fabric.run(VICTIM, ["hostname", "-I"]).stdout.split()[0]
    group, own = "239.5.6.7", place(fabric, VICTIM)
    wanted = (group, own)
    argv = [sys.executable, "-c", JOIN, group, address]
    program = fabric.popen(VICTIM, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        until(lambda: wanted in igmp(fabric), lambda: igmp(fabric))
        # Another host behind the port leaves; the first one answers the query that follows.
        leave = bytes([0x17, 0, 0, 0]) + bytes(map(int, group.split(".")))
        total = sum(struct.unpack("!4H", leave))
        leave = leave[:2] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + leave[4:]
        ip = bytes.fromhex("4500001c000000000102000000000000e0000002") + leave
        frame = bytes.fromhex("01005e000002020000000066 0800".replace(" ", "")) + ip
        sent = fabric.run(VICTIM, [sys.executable, "-c", SENDER, f"h{VICTIM}-eth0", frame.hex(), "1", "0.5"])
        assert int(sent.stdout) == 1, sent.stderr
        time.sleep(5.0)
        assert wanted in igmp(fabric)
    finally:
        program.stdin.close()
        program.wait()
    until(lambda: wanted not in igmp(fabric), lambda: igmp(fabric))
