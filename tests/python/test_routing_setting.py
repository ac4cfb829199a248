"""Which unicast routes the fabric uses: set over REST and by the command line, kept, compared, refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import httpx
import jsonschema
import pytest
from click.testing import CliRunner
from controller_lab.agents import TestAgent, attached
from controller_lab.plans import decoded
from controller_lab.running import rest, running, take_for_up, until
from controller_lab.serving import serving
from wormcast import routing
from wormcast.agentrpc import agent_pb2
from wormcast.cli.main import main
from wormcast.discovery.transit import CALM_S, TransitLoad
from wormcast.exits import Exit
from wormcast.network.ids import Epoch, HostId, PortId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.topology import Link
from wormcast.reconcile import reconciler
from wormcast.reconcile.bring_out import BringOut
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.reconciler import Reconciler
from wormcast.reconcile.switch_writer import SwitchWriter
from wormcast.reconcile.view import View
from wormcast.routing import schemas
from wormcast.store.database import Database, SwitchSpec
from wormcast_planner import FabricState, RoutingError

NETWORK = routing.make("irregular:9:2:2:3")
ALGORITHMS = routing.algorithms()


def add_network(controller: Controller, no_transit: frozenset[int] = frozenset()) -> None:
    """The network, taken for up, with an agent on each host."""
    for switch in NETWORK["switches"]:
        spec = SwitchSpec(SwitchId(switch["id"]), f"127.0.0.1:{40000 + switch['id']}", 0, switch["ports"])
        controller.put_switches([spec])
        take_for_up(controller, spec.id)
    for link in NETWORK["links"]:
        ends = ((SwitchId(link[end]), PortId(link[f"{end}_port"])) for end in ("a", "b"))
        controller.monitor.restore_link(Link.between(*ends))
    for host in NETWORK["hosts"]:
        controller.declare_host(f"h{host['id']}", host["switch"], host["port"], host["id"])
        controller.agent_events.agent_registered(
            f"h{host['id']}",
            host["id"],
            b"\2\0\0\0\0\1",
            1500,
            "test",
            Epoch(0),
            transit=host["id"] not in no_transit,
        )


@pytest.fixture(autouse=True)
def no_wait_for_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here they confirm nothing, so a plan is never out whole."""
    monkeypatch.setattr(reconciler, "SETTLE_TIMEOUT_S", 0.001)


Test = Callable[[httpx.AsyncClient, Controller], Awaitable[None]]


def with_network(test: Test, state: Path | None = None, no_transit: frozenset[int] = frozenset()) -> None:
    async def run() -> None:
        async with running(state) as controller:
            add_network(controller, no_transit)
            await controller.reconciler.settle()
            async with rest(controller) as client:
                await test(client, controller)

    asyncio.run(run())


def routes_of(controller: Controller, host: int) -> list[tuple[int, bytes]]:
    plan = decoded(controller.planning.state.agents[HostId(host)])
    return [(route.host, route.ports) for route in plan.routes]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_agents_get_the_routes_that_are_set(algorithm: str) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        answer = await client.put("routing", json={"algorithm": algorithm, "root": 4})
        assert answer.status_code == 200, answer.text
        said = answer.json()
        assert said == (await client.get("routing")).json()
        assert (said["algorithm"], said["root"], said["roots"]) == (algorithm, 4, [4])
        assert (said["balanced"], said["root_away"], said["lengthened_pairs"]) == (False, False, 0)
        file = (await client.get("routes?src=3")).json()
        jsonschema.validate(file, schemas.load("routes"))
        assert routes_of(controller, 3) == [(row["dst"], bytes(row["ports"])) for row in file["routes"]]
        assert file == {**routing.routes(NETWORK, algorithm, 4, src=3), "uses_unknown": [3]}
        assert (await client.get("verify")).json()["deadlock_free"]
        status = (await client.get("status")).json()
        assert (status["algorithm"], status["routing"]) == (algorithm, said)

    with_network(test)


def test_groups_in_switches_keep_to_the_root_that_is_set() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        group = (await client.post("groups", json={"scheme": "switch", "members": [0, 5, 11, 17]})).json()
        for root in (0, 3, 8):
            await client.put("routing", json={"algorithm": "rmit", "root": root})
            assert (await client.get("verify")).json()["deadlock_free"], root
            assert (await client.get(f"groups/{group['id']}")).json()["root"] == root
            plan = (await client.get(f"groups/{group['id']}/plan")).json()
            request = {"scheme": "switch", "source": 0, "members": [0, 5, 11, 17], "parameters": {}}
            assert plan["tree"] == routing.group(NETWORK, request, root)["tree"]

    with_network(test)


