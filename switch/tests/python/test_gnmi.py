"""gNMI clients as they are against wormcast-switch: finsy's client and switch, and gRPC's stubs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rig.host import SwitchRig

SESSION = Path(__file__).with_name("sessions") / "gnmi_session.py"

pytestmark = pytest.mark.network

PATH = "/interfaces/interface[name=s5]"
COUNTERS = [
    "in-discards",
    "in-errors",
    "in-octets",
    "in-pkts",
    "out-discards",
    "out-errors",
    "out-octets",
    "out-pkts",
]


@pytest.fixture(scope="module")
def seen(switch: SwitchRig) -> dict[str, Any]:
    """What the clients have seen."""
    if switch.target.name != "wormcast-switch":
        pytest.skip(f"{switch.target.name} has no gNMI")
    done = switch.run([sys.executable, str(SESSION)])
    assert done["code"] == 0, f"{done['stderr'][-3000:]}\n{switch.logs()}"
    found: dict[str, Any] = json.loads(done["stdout"])
    return found


def test_ports_are_interfaces(seen: dict[str, Any]) -> None:
    """Each port has its interface's name, is up, and says its number, as finsy wants it."""
    assert seen["models"] == ["openconfig-interfaces", "openconfig-p4rt"]
    up = dict.fromkeys(seen["ports"], "UP")
    assert seen["status"] == seen["once"] == seen["first"] == up
    assert seen["ports"] == {name: int(name[1:]) for name in seen["ports"]}
    # openconfig-p4rt has no id 0.
    assert seen["ids"] == {name: number for name, number in seen["ports"].items() if number}
    assert seen["names"] == [f"{PATH[1:]}/state/name", f"{PATH[1:]}/config/name"]
    assert seen["counters"] == COUNTERS


def test_encodings(seen: dict[str, Any]) -> None:
    """JSON_IETF names modules and writes 64 bits as text, JSON does not."""
    state = seen["ietf"]
    assert state["openconfig-interfaces:oper-status"] == "UP"
    assert state["openconfig-p4rt:id"] == 5
    assert int(state["openconfig-interfaces:counters"]["in-pkts"]) >= 0
    assert isinstance(state["openconfig-interfaces:counters"]["in-pkts"], str)
    interfaces = seen["json"]["interface"]
    assert {interface["name"] for interface in interfaces} == set(seen["ports"])
    assert all(isinstance(interface["state"]["counters"]["in-pkts"], int) for interface in interfaces)


def test_polls_are_answered_one_by_one(seen: dict[str, Any]) -> None:
    """At first, and for each poll."""
    assert seen["polls"] == ["update", "sync_response"] * 3


def test_the_controller_hears_of_ports(seen: dict[str, Any]) -> None:
    """Those that are down at first, and each change; nothing of a switch that is not there."""
    assert seen["told"] == [[], [5], []]
    assert seen["told elsewhere"] == []


def test_wrong_use_is_answered(seen: dict[str, Any]) -> None:
    """The code, and a text that says what is right."""
    refused = seen["refused"]
    texts = {name: text for name, (_, text) in refused.items()}
    assert {name: code for name, (code, _) in refused.items()} == {
        "path": "NOT_FOUND",
        "interface": "NOT_FOUND",
        "encoding": "UNIMPLEMENTED",
        "interval": "INVALID_ARGUMENT",
        "poll": "INVALID_ARGUMENT",
    }
    assert texts["path"].startswith(
        "there is no /interfaces/interface/state/speed here; there are here: name"
    )
    assert texts["interface"].startswith("there is no interface `s99`; there are s0, ")
    assert texts["encoding"] == "encoding ASCII is not supported: JSON, JSON_IETF or PROTO"
    bounds = "10ms to 86400s, in nanoseconds, or 0 for the shortest"
    assert texts["interval"] == f"sample_interval of 1ns for {PATH}/state/counters: {bounds}"
    assert seen["set"][0] == "UNIMPLEMENTED"
    assert "not configured" in seen["set"][1]
