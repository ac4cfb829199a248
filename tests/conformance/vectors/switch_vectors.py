"""worm_switch.json: what a switch makes of a frame. Schema in wire/vectors/README.md.

Every expectation is written out by hand, from SPEC.md; no model computes it.
"""

from vectors import (
    copy_vectors,
    edge_vectors,
    gather_vectors,
    guard_vectors,
    path_vectors,
    trace_vectors,
    train_vectors,
)
from vectors.cases import Json
from vectors.states import STATES

PARTS = [
    path_vectors.unicast_vectors,
    path_vectors.recirculation_vectors,
    path_vectors.refused_vectors,
    copy_vectors.broadcast_vectors,
    copy_vectors.paired_vectors,
    train_vectors.train_vectors,
    copy_vectors.tree_vectors,
    copy_vectors.group_vectors,
    edge_vectors.class_d_vectors,
    edge_vectors.controller_vectors,
    edge_vectors.congestion_vectors,
    guard_vectors.guard_vectors,
    gather_vectors.gather_vectors,
    trace_vectors.trace_vectors,
]


def build() -> Json:
    vectors = [vector for part in PARTS for vector in part()]
    names = [vector["name"] for vector in vectors]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return {
        "format": "wormcast switch vectors",
        "format_version": 1,
        "states": STATES,
        "vectors": vectors,
    }
