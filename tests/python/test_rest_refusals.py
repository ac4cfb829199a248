"""Every route with input that nobody should send: always an answer, never 500, and every refusal in the one form."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema
import pytest
from controller_lab.running import rest, running, take_for_up
from wormcast.api.app import create_app
from wormcast.network.ids import SwitchId
from wormcast.reconcile.controller import Controller
from wormcast.routing import schemas
from wormcast.store.database import SwitchSpec
from wormcast.strict_json import DEPTH_MAX, DIGITS_MAX, JsonError, read_json

ROUNDS = 6
JSON = {"content-type": "application/json"}
REFUSALS = {400, 403, 404, 405, 409, 413, 415, 422, 503, 507}

# Valid bodies of each route: what is mutated.
BODIES: dict[str, list[Any]] = {
    "/v1/groups": [
        {"scheme": "tree", "members": [0, "h1"], "name": "a", "id": 3, "parameters": {"fan_out": 2}},
        {"groups": [{"scheme": "switch", "members": [0], "class_d": "239.1.1.7"}]},
        [{"scheme": "k-binomial", "members": [0, 1], "parameters": {"packets": 64, "k": 2}}],
    ],
    "/v1/groups/{group}/members": [{"members": [0, "h1"]}],
    "/v1/groups/{group}/rate": [{"rate_bits": 20_000_000}],
    "/v1/hosts": [{"name": "printer", "switch": 0, "port": 5, "id": 40}],
    "/v1/switches": [
        {"id": 1, "address": "127.0.0.1:50051", "device_id": 0, "ports": 8},
        {"switches": [{"id": 1, "address": "unix:/run/s1.sock", "ports": 8}]},
    ],
    "/v1/verify": [
        {
            "topology": {
                "switches": [{"id": 0, "ports": 4}, {"id": 1, "ports": 4}],
                "hosts": [{"id": 0, "switch": 0, "port": 0}, {"id": 1, "switch": 1, "port": 0}],
                "links": [{"a": 0, "a_port": 3, "b": 1, "b_port": 3}],
            },
            "routes": {"routes": [{"src": 0, "dst": 1, "switches": [0, 1], "ports": [3, 0]}]},
        }
    ],
}

# As text, since some of it no JSON writer writes.
STRANGE_JSON = [
    "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "-0", "0.5", "1.0", "true", "null", "[]", "{}", '""',
    "9" * 5000, "-" + "9" * 5000, str(2**31), str(2**63 - 1), str(2**63), str(2**64 - 1), str(2**64), str(10**30),
    "-1", r'"\ud800"', r'"\udc00x"', r'"\ud83d\ude00"', r'"\u0000"', '"²"', '"٣"', '"é"', '"' + "x" * 5000 + '"',
    '"unix:/etc/passwd"', '"unix:a:1"', '"vsock:1:2"', '"dns:///x:1"', '"a:99999999999999999999"', '"a:²"',
    '"unix:/' + "x" * 300 + '"', r'"unix:/a\u0000b"', '"../../etc"', '"h0"', '"0"', '"255"', '"-1"',
    "[" * 60 + "]" * 60, "[" * 100 + "]" * 100, "[" * 100_000 + "]" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000,
    '{"a":1,"a":2}', "[[0]]", '{"id":{"id":[]}}',
]  # fmt: skip
WHOLE_BODIES = [
    b"", b" ", b"null", b"3", b'"x"', b"[]", b"{", b"}", b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b'{"name":"\xff"}',
    b"\x00", b"{}{}", b"{'a':1}", b"<x/>", b"a=1&b=2", "{}".encode("utf-16"), "{}".encode("utf-32"),
    *(text.encode() for text in STRANGE_JSON),
]  # fmt: skip
KINDS: list[dict[str, str]] = [
    {}, {"content-type": ""}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"},
    {"content-type": "multipart/form-data; boundary=x"}, {"content-type": "multipart/form-data"},
    {"content-type": "application/json; charset=utf-16"}, {"content-type": "application/json; charset=²"},
    {"content-type": "application/json;;;="}, {"content-type": "application/merge-patch+json"},
    {**JSON, "content-encoding": "gzip"}, {**JSON, "content-encoding": "br, gzip"},
]  # fmt: skip
STRANGE_KEYS = [
    "0", "1", "h0", "a", "-1", "²", "٣", "9" * 30, "9" * 5000, "x" * 3000, "é", "%", "..", "a/b", "\x00", "\n", " ",
    "NaN", "1e3", "0x1", "+1", "1_0", "\ud800",
]  # fmt: skip
QUERIES = [
    "", "?", "?source=²", "?src=%ff", "?dst=" + "9" * 5000, "?algorithm=", "?algorithm=%ed%a0%80", "?algorithm=omit",
    "?after=" + "9" * 5000, "?after=-1", "?after=NaN", "?follow=maybe", "?wait=²", "?wait=true&wait=false", "?src=0&dst=1",
    "?" + "&".join(f"x{n}=1" for n in range(2000)), "?=&&&==", "?source=%00",
]  # fmt: skip


def requests(
    random_: random.Random, paths: dict[str, Any]
) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Every route and method of the description, each some rounds."""
    for path, methods in paths.items():
        for method in [*(name.upper() for name in methods), "PATCH", "OPTIONS"]:
            for _ in range(ROUNDS):
                target = fill(random_, path) + random_.choice(QUERIES)
                if path == "/v1/events" and "follow=" not in target:
                    target += ("&" if "?" in target else "?") + "follow=false"
                yield method, target, body_of(random_, path), random_.choice([JSON, JSON, JSON, *KINDS])