def test_a_setting_outlives_the_controller_and_options_replace_it(tmp_path: Path) -> None:
    state = tmp_path / "controller.db"

    async def change(client: httpx.AsyncClient, _: Controller) -> None:
        await client.put("routing", json={"algorithm": "tree-only", "balanced": True})

    with_network(change, state)
    kept = Routing("tree-only", None, True)

    async def look(client: httpx.AsyncClient, controller: Controller) -> None:
        assert controller.routing == kept
        said = (await client.get("routing")).json()
        balanced = routing.balanced_routes(NETWORK, "tree-only")
        assert said["roots"] == [balanced["root"]]
        file = (await client.get("routes")).json()
        assert file["routes"] == balanced["routes"]

    with_network(look, state)
    database = Database(state)
    assert database.routing() == kept
    database.close()


def test_the_answer_to_a_change_is_of_the_plan_that_follows_however_late() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        for algorithm in ("omit", "osud", "omit"):
            answer = (await client.put("routing", json={"algorithm": algorithm})).json()
            assert (answer["lengthened_pairs"] > 0) == (algorithm == "omit")

    with_network(test, no_transit=frozenset(range(18)) - {1})


def test_a_request_waits_for_its_own_plan_though_the_one_before_is_out_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconciler, "SETTLE_TIMEOUT_S", 3600.0)
    making, made = asyncio.Event(), asyncio.Event()
    out = [asyncio.Event(), asyncio.Event()]
    brought: list[asyncio.Task[None]] = []

    async def bring_out(_: BringOut) -> None:
        brought.append(cast("asyncio.Task[None]", asyncio.current_task()))
        await out[len(brought) - 1].wait()

    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        make = controller.planning.make

        async def make_late(view: View) -> FabricState:
            making.set()
            await made.wait()
            return await make(view)

        monkeypatch.setattr(BringOut, "run", bring_out)
        first = asyncio.create_task(client.put("routing", json={"algorithm": "rmit"}))
        await until(lambda: brought)
        monkeypatch.setattr(controller.planning, "make", make_late)
        second = asyncio.create_task(client.put("routing", json={"algorithm": "omit"}))
        await making.wait()
        out[0].set()
        await asyncio.wait(brought)
        made.set()
        await until(lambda: len(brought) == 2)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not second.done(), "its plan is not out"
        out[1].set()
        answers = await asyncio.wait_for(asyncio.gather(first, second), 600.0)
        assert [answer.json()["algorithm"] for answer in answers] == ["omit", "omit"]

    async def run() -> None:
        async with running() as controller:
            add_network(controller)
            async with rest(controller) as client:
                await test(client, controller)

    asyncio.run(run())


