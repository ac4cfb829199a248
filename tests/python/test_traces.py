"""Traces: what records are joined to, and what REST says while agents answer, late, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from controller_lab.agents import attached
from controller_lab.running import rest, running
from controller_lab.small import add_fabric
from wormcast.agentrpc import agent_pb2
from wormcast.trace.command import draw_tree
from wormcast.trace.ways import Out, Wiring, join_hops, lost_text, tree_paths
from wormcast.wire import TRACE_QUEUE_MAX, TRACE_STAY_MAX, Kind

# Host 0 at s0:0, host 1 at s0:1, host 2 at s1:0, host 5 at s2:0; s0:3 = s1:3, s1:4 = s2:4.
TOPOLOGY = {
    "switches": [{"id": n, "ports": 8} for n in range(3)],
    "hosts": [
        {"id": 0, "switch": 0, "port": 0},
        {"id": 1, "switch": 0, "port": 1},
        {"id": 2, "switch": 1, "port": 0},
        {"id": 5, "switch": 2, "port": 0},
    ],
    "links": [
        {"a": 0, "a_port": 3, "b": 1, "b_port": 3},
        {"a": 1, "a_port": 4, "b": 2, "b_port": 4},
    ],
}
WIRING = Wiring(TOPOLOGY)


def record(hop: int, switch: int, ingress: int, egress: int, left: int = 0, **more: int) -> dict[str, Any]:
    fields = {"stay_us": 10, "queue": 0, "left_us": left, **more}
    return {"hop": hop, "switch": switch, "ingress_port": ingress, "egress_port": egress, **fields}


def test_hops_are_joined_by_the_wiring() -> None:
    """Where each hop leads, and the time between hops by two clocks, which wrap."""
    records = [record(1, 0, 0, 3, 2**32 - 5), record(2, 1, 3, 4, 30), record(3, 2, 4, 0, 20)]
    hops = join_hops(WIRING, 0, records, 3)
    assert [hop["to"] for hop in hops] == [{"switch": 1, "port": 3}, {"switch": 2, "port": 4}, {"host": 5}]
    assert [hop.get("apart_us") for hop in hops] == [None, 25, -20]
    assert not any("surprise" in hop for hop in hops)


def test_in_transit_hosts_and_recirculation_are_no_surprise() -> None:
    """A worm may enter a switch by the port of a host again, or begin again at the same one."""
    by_host = [record(1, 0, 0, 3), record(2, 1, 3, 0), record(3, 1, 0, 4), record(4, 2, 4, 0)]
    hops = join_hops(WIRING, 0, by_host, 4)
    assert hops[1]["to"] == {"host": 2}
    again = join_hops(WIRING, 0, [record(1, 0, 0, 254), record(2, 0, 0, 1)], 2)
    assert again[0]["to"] == {"switch": 0}
    assert not any("surprise" in hop for hop in [*hops, *again])


def test_what_the_network_has_otherwise_is_said() -> None:
    """A first switch that is not the sender's, and a link that ends elsewhere."""
    hops = join_hops(WIRING, 0, [record(1, 0, 1, 3), record(2, 2, 4, 0)], 2)
    assert "switch 0 by port 0" in hops[0]["surprise"]
    assert "switch 1 by port 3" in hops[1]["surprise"]


def test_hops_without_a_record_are_not_passed_over() -> None:
    """And nothing is said of the time or the wiring across them."""
    hops = join_hops(WIRING, 0, [record(1, 0, 0, 3), record(3, 2, 4, 0)], 4)
    assert [hop["hop"] for hop in hops] == [1, 2, 3, 4]
    assert hops[1] == {"hop": 2}
    assert hops[3] == {"hop": 4}
    assert "apart_us" not in hops[2]
    largest = record(1, 0, 0, 3, stay_us=TRACE_STAY_MAX, queue=TRACE_QUEUE_MAX)
    (hop,) = join_hops(WIRING, 0, [largest], 1)
    assert hop["stay_at_least"] is True
    assert hop["queue_at_least"] is True


def test_routes_are_followed_to_the_hosts() -> None:
    """UNICAST by in-transit hosts too, TREE by all branches; nothing where the route leads nowhere."""
    tree = bytes([1, 0, 3, 6, 0, 0, 4, 2, 0, 0, 255])
    assert sorted(tree_paths(tree)) == [[1], [3, 0], [3, 4, 0]]
    assert WIRING.ways_of(0, Kind.TREE, tree) == {
        1: [Out(0, 1)],
        2: [Out(0, 3), Out(1, 0)],
        5: [Out(0, 3), Out(1, 4), Out(2, 0)],
    }
    transit = WIRING.ways_of(0, Kind.UNICAST, bytes([3, 0, 4, 0]))
    assert transit == {5: [Out(0, 3), Out(1, 0), Out(1, 4), Out(2, 0)]}
    assert WIRING.ways_of(0, Kind.UNICAST, bytes([6, 0])) == {}
    assert WIRING.ways_of(0, Kind.GROUP, b"\0\7") == {}


def test_a_lost_branch_names_how_far_others_came() -> None:
    way = [Out(0, 3), Out(1, 4), Out(2, 0)]
    text = lost_text(WIRING, 5, way, {Out(0, 3), Out(1, 0)})
    assert text == (
        "nothing came back from host 5; its way is s0:3 → s1:4 → s2:0 → host 5; "
        "other copies came as far as switch 1"
    )
    assert lost_text(WIRING, 5, [], set()) == "nothing came back from host 5"


