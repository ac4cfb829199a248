"""What workers do: files in, files out, as bytes. Each raises `JobRefused`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from wormcast import routing, verify
from wormcast.network.groups import GroupError
from wormcast.network.routing import Routing
from wormcast.offload.route_change import planned_steps
from wormcast.offload.switch_plan import switch_plan
from wormcast.routing.fallback import runs_as
from wormcast.strict_json import JsonError, read_json

SWITCHES_MAX = 4096
HOSTS_MAX = 16_384
LINKS_MAX = 65_536
PAIRS_MAX = 1 << 24
"""Pairs of hosts whose routes are planned in one request."""
ROUTES_MAX = 1 << 20
"""Routes of a file."""
PLAN_GROUPS_MAX = 4096
"""Groups of one request for what switches must hold."""

Json = dict[str, Any]
Kind = tuple[type, str]
"""A type of JSON, and its name."""
OBJECT: Kind = (dict, "dictionary")
LIST: Kind = (list, "list")
STRING: Kind = (str, "string")


class JobRefused(Exception):
    """Input that a job does not take; `answer` is what a `RequestError` is made from."""

    def __init__(self, status: int, message: str, **answer: Any) -> None:
        super().__init__(message)
        self.answer = {"status": status, "message": message, **answer}


def verify_body(context: Json, raw: bytes) -> bytes:
    """The verify file of the body of POST /v1/verify, on the fabric's topology if it names none."""
    body = _read_body(raw, {"topology": OBJECT, "routes": OBJECT})
    given = body.get("topology")
    # A file has more than the controller's own topology: the library reads it whole.
    topology = context["topology"] if given is None else _complete(given)
    _check_sizes(topology)
    if not topology["switches"]:
        return _encode({"deadlock_free": True, "order": []})
    routes = body.get("routes")
    if routes is None:
        _check_pairs(topology)
        return _encode(verify.verify(topology, **_in_force(topology, context)))
    if isinstance(entries := routes.get("routes"), list):
        _check_count("routes", len(entries), ROUTES_MAX)
    return _encode(verify.verify(topology, routes))


def _in_force(topology: Json, context: Json) -> Json:
    """Algorithm, root and balance; a root that the topology does not have is its own choice."""
    entries = topology["switches"] if isinstance(topology["switches"], list) else []
    there = {
        switch["id"] for switch in entries if isinstance(switch, dict) and isinstance(switch.get("id"), int)
    }
    return Routing.from_json(context["routing"]).on(there)


def change_routing(context: Json, _: bytes) -> bytes:
    """What other routes would bring: loads before and after, the steps there, and a certificate of what is new."""
    topology = context["topology"]
    if not topology["switches"]:
        raise JobRefused(409, "no switch is up, so there are no routes to compare", code="conflict")
    _check_pairs(topology)
    now, new = (_in_force(topology, {"routing": context[name]}) for name in ("routing", "new"))
    figures = [routing.route_summary(topology, **setting) for setting in (now, new)]
    return _encode(
        {
            "now": context["routing"],
            "new": context["new"],
            "before": figures[0],
            "after": figures[1],
            "gain": _gain(*(summary["link_load"]["max"] for summary in figures)),
            "lengthened_pairs": figures[1]["lengthened_pairs"],
            "runs_as": runs_as(topology, new["algorithm"]),
            **planned_steps(topology, context["order"], context["routing"], context["new"]),
        }
    )


def _gain(before: float, after: float) -> float:
    return 1 - after / before if before else 0.0


def routes(context: Json, _: bytes) -> bytes:
    """The routes file by an algorithm: all pairs, or those of `src`, of `dst`, or both."""
    topology = context["topology"]
    wanted = {end: context[end] for end in ("src", "dst") if context[end] is not None}
    located = {host["id"] for host in topology["hosts"]}
    one_end: Json = {}
    if wanted and set(wanted.values()) <= located:
        end, host = next(iter(wanted.items()))
        one_end = {end: host}
    else:
        _check_pairs(topology)
    if (asked := context["algorithm"]) not in (known := routing.algorithms()):
        raise routing.RoutingError(f"unknown algorithm {asked!r}; there are {', '.join(known)}")
    if not topology["switches"]:
        return _encode({"algorithm": asked, "root": None, "routes": []})
    file = routing.routes(topology, asked, **one_end)
    file["routes"] = [r for r in file["routes"] if all(r[end] == host for end, host in wanted.items())]
    return _encode(file)


