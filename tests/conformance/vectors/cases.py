"""The form of a switch vector, and the worms they use."""

from collections.abc import Mapping
from typing import Any

from oracle.codec import Worm
from oracle.tree import Branch, encode_tree
from wormcast.wire import Kind

from vectors.codec_vectors import SRC

Json = dict[str, Any]
PAYLOAD = b"wormcast payload"


def vector(
    name: str,
    frame: bytes,
    ingress_port: int,
    out: dict[int, bytes],
    state: str = "small",
    **counted: Any,
) -> Json:
    """One vector. `counted`: drops, filtered and kinds as {name: count}, and what else the schema has."""
    return {
        "name": name,
        "state": state,
        "ingress_port": ingress_port,
        "frame": frame.hex(),
        "out": [{"port": port, "frame": data.hex()} for port, data in sorted(out.items())],
        "drops": counted.pop("drops", {}),
        "filtered": counted.pop("filtered", {}),
        "kinds": counted.pop("kinds", {}),
        "recirculated": counted.pop("recirculated", 0),
        **counted,
    }


def make_worm(kind: Kind | int, route: str | bytes = b"", **fields: Any) -> Worm:
    raw = bytes.fromhex(route) if isinstance(route, str) else route
    fields.setdefault("payload", PAYLOAD)
    fields.setdefault("source", 5)
    fields.setdefault("sequence", 0x0102)
    return Worm(kind=int(kind), route=raw, src=SRC, **fields)


def one_step(name: str, worm: Worm, to: int, route: str | bytes, ingress_port: int = 0, **more: Any) -> Json:
    """A worm that leaves by one port with this route, one hop on."""
    left = worm.at(bytes.fromhex(route) if isinstance(route, str) else route)
    kind = Kind(worm.kind).name
    return vector(name, worm.to_frame(), ingress_port, {to: left.to_frame()}, kinds={kind: 1}, **more)


def dropped(name: str, frame: bytes | Worm, reason: str, ingress_port: int = 4, **more: Any) -> Json:
    data = frame.to_frame() if isinstance(frame, Worm) else frame
    return vector(name, data, ingress_port, {}, drops={reason: 1}, **more)


def copied(name: str, worm: Worm, ingress_port: int, routes: Mapping[int, str | bytes], **more: Any) -> Json:
    """A worm that leaves by several ports, each copy one hop on with its own route."""
    out = {
        port: worm.at(bytes.fromhex(route) if isinstance(route, str) else route).to_frame()
        for port, route in routes.items()
    }
    return vector(name, worm.to_frame(), ingress_port, out, kinds={Kind(worm.kind).name: 1}, **more)


def make_tree_worm(*branches: Branch, **fields: Any) -> Worm:
    return make_worm(Kind.TREE, encode_tree(branches), **fields)
