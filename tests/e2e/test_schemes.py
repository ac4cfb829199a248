"""Every scheme, a whole file, through real switches: intact, and at the cost it promises."""

from __future__ import annotations

import functools
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wormcast.client import Agent, MessageData, MessageEnd
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer
from wormcast.network.groups import SCHEMES, SCHEMES_ANYWHERE

MIB = 2**20
RECEIVERS = list(range(1, 8))


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=50.0 if switch == "wormcast" else 5.0)


def file_size(fabric: Fabric) -> int:
    return 4 * MIB if fabric.options.switch == "wormcast" else MIB // 2


def listen(
    fabric: Fabric, host: int, group: int, wanted: int, ready: threading.Barrier, read: list[bytes]
) -> None:
    """Reads so many messages at a host, into `read`."""
    with (
        Agent(fabric.agent_socket(host), timeout_s=60.0) as agent,
        agent.open_receiver(group) as receiver,
    ):
        ready.wait()
        parts: list[bytes] = []
        while len(read) < wanted:
            event = receiver.next_event(120.0)
            assert event is not None, f"host {host} has read {len(read)} of {wanted}"
            if isinstance(event, MessageData):
                parts.append(event.data)
            elif isinstance(event, MessageEnd):
                read.append(b"".join(parts))
                parts.clear()
                event.message.confirm()


@pytest.mark.parametrize(
    ("scheme", "parameters"),
    [*((scheme, {}) for scheme in SCHEMES_ANYWHERE), ("circuit", {"variant": "return"})],
    ids=[*SCHEMES_ANYWHERE, "circuit-return"],
)
def test_every_member_has_the_same_bytes(
    fabric: Fabric, scheme: str, parameters: dict[str, Any], random_file: Callable[[int], Path]
) -> None:
    file = random_file(file_size(fabric))
    result = transfer(fabric, scheme, file, 0, RECEIVERS, seconds_max=600, parameters=parameters)
    assert result.intact
    assert not result.failed
    assert result.receivers == 7


def test_switch_scheme_puts_a_byte_on_a_link_once(fabric: Fabric, random_file: Callable[[int], Path]) -> None:
    size = file_size(fabric)
    result = transfer(fabric, "switch", random_file(size), 3, [0, 1, 2, 4, 5, 6, 7], seconds_max=600)
    again = result.retransmissions * 1600
    assert result.source_bytes <= 1.05 * size + again + 20_000  # discovery frames
    assert result.busiest_link_bytes <= 1.08 * size + again + 20_000


def test_repeat_sends_a_copy_to_each(fabric: Fabric, random_file: Callable[[int], Path]) -> None:
    size = file_size(fabric) // 4
    result = transfer(fabric, "repeat", random_file(size), 7, [0, 1, 2, 3, 4, 5, 6], seconds_max=600)
    assert result.source_bytes >= 7 * size


def test_a_source_in_the_middle_of_the_order(fabric: Fabric, random_file: Callable[[int], Path]) -> None:
    """Circuit and tree wrap from high to low host ids: the second buffer class carries that."""
    for scheme in ("circuit", "tree", "k-binomial"):
        result = transfer(
            fabric, scheme, random_file(file_size(fabric) // 4), 5, [0, 2, 4, 6, 7], seconds_max=600
        )
        assert result.intact, scheme


@pytest.mark.parametrize(
    ("scheme", "parameters"),
    [
        ("circuit", {"ordered": True}),
        ("tree", {"ordered": True}),
        ("switch", {"guard": "B"}),
        ("auto", {"ordered": True}),
    ],
    ids=["circuit", "tree", "guard-b", "auto"],
)
def test_ordered_groups_read_all_messages_in_one_order(
    fabric: Fabric, scheme: str, parameters: dict[str, Any]
) -> None:
    """Three origins write at once; five others read, and the sequencer (host 0) is one of them."""
    origins, readers, count = [1, 3, 5], [0, 2, 4, 6, 7], 20
    body = {"scheme": scheme, "members": list(range(8)), "parameters": parameters}
    group = fabric.post("groups", body)["id"]
    fabric.wait_group(group)
    assert fabric.get(f"groups/{group}")["sequencer"] == 0
    read: dict[int, list[bytes]] = {host: [] for host in range(8)}
    failed: dict[int, Any] = {}

    def write(host: int) -> None:
        with Agent(fabric.agent_socket(host), timeout_s=60.0) as agent, agent.open_sender(group) as sender:
            ready.wait()
            for number in range(count):
                sender.write(f"{host} {number} ".encode() * (1 + 400 * (number % 2)))
                last = sender.end()
                time.sleep(0.002)
            failed[host] = sender.wait_stable(last, 120.0).failed

    ready = threading.Barrier(len(origins) + 8)
    wanted = {host: count * len([origin for origin in origins if origin != host]) for host in range(8)}
    threads = [
        threading.Thread(target=listen, args=(fabric, host, group, wanted[host], ready, read[host]))
        for host in range(8)
    ]
    threads += [threading.Thread(target=write, args=(host,)) for host in origins]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180.0)
    fabric.delete(f"groups/{group}")
    assert failed == {host: [] for host in origins}
    assert len(read[0]) == count * len(origins)
    for host in readers:
        assert read[host] == read[0], f"hosts 0 and {host}"
    for host in origins:
        others = [data for data in read[0] if not data.startswith(f"{host} ".encode())]
        assert read[host] == others, f"hosts 0 and {host}"


