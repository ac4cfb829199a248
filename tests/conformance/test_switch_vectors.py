"""Every vector of worm_switch.json through a real switch, byte for byte, counters included."""

import re
from typing import Any

import pytest
from oracle.trace import without_times
from rig.host import SwitchRig
from rig.targets import COMPILED
from vector_files import load_vectors
from wormcast.wire import RECIRCULATE_PORT, DropReason, Kind

Json = dict[str, Any]
DOCUMENT = load_vectors("worm_switch.json")


def _black_box() -> list[Any]:
    """Vectors a switch can be given from outside: no queue depth, and ports in order of state."""
    order = list(DOCUMENT["states"])
    vectors = [vector for vector in DOCUMENT["vectors"] if "deq_qdepth" not in vector]
    vectors.sort(key=lambda vector: order.index(vector["state"]))
    return [pytest.param(vector, id=vector["name"]) for vector in vectors]


def by_number(counts: dict[str, int], names: type[DropReason] | type[Kind]) -> dict[str, int]:
    """Cells by number; JSON object keys are strings."""
    return {
        str(int(names[name])) if name in names.__members__ else name: count for name, count in counts.items()
    }


def _sorted(frames: list[Json]) -> list[Json]:
    return sorted(frames, key=lambda item: (item["port"], item["frame"]))


def times_zero(came: str, item: Json) -> Json:
    """A frame as the vectors write it: the times of the records that the switch added at 0."""
    left = without_times(bytes.fromhex(came), bytes.fromhex(item["frame"]))
    return {**item, "frame": left.hex()}


def without_padding(item: Json) -> Json:
    """A packet-in as the vectors write it: padding left out."""
    if "packet_in" not in item:
        return item
    return {**item, "packet_in": {key: value for key, value in item["packet_in"].items() if key != "pad"}}


def test_vectors_reach_everything() -> None:
    """Each drop reason, each kind, each table and each action of a controller is in some vector."""
    vectors = DOCUMENT["vectors"]
    reasons = {reason for vector in vectors for reason in vector["drops"]}
    # These take several frames: tests/fabric/tests/wormhole.rs, absorb.rs and absorb_trains.rs. BEYOND_TARGET is of Tofino.
    several = {"TRAIN_RESET", "ABSORB_FULL"}
    assert reasons == {reason.name for reason in DropReason if reason} - several - {"BEYOND_TARGET"}
    assert {kind.name for kind in Kind} <= {kind for vector in vectors for kind in vector["kinds"]}
    entries = [
        entry for state in DOCUMENT["states"].values() for entry in state["tables"] + state["defaults"]
    ]
    p4info = (COMPILED / "wormcast.p4info.txtpb").read_text()
    names = set(re.findall(r'name: "((?:ingress|egress)\.\w+)"', p4info))
    internal = {
        "ingress.packet_mode",
        "ingress.port_unknown",
        "ingress.group_unknown",
        "ingress.class_d_unknown",
        "ingress.gather_unknown",
    }
    assert {entry["table"] for entry in entries} | {entry["action"] for entry in entries} == names - internal


@pytest.mark.network
@pytest.mark.parametrize("vector", _black_box())
def test_switch_does_what_the_vector_says(switch: SwitchRig, vector: Json) -> None:
    """Frames out, drops, filtered copies and kinds are exactly those of the vector."""
    switch.install(vector["state"], DOCUMENT["states"][vector["state"]])
    drops = by_number(vector["drops"], DropReason)
    for earlier in vector.get("before", []):
        switch.ask(do="pass", **earlier, packet_out={}, expected=0, expected_drops={})
    answer = switch.ask(
        do="pass",
        frame=vector["frame"],
        ingress_port=vector["ingress_port"],
        packet_out=vector.get("packet_out", {}),
        expected=len(vector["out"]),
        expected_drops=drops,
    )
    out = [times_zero(vector["frame"], without_padding(item)) for item in answer["out"]]
    assert _sorted(out) == _sorted(vector["out"])
    assert answer["grown"]["drops"] == drops
    assert answer["grown"]["filtered"] == by_number(vector["filtered"], Kind)
    assert answer["grown"]["kinds"] == by_number(vector["kinds"], Kind)
    assert answer["grown"]["ingress_ports"] == {str(vector["ingress_port"]): 1}
    leaving = {str(item["port"]): 1 for item in vector["out"]}
    if vector["recirculated"]:
        leaving[str(RECIRCULATE_PORT)] = vector["recirculated"]
    assert answer["grown"]["egress_ports"] == leaving
