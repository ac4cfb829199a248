"""Wrong use is answered with the value, the bound and the valid choices."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from wormcast import routing
from wormcast.mininet import programs
from wormcast.mininet.fabric import Fabric


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("line:2", switch=switch, rate_mbps=20.0)


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


def test_unknown_algorithm(fabric: Fabric) -> None:
    before = fabric.get("routing")["algorithm"]
    for dry_run in ((), ("--dry-run",)):
        result = fabric.run(0, ["wormcast", "routing", "set", "fastest", *dry_run])
        assert result.returncode != 0
        assert "fastest" in result.stderr
        assert all(name in result.stderr for name in routing.algorithms())
    response = fabric.api.put("routing", json={"algorithm": "fastest"})
    assert response.status_code == 422
    assert all(name in response.text for name in routing.algorithms())
    assert fabric.get("routing")["algorithm"] == before


def test_port_outside_a_switch(fabric: Fabric) -> None:
    response = fabric.api.post("hosts", json={"id": 50, "switch": 0, "port": 200})
    assert 400 <= response.status_code < 500
    assert "200" in response.json()["error"]["message"]


def test_send_to_a_group_that_is_not_there(fabric: Fabric, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x")
    result = fabric.run(0, ["wormcast", "send", str(file), "--group", "77"])
    assert result.returncode == 1
    assert "77" in result.stderr
    assert "Traceback" not in result.stderr


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
