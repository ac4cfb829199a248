"""Unmodified P4Runtime clients against each switch: p4runtime-shell and finsy."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rig.host import SwitchRig
from rig.targets import REPOSITORY

SESSIONS = Path(__file__).with_name("sessions")
# p4runtime-shell needs an older protobuf than finsy, so it lives in an environment of its own.
SHELL_PYTHON = REPOSITORY / ".build" / "p4runtime-shell" / "bin" / "python"

pytestmark = pytest.mark.network


def _run(switch: SwitchRig, python: Path, session: str, *flags: str) -> dict[str, Any]:
    done = switch.run([str(python), str(SESSIONS / session), *flags])
    assert done["code"] == 0, f"{done['stderr'][-3000:]}\n{switch.logs()}"
    seen: dict[str, Any] = json.loads(done["stdout"])
    return seen


def test_p4runtime_shell(switch: SwitchRig) -> None:
    """Loads the program, writes every kind of entry, reads, sends and receives packets."""
    if not SHELL_PYTHON.is_file():
        pytest.skip("p4runtime-shell is not installed in .build/p4runtime-shell")
    seen = _run(switch, SHELL_PYTHON, "shell_session.py")
    assert seen["ports"] == [0, 1, 5]
    assert seen["class_d"] == [10, 20]
    assert sorted(seen["multicast"]) == [[0, 1], [1, 1], [5, 1]]
    assert "ALREADY_EXISTS" in seen["second_insert"]
    assert seen["packet_out"] is True
    assert seen["packet_in"] == [[seen["frame"], {"1": 5, "2": 0}]]
    worm = bytes.fromhex(seen["worm"])
    assert worm[14:18].hex() == "10060001", "one hop on, the byte stripped"
    assert worm[26:] == b"payload"
    assert seen["kinds_unicast"] == [1]


def test_finsy(switch: SwitchRig) -> None:
    """The same with the library the controller stands on."""
    seen = _run(switch, Path(sys.executable), "finsy_session.py")
    assert seen["ports"] == [{"port": "0x5"}]
    assert seen["groups"] == [[{"group": "0x7"}, "replicate(mgid=0x4000)"]]
    assert seen["class_d"] == [10]
    assert len(seen["multicast"]) == 1
    assert seen["second_insert"] == ["ALREADY_EXISTS"]
    assert seen["packet_out"] is True
    assert seen["packet_in"] == [seen["frame"], 5]
    assert seen["counter"] == [1]


# What P4Runtime 1.4 §9 and §12 ask for, or the codes between which it leaves a choice.
RULES: dict[str, Any] = {
    "arbitration": "OK",
    "pipeline": True,
    "insert": "OK",
    "insert again": "ALREADY_EXISTS",
    "modify": "OK",
    "modify missing": "NOT_FOUND",
    "delete missing": "NOT_FOUND",
    "key too wide": {"INVALID_ARGUMENT", "OUT_OF_RANGE"},
    "exact key left out": "INVALID_ARGUMENT",
    "action of another table": "INVALID_ARGUMENT",
    "ternary": "OK",
    "ternary without priority": "INVALID_ARGUMENT",
    "ternary at another priority": "OK",
    "exact with priority": "INVALID_ARGUMENT",
    "default of tree_sets": "OK",
    "default that is const": {"PERMISSION_DENIED", "INVALID_ARGUMENT"},
    "multicast group": "OK",
    "multicast group again": "ALREADY_EXISTS",
    "multicast group 0": "INVALID_ARGUMENT",
    "multicast replica twice": "INVALID_ARGUMENT",
    "multicast delete missing": "NOT_FOUND",
    "batch": ["OK", "ALREADY_EXISTS", "OK"],
    "after batch": [2, 1],
    "default read": [["ff" * 16, "00"]],
    "backup arbitration": "ALREADY_EXISTS",
    "backup write": ["PERMISSION_DENIED"],
    "backup read": 2,
    "wrong device": {"FAILED_PRECONDITION", "NOT_FOUND"},
    "after reload": [0, 0],
}


def test_rules(switch: SwitchRig) -> None:
    """Errors and orders of P4Runtime that the controller leans on."""
    expected = dict(RULES)
    flags = []
    if switch.target.name != "simple_switch_grpc":
        # BMv2 answers no read after a program it could not load.
        flags = ["--bad-program"]
        expected |= {"bad program": "INVALID_ARGUMENT", "after bad program": 2}
    seen = _run(switch, Path(sys.executable), "rules_session.py", *flags)
    assert tuple(map(int, seen.pop("capabilities").split(".")[:2])) >= (1, 3)
    assert set(seen.pop("table unknown")) <= {"INVALID_ARGUMENT", "NOT_FOUND"}
    assert seen.keys() == expected.keys()
    wrong = {
        rule: seen[rule]
        for rule, code in expected.items()
        if (seen[rule] not in code if isinstance(code, set) else seen[rule] != code)
    }
    assert wrong == {}
