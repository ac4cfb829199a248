"""Wrong use is answered with the value, the bound and the valid choices."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from wormcast import routing
from wormcast.api.models import GROUPS_MAX
from wormcast.mininet import programs
from wormcast.mininet.fabric import Fabric

AGENT_GROUPS = 16_384
"""Groups that an agent takes (hostagent/API.md, Limits)."""
SECONDS_MAX = 600.0
"""Only against hanging for ever."""


@pytest.fixture(scope="module")
def fabric(
    make_fabric: Callable[..., Fabric], switch: str, tmp_path_factory: pytest.TempPathFactory
) -> Fabric:
    """Two hosts that do not re-inject worms of others."""
    network = routing.make("line:2")
    network["hosts"] = [{**host, "transit": False} for host in network["hosts"]]
    path = tmp_path_factory.mktemp("topology") / "line.json"
    path.write_text(json.dumps(network))
    return make_fabric(str(path), switch=switch, rate_mbps=20.0)


def refuse(fabric: Fabric, body: dict[str, object], *expected: str) -> None:
    response = fabric.api.post("groups", json=body)
    assert 400 <= response.status_code < 500, response.text
    message = response.json()["error"]["message"]
    for text in expected:
        assert text in message, message


def test_unknown_host(fabric: Fabric) -> None:
    refuse(fabric, {"scheme": "tree", "members": [0, 99]}, "99", "0")


def test_group_255_is_broadcast(fabric: Fabric) -> None:
    refuse(fabric, {"id": 255, "scheme": "tree", "members": [0, 1]}, "255", "broadcast")


def test_group_out_of_range(fabric: Fabric) -> None:
    refuse(fabric, {"id": 70000, "scheme": "tree", "members": [0, 1]}, "70000", "65535")


def test_unknown_scheme(fabric: Fabric) -> None:
    refuse(fabric, {"scheme": "carrier-pigeon", "members": [0, 1]}, "carrier-pigeon", "k-binomial")


def test_port_outside_a_switch(fabric: Fabric) -> None:
    response = fabric.api.post("hosts", json={"id": 50, "switch": 0, "port": 200})
    assert 400 <= response.status_code < 500
    assert "200" in response.json()["error"]["message"]


def test_send_to_a_group_that_is_not_there(fabric: Fabric, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x")
    result = fabric.run(0, ["wormcast", "send", str(file), "--group", "77"])
    assert result.returncode == 2
    assert "77" in result.stderr
    assert "Traceback" not in result.stderr


def test_unknown_algorithm(fabric: Fabric) -> None:
    response = fabric.api.put("routing", json={"algorithm": "fastest"})
    assert response.status_code == 422
    done = fabric.run(0, ["wormcast", "routing", "set", "fastest"])
    assert done.returncode == 2
    for said in (response.json()["error"]["message"], done.stderr):
        assert "fastest" in said
        assert all(name in said for name in routing.algorithms()), said
    assert fabric.get("routing")["algorithm"] == routing.ALGORITHM_DEFAULT


def test_an_algorithm_that_needs_hosts_where_all_have_opted_out(fabric: Fabric) -> None:
    said = "no host re-injects: rrmit runs as osud"
    try:
        for words in (
            ("routing", "set", "rrmit", "--dry-run"),
            ("routing", "set", "rrmit"),
            ("routing", "show"),
        ):
            done = fabric.run(0, ["wormcast", *words])
            assert done.returncode == 0, done.stderr
            assert said in done.stdout, words
    finally:
        fabric.put("routing", {"algorithm": routing.ALGORITHM_DEFAULT})
    assert "re-injects" not in fabric.run(0, ["wormcast", "routing", "show"]).stdout


def test_more_than_there_is_room_for(fabric: Fabric) -> None:
    refuse(fabric, {"scheme": "k-binomial", "members": [0, 1], "parameters": {"k": 17}}, "17", "0 to 16")
    one = {"scheme": "circuit", "members": [0, 1]}
    response = fabric.api.post("groups", json={"groups": [one] * (GROUPS_MAX + 1)})
    assert response.status_code == 422, response.text
    assert str(GROUPS_MAX) in response.json()["error"]["message"]
    # An agent takes so many groups. None of a request is made if one is too many.
    made: list[int] = []
    try:
        while len(made) < AGENT_GROUPS:
            count = min(GROUPS_MAX, AGENT_GROUPS - len(made))
            response = fabric.api.post("groups", json={"groups": [one] * count}, timeout=SECONDS_MAX)
            assert response.status_code == 201, response.text
            made += [group["id"] for group in response.json()["groups"]]
        response = fabric.api.post("groups", json=one, timeout=SECONDS_MAX)
        assert response.status_code == 507, response.text
        assert f"possible: {AGENT_GROUPS} groups a host" in response.json()["error"]["message"]
    finally:
        while made:
            body = {"groups": made[:GROUPS_MAX]}
            made = made[GROUPS_MAX:]
            fabric.api.request("DELETE", "groups", json=body, timeout=SECONDS_MAX)
    assert fabric.get("groups")["groups"] == []


def test_links_whose_ends_carry_less_than_hosts_send(fabric: Fabric) -> None:
    link = next(link for link in fabric.links if link.far_switch is not None)
    for (node, name), switch, port in zip(
        fabric._ends(link), (link.switch, link.far_switch), (link.port, link.far_port), strict=True
    ):
        try:
            node.cmd(f"ip link set dev {name} mtu 1400")
            (problem,) = fabric.get("status")["mtu_problems"]
            for text in (f"s{switch} port {port}", "carries 1400 bytes", f"1400 at s{switch}"):
                assert text in problem
            said = " ".join(fabric.run(0, ["wormcast", "status"]).stdout.split())
            assert problem in said
        finally:
            node.cmd(f"ip link set dev {name} mtu {fabric.options.mtus.fabric}")
    assert fabric.get("status")["mtu_problems"] == []


def test_controller_down(fabric: Fabric) -> None:
    fabric.stop_controller()
    try:
        result = fabric.run(0, ["wormcast", "group", "list"])
        assert result.returncode != 0
        assert fabric.api_address in result.stderr
        assert "Traceback" not in result.stderr
        status = fabric.run(0, ["wormcast", "status", "--json"])
        assert status.returncode == 0, status.stderr
        assert json.loads(status.stdout)
    finally:
        fabric.start_controller()
        fabric.wait_ready()


def test_agent_without_privileges(fabric: Fabric) -> None:
    agent = [
        programs.find(programs.AGENT),
        "--interface",
        "h0-eth0",
        "--controller",
        "unix:/nowhere",
        "--socket",
        "/tmp/wormcast-unprivileged.sock",
    ]
    result = fabric.run(
        0,
        ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", *agent],
        20,
    )
    assert result.returncode not in (0, 101)
    assert "CAP_NET_RAW" in result.stderr
    assert "panicked" not in result.stderr


def test_agent_on_an_interface_that_is_not_there(fabric: Fabric) -> None:
    agent = [
        programs.find(programs.AGENT),
        "--interface",
        "eth99",
        "--controller",
        "unix:/nowhere",
        "--socket",
        "/tmp/wormcast-eth99.sock",
    ]
    result = fabric.run(0, agent, 20)
    assert result.returncode not in (0, 101)
    assert "eth99" in result.stderr
    assert "h0-eth0" in result.stderr
