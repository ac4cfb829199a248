"""TREE source routes (SPEC.md §3; WORM §3, Fig. 2)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wormcast.wire import END_OF_ROUTE, MAX_BRANCHES, MAX_ROUTE, PORT_MAX


class RouteError(ValueError):
    """A route that breaks a rule of SPEC.md §3; the text names value, bound and choices."""


@dataclass(frozen=True)
class Branch:
    """One copy at one switch: the port it leaves by and what happens at the next switch.

    Empty `branches` end the branch at a host.
    """

    port: int
    branches: tuple["Branch", ...] = field(default=())


def encode_tree(branches: Iterable[Branch]) -> bytes:
    """The route a sender puts in its worm: the list at the first switch and the marker.

    Branches are written in ascending order of port, whatever order they come in.
    Raises RouteError for a port outside 0..253, a port named twice, no branch, more than
    16 branches at a switch, or more than 255 bytes.
    """
    route = _encode_list(tuple(branches)) + bytes([END_OF_ROUTE])
    if len(route) > MAX_ROUTE:
        raise RouteError(
            f"tree route has {len(route)} bytes, at most {MAX_ROUTE} fit; split the tree into several worms"
        )
    return route


def _encode_list(branches: tuple[Branch, ...]) -> bytes:
    if not branches:
        raise RouteError(f"tree route has no branch, a switch needs 1 to {MAX_BRANCHES}")
    if len(branches) > MAX_BRANCHES:
        raise RouteError(
            f"tree route has {len(branches)} branches at one switch, at most {MAX_BRANCHES} are allowed; "
            "split the tree into several worms"
        )
    out = bytearray()
    last = -1
    for branch in sorted(branches, key=lambda b: b.port):
        if not 0 <= branch.port <= PORT_MAX:
            raise RouteError(f"tree branch port {branch.port} is outside 0..{PORT_MAX}")
        if branch.port == last:
            raise RouteError(f"tree branch port {branch.port} is named twice at one switch")
        last = branch.port
        sub_route = _encode_list(branch.branches) if branch.branches else b""
        if len(sub_route) > MAX_ROUTE:
            raise RouteError(
                f"sub-route of port {branch.port} has {len(sub_route)} bytes, at most {MAX_ROUTE} fit"
            )
        out += bytes([branch.port, len(sub_route)]) + sub_route
    return bytes(out)


def split_tree(route: bytes) -> list[tuple[int, bytes]]:
    """What one switch does with a TREE route: (port, route of the copy) for each branch.

    Looks no deeper than a switch does: sub-routes are taken as they are.
    Raises RouteError where a switch drops the worm as TREE_MALFORMED.
    """
    if not route:
        raise RouteError("tree route is empty; it needs at least one branch and the marker 0xff")
    copies: list[tuple[int, bytes]] = []
    at = 0
    lowest = 0
    while True:
        if at >= len(route):
            raise RouteError(f"tree route of {len(route)} bytes ends without the marker 0xff")
        port = route[at]
        if port == END_OF_ROUTE:
            break
        if port > PORT_MAX:
            raise RouteError(f"tree branch port {port} at byte {at} is outside 0..{PORT_MAX}")
        if at + 1 >= len(route):
            raise RouteError(f"tree branch of port {port} at byte {at} has no length byte")
        if len(copies) == MAX_BRANCHES:
            raise RouteError(f"tree route has more than {MAX_BRANCHES} branches at one switch")
        length = route[at + 1]
        end = at + 2 + length
        if end > len(route):
            raise RouteError(
                f"sub-route of port {port} has {length} bytes, only {len(route) - at - 2} are left"
            )
        if port < lowest:
            raise RouteError(
                f"tree branch port {port} at byte {at} does not ascend; {lowest}..{PORT_MAX} may follow"
            )
        lowest = port + 1
        sub_route = route[at + 2 : end]
        copies.append((port, sub_route + bytes([END_OF_ROUTE]) if sub_route else b""))
        at = end
    if at + 1 != len(route):
        raise RouteError(f"tree route has {len(route) - at - 1} bytes after the marker 0xff")
    if not copies:
        raise RouteError(f"tree route has no branch, a switch needs 1 to {MAX_BRANCHES}")
    return copies


def decode_tree(route: bytes) -> tuple[Branch, ...]:
    """The whole tree of a route, all switches deep. Raises RouteError."""
    return tuple(Branch(port, decode_tree(sub) if sub else ()) for port, sub in split_tree(route))
