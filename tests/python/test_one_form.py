"""Commands that plan answer the same, whether a running controller has the network or a file does."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click.testing
import httpx
import pytest
from click.testing import CliRunner
from controller_lab.fabrics import random_topology
from controller_lab.running import rest, running, take_for_up, until
from controller_lab.serving import serving
from wormcast import routing, verify
from wormcast.cli.main import main
from wormcast.network.groups import SCHEMES_ANYWHERE
from wormcast.network.ids import Epoch, HostId, PortId, SwitchId
from wormcast.network.topology import Host, Switch, Topology
from wormcast.offload.switch_plan import read_network
from wormcast.reconcile.controller import Controller
from wormcast.store.database import SwitchSpec

SEEDS = range(12)
DRAWN = ("rmit", "rrmit", "pit", "rrmit-min")
Answer = tuple[int, str, str]


def ask(*words: object, at_terminal: bool = False) -> Answer:
    """Exit code, standard output and standard error of a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: at_terminal)
        result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stdout, result.stderr


def answer(*words: object) -> Any:
    code, out, error = ask(*words, "--json")
    assert code == 0, error
    return json.loads(out)


def with_controller(
    network: Topology, directory: Path, test: Callable[[str, Path], None], *, groups: list[dict[str, Any]]
) -> None:
    """Runs a test beside a controller of this network; it is told its address, and a file of the same network."""

    async def prepare(controller: Controller) -> None:
        for switch in network.switches:
            spec = SwitchSpec(switch.id, f"127.0.0.1:{40000 + switch.id}", 0, switch.ports)
            controller.put_switches([spec])
            take_for_up(controller, switch.id)
        for link in network.links:
            controller.monitor.restore_link(link)
        for host in network.hosts:
            controller.declare_host(f"n{host.id}", host.switch, host.port, host.id)
            controller.agent_events.agent_registered(
                f"n{host.id}", host.id, b"\2\0\0\0\0\1", 1500, "test", Epoch(0)
            )
            controller.agent_events.statistics_received(host.id, [])
        assert controller.network.topology() == network
        async with rest(controller) as client:
            for group in groups:
                made = await client.post("groups", json=group)
                assert made.status_code == 201, made.text
        await controller.reconciler.settle()
        await until(lambda: controller.planning.view is not None)

    async def run() -> None:
        async with running() as controller:
            await prepare(controller)
            async with serving(controller, directory / "rest.sock"):
                await asyncio.to_thread(compare)

    def compare() -> None:
        api, file = f"unix:{directory}/rest.sock", directory / "network.json"
        code, out, error = ask("topo", "show", "--json", "--api", api)
        assert code == 0, error
        file.write_text(out)
        test(api, file)

    asyncio.run(run())


