"""OpenAPI: what each path answers, in `ANSWERS`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from wormcast.api import answers, lag_answers, plan_answers
from wormcast.api.models import PlanBody, VerifyBody
from wormcast.guard.answers import Guard, PortLeads
from wormcast.routing import schemas
from wormcast.trace.answers import Trace
from wormcast.transfers.answers import Transfers, TransferWithMembers
from wormcast.wormhole.answers import Switching


@dataclass(frozen=True)
class File:
    """A file of a kind that `wormcast schema` knows."""

    kind: str


JSON, STREAM, TEXT = "application/json", "text/event-stream", "text/plain"
PLAIN = {"type": "string"}

ANSWERS: dict[tuple[str, str], tuple[type[BaseModel] | File | str, ...]] = {
    ("get", "/v1"): (answers.Index,),
    ("get", "/v1/topology"): (answers.Topology,),
    ("get", "/v1/links"): (answers.Links,),
    ("get", "/v1/switches"): (answers.Switches,),
    ("post", "/v1/switches"): (answers.Switches,),
    ("get", "/v1/switches/{switch}"): (answers.Switch,),
    ("delete", "/v1/switches/{switch}"): (),
    ("get", "/v1/switches/{switch}/counters"): (answers.SwitchCounters,),
    ("get", "/v1/hosts"): (answers.Hosts,),
    ("post", "/v1/hosts"): (answers.Host,),
    ("get", "/v1/hosts/{host}"): (answers.HostWithRoutes,),
    ("delete", "/v1/hosts/{host}"): (),
    ("put", "/v1/hosts/{host}/rate"): (answers.Host,),
    ("get", "/v1/guard"): (Guard,),
    ("put", "/v1/guard"): (Guard,),
    ("put", "/v1/switches/{switch}/ports/{port}"): (PortLeads,),
    ("get", "/v1/switching"): (Switching,),
    ("put", "/v1/switching"): (Switching,),
    ("get", "/v1/groups"): (answers.Groups,),
    ("post", "/v1/groups"): (answers.Group, answers.Groups),
    ("put", "/v1/groups"): (answers.Group,),
    ("delete", "/v1/groups"): (answers.Deleted,),
    ("get", "/v1/groups/{group}"): (answers.Group,),
    ("delete", "/v1/groups/{group}"): (),
    ("put", "/v1/groups/{group}/rate"): (answers.Group,),
    ("get", "/v1/groups/{group}/members"): (answers.Members,),
    ("post", "/v1/groups/{group}/members"): (answers.Group,),
    ("put", "/v1/groups/{group}/members"): (answers.Group,),
    ("delete", "/v1/groups/{group}/members"): (answers.Group,),
    ("delete", "/v1/groups/{group}/members/{host}"): (answers.Group,),
    ("get", "/v1/groups/{group}/plan"): (File("group"),),
    ("get", "/v1/groups/{group}/lag"): (lag_answers.Lag,),
    ("get", "/v1/routes"): (File("routes"),),
    ("get", "/v1/costs"): (File("costs"),),
    ("put", "/v1/costs"): (File("costs"),),
    ("get", "/v1/routing"): (answers.RoutingState,),
    ("put", "/v1/routing"): (answers.RoutingState, File("routing-change")),
    ("get", "/v1/verify"): (File("verify"),),
    ("post", "/v1/verify"): (File("verify"),),
    ("post", "/v1/plan"): (plan_answers.Plan,),
    ("get", "/v1/igmp"): (answers.Memberships,),
    ("get", "/v1/status"): (answers.Status,),
    ("get", "/v1/events"): (answers.Events, STREAM),
    ("get", "/v1/metrics"): (TEXT,),
    ("post", "/v1/trace"): (Trace,),
    ("get", "/v1/trace/{number}"): (Trace,),
    ("get", "/v1/transfers"): (Transfers,),
    ("get", "/v1/transfers/{number}"): (TransferWithMembers,),
}
"""What each path and method answers with where it succeeds: one of these, or a text of that kind; nothing where there is
none."""


def describe(app: FastAPI) -> None:
    """Has the OpenAPI schema of an app describe these answers. Raises KeyError where a path has none."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _fill(plain())
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _fill(schema: dict[str, Any]) -> None:
    every = [answer for each in ANSWERS.values() for answer in each]
    models = [(answer, "validation") for answer in (*every, *READ_LATER) if isinstance(answer, type)]
    _, found = models_json_schema(models, ref_template=f"{COMPONENTS}{{model}}")  # type: ignore[arg-type]
    known = schema["components"]["schemas"]
    known.update(found["$defs"])
    for answer in every:
        if isinstance(answer, File):
            known[name_of(answer)] = _moved(schemas.load(answer.kind), f"{COMPONENTS}{name_of(answer)}")
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            done = next(status for status in operation["responses"] if status.startswith("2"))
            content = _content(ANSWERS[method, path])
            operation["responses"][done].pop("content", None)
            if content:
                operation["responses"][done]["content"] = content


COMPONENTS = "#/components/schemas/"
READ_LATER = (PlanBody, VerifyBody)
"""Bodies that a process beside this one reads."""


def reference(model: type[BaseModel]) -> dict[str, str]:
    """Where the schema describes it."""
    return {"$ref": f"{COMPONENTS}{model.__name__}"}


def name_of(answer: type[BaseModel] | File) -> str:
    """What the schema calls it."""
    if isinstance(answer, File):
        return "".join(word.title() for word in answer.kind.split("-")) + "File"
    return answer.__name__


def _content(kinds: Sequence[type[BaseModel] | File | str]) -> dict[str, Any]:
    texts = {kind: {"schema": PLAIN} for kind in kinds if isinstance(kind, str)}
    refs = [{"$ref": f"{COMPONENTS}{name_of(one)}"} for one in kinds if not isinstance(one, str)]
    if not refs:
        return texts
    return {JSON: {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs}}, **texts}


def _moved(value: Any, to: str) -> Any:
    """A schema as a part of another: what it refers to within itself is there."""
    if isinstance(value, dict):
        return {
            name: f"{to}{one.removeprefix('#')}" if name == "$ref" else _moved(one, to)
            for name, one in value.items()
            if name not in ("$id", "$schema")
        }
    return [_moved(one, to) for one in value] if isinstance(value, list) else value
