"""The Python face of the routing library: `wormcast.routing`."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_lab import tree_ends
from wormcast import routing, verify
from wormcast_planner import is_copied_by_switches

Topology = dict[str, Any]


@pytest.fixture
def fabric() -> Topology:
    return routing.make("testbed")


def follow(topology: Topology, route: dict[str, Any]) -> int:
    """Host that a route leads to."""
    ends = {(link["a"], link["a_port"]): link["b"] for link in topology["links"]}
    ends |= {(link["b"], link["b_port"]): link["a"] for link in topology["links"]}
    hosts = {(host["switch"], host["port"]): host["id"] for host in topology["hosts"]}
    at = next(host["switch"] for host in topology["hosts"] if host["id"] == route["src"])
    for switch, port in zip(route["switches"][:-1], route["ports"][:-1], strict=True):
        assert switch == at
        at = ends[switch, port]
    assert route["switches"][-1] == at
    return hosts[at, route["ports"][-1]]


@given(st.integers(2, 12), st.integers(0, 1000), st.sampled_from(["osud", "tree-only"]))
@settings(max_examples=20, deadline=None)
def test_every_pair_has_a_route_that_leads_there(switches: int, seed: int, algorithm: str) -> None:
    topology = routing.make(f"irregular:{switches}:{seed}:2:3")
    routes = routing.routes(topology, algorithm)
    assert routes["algorithm"] == algorithm
    assert len(routes["routes"]) == 2 * switches * (2 * switches - 1)
    for route in routes["routes"]:
        assert follow(topology, route) == route["dst"]
        assert route["in_transit"] == []
    assert verify.verify(topology, routes)["deadlock_free"]
    one = routes["routes"][-1]
    assert routing.route(topology, one["src"], one["dst"], algorithm) == one


def test_sparse_ids_and_a_split_fabric_are_taken_as_they_are(fabric: Topology) -> None:
    left = routing.damage(fabric, switches=[1], links=[(3, 4), (0, 5)], hosts=[7])
    assert [switch["id"] for switch in left["switches"]] == [0, 2, 3]
    assert [host["id"] for host in left["hosts"]] == [0, 1, 4, 5, 6]
    routes = routing.routes(left)
    reached = {(route["src"], route["dst"]) for route in routes["routes"]}
    assert reached == {(0, 1), (1, 0), (4, 5), (5, 4), (4, 6), (6, 4), (5, 6), (6, 5)}
    apart = {(pair["src"], pair["dst"]) for pair in routes["unreachable"]}
    assert len(apart) == 12
    assert (0, 4) in apart
    assert routing.spanning_tree(left)["roots"] == [0, 2]
    with pytest.raises(routing.RoutingError, match="switch 0 cannot reach switches 2, 3"):
        routing.check(left)
    assert routing.check(left, allow_split=True)["switches"] == left["switches"]
    with pytest.raises(routing.RoutingError, match="members 0 and 4 cannot reach each other"):
        routing.group(left, {"scheme": "circuit", "source": 0, "members": [0, 4]})


def test_spanning_tree_has_the_parent_first(fabric: Topology) -> None:
    tree = routing.spanning_tree(fabric, root=2)
    levels = {row["switch"]: row["level"] for row in tree["levels"]}
    assert tree["root"] == 2
    assert levels == {2: 0, 1: 1, 3: 1, 0: 2}
    wired = {(link["a"], link["a_port"], link["b"], link["b_port"]) for link in fabric["links"]}
    for a, a_port, b, b_port in tree["links"]:
        assert levels[a] + 1 == levels[b]
        assert {(a, a_port, b, b_port), (b, b_port, a, a_port)} & wired
    assert len(tree["links"]) == 3


@pytest.mark.parametrize("scheme", routing.schemes())
def test_every_scheme_reaches_every_member_once(fabric: Topology, scheme: str) -> None:
    if "torus" in scheme:
        with pytest.raises(routing.RoutingError, match="it needs a torus or mesh"):
            routing.group(fabric, {"scheme": scheme, "source": 3, "members": [0, 3]})
        fabric = routing.make("unidirectional-torus:2x4")
    request = {"scheme": scheme, "source": 3, "members": [0, 2, 3, 5, 6, 7]}
    group = routing.group(fabric, request)
    if is_copied_by_switches(scheme):
        reached = []
        for source, route in verify.trees_of(group):
            reached += tree_ends(fabric, source, route)
        if scheme != "switch":
            assert reached == []
            return
    else:
        reached = [edge["to"] for edge in group["edges"]]
        assert verify.trees_of(group) == []
    assert sorted(reached) == [0, 2, 5, 6, 7]


def test_orders(fabric: Topology) -> None:
    assert routing.order(fabric, [7, 3, 5, 0], kind="ascending") == [0, 3, 5, 7]
    # Switch 0 is the root; 1, then 2 below it, then 3.
    assert routing.order(fabric, [7, 3, 5, 0], kind="cco") == [0, 3, 5, 7]
    assert routing.order(fabric, [7, 3, 5, 0], kind="cco", root=2) == [5, 3, 0, 7]
    with pytest.raises(routing.RoutingError, match="needs a torus or mesh"):
        routing.order(fabric, [1, 2], kind="dimension")


def test_verify_finds_a_cycle_and_names_it(fabric: Topology) -> None:
    def around(start: int) -> dict[str, Any]:
        switches = [(start + step) % 4 for step in range(3)]
        return {"src": 2 * start, "dst": 2 * switches[2], "switches": switches, "ports": [4, 4, 0]}

    routes = {"routes": [around(start) for start in range(4)]}
    verdict = verify.verify(fabric, routes)
    assert not verdict["deadlock_free"]
    assert [wait["channel"]["from"] for wait in verdict["cycle"]] == [
        {"switch": switch, "port": 4} for switch in (0, 1, 2, 3)
    ]
    assert verdict["cycle"][0]["held_by"] == {"kind": "unicast", "src": 0, "dst": 4}
    routes["routes"].pop()
    free = verify.verify(fabric, routes)
    assert free["deadlock_free"]
    # All channels are in the order: two for each of 4 links and 8 hosts.
    assert len(free["order"]) == 24


def test_branches_that_wait_for_each_other_are_seen_only_where_they_do(fabric: Topology) -> None:
    trees = []
    for source in (0, 5):
        trees += verify.trees_of(
            routing.group(fabric, {"scheme": "switch", "source": source, "members": list(range(8))})
        )
    assert verify.verify(fabric, algorithm="tree-only", trees=trees)["deadlock_free"]
    assert verify.verify(fabric, algorithm="osud", trees=trees)["deadlock_free"]
    assert verify.verify(fabric, algorithm="tree-only", trees=trees[:1], branching="coupled")["deadlock_free"]
    both = verify.verify(fabric, algorithm="tree-only", trees=trees, branching="coupled")
    assert not both["deadlock_free"]
    assert both["proven"]
    assert {wait["held_by"]["src"] for wait in both["cycle"]} == {0, 5}


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda _: routing.make("cube:3"), "no such topology; choices are testbed, line:"),
        (lambda t: routing.routes({**t, "links": "none"}), 'links: "none" is not a list'),
        (
            lambda t: routing.routes(t, "fastest"),
            'no algorithm "fastest"; algorithms are osud, tree-only, omit',
        ),
        (lambda t: routing.routes(t, root=9), "there is no switch 9; switches are 0, 1, 2, 3"),
        (lambda t: routing.route(t, 0, 70_000), "host 70000 is outside 0 to 65534"),
        (lambda t: routing.routes(t, root=-1), "switch -1 is outside 0 to 65534"),
        (lambda t: routing.damage(t, links=[(0, 300)]), "port 300 is outside 0 to 253"),
        (lambda t: verify.verify(t, branching="x"), "choices are independent, coupled"),
        (lambda t: verify.verify(t, {"routes": 1}), 'field "routes" is missing or not a list'),
        (lambda t: routing.order(t, [1, 99]), "there is no host 99; hosts are 0, 1, 2"),
    ],
)
def test_what_is_refused_says_why(fabric: Topology, work: Any, message: str) -> None:
    with pytest.raises(routing.RoutingError) as refused:
        work(fabric)
    assert message in str(refused.value)
    assert isinstance(refused.value, ValueError)


def test_planning_releases_the_interpreter() -> None:
    """While one call goes on, another thread runs again and again; a busy machine may take many calls to show it."""
    text = routing.make("irregular:256:1:1")
    begun, seen = 0, threading.Event()

    def plan() -> None:
        nonlocal begun
        while begun < 1000 and not seen.is_set():
            begun += 1
            verify.verify(text, algorithm="osud")

    planner = threading.Thread(target=plan)
    planner.start()
    call, looks = 0, 0
    while planner.is_alive() and not seen.is_set():
        call, looks = begun, looks + 1 if call == begun else 0
        if looks == 5:
            seen.set()
        time.sleep(0.001)
    planner.join()
    assert seen.is_set()


def test_files_are_text_with_an_entry_a_line(fabric: Topology) -> None:
    text = routing.to_text(fabric)
    assert json.loads(text) == fabric
    assert '\n  {"id": 3, "ports": 8}]' in text
    assert len(text.splitlines()) == 4 + 4 + 8 + 4