def test_a_plan_that_is_out_late_makes_no_other_count_as_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is out when the next is made, and has not left."""
    out, leave, left = asyncio.Event(), asyncio.Event(), asyncio.Event()
    brought: list[asyncio.Task[None]] = []
    taken_for_out: list[FabricState] = []

    async def bring_out(_: BringOut) -> None:
        brought.append(cast("asyncio.Task[None]", asyncio.current_task()))
        await out.wait()

    async def permit(*_: object) -> None:
        left.set()
        await leave.wait()

    async def follow(_: Reconciler, state: FabricState, is_out: bool) -> None:
        if is_out:
            taken_for_out.append(state)

    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        monkeypatch.setattr(BringOut, "run", bring_out)
        monkeypatch.setattr(Reconciler, "_follow", follow)
        await client.put("routing", json={"algorithm": "rmit"})
        await until(lambda: brought)
        monkeypatch.setattr(SwitchWriter, "permit", permit)
        second = asyncio.create_task(client.put("routing", json={"algorithm": "omit"}))
        await left.wait()
        out.set()
        await asyncio.wait(brought)
        for _ in range(100):
            await asyncio.sleep(0)
        assert controller.planning.state not in taken_for_out
        leave.set()
        await second
        await until(lambda: controller.planning.state in taken_for_out)

    async def run() -> None:
        async with running() as controller:
            add_network(controller)
            async with rest(controller) as client:
                await test(client, controller)

    asyncio.run(run())


def test_who_opts_out_is_shown_kept_and_routed_around(tmp_path: Path) -> None:
    state = tmp_path / "controller.db"
    out = frozenset(range(18)) - {1}

    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        said = (await client.put("routing", json={"algorithm": "omit"})).json()
        assert said["lengthened_pairs"] > 0
        hosts = {host["id"]: host for host in (await client.get("hosts")).json()["hosts"]}
        assert {host for host, shown in hosts.items() if not shown["transit"]} == out
        assert [host for host, shown in hosts.items() if shown["re_injects"]] == [1]
        topology = (await client.get("topology")).json()
        assert {host["id"] for host in topology["hosts"] if not host.get("transit", True)} == out
        rows = (await client.get("routes")).json()["routes"]
        assert {host for row in rows for host in row["in_transit"]} <= {1}
        # Its agent is gone: nobody re-injects any more.
        controller.hosts.records()[1].expected_until = 0.0
        controller.agent_events.agent_detached(controller.hosts.records()[1].id)
        controller.hosts.records()[1].expected_until = 0.0
        controller.network.notice()
        await until(lambda: not any(row["re_injects"] for row in shown(controller)))
        await controller.reconciler.settle()
        rows = (await client.get("routes")).json()["routes"]
        assert not any(row["in_transit"] for row in rows)
        agents = controller.planning.state.agents
        assert {(row["src"], row["dst"], bytes(row["ports"])) for row in rows} == {
            (src, to, ports) for src in agents for to, ports in routes_of(controller, src)
        }

    def shown(controller: Controller) -> list[dict[str, Any]]:
        from wormcast.api.views import show_host

        return [show_host(controller, record) for record in controller.hosts.records()]

    with_network(test, state, out)
    database = Database(state)
    assert {host.id for host in database.hosts() if not host.transit} == out
    database.close()


def test_who_is_busy_is_shown_and_routed_around_until_it_is_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        await client.put("routing", json={"algorithm": "omit"})

        async def through() -> set[int]:
            await controller.reconciler.settle()
            rows = (await client.get("routes")).json()["routes"]
            return {host for row in rows for host in row["in_transit"]}

        def report(full: int) -> None:
            counters = [("transit.spilled", 0, full), ("drops.transit_full", 0, full // 2)]
            controller.agent_events.statistics_received(busy, counters)

        before = await through()
        busy = HostId(min(before))
        for full in (5, 9, 9, 12, 15):  # it was full before the first report; then never three times in a row
            report(full)
        assert await through() == before
        report(20)
        assert busy not in await through()
        shown = (await client.get(f"hosts/{busy}")).json()
        assert (shown["transit_busy"], shown["transit"], shown["re_injects"]) == (True, True, False)
        report(20)
        assert busy not in await through(), "calm for no time"
        monkeypatch.setattr("wormcast.discovery.transit.CALM_S", 0.0)
        report(20)
        assert await through() == before
        kinds = [event.kind for event in controller.events.history()]
        assert [kind for kind in kinds if kind.startswith("transit")] == ["transit_busy", "transit_calm"]

    with_network(test)


def test_reports_of_any_kind_change_a_host_seldom() -> None:
    random = Random(5)
    load, full, changed_at = TransitLoad(), 0, [float("-inf")]
    for second in range(20_000):
        # Calm and busy times of any length; now and then the agent starts anew and counts from 0.
        full += random.randrange(3) * (second // 97 % 3 > random.randrange(3))
        full = 0 if random.random() < 0.01 else full
        if load.take_report({("transit.spilled", 0): full, ("transit.spilled", 7): second}, float(second)):
            changed_at.append(float(second))
    assert len(changed_at) > 20
    for first, third in zip(changed_at[1:], changed_at[3:], strict=False):
        assert third - first > CALM_S
    for second in range(100):
        load.take_report({("transit.spilled", 0): full}, 20_000.0 + second)
    assert not load.busy


def test_a_root_that_is_away_is_named_and_replaced() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        await client.put("routing", json={"algorithm": "rrmit", "root": 8})
        spec = controller.sessions[SwitchId(8)].spec
        controller.monitor.connect(spec.id, -100.0)
        controller.monitor.disconnect(spec.id, -100.0)
        controller.monitor.handle_timeout(controller.clock.now())
        controller.network.notice()
        await until(lambda: 8 not in controller.monitor.switches())
        await controller.reconciler.settle()
        said = (await client.get("routing")).json()
        assert said["root_away"]
        assert said["root"] == 8
        assert 8 not in said["roots"]
        assert (await client.get("status")).json()["plan_error"] is None
        file = (await client.get("routes?src=0")).json()
        assert file["root"] in said["roots"]

    with_network(test)


@pytest.mark.parametrize(
    ("new", "steps"),
    [
        ({"algorithm": "osud", "root": 3}, ["bridge", "new-order"]),
        ({"algorithm": "omit"}, ["kept-order"]),
        ({"algorithm": "osud", "balanced": True}, None),
        ({"algorithm": "rrmit-min"}, ["kept-order"]),
        ({"algorithm": "pit", "root": 8}, ["bridge", "new-order"]),
        ({"algorithm": "osud"}, []),
    ],
)
def test_a_dry_run_compares_and_changes_nothing(new: dict[str, Any], steps: list[str] | None) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        answer = await client.put("routing?dry_run=true", json=new)
        assert answer.status_code == 200, answer.text
        value = answer.json()
        jsonschema.validate(value, schemas.load("routing-change"))
        assert value["now"] == Routing().to_json()
        assert value["before"]["link_load"] == routing.route_summary(NETWORK)["link_load"]
        largest = [value[side]["link_load"]["max"] for side in ("before", "after")]
        assert value["gain"] == 1 - largest[1] / largest[0]
        assert value["certificate"]["deadlock_free"]
        # What balance finds is not known here.
        assert steps is None or [step["method"] for step in value["steps"]] == steps
        assert all(step["deadlock_free_with_previous"] for step in value["steps"])
        assert all(step["waiting"] == 0 and step["routes_changed"] > 0 for step in value["steps"])
        if new.get("balanced"):
            assert value["gain"] == pytest.approx(routing.balance_report(NETWORK)["gain"])
        assert controller.routing == Routing()

    with_network(test)


REFUSED = [
    ({"algorithm": "fastest"}, f"there is no algorithm 'fastest'; there are {', '.join(ALGORITHMS)}"),
    ({"algorithm": "osud", "root": 99}, "there is no switch 99; there are 0, 1, 2, 3, 4, 5, 6, 7, 8"),
    ({"algorithm": "osud", "root": 65535}, "switch 65535 is out of range; possible: 0 to 65534"),
    ({"algorithm": "osud", "root": -1}, "switch -1 is out of range; possible: 0 to 65534"),
    (
        {"algorithm": "rmit", "balanced": True},
        "the load of channels is balanced for osud and tree-only, not for rmit",
    ),
    ({"root": 3}, "body.algorithm"),
    ({"algorithm": "osud", "balanced": "yes"}, "body.balanced"),
    ({"algorithm": "osud", "seed": 3}, "body.seed"),
]


@pytest.mark.parametrize(("body", "said"), REFUSED)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_what_cannot_be_is_refused(body: dict[str, Any], said: str, query: str) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        answer = await client.put(f"routing{query}", json=body)
        assert answer.status_code == 422
        assert said in answer.json()["error"]["message"]
        assert controller.routing == Routing()

    with_network(test)


def test_options_of_the_controller_are_refused_before_it_starts(tmp_path: Path) -> None:
    base = ["controller", "run", "--state", str(tmp_path / "s.db"), "--listen", "unix:/nowhere/x"]
    code, out, error = run_cli(*base, "--algorithm", "fastest")
    assert code == Exit.CANNOT_START
    assert all(name in error for name in ALGORITHMS), out
    code, _, error = run_cli(*base, "--algorithm", "pit", "--balanced")
    assert code == Exit.CANNOT_START
    assert "balanced for osud and tree-only, not for pit" in error
    with pytest.raises(RoutingError):
        Routing("osud", SwitchId(-1))


def run_cli(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, list(words))
    return done.exit_code, done.stdout, done.stderr


def test_how_often_routes_are_used_is_shown_with_the_routes() -> None:
    async def run() -> None:
        async with running(agents=("127.0.0.1:0",)) as controller:
            add_network(controller)
            await controller.put_routing(Routing("rrmit"))
            host = controller.hosts.records()[0].id
            counts: dict[int, int] = {}
            for to, _ in routes_of(controller, host):
                counts[to] = counts.get(to, 0) + 1
            to, several = max(counts.items(), key=lambda item: item[1])
            assert several > 1
            used = {to: tuple(range(several)), next(h for h in counts if h != to): (1,) * 99}
            controller.agent_events.statistics_received(host, [], used)  # type: ignore[arg-type]
            async with rest(controller) as client:
                rows = (await client.get(f"routes?src={host}")).json()["routes"]
                assert [row.get("messages") for row in rows if row["dst"] == to] == list(range(several))
                assert not any("messages" in row for row in rows if row["dst"] != to), (
                    "other routes than ours"
                )
                everything = (await client.get("routes")).json()["routes"]
                towards = (await client.get(f"routes?dst={to}")).json()["routes"]
                for listed in (everything, towards):
                    ours = [row for row in listed if (row["src"], row["dst"]) == (host, to)]
                    assert [row.get("messages") for row in ours] == list(range(several))
                    assert not any("messages" in row for row in listed if row not in ours)
                uses = (await client.get(f"hosts/{host}")).json()["routes_used"]
                assert {"host": to, "messages": list(range(several))} in uses
                named = (await client.get(f"routes?src={host}&algorithm=rrmit")).json()["routes"]
                assert not any("messages" in row for row in named)

    asyncio.run(run())


def test_a_real_stream_opts_out_and_reports_its_routes() -> None:
    async def run() -> None:
        async with running() as controller:
            (address,) = await controller.directory.start(["127.0.0.1:0"])
            async with attached(address, "edge", no_transit=True) as agent:
                await until(lambda: agent.host is not None)
                record = controller.hosts.named("edge")
                assert record is not None
                assert not record.transit
                uses = [agent_pb2.RouteUse(host=4, messages=[2, 3])] * 300
                await agent.send(statistics=agent_pb2.Statistics(routes=uses))
                await until(lambda: controller.agents[record.id].routes == {4: (2, 3)})
                wrong = [agent_pb2.RouteUse(host=70_000, messages=[1])]
                await agent.send(statistics=agent_pb2.Statistics(routes=wrong))
                await ended(agent)
            assert controller.directory.bad_messages == 1

    async def ended(agent: TestAgent) -> None:
        async with asyncio.timeout(600):
            await agent.ended.wait()

    asyncio.run(run())


def test_the_command_line_says_it_in_words() -> None:
    value = {
        "algorithm": "rmit",
        "root": 8,
        "balanced": False,
        "roots": [2],
        "root_away": True,
        "lengthened_pairs": 12,
        "runs_as": None,
        "change": None,
        "left_behind": [],
        "left_behind_count": 0,
    }
    from wormcast.cli.routing import _describe

    assert _describe(value) == [
        "routes: rmit, root 8",
        "roots in force: 2",
        "switch 8 is not up; each connected part has chosen its root",
        "12 pairs of hosts have longer routes, because hosts that could re-inject their worms do not",
    ]
    code, _, error = run_cli("routing", "set", "fastest")
    assert code == 2
    assert all(name in error for name in ALGORITHMS)


def at_terminal(*words: str) -> str:
    """What a command prints to a terminal, with single spaces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
        code, out, error = run_cli(*words)
    assert code == 0, error
    return " ".join(out.split())