def invocations(rng: random.Random, network: Topology, directory: Path) -> Iterator[list[object]]:
    """Commands and options, most of them good, some refused."""
    hosts = [host.id for host in network.hosts]
    switches = [switch.id for switch in network.switches]
    root = ["--root", rng.choice(switches)]

    def host() -> object:
        return rng.choice([rng.choice(hosts or [7]), f"n{rng.choice(hosts or [7])}", 64000, "nobody"])

    def some() -> list[object]:
        return [rng.choice([h, f"n{h}"]) for h in rng.sample(hosts, rng.randint(0, len(hosts)))]

    yield ["route"]
    for algorithm in routing.algorithms():
        seed = ["--seed", rng.randint(0, 99)] if algorithm in DRAWN else []
        more = rng.choice([[], root, [host()], [host(), host()], ["--to", host()], ["--summary"]])
        yield ["route", "--algorithm", algorithm, *seed, *more]
        yield ["verify", "--algorithm", algorithm, *rng.choice([[], root])]
    yield ["route", "--algorithm", "shortest"]
    yield ["route", "--seed", 4]
    yield ["route", host(), "--summary"]
    yield ["route", "--root", 64000]
    yield ["verify"]
    yield ["verify", *root]
    for option, values in (
        ("--branching", ["independent", "coupled", "B", "flushed", "x"]),
        ("--buffers", ["spill", "classes", "shared", "x"]),
        ("--forwarding", ["store", "cut-through", "x"]),
    ):
        yield ["verify", option, rng.choice(values)]
    file = directory / "routes.json"
    file.write_text(routing.to_text(routing.routes(network.to_json())))
    yield ["verify", "--routes", file]
    yield ["verify", "--routes", file, *root]
    certificate = directory / "verify.json"
    certificate.write_text(routing.to_text(verify.verify(network.to_json(), algorithm="osud")))
    yield ["verify", "--check", certificate]
    yield ["verify", "--check", certificate, "--buffers", "shared"]
    for scheme in [*routing.schemes(), "auto", "flood"]:
        members = ["--members", ",".join(map(str, [*some(), *rng.sample(hosts, min(2, len(hosts)))]))]
        more = rng.choice([[], root, ["--source", host()], ["--metrics"], ["--packets", 9], ["--k", 2]])
        yield ["group", "plan", *members, "--scheme", scheme, *more]
    yield ["group", "plan", *some(), host(), host()]
    yield ["group", "plan"]
    yield ["balance", *rng.choice([[], root])]
    if network.links:
        link = rng.choice(network.links)
        yield ["change", "--fail-link", f"{link.a}:{link.a_port}", *rng.choice([[], ["--algorithm", "omit"]])]
    yield ["change"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_network_has_the_same_answers(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    network = random_topology(rng, connected=seed % 3 != 0)

    def test(api: str, file: Path) -> None:
        good = 0
        for words in invocations(rng, network, tmp_path):
            form, at_terminal = rng.choice([([], False), (["--json"], False), ([], True), ([], True)])
            live = ask(*words, *form, "--api", api, at_terminal=at_terminal)
            filed = ask(*words, *form, "--topology", file, at_terminal=at_terminal)
            assert live[0] in (0, 1, 2), (words, live)
            if words[0] == "verify" and not {"--routes", "--check"} & set(map(str, words)) and live[0] != 2:
                # Here it is about all that may be sent now, there about routes by an algorithm.
                assert filed[0] != 2, words
            else:
                assert live == filed, words
            good += live[0] == 0
        assert good >= 10

    with_controller(network, tmp_path, test, groups=[])


def test_a_network_without_switches_has_the_same_answers(tmp_path: Path) -> None:
    def test(api: str, file: Path) -> None:
        for words in (
            ["route"],
            ["route", 1],
            ["verify"],
            ["verify", "--branching", "coupled"],
            ["group", "plan", "--members", 1],
        ):
            live, filed = ask(*words, "--api", api), ask(*words, "--topology", file)
            assert live == filed, words
        assert answer("route", "--api", api) == {"algorithm": "osud", "root": None, "routes": []}
        assert answer("verify", "--api", api)["order"] == []

    with_controller(Topology(), tmp_path, test, groups=[])


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_in_force_are_planned_as_their_members_on_a_file(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    network = random_topology(rng)
    while len(network.hosts) < 4:
        network = random_topology(rng)
    hosts = [host.id for host in network.hosts]
    groups: list[dict[str, Any]] = [
        {"scheme": scheme, "id": number, "name": f"g-{scheme}", "members": rng.sample(hosts, 4)}
        for number, scheme in enumerate(SCHEMES_ANYWHERE)
    ]
    groups[2]["parameters"] = {"fan_out": 2}
    groups[3]["parameters"] = {"packets": 64}
    options: dict[str, list[Any]] = {"tree": ["--fan-out", 2], "k-binomial": ["--packets", 64]}
    options["table"] = ["--group", SCHEMES_ANYWHERE.index("table")]

    def test(api: str, file: Path) -> None:
        client = httpx.Client(
            transport=httpx.HTTPTransport(uds=api.removeprefix("unix:")), base_url="http://c/v1"
        )
        plans = []
        for group in groups:
            members = ["--members", ",".join(map(str, sorted(group["members"]))), "--scheme", group["scheme"]]
            for sender in sorted(group["members"]):
                key = rng.choice([group["id"], group["name"]])
                source = ["--source", rng.choice([sender, f"n{sender}"])]
                live = answer("group", "plan", key, *source, "--api", api)
                own = options.get(group["scheme"], [])
                filed = answer("group", "plan", *members, *own, *source, "--topology", file)
                about = {name: live.pop(name) for name in ("id", "name", "epoch")}
                assert (about["id"], about["name"]) == (group["id"], group["name"])
                assert live == filed
                shown = client.get(f"/groups/{group['id']}/plan", params={"source": sender}).json()
                # No agent confirms the first plan; where that is waited for no longer, the next has another epoch.
                assert shown.pop("epoch") >= about.pop("epoch")
                assert shown == {**about, **live}
                if len(group["members"]) > 1:
                    plans.append(filed)
            for more in (["--scheme", "postal"], ["--metrics"], ["--bytes", 5000], ["--order", "id"]):
                code, out, error = ask("group", "plan", group["id"], *more, "--json", "--api", api)
                dropped = more[0] == "--scheme" or (more[0] == "--bytes" and group["scheme"] == "k-binomial")
                named = [*members, *([] if dropped else options.get(group["scheme"], [])), *more]
                filed_code, filed_out, filed_error = ask(
                    "group", "plan", *named, "--json", "--topology", file
                )
                assert (code, error) == (filed_code, filed_error)
                if code == 0:
                    value = json.loads(out)
                    assert {name: value[name] for name in json.loads(filed_out)} == json.loads(filed_out)
        of_hosts = tmp_path / "groups.json"
        of_hosts.write_text(json.dumps(plans))
        assert ask("verify", "--groups", of_hosts, "--topology", file)[0] in (0, 1)
        assert answer("verify", "--api", api)["deadlock_free"] is True
        assert client.get("/verify").json() == answer("verify", "--api", api)
        assert client.get("/routes").json() == answer("route", "--api", api)
        certificate = tmp_path / "certificate.json"
        certificate.write_text(ask("verify", "--json", "--api", api)[1])
        print(ask("verify", "--check", certificate, "--api", api))
        assert answer("verify", "--check", certificate, "--api", api)["holds"]
        client.close()

    with_controller(network, tmp_path, test, groups=groups)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["group", "plan", "red", "--source", 2], ["host 2 does not take part in group 1", "0, 1"]),
        (["group", "plan", "blue"], ["there is no group 'blue'", "red"]),
        (["group", "plan", "red", "1"], ["there is no host 'red'", "n0"]),
        (["group", "plan", "red", "--scheme", "circuit", "--k", 2], ["--k", "circuit", "--variant"]),
        (["route", "red"], ["there is no host 'red'", "n0, n1, n2"]),
        (["route", "--topology", "torus:3"], ["--api", "--topology", "controller"]),
        (["group", "plan", "red", "--topology", "torus:3"], ["--api", "--topology", "controller"]),
    ],
)
def test_refusals_name_the_choices(words: list[object], told: list[str], tmp_path: Path) -> None:
    network = Topology(
        (Switch(SwitchId(0), 3),), tuple(Host(HostId(n), SwitchId(0), PortId(n)) for n in range(3))
    )

    def test(api: str, _: Path) -> None:
        code, out, error = ask(*words, "--api", api)
        assert (code, out) == (2, "")
        assert all(word in error for word in told), error

    group = {"scheme": "k-binomial", "id": 1, "name": "red", "members": [0, 1]}
    with_controller(network, tmp_path, test, groups=[group])


