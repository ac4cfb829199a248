"""Answers of the REST API held against what OpenAPI says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import jsonschema

VALIDATOR = jsonschema.Draft202012Validator


class Held:
    """An OpenAPI schema, and which of its answers were held against it."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self.paths = {
            path: re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) + "$") for path in schema["paths"]
        }
        self.seen: set[tuple[str, str, int]] = set()
        self._validators: dict[str, Any] = {}

    def answers(self) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
        """Each path, method, status and what it answers."""
        for path, methods in self.schema["paths"].items():
            for method, operation in methods.items():
                for status, answer in operation["responses"].items():
                    yield path, method, status, answer

    def check(self, answer: httpx.Response) -> None:
        """Fails where an answer is other than its schema. What has no path of the API has that of errors."""
        path = answer.request.url.path
        if path == "/v1/openapi.json" or answer.is_redirect:
            return
        method = answer.request.method.lower()
        fits = [one for one, pattern in self.paths.items() if pattern.match(path)]
        # The more of a path is given, the more it is meant.
        found = min(fits, key=lambda one: one.count("{"), default=None)
        operation = self.schema["paths"].get(found, {}).get(method)
        text = f"{method} {path} {answer.status_code}: {answer.text[:300]}"
        if answer.status_code >= 400:
            self._validate({"$ref": "#/components/schemas/ErrorAnswer"}, answer.json(), text)
            return
        assert operation is not None, f"not described: {text}"
        self.seen.add((found or "", method, answer.status_code))
        described = operation["responses"].get(str(answer.status_code))
        assert described is not None, f"not described: {text}"
        content = described.get("content", {})
        if not answer.content:
            assert content == {}, text
            return
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in content, f"{kind} is not described: {text}"
        if kind == "application/json":
            self._validate(content[kind]["schema"], answer.json(), text)

    def _validate(self, schema: Mapping[str, Any], value: Any, text: str) -> None:
        key = json.dumps(schema)
        if key not in self._validators:
            self._validators[key] = VALIDATOR({**schema, "components": self.schema["components"]})
        wrong = jsonschema.exceptions.best_match(self._validators[key].iter_errors(value))
        assert wrong is None, f"{wrong.message} at {wrong.json_path}: {text}"
