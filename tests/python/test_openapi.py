"""OpenAPI describes every answer of every path, and real answers are as it says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from controller_lab.answers import VALIDATOR, Held
from controller_lab.running import rest, running
from controller_lab.small import add_fabric
from wormcast.api.app import create_app
from wormcast.api.openapi import ANSWERS
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database

NO_BODY = "204"
ASK_AGENTS = {
    ("/v1/groups/{group}/lag", "get"),
    ("/v1/groups/{group}/plan", "get"),
    ("/v1/transfers/{number}", "get"),
}
"""They need agents: test_lag.py, test_group_plan.py and test_transfers.py ask for them, and `rest` holds those answers
too."""
REQUESTS = """
get /v1
get /v1/topology
get /v1/links
get /v1/switches
post /v1/switches {"id": 7, "address": "127.0.0.1:1", "ports": 4}
get /v1/switches/7
get /v1/switches/7/counters
delete /v1/switches/7
get /v1/hosts
post /v1/hosts {"name": "printer", "switch": 0, "port": 2}
get /v1/hosts/printer
put /v1/hosts/printer/rate {"bps": 5000000}
get /v1/guard
put /v1/guard {"on": true}
put /v1/switches/0/ports/0 {"leads_to": "host"}
get /v1/guard
delete /v1/hosts/printer
get /v1/switching
put /v1/switching {"mode": "packet"}
post /v1/groups {"name": "one", "scheme": "switch", "members": [0, 1, 2], "class_d": "239.1.2.3"}
post /v1/groups [{"name": "two", "scheme": "auto", "members": [0, 1]}]
post /v1/groups {"name": "three", "scheme": "switch", "members": [0, 1, 2], "gather": true}
put /v1/groups {"members": [1, 2]}
get /v1/groups
get /v1/groups/one
get /v1/groups/one/members
put /v1/groups/two/members {"members": [0, 2]}
post /v1/groups/two/members {"members": [1]}
delete /v1/groups/two/members {"members": [1]}
post /v1/groups/two/members {"members": [1]}
delete /v1/groups/two/members/1
put /v1/groups/two/rate {"rate_bits": 20000000}
get /v1/routes
get /v1/routes?algorithm=omit
get /v1/costs
put /v1/costs {"set": "agents"}
get /v1/routing
put /v1/routing {"algorithm": "rrmit"}
put /v1/routing?dry_run=true {"algorithm": "osud"}
get /v1/verify
post /v1/verify {}
post /v1/plan {"groups": [{"members": [0, 2], "class_d": "239.9.9.9"}]}
get /v1/igmp
get /v1/status
get /v1/events?follow=false
get /v1/metrics
post /v1/trace {"from": 0, "to": 2}
post /v1/trace {"group": "one"}
get /v1/trace/1
get /v1/trace/2
get /v1/transfers
delete /v1/groups/one
delete /v1/groups {"groups": ["two"]}
"""


def described() -> dict[str, Any]:
    return create_app(Controller(Database(None), find_artifacts())).openapi()


def operations(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_no_route_is_without_an_answer() -> None:
    schema = described()
    assert {(method, path) for path, method, _ in operations(schema)} == set(ANSWERS)
    for path, method, operation in operations(schema):
        (done,) = (status for status in operation["responses"] if status.startswith("2"))
        content = operation["responses"][done].get("content", {})
        assert bool(content) == (done != NO_BODY), (method, path)
        for kind, answer in content.items():
            assert answer["schema"], (method, path, kind)


def test_the_schema_is_whole() -> None:
    schema = described()
    for name, model in schema["components"]["schemas"].items():
        VALIDATOR.check_schema(model)
        # Answers say of all their fields what they are, and that there are no others.
        if name in {
            answer.__name__ for each in ANSWERS.values() for answer in each if isinstance(answer, type)
        }:
            assert model["additionalProperties"] is False, name

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, one in value.items():
                yield from [one] if key == "$ref" else references(one)
        elif isinstance(value, list):
            for one in value:
                yield from references(one)

    for reference in set(references(schema)):
        at: Any = schema
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]


def test_real_answers_of_all_routes_are_as_described() -> None:
    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            add_fabric(controller)
            held = Held(described())
            for line in REQUESTS.strip().splitlines():
                method, target, *body = line.split(" ", 2)
                answer = await client.request(
                    method.upper(),
                    f"http://controller{target}",
                    content=body[0] if body else None,
                    headers={"content-type": "application/json"} if body else {},
                )
                assert answer.is_success, (line, answer.text)
                held.check(answer)
            every = {(path, method) for path, method, _ in operations(held.schema)}
            assert every - {(path, method) for path, method, _ in held.seen} == ASK_AGENTS
            index = (await client.get("http://controller/v1")).json()
            for target in index["links"].values():
                if target != "/v1/events":  # goes on for ever
                    assert (await client.get(f"http://controller{target}")).is_success, target

    asyncio.run(main())


@pytest.mark.parametrize("spoilt", [{"deleted": ["one"]}, {"deleted": [1], "more": 1}, {}])
def test_an_answer_that_is_other_than_described_is_noticed(spoilt: dict[str, Any]) -> None:
    request = httpx.Request("DELETE", "http://controller/v1/groups")
    Held(described()).check(httpx.Response(200, json={"deleted": [1]}, request=request))
    with pytest.raises(AssertionError):
        Held(described()).check(httpx.Response(200, json=spoilt, request=request))