def test_copies_are_drawn_as_a_tree() -> None:
    """Common hops once."""
    to_1 = join_hops(WIRING, 0, [record(1, 0, 0, 1)], 1)
    to_2 = join_hops(WIRING, 0, [record(1, 0, 0, 3), record(2, 1, 3, 0)], 2)
    to_5 = join_hops(WIRING, 0, [record(1, 0, 0, 3), record(2, 1, 3, 4)], 3)
    way = {
        "from": 0,
        "arrived": [{"host": 1, "hops": to_1}, {"host": 2, "hops": to_2}, {"host": 5, "hops": to_5}],
        "missing": [{"host": 9}],
    }
    assert draw_tree(way) == [
        "host 0",
        "├─ s0 port 0 → port 1  queue 0, 10 µs",
        "│  └─ host 1",
        "├─ s0 port 0 → port 3  queue 0, 10 µs",
        "│  ├─ s1 port 3 → port 0  queue 0, 10 µs",
        "│  │  └─ host 2",
        "│  └─ s1 port 3 → port 4  queue 0, 10 µs",
        "│     └─ hop 3: no record",
        "│        └─ host 5",
        "└─ host 9: nothing came back",
    ]


def test_agents_are_asked_until_all_have_answered() -> None:
    """The first probe is lost: the second comes; what comes late or twice changes nothing."""

    async def main() -> None:
        async with running() as controller:
            address = (await controller.directory.start(["127.0.0.1:0"]))[0]
            add_fabric(controller)
            async with (
                rest(controller) as client,
                attached(address, "h0") as sender,
                attached(address, "h2") as receiver,
            ):
                while sender.host is None or receiver.host is None:
                    await asyncio.sleep(0.01)
                answer = await client.post("trace", json={"from": "h0", "to": "h2", "seconds": 30})
                assert answer.status_code == 202
                number = answer.json()["trace"]
                assert answer.json()["no_answer"] == [0]
                way = agent_pb2.Way(number=0, kind=0, route=b"\3\0", hosts=[2], alternative=0, share=12600)

                async def asked(times: int) -> list[Any]:
                    async with asyncio.timeout(600):
                        while True:
                            found = [m.trace for m in sender.received if m.WhichOneof("body") == "trace"]
                            if len(found) >= times:
                                return found
                            await asyncio.sleep(0.01)

                async def shown() -> Any:
                    return (await client.get(f"trace/{number}")).json()

                (first,) = await asked(1)
                assert (first.number, first.attempt, first.host) == (number, 1, 2)
                sent = agent_pb2.TraceSent(number=number, attempt=1, ways=[way])
                await sender.send(trace_sent=sent)
                second = (await asked(2))[1]
                assert second.attempt == 2
                found = await shown()
                assert found["complete"] is False
                assert "its way is s0:3 → s1:0 → host 2" in found["ways"][0]["missing"][0]["text"]
                records = [
                    agent_pb2.HopRecord(**record(1, 0, 0, 3, 1000)),
                    agent_pb2.HopRecord(**record(2, 1, 3, 0, 1100)),
                ]
                seen = {"number": number, "sender": 0, "way": 0, "hops": 2, "room": 64, "count": 2}
                probe = agent_pb2.ProbeSeen(attempt=2, records=records, **seen)
                await receiver.send(probe_seen=probe)
                await receiver.send(probe_seen=agent_pb2.ProbeSeen(attempt=1, **seen))
                async with asyncio.timeout(600):
                    while not (found := await shown())["complete"]:
                        await asyncio.sleep(0.01)
                (arrived,) = found["ways"][0]["arrived"]
                assert (arrived["host"], arrived["attempt"], arrived["switches"]) == (2, 2, 2)
                assert [hop["switch"] for hop in arrived["hops"]] == [0, 1]
                assert arrived["hops"][1]["apart_us"] == 90
                assert "other_than_planned" not in arrived

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"from": 0, "to": 9}, 404, ["no host 9", "0, 1, 2"]),
        ({"from": "h7", "to": 1}, 404, ["h7"]),
        ({"from": 0, "group": 44}, 404, ["44"]),
        ({"from": 0}, 422, ["`to` or `group`"]),
        ({"to": 1}, 422, ["`from`"]),
        ({"from": 1, "to": 1}, 422, ["itself"]),
        ({"from": 0, "to": 1, "seconds": 61}, 422, ["at most 60 s"]),
        ({"from": 0, "to": 1, "bytes": 5}, 422, ["without `group`"]),
        ({"from": 0, "to": 1, "route": 20}, 422, ["20"]),
    ],
)
def test_what_cannot_be_traced_is_refused(body: dict[str, Any], status: int, words: list[str]) -> None:
    """With the choices there are."""

    async def main() -> None:
        async with running() as controller:
            add_fabric(controller)
            async with rest(controller) as client:
                answer = await client.post("trace", json=body)
                assert answer.status_code == status, answer.text
                message = answer.json()["error"]["message"]
                assert all(word in message for word in words), message
                assert (await client.get("trace/1")).status_code == 404

    asyncio.run(main())
