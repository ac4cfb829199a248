"""Fig. 3 of the WORM paper on real switches: stuck with plain up*/down* routes, and named; free under all three schemes.

The order in which worms enter makes it certain. A worm that waits (the blocker) keeps another from going on until a third
has its place; then the blocker ends. Each step waits for what switches say of their channels, not for time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from worm_network import NEVER_US, Network, Received, Train
from wormcast.routing import schemas
from wormcast.routing.held import explain_held, find_circle, find_stuck, waits_of
from wormcast.wire import (
    ROOT_TURN,
    WORMHOLE_FLUSH,
    WORMHOLE_INTERRUPT,
    WORMHOLE_PLAIN,
    DropReason,
    Kind,
    TrainEvent,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from oracle.tree import Branch, encode_tree

Json = dict[str, Any]
Make = Callable[..., Network]
FRAMES = 40
"""More than a switch holds (held_max): the tail of a worm that is stuck has not passed the first one."""
STARTED = 5
"""Frames of a worm that its host sends at first. Less than STOP takes, so that all of them get as far as they can."""
A, B, C, D, E = range(5)
SOURCE, TO_B, TO_C, AT_C, BESIDE_B, BESIDE_SOURCE = range(6)
"""Hosts: at A; b at E; c at D; at C; and one more at E and at A each, for blockers."""
FIGURE_3: Json = {
    "switches": [{"id": number, "name": name, "ports": 4} for number, name in enumerate("ABCDE")],
    "hosts": [
        {"id": SOURCE, "switch": A, "port": 0},
        {"id": TO_B, "switch": E, "port": 0, "name": "b"},
        {"id": TO_C, "switch": D, "port": 0, "name": "c"},
        {"id": AT_C, "switch": C, "port": 0},
        {"id": BESIDE_B, "switch": E, "port": 3},
        {"id": BESIDE_SOURCE, "switch": A, "port": 3},
    ],
    "links": [
        {"a": A, "a_port": 1, "b": B, "b_port": 1},
        {"a": A, "a_port": 2, "b": C, "b_port": 2},
        {"a": B, "a_port": 2, "b": E, "b_port": 1},
        {"a": C, "a_port": 1, "b": D, "b_port": 1},
        # The cross link, which is not in the tree.
        {"a": D, "a_port": 2, "b": E, "b_port": 2},
    ],
}
RECIRCULATIONS_MAX = 1 << 16
"""What wormcast-switch allows unless it is told otherwise."""
WHOLE = Received(tuple(range(FRAMES)), ended=True)
HARMLESS = {DropReason.TRAIN_RESET, DropReason.TRAIN_BROKEN}
"""What is left of a worm that was reset ends under these."""


@pytest.fixture
def make_network(switch: str, tmp_path: Path) -> Iterator[Make]:
    """Bring up the network of Fig. 3; it is gone when the test ends, failed or not."""
    made: list[Network] = []

    def make(scheme: int, silent_us: int = NEVER_US) -> Network:
        network = Network(FIGURE_3, switch, tmp_path, scheme, silent_us)
        made.append(network)
        return network.__enter__()

    yield make
    for network in made:
        network.close()


def worms(network: Network) -> Json:
    """What `wormcast worms` says."""
    topology = network.directory / "net.json"
    topology.write_text(json.dumps(network.topology))
    where = ["--thrift", network.thrift] if network.kind == "bmv2" else ["--p4runtime", network.p4runtime]
    command = [
        sys.executable,
        "-m",
        "wormcast.cli.main",
        "worms",
        "--topology",
        str(topology),
        *where,
        "--json",
    ]
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            network.run(0.05)
        assert process.stdout is not None
        assert process.stderr is not None
        text, errors = process.stdout.read(), process.stderr.read()
    assert process.returncode in (0, 1), errors.decode()
    answer: Json = json.loads(text)
    jsonschema.validate(answer, schemas.load("worms"))
    assert answer["stuck"] == (process.returncode == 1)
    return answer


def multicast(*branches: Branch) -> bytes:
    return encode_tree(branches)


def way(*ports: int) -> Branch:
    """A branch along these ports."""
    return Branch(ports[0], (way(*ports[1:]),) if len(ports) > 1 else ())


FROM_A = multicast(way(1, 2, 0), way(2, 1, 0))
"""The multicast of the figure: from A to b and c."""
FROM_C = multicast(way(1, 0), way(2, 1, 2, 0))
"""Another one, with the same members, along the tree."""


def has(network: Network, host: int, switch: int, outputs: tuple[int, ...], needs: int | None) -> bool:
    """Whether the worm of a host has these outputs at a switch, and waits for this one."""
    return any(
        (one.worm.source, one.switch, one.outputs, one.needs) == (host, switch, outputs, needs)
        for one in network.channels()
    )


def got(network: Network, host: int, source: int, sequence: int = 1) -> Received:
    """What a host has of a worm."""
    return network.hosts[host].received.get((source, sequence), Received())


def block(network: Network, route: bytes, to: int) -> Train:
    """A worm from D that has all its outputs, and whose tail is not sent yet."""
    train = network.hosts[TO_C].send(Kind.UNICAST, route, STARTED, allowed=STARTED - 1)
    network.wait("the blocker is there", lambda: len(got(network, to, TO_C).positions) == STARTED - 1)
    return train


def start(network: Network, host: int, kind: Kind, route: bytes, *, then: Callable[[], bool]) -> Train:
    """The first frames of a worm, and what they lead to."""
    train = network.hosts[host].send(kind, route, FRAMES, allowed=STARTED)
    network.wait(f"the worm of host {host} has got as far as it can", then)
    return train


def go_on(*trains: Train) -> None:
    """Hosts send the rest, as far as switches let them."""
    for train in trains:
        train.allowed = train.frames


def meet(network: Network) -> None:
    """The multicast and the unicast of Fig. 3, so that each has what the other needs."""
    blocker = block(network, bytes([2, 3]), BESIDE_B)
    unicast = start(
        network, AT_C, Kind.UNICAST, bytes([1, 2, 0]), then=lambda: has(network, AT_C, D, (), needs=2)
    )
    from_a = start(
        network,
        SOURCE,
        Kind.TREE,
        FROM_A,
        then=lambda: has(network, SOURCE, C, (), needs=1) and has(network, SOURCE, E, (0,), needs=None),
    )
    go_on(blocker, unicast, from_a)


def rest_in_circle(network: Network) -> bool:
    """Whether worms wait in a circle, and STOP has come to where they come from: no frame of theirs moves."""
    before = network.channels()
    if find_circle(waits_of(before)):
        network.run(1.0)
    return find_stuck(before, network.channels()) != []


def wait_beyond_limit(network: Network) -> None:
    """Waits until frames have gone round more often than wormcast-switch lets other packets, none of which waits so."""
    waiting = sum(one.waiting for one in network.channels())
    enough = network.events(TrainEvent.HELD) + (RECIRCULATIONS_MAX + 5_000) * (waiting + STARTED)
    network.wait("frames go round", lambda: network.events(TrainEvent.HELD) > enough)


def stays_stuck(network: Network, expected: set[tuple[int, int, int, int]]) -> None:
    """Worms wait in this circle, which is named: who waits where for what, and who has it. Nothing moves again."""
    network.wait("worms are stuck", lambda: rest_in_circle(network))
    before = {number: dict(host.received) for number, host in network.hosts.items()}
    answer = worms(network)
    assert answer["stuck"]
    print(explain_held(answer, FIGURE_3))
    circle = [
        (wait["worm"]["source"], wait["switch"], wait["needs"], wait["held_by"]["source"])
        for wait in answer["cycle"]
    ]
    assert set(circle) == expected
    assert {number: dict(host.received) for number, host in network.hosts.items()} == before
    # Neither loss nor a time limit has a part in it.
    assert network.drops() == {}
    for event in (TrainEvent.EXPIRED, TrainEvent.TURN_LOST, TrainEvent.TAIL_LOST, TrainEvent.RESET_SENT):
        assert network.events(event) == 0, event.name


def arrive(network: Network, *wanted: tuple[int, int]) -> None:
    """Worms of sources come whole to hosts, alone on their channels, whatever their sequence is after a RESET."""

    def is_there(host: int, source: int) -> bool:
        return got(network, host, source, 1 + len(network.hosts[source].resets)) == WHOLE

    network.wait("every worm arrives whole", lambda: all(is_there(*one) for one in wanted))
    assert [host.interleaved for host in network.hosts.values() if host.interleaved] == []
    network.wait("no worm has a channel any more", lambda: network.channels() == [])
    assert network.drops().keys() <= HARMLESS
    for event in (TrainEvent.EXPIRED, TrainEvent.TURN_LOST, TrainEvent.ABORTED):
        assert network.events(event) == 0, event.name


def resets(network: Network) -> dict[int, int]:
    """How often worms came back, by host."""
    return {number: len(host.resets) for number, host in network.hosts.items() if host.resets}


def test_fig_3_is_stuck_with_plain_routes(make_network: Make) -> None:
    network = make_network(WORMHOLE_PLAIN)
    meet(network)
    if network.kind == "wormcast":
        network.wait("worms are stuck", lambda: rest_in_circle(network))
        wait_beyond_limit(network)
    stays_stuck(network, {(SOURCE, C, 1, AT_C), (AT_C, E, 0, SOURCE)})
    assert 0 < len(got(network, TO_B, SOURCE).positions) < FRAMES
    assert got(network, TO_B, AT_C) == got(network, TO_C, SOURCE) == Received()


def test_the_same_worms_one_after_the_other_are_not_stuck(make_network: Make) -> None:
    network = make_network(WORMHOLE_PLAIN)
    unicast = network.hosts[AT_C].send(Kind.UNICAST, bytes([1, 2, 0]), FRAMES, allowed=STARTED)
    network.wait("the unicast is there", lambda: len(got(network, TO_B, AT_C).positions) == STARTED)
    from_a = start(network, SOURCE, Kind.TREE, FROM_A, then=lambda: has(network, SOURCE, E, (), needs=0))
    assert not worms(network)["stuck"]
    go_on(from_a, unicast)
    arrive(network, (TO_B, AT_C), (TO_B, SOURCE), (TO_C, SOURCE))
    assert resets(network) == {}


def test_scheme_a_is_free_along_the_tree_alone(make_network: Make) -> None:
    network = make_network(WORMHOLE_PLAIN)
    blocker = block(network, bytes([1, 2, 1, 2, 3]), BESIDE_B)
    unicast = start(
        network, AT_C, Kind.UNICAST, bytes([2, 1, 2, 0]), then=lambda: has(network, AT_C, C, (), needs=2)
    )
    from_a = start(network, SOURCE, Kind.TREE, FROM_A, then=lambda: has(network, SOURCE, A, (), needs=1))
    go_on(from_a, unicast, blocker)
    arrive(network, (TO_B, AT_C), (TO_B, SOURCE), (TO_C, SOURCE))
    assert resets(network) == {}


def test_scheme_c_is_free_where_unicast_is_flushed(make_network: Make) -> None:
    network = make_network(WORMHOLE_FLUSH)
    meet(network)
    arrive(network, (TO_B, AT_C), (TO_B, SOURCE), (TO_C, SOURCE))
    assert resets(network).keys() == {AT_C}, "the unicast alone comes back"
    assert network.events(TrainEvent.FLUSHED) == resets(network)[AT_C]


def in_one_order(network: Network, *members: int) -> None:
    """Multicasts came to members one after the other, in the order of the numbers that the root gave them."""
    seen = [network.hosts[member].multicasts for member in members]
    assert all(one == seen[0] for one in seen)
    assert len(set(seen[0])) == len(seen[0])
    for member in members:
        orders = [network.hosts[member].orders[key] for key in seen[0]]
        assert orders == sorted(set(orders))
        assert orders[0] > 0


def test_scheme_b_is_free_where_the_multicast_is_interrupted(make_network: Make) -> None:
    network = make_network(WORMHOLE_INTERRUPT)
    meet(network)
    arrive(network, (TO_B, AT_C), (TO_B, SOURCE), (TO_C, SOURCE))
    assert resets(network) == {}
    assert network.events(TrainEvent.INTERRUPTED) > 0
    in_one_order(network, TO_B, TO_C)


def test_scheme_b_is_free_with_two_multicasts_to_two_common_members(make_network: Make) -> None:
    """Both by way of the root: that from C takes its turn when that from A has left."""
    network = make_network(WORMHOLE_INTERRUPT)
    by_the_root = multicast(Branch(2, (way(1, 2, 0), way(2, 1, 0))))
    from_a = start(
        network, SOURCE, Kind.TREE, FROM_A, then=lambda: has(network, SOURCE, A, (1, 2), needs=None)
    )
    from_c = start(
        network, AT_C, Kind.TREE, by_the_root, then=lambda: has(network, AT_C, A, (), needs=ROOT_TURN)
    )
    go_on(from_c, from_a)
    members = (TO_B, TO_C)
    arrive(network, *((member, source) for member in members for source in (SOURCE, AT_C)))
    assert resets(network) == {}
    in_one_order(network, *members)
    assert network.hosts[TO_B].multicasts == [(SOURCE, 1), (AT_C, 1)]


def test_scheme_a_is_stuck_with_two_multicasts_to_two_common_members(make_network: Make) -> None:
    """WORM §3 overlooks that; `wormcast verify` names it."""
    network = make_network(WORMHOLE_PLAIN)
    blocker = block(network, bytes([1, 2, 3]), BESIDE_SOURCE)
    from_c = start(network, AT_C, Kind.TREE, FROM_C, then=lambda: has(network, AT_C, C, (1,), needs=2))
    from_a = start(
        network,
        SOURCE,
        Kind.TREE,
        FROM_A,
        then=lambda: has(network, SOURCE, C, (), needs=1) and has(network, SOURCE, E, (0,), needs=None),
    )
    go_on(blocker, from_c, from_a)
    stays_stuck(network, {(SOURCE, C, 1, AT_C), (AT_C, A, 1, SOURCE)})


def test_scheme_a_is_free_where_both_come_to_the_branch_over_one_channel(make_network: Make) -> None:
    network = make_network(WORMHOLE_PLAIN)
    over_c = multicast(Branch(2, (way(0), way(1, 0))))
    first = start(
        network, SOURCE, Kind.TREE, over_c, then=lambda: has(network, SOURCE, C, (0, 1), needs=None)
    )
    second = start(
        network, BESIDE_SOURCE, Kind.TREE, over_c, then=lambda: has(network, BESIDE_SOURCE, A, (), needs=2)
    )
    go_on(second, first)
    members = (AT_C, TO_C)
    arrive(network, *((member, source) for member in members for source in (SOURCE, BESIDE_SOURCE)))
    assert resets(network) == {}


def test_a_test_that_fails_leaves_nothing(switch: str, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Network(FIGURE_3, switch, tmp_path, WORMHOLE_PLAIN) as network:
        _ = 1 // 0
    assert all(process.poll() is not None for process in network.processes.values())
    assert [path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith("w")] == []


def test_silence_ends_a_reservation_whose_tail_does_not_come(make_network: Make) -> None:
    network = make_network(WORMHOLE_PLAIN, silent_us=1_000_000)
    silent = network.hosts[TO_C].send(Kind.UNICAST, bytes([2, 0]), FRAMES, allowed=STARTED)
    network.wait("the worm is there", lambda: len(got(network, TO_B, TO_C).positions) == STARTED)
    assert has(network, TO_C, E, (0,), needs=None)
    network.hosts[BESIDE_B].send(Kind.UNICAST, bytes([0]), FRAMES)
    network.wait("the next one gets the output", lambda: got(network, TO_B, BESIDE_B) == WHOLE)
    assert network.events(TrainEvent.EXPIRED) == 1
    # What comes of it later is reset, and its host sends it again.
    go_on(silent)
    network.wait("the late one comes whole", lambda: got(network, TO_B, TO_C, 2) == WHOLE)
    assert got(network, TO_B, TO_C) == Received(tuple(range(STARTED)))
    assert resets(network) == {TO_C: 1}
    assert network.events(TrainEvent.EXPIRED) == network.events(TrainEvent.RESET_SENT) == 1
    assert network.drops().keys() <= {DropReason.TRAIN_RESET}
