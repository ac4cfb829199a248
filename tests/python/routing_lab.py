"""Where routes lead, followed port by port."""

from __future__ import annotations

from typing import Any

from wormcast import routing

Json = dict[str, Any]


def ends(topology: Json) -> dict[tuple[int, int], tuple[int, int] | int]:
    """What hangs on each port: a host, or a port of another switch."""
    found: dict[tuple[int, int], tuple[int, int] | int] = {
        (host["switch"], host["port"]): host["id"] for host in topology["hosts"]
    }
    for link in topology["links"]:
        one, other = (link["a"], link["a_port"]), (link["b"], link["b_port"])
        found[one], found[other] = other, one
    return found


def tree_ends(topology: Json, source: int, route: bytes) -> list[int]:
    """Hosts that copies of a TREE worm reach."""
    beyond = ends(topology)
    home = next((host["switch"], 0) for host in topology["hosts"] if host["id"] == source)
    reached = []
    for path in routing.decode_tree(route):
        at: tuple[int, int] | int = home
        for port in path:
            assert not isinstance(at, int), f"the path {list(path)} passes host {at}"
            at = beyond[at[0], port]
        assert isinstance(at, int), f"the path {list(path)} ends at a switch"
        reached.append(at)
    return reached