CUTTING = [name for name in ALGORITHMS if name not in ("osud", "tree-only")]


@pytest.mark.parametrize("algorithm", CUTTING)
def test_where_no_host_re_injects_it_is_said_what_routes_are_instead(algorithm: str, tmp_path: Path) -> None:
    nobody = {**NETWORK, "hosts": [{**host, "transit": False} for host in NETWORK["hosts"]]}
    pairs = routing.route_summary(nobody, algorithm)["lengthened_pairs"]
    said = f"no host re-injects: {algorithm} runs as osud"
    ending = f"; {pairs} pairs of hosts have longer routes"

    async def look(client: httpx.AsyncClient, controller: Controller, is_reported: bool) -> None:
        async def told(*words: str) -> bool:
            printed = await asyncio.to_thread(at_terminal, *words, "--api", f"unix:{tmp_path / 'rest'}")
            assert (said in printed) == (ending in printed)
            return said in printed

        async with serving(controller, tmp_path / "rest"):
            dry = await client.put("routing?dry_run=true", json={"algorithm": algorithm})
            jsonschema.validate(dry.json(), schemas.load("routing-change"))
            assert (dry.json()["runs_as"] is not None) == is_reported
            assert await told("routing", "set", algorithm, "--dry-run") == is_reported
            assert not await told("routing", "show"), "osud needs no host"
            assert (await client.get("routing")).json()["runs_as"] is None
            answer = (await client.put("routing", json={"algorithm": algorithm})).json()
            assert (answer["runs_as"] is not None) == is_reported
            assert answer == (await client.get("routing")).json()
            for words in (
                ("routing", "set", algorithm),
                ("routing", "show"),
                ("route",),
                ("route", "0", "5"),
                ("route", "--summary"),
            ):
                assert await told(*words) == is_reported, words
        file = (await client.get("routes")).json()
        jsonschema.validate(file, schemas.load("routes"))
        assert ("runs_as" in file) == is_reported
        if is_reported:
            assert answer["lengthened_pairs"] == pairs
            assert file == {**routing.routes(nobody, algorithm), "uses_unknown": list(range(18))}

    async def before(client: httpx.AsyncClient, controller: Controller) -> None:
        await look(client, controller, is_reported=False)

    async def after(client: httpx.AsyncClient, controller: Controller) -> None:
        await look(client, controller, is_reported=True)

    with_network(before)
    with_network(after, no_transit=frozenset(range(18)))


