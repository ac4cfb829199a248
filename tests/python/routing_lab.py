"""Where routes lead, followed port by port."""

from __future__ import annotations

from typing import Any

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
    """Hosts that copies of a TREE worm reach (wire/SPEC.md §3): for each branch a port, the
    length of what the next switch gets, and that."""
    beyond = ends(topology)
    home = next((host["switch"], 0) for host in topology["hosts"] if host["id"] == source)
    assert route[-1] == 255, "a TREE route ends with the marker"
    waiting, reached = [(home, route[:-1])], []
    while waiting:
        (switch, _), branches = waiting.pop()
        while branches:
            port, length = branches[:2]
            end = beyond[switch, port]
            if length:
                assert not isinstance(end, int), f"branches beyond host {end}"
                waiting.append((end, branches[2 : 2 + length]))
            else:
                assert isinstance(end, int), f"a branch ends at switch {end}"
                reached.append(end)
            branches = branches[2 + length :]
    return reached