def fill(random_: random.Random, path: str) -> str:
    while "{" in path:
        before, _, rest = path.partition("{")
        key = random_.choice(STRANGE_KEYS)
        path = before + quote(key.encode(errors="surrogatepass"), safe="") + rest.partition("}")[2]
    return path


def body_of(random_: random.Random, path: str) -> bytes:
    if path not in BODIES or random_.random() < 0.2:
        return random_.choice(WHOLE_BODIES)
    text = mutate(random_, random_.choice(BODIES[path]))
    return text.encode()


def mutate(random_: random.Random, value: Any) -> str:
    """A text with one place or more replaced, left out or there twice."""
    if random_.random() < 0.12:
        return random_.choice(STRANGE_JSON)
    if isinstance(value, dict):
        fields = [(json.dumps(name), mutate(random_, inner)) for name, inner in value.items()]
        if random_.random() < 0.1:
            fields.append((random_.choice(['"x"', r'"\ud800"', '""', *(f[0] for f in fields)]), "1"))
        if random_.random() < 0.1:
            fields.pop(random_.randrange(len(fields)))
        return "{" + ", ".join(f"{name}: {inner}" for name, inner in fields) + "}"
    if isinstance(value, list):
        return (
            "["
            + ", ".join(mutate(random_, inner) for inner in value * random_.choice([1, 1, 1, 2, 40]))
            + "]"
        )
    return json.dumps(value)


async def add_network(controller: Controller) -> None:
    controller.put_switches([SwitchSpec(SwitchId(0), "127.0.0.1:40000", 0, 8)])
    take_for_up(controller, SwitchId(0))
    for host in range(3):
        controller.declare_host(f"h{host}", 0, host, None)