@pytest.mark.parametrize("algorithm", CUTTING)
def test_what_routes_are_without_hosts_that_re_inject_is_true(algorithm: str) -> None:
    for kind in ("irregular:9:2:2:3", "irregular:16:3:1:5", "torus:4x4"):
        network = routing.make(kind)
        for host in network["hosts"]:
            host["transit"] = False
        others, summary = routing.routes(network, algorithm), routing.route_summary(network, algorithm)
        assert not any(row["in_transit"] for row in others["routes"])
        says = others["runs_as"]
        assert (summary["alternatives_mean"] > 1) == ("several routes" in says), kind
        length = {(row["src"], row["dst"]): len(row["ports"]) for row in routing.routes(network)["routes"]}
        longer = [len(row["ports"]) - length[row["src"], row["dst"]] for row in others["routes"]]
        most = 1 if "up to a link longer" in says and kind != "torus:4x4" else 0
        assert (min(longer), max(longer)) == (0, most), kind
        one = {**network, "hosts": [{**network["hosts"][0], "transit": True}, *network["hosts"][1:]]}
        assert "runs_as" not in routing.routes(one, algorithm)
        assert "runs_as" not in routing.routes(network, "osud")


def report_uses(controller: Controller, host: HostId) -> int:
    """The agent of a host says that it used each route, as often as nobody else did its own; gives how often."""
    counts: dict[int, int] = {}
    for to, _ in routes_of(controller, host):
        counts[to] = counts.get(to, 0) + 1
    used = {to: (1000 + host,) * several for to, several in counts.items()}
    controller.agent_events.statistics_received(host, [], used)  # type: ignore[arg-type]
    return 1000 + host