@pytest.mark.parametrize(
    ("scheme", "parameter", "group"), [("k-binomial", "k", 71), ("postal", "lambda", 72)]
)
def test_messages_take_trees_by_their_length(fabric: Fabric, scheme: str, parameter: str, group: int) -> None:
    """A short, a medium and a long one in one group: each by another tree, and every member has all. No group before had
    this number: a stream may go on in the next group of a number, and so do its counts."""
    fabric.post("groups", {"id": group, "scheme": scheme, "members": list(range(8))})
    fabric.wait_group(group)

    def structures() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = fabric.get(f"groups/{group}")["structures"]
        return found

    bounds = [one["bytes_most"] for one in structures()]
    assert bounds[2] is None, bounds
    sent = [random.Random(size).randbytes(size) for size in (64, bounds[0] + 1, bounds[1] + 1)]
    read: dict[int, list[bytes]] = {host: [] for host in RECEIVERS}
    ready = threading.Barrier(len(RECEIVERS) + 1)

    threads = [
        threading.Thread(target=listen, args=(fabric, host, group, len(sent), ready, read[host]))
        for host in RECEIVERS
    ]
    for thread in threads:
        thread.start()
    with Agent(fabric.agent_socket(0), timeout_s=60.0) as agent, agent.open_sender(group) as sender:
        ready.wait()
        for data in sent:
            assert sender.send(data, 120.0).failed == []
    for thread in threads:
        thread.join(180.0)
    assert read == dict.fromkeys(RECEIVERS, sent)

    deadline = time.monotonic() + 600
    while [one["messages"] for one in structures()] != [1, 1, 1]:
        assert time.monotonic() < deadline, structures()
        time.sleep(0.2)
    parameters = [one["parameters"][parameter] for one in structures()]
    assert parameters == sorted(set(parameters), reverse=True), "fewer children for longer messages"
    program = Path(sys.executable).parent / "wormcast"
    shown = fabric.popen(0, [str(program), "group", "show", str(group)], stdout=subprocess.PIPE, text=True)
    out, _ = shown.communicate()
    assert all(f"{scheme} {parameter} {number}" in out for number in parameters), out
    fabric.delete(f"groups/{group}")


def test_torus_schemes_go_by_the_coordinates(
    make_fabric: Callable[..., Fabric], switch: str, random_file: Callable[[int], Path]
) -> None:
    """On a torus that is found link by link; its coordinates come with the switches."""
    torus = make_fabric("torus:3", switch=switch, rate_mbps=20.0 if switch == "wormcast" else 5.0)
    assert torus.get("topology")["grid"] == {"radix": [3, 3], "wraps": True}
    for scheme in (name for name in SCHEMES if name not in SCHEMES_ANYWHERE):
        result = transfer(torus, scheme, random_file(MIB), 4, [0, 1, 2, 3, 5, 6, 7, 8], seconds_max=600)
        assert result.intact, scheme
        assert not result.failed, scheme


def test_acks_of_many_members_come_up_a_tree(
    make_fabric: Callable[..., Fabric], switch: str, random_file: Callable[[int], Path]
) -> None:
    """Nine members, where switches copy: few acknowledge to the source, the others to those."""
    torus = make_fabric("torus:3", switch=switch, rate_mbps=20.0 if switch == "wormcast" else 5.0)
    source, receivers = 4, [0, 1, 2, 3, 5, 6, 7, 8]

    def counted(name: str) -> dict[int, int]:
        """By host, of the stream of the source."""
        status = {host: torus.agent_status(host) for host in [source, *receivers]}
        groups = {host: one["groups"] for host, one in status.items() if one is not None}
        return {
            host: stream[name]
            for host, own in groups.items()
            for group in own
            for stream in group["streams"]
            if stream["origin"] == source
        }

    for scheme in ("switch", "table", "broadcast"):
        taken: dict[int, int] = {}
        sent: dict[int, int] = {}

        def look(taken: dict[int, int] = taken, sent: dict[int, int] = sent) -> None:
            taken.update(counted("acks_received"))
            sent.update(counted("acks_sent"))

        file = random_file(4 * MIB if switch == "wormcast" else MIB)
        result = transfer(
            torus, scheme, file, source, receivers, seconds_max=600, midway=look, midway_share=0.5
        )
        assert result.intact, scheme
        assert not result.failed, scheme
        assert sorted(sent) == sorted([source, *receivers]), scheme
        parents = [host for host in receivers if taken[host]]
        assert 2 <= len(parents) <= 5, f"{scheme}: {taken}"
        # Counted a little later than what was taken.
        assert 0 < taken[source] <= sum(sent[host] for host in parents), f"{scheme}: {taken}, {sent}"
        assert taken[source] < 0.7 * sum(sent.values()), f"{scheme}: {taken}, {sent}"


def test_groups_with_trees_of_their_own_live_through_a_cut(
    make_fabric: Callable[..., Fabric], switch: str, random_file: Callable[[int], Path]
) -> None:
    """A link of a tree that the group may use is cut in the middle; new trees lead around it."""
    torus = make_fabric("torus:3", switch=switch, rate_mbps=20.0 if switch == "wormcast" else 5.0)
    size = 3 * MIB if switch == "wormcast" else MIB
    shapes: list[tuple[str, dict[str, Any]]] = [
        ("switch", {"guard": "C", "trees": 3}),
        ("table", {"guard": "C", "least": "depth"}),
    ]
    near = [
        link for link in torus.links if link.far_switch is not None and 4 in (link.switch, link.far_switch)
    ]
    for link, (scheme, parameters) in zip(near, shapes, strict=False):
        cut = functools.partial(torus.set_link, link, False)
        try:
            result = transfer(
                torus,
                scheme,
                random_file(size),
                4,
                [0, 1, 3, 5, 8],
                seconds_max=600,
                parameters=parameters,
                midway=cut,
            )
        finally:
            torus.set_link(link, True)
            torus.wait_ready()
        assert result.intact, scheme
        assert not result.failed, scheme