def test_a_name_on_a_file_is_no_group() -> None:
    code, _, error = ask("group", "plan", "red", "--topology", "torus:2")
    assert code == 2
    assert "there is no host 'red'; there are 0, 1, 2, 3" in error


def test_deadlock_is_judged_by_the_mode_of_the_switches(tmp_path: Path) -> None:
    """Two members are common to the multicasts of all hosts of a group: in wormhole mode they wait for each other."""
    made = routing.make("testbed")
    network = read_network(made)

    def group(number: int, scheme: str, guard: str | None = None) -> dict[str, Any]:
        parameters = {} if guard is None else {"parameters": {"guard": guard}}
        return {"id": number, "name": f"g{number}", "scheme": scheme, "members": [0, 2, 5, 7], **parameters}

    def test(api: str, _: Path) -> None:
        certificate = tmp_path / "certificate.json"

        def judge(*options: object) -> tuple[int, dict[str, Any]]:
            code, out, error = ask("verify", *options, "--json", "--api", api)
            assert code in (0, 1), error
            return code, json.loads(out)

        for mode, branching, free in [
            ("packet", "independent", True),
            ("wormhole", "coupled", False),
            ("wormhole:flush", "flushed", False),
            ("wormhole:interrupt", "interrupted", True),
        ]:
            assert ask("switching", "set", mode, "--api", api)[0] == 0
            code, value = judge()
            assert (code == 0, value["deadlock_free"]) == (free, free), mode
            assert value["model"]["branching"] == branching
            assert value["checked"]["routes"] >= 56
            told = ask("verify", "--api", api)[1]
            assert f"branches {branching}" in told
            assert ("free of deadlock" in told) == free
            # With other buffers the groups are planned anew, and those whose trees the controller chose are named.
            code, value = judge("--buffers", "spill")
            assert value["model"]["branching"] == branching
            assert value["deadlock_free"] == free
            left_out = [2] if mode != "wormhole:interrupt" else [1, 2]
            assert value["groups_left_out"] == left_out
            # Another mode can be asked about.
            assert judge("--branching", "independent")[0] == 0
            if free:
                certificate.write_text(ask("verify", "--json", "--api", api)[1])
                held = judge("--check", certificate)
                assert held[0] == 0
                assert held[1]["groups_left_out"] == left_out
        # Routes alone never wait in a circle.
        assert judge("--algorithm", "osud")[0] == 0

    with_controller(
        network, tmp_path, test, groups=[group(1, "switch"), group(2, "switch", "B"), group(3, "table")]
    )