def plan_switches(context: Json, raw: bytes) -> bytes:
    """What the switches of the topology of the body must hold, or of the fabric's if it names none."""
    body = _read_body(raw, {"topology": OBJECT, "groups": LIST, "class_d": STRING})
    given = body.get("topology")
    topology = context["topology"] if given is None else _complete(given)
    _check_sizes(topology)
    _check_pairs(topology)
    groups = body.get("groups") or []
    _check_count("groups", len(groups), PLAN_GROUPS_MAX)
    return _encode(
        switch_plan(topology, groups, body.get("class_d") or "narrow", _in_force(topology, context))
    )


def group_file(context: Json, _: bytes) -> bytes:
    """The group file, with what the controller knows of the group."""
    return _encode({**context["about"], **routing.group(context["topology"], *context["request"])})


JOBS: Mapping[str, Callable[[Json, bytes], bytes]] = {
    job.__name__: job for job in (verify_body, change_routing, routes, plan_switches, group_file)
}


def run(name: str, context: bytes, body: bytes) -> bytes:
    """One job. Raises `JobRefused`."""
    try:
        return JOBS[name](json.loads(context), body)
    except JsonError as error:
        message = error.message if error.bound is None else f"{error.message}; possible: {error.bound}"
        raise JobRefused(
            400, message, code=error.code, value=error.value, line=error.line, column=error.column
        ) from None
    except GroupError as error:
        bounds = {"value": error.value, "bound": error.bound, "choices": error.choices}
        raise JobRefused(422, str(error), code="outside-bounds", **bounds) from None
    except routing.RoutingError as error:
        raise JobRefused(422, str(error), code=getattr(error, "code", "refused")) from None


def _read_body(raw: bytes, kinds: Mapping[str, Kind]) -> Json:
    if not raw:
        raise JobRefused(422, "body: missing", code="missing-field")
    body = read_json(raw)
    if not isinstance(body, dict):
        raise JobRefused(422, "the body is not a JSON object", code="wrong-type")
    for name, value in body.items():
        if name not in kinds:
            raise JobRefused(
                422, f"body.{name[:40]}: unknown field", code="unknown-field", choices=list(kinds)
            )
        kind, wanted = kinds[name]
        if value is not None and not isinstance(value, kind):
            raise JobRefused(422, f"body.{name}: input should be a valid {wanted}", code="wrong-type")
    return body


def _complete(topology: Json) -> Json:
    """A topology as the library reads it: hosts and links may be left out here."""
    if not isinstance(topology.get("switches"), list):
        raise JobRefused(422, "not a topology: wanted switches, hosts and links", code="missing-field")
    return {"hosts": [], "links": [], **topology}


def _check_sizes(topology: Json) -> None:
    for name, most in (("switches", SWITCHES_MAX), ("hosts", HOSTS_MAX), ("links", LINKS_MAX)):
        entries = topology[name]
        if isinstance(entries, list):
            _check_count(name, len(entries), most)


def _check_pairs(topology: Json) -> None:
    hosts = len(topology["hosts"])
    _check_count(f"pairs of the topology's {hosts} hosts", hosts * hosts, PAIRS_MAX)


def _check_count(what: str, count: int, most: int) -> None:
    if count > most:
        raise JobRefused(
            422,
            f"{count} {what} are too many; possible: {most}",
            code="too-large",
            value=count,
            bound=f"{most} {what.split(' of ')[0]}",
        )


def _encode(file: Json) -> bytes:
    return json.dumps(file).encode()