@pytest.mark.parametrize("seed", range(3))
def test_no_input_is_answered_with_500(seed: int) -> None:
    schema = schemas.load("refusal")

    async def main() -> None:
        random_ = random.Random(seed)
        async with running() as controller, rest(controller) as client:
            await add_network(controller)
            paths = create_app(controller).openapi()["paths"]
            assert set(BODIES) <= set(paths)
            for method, target, body, headers in requests(random_, paths):
                # Changes need not wait for plans here.
                encoded = {name: value.encode() for name, value in headers.items()}
                target += ("&" if "?" in target else "?") + "wait=false" if "wait=" not in target else ""
                answer = await client.request(
                    method, f"http://controller{target}", content=body, headers=encoded
                )
                told = f"seed {seed}: {method} {target[:200]} {headers} {body[:300]!r}: {answer.status_code}"
                assert answer.status_code < 400 or answer.status_code in REFUSALS, (
                    f"{told} {answer.text[:500]}"
                )
                if answer.status_code >= 400 and answer.status_code != 204:
                    assert answer.headers["content-type"] == "application/json", told
                    text = answer.content.decode()
                    assert len(text) < 16_384, told
                    value = json.loads(text, parse_constant=pytest.fail)
                    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
            assert (await client.get("status")).status_code == 200
            assert controller.planning.figures.failures == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b'{"a": NaN}', "syntax", "NaN is not JSON"),
        (b'{"a": -Infinity}', "syntax", "-Infinity is not JSON"),
        (b'{"a": 1e400}', "outside-bounds", "1e400 is too large a number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "outside-bounds", "a number of 5000 digits"),
        (b'{"a": "\\ud800"}', "syntax", r"\\ud800 is half a character"),
        (b'{"\\udfff": 1}', "syntax", "half a character"),
        (b'{"a": 1, "a": 1}', "duplicate-field", "field 'a' occurs twice"),
        (b"[" * (DEPTH_MAX + 2) + b"]" * (DEPTH_MAX + 2), "outside-bounds", "nested too deep"),
        (b"[" * 100_000, "outside-bounds", "nested too deep"),
        (b"\xff", "syntax", "byte 0 of the body is not UTF-8"),
        ("{}".encode("utf-16"), "syntax", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "syntax", "BOM"),
        (b'{"a":\n 1,}', "syntax", "line 2, column 4"),
    ],
)
def test_what_is_not_quite_json_is_refused_by_name(body: bytes, code: str, message: str) -> None:
    with pytest.raises(JsonError, match=message) as refused:
        read_json(body)
    assert refused.value.code == code


def test_json_at_the_bounds_is_read() -> None:
    digits = "9" * DIGITS_MAX
    deep = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    text = f'{{"a": {digits}, "b": -{digits}, "c": 1e308, "d": "\\ud83d\\ude00", "e": {deep}}}'
    value = read_json(text.encode())
    assert (value["a"], value["b"], value["c"], value["d"]) == (int(digits), -int(digits), 1e308, "😀")


@pytest.mark.parametrize("headers", [{}, {"content-type": "application/x-www-form-urlencoded"}])
def test_a_body_that_is_not_declared_as_json_is_told_the_header_to_give(headers: dict[str, str]) -> None:
    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            for target in ("groups", "hosts", "switches", "verify"):
                request = client.build_request("POST", target, content=b'{"members": [0]}', headers=headers)
                answer = await client.send(request)
                assert answer.status_code == 415
                assert "content-type: application/json" in answer.json()["error"]["message"]

    asyncio.run(main())


async def post_switch(controller: Controller, address: str, client: str = "127.0.0.1") -> httpx.Response:
    transport = httpx.ASGITransport(create_app(controller), client=(client, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://controller/v1") as rest_client:
        return await rest_client.post("switches", json={"id": 3, "address": address, "ports": 8})


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("unix:/etc/passwd", 422), ("unix:/", 422), ("unix:/etc", 422), ("unix:/etc/passwd/x", 422),
        ("unix:/" + "x" * 107, 422), ("unix:/a\nb", 422), ("unix:relative", 422), ("unix:relative:50051", 422),
        ("unix-abstract:x:1", 422), ("vsock:1:2", 422), ("dns:///a:1", 422), ("a b:1", 422), ("a:0", 422),
        ("a:65536", 422), ("a:²", 422), ("::1:9", 422), (":1", 422), ("[::1]:9", 201), ("host.example:9", 201),
        ("unix:/nothing-is-here/yet.sock", 201),
    ],
)  # fmt: skip
def test_addresses_of_switches_are_those_a_server_can_have(address: str, status: int) -> None:
    async def main() -> None:
        async with running() as controller:
            answer = await post_switch(controller, address)
            assert answer.status_code == status, answer.text
            assert (SwitchId(3) in controller.sessions) == (status == 201)

    asyncio.run(main())


def test_clients_elsewhere_cannot_have_paths_of_this_machine_opened() -> None:
    async def main() -> None:
        async with running() as controller:
            answer = await post_switch(controller, "unix:/run/s.sock", "10.0.0.7")
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
            assert (await post_switch(controller, "10.0.0.9:50051", "10.0.0.7")).status_code == 201

    asyncio.run(main())