def test_how_often_routes_are_used_is_shown_of_all_hosts_and_who_does_not_say_it_is_named(
    tmp_path: Path,
) -> None:
    silent, away = HostId(4), HostId(7)

    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        hosts = [record.id for record in controller.hosts.records()]
        often = {host: report_uses(controller, host) for host in hosts if host != silent}
        controller.hosts.records()[away].expected_until = 0.0
        controller.agent_events.agent_detached(away)
        assert not controller.hosts.records()[away].attached
        for query, unknown in (("", [4, 7]), ("?dst=2", [4, 7]), ("?src=4", [4]), ("?src=3", None)):
            file = (await client.get(f"routes{query}")).json()
            jsonschema.validate(file, schemas.load("routes"))
            assert file.get("uses_unknown") == unknown, query
            assert file["routes"]
            for row in file["routes"]:
                expected = None if row["src"] in (silent, away) else often[row["src"]]
                assert row.get("messages") == expected, (query, row)
        async with serving(controller, tmp_path / "rest"):
            for words in ((), ("--to", "2")):
                api = f"unix:{tmp_path / 'rest'}"
                printed = await asyncio.to_thread(at_terminal, "route", *words, "--api", api)
                assert f" {often[HostId(3)]} " in printed
                assert (
                    "how often routes from host 4, 7 are used is not known: no word from their agents"
                    in printed
                )
        # It comes back, and has not said anything yet.
        controller.agent_events.agent_registered("h7", 7, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        assert (await client.get("routes?src=7")).json()["uses_unknown"] == [7]
        report_uses(controller, away)
        assert "uses_unknown" not in (await client.get("routes?src=7")).json()

    with_network(test)
