"""Reference pages made from the code: REST, command line, programs, files, P4Runtime tables. All give Markdown."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from finsy.proto.p4.config.v1 import p4info_pb2
from google.protobuf import text_format
from wormcast.api import openapi
from wormcast.api.app import create_app
from wormcast.cli.main import main as wormcast
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.reconcile.controller import Controller
from wormcast.routing import schemas
from wormcast.store.database import Database

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = {openapi.name_of(openapi.File(kind)): kind for kind in schemas.kinds()}
"""Files that REST answers with, as its schema calls them."""
PROGRAMS = ("wormcast-agent", "wormcast-switch")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing if there are no rows."""
    lines = ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]) if lines else ""


def cell(text: str) -> str:
    """Text that stays in its cell."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip() or "–"


# REST


def rest() -> str:
    """Every path and method of the OpenAPI schema."""
    schema = create_app(Controller(Database(None), find_artifacts())).openapi()
    parts = [schema["info"]["description"], "## Errors", _failures(schema)]
    for path, methods in schema["paths"].items():
        parts.append(f"## {path}")
        parts += [
            part for method, operation in methods.items() for part in _operation(method.upper(), operation)
        ]
    models = schema["components"]["schemas"]
    parts.append("## Bodies and answers")
    for name, model in sorted(models.items()):
        if name in FILES:
            continue  # they have a page of their own
        parts += [f"### {name}", str(model.get("description", "")), _fields(model)]
    return "\n\n".join(part for part in parts if part)


def _failures(schema: Mapping[str, Any]) -> str:
    """The statuses of errors that all paths have, and what they mean."""
    operations = [one for methods in schema["paths"].values() for one in methods.values()]
    first = {status: answer["description"] for status, answer in operations[0]["responses"].items()}
    common = {
        status: meaning
        for status, meaning in first.items()
        if int(status) >= 400 and all(status in one["responses"] for one in operations)
    }
    return table(("status", "meaning"), sorted(common.items()))


def _operation(method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    done = "/".join(status for status in operation["responses"] if status.startswith("2"))
    yield f"**{method}** ({done}): {operation.get('summary', '')}."
    yield str(operation.get("description", ""))
    parameters = [
        (
            f"`{one['name']}`",
            one["in"] + (", required" if one.get("required") and one["in"] != "path" else ""),
            _type(one["schema"]),
            str(one.get("description", "")),
        )
        for one in operation.get("parameters", ())
    ]
    yield table(("parameter", "in", "type", "meaning"), parameters)
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body, `{kind}`: {_type(body.get('schema', {}))}."
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items() if status.startswith("2") else ():
            named = "" if kind == "application/json" else f", `{kind}`"
            yield f"Answer{named}: {_type(content['schema'])}."


def _fields(model: Mapping[str, Any], within: str = "") -> str:
    required = set(model.get("required", ()))
    return table(
        ("field", "type", "default", "meaning"),
        [
            (
                f"`{name}`",
                _type(value, within),
                "required"
                if name in required
                else f"`{json.dumps(value['default'])}`"
                if "default" in value
                else "",
                str(value.get("description", "")),
            )
            for name, value in model.get("properties", {}).items()
        ],
    )


def _type(schema: Mapping[str, Any], within: str = "") -> str:
    """A type in words, with its bounds; models are links to their sections, whose anchors begin with `within`."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        if name in FILES:
            return f"a [{FILES[name]} file](files.md#{FILES[name]})"
        if "/properties/" in schema["$ref"]:
            return f"as `{name}`"
        return f"[{name}](#{within}{name.lower()})"
    for joint in ("anyOf", "oneOf"):
        if joint in schema:
            return " or ".join(_type(one, within) for one in schema[joint])
    if "enum" in schema:
        return "one of " + ", ".join(f"`{one}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        kind = f"list of {_type(schema.get('items', {}), within)}"
    bounds = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "exclusiveMaximum": "less than",
        "minLength": "length at least",
        "maxLength": "length at most",
        "minItems": "items at least",
        "maxItems": "items at most",
    }
    said = [f"{words} {schema[name]}" for name, words in bounds.items() if name in schema]
    return kind + (f" ({', '.join(said)})" if said else "")


# Command line


def cli() -> str:
    """Every command with its arguments and options."""
    return "\n\n".join(_command(wormcast, ("wormcast",)))


def commands(
    command: click.Command = wormcast, names: tuple[str, ...] = ("wormcast",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group, with its full name."""
    yield names, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from commands(found, (*names, name))


def _command(command: click.Command, names: tuple[str, ...]) -> Iterator[str]:
    for full, one in commands(command, names):
        if isinstance(one, click.Group) and not one.invoke_without_command and len(full) > 1:
            yield f"## {' '.join(full)}"
            yield _help(one)
            continue
        if len(full) > 1:
            yield f"{'##' if len(full) == 2 else '###'} {' '.join(full)}"
        context = click.Context(one, info_name=" ".join(full))
        yield f"```text\n{one.get_usage(context).removeprefix('Usage: ')}\n```"
        yield _help(one)
        rows = []
        for parameter in one.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                rows.append((f"`{record[0]}`", record[1]))
        yield table(("option", "meaning"), rows)


def _help(command: click.Command) -> str:
    text = (command.help or "").split("\f")[0]
    # A block after \b keeps its lines.
    return re.sub(r"^\b\n((?:.+\n?)+)", r"```text\n\1```", _dedent(text), flags=re.MULTILINE)


def _dedent(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


# Programs


def programs() -> str:
    """What --help of the agent and of the switch says."""
    parts = []
    for name in PROGRAMS:
        said = subprocess.run(
            [ROOT / ".venv" / "bin" / name, "--help"], capture_output=True, text=True, check=True
        )
        parts.append(f"## {name}\n\n```text\n{said.stdout.strip()}\n```")
    return "\n\n".join(parts)


# Files


def files() -> str:
    """The JSON Schema of every file."""
    parts = []
    for kind in schemas.kinds():
        schema = schemas.load(kind)
        parts += [f"## {kind}", str(schema.get("description", schema["title"])), _fields(schema, f"{kind}-")]
        for name, own in schema.get("$defs", {}).items():
            fields = _fields(own, f"{kind}-")
            parts += [
                f"### {kind}: {name}",
                str(own.get("description", "")),
                fields or f"{_type(own, f'{kind}-')}",
            ]
        parts.append(_folded("The whole schema", f"```json\n{json.dumps(schema, indent=2)}\n```"))
    return "\n\n".join(part for part in parts if part)


def _folded(title: str, text: str) -> str:
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    return f'??? abstract "{title}"\n\n{indented}'


# P4Runtime


def p4runtime() -> str:
    """Tables, actions, counters and packet headers of the compiled program."""
    info = text_format.Parse(find_artifacts().p4info.read_text(), p4info_pb2.P4Info())
    actions = {action.preamble.id: action for action in info.actions}
    parts = [
        f"Program `{info.pkg_info.name}` {info.pkg_info.version} for {info.pkg_info.arch}.",
        "## Tables",
    ]
    for one in info.tables:
        kinds = p4info_pb2.MatchField.MatchType
        parts += [
            f"### {one.preamble.name}",
            f"Id {one.preamble.id}, {one.size} entries"
            + (", its default action cannot be changed" if one.const_default_action_id else "")
            + ".",
            table(
                ("key", "id", "bits", "match"),
                [
                    (f"`{key.name}`", str(key.id), str(key.bitwidth), kinds.Name(key.match_type).lower())
                    for key in one.match_fields
                ],
            ),
            table(
                ("action", "id", "parameters", "where"),
                [_action(actions[ref.id], ref, one) for ref in one.action_refs],
            ),
        ]
    parts += [
        "## Counters",
        table(
            ("counter", "id", "counts", "cells"),
            [
                (
                    f"`{one.preamble.name}`",
                    str(one.preamble.id),
                    p4info_pb2.CounterSpec.Unit.Name(one.spec.unit).lower(),
                    str(one.size),
                )
                for one in info.counters
            ],
        ),
        "## Packet-in and packet-out",
        table(
            ("header", "field", "id", "bits"),
            [
                (f"`{header.preamble.name}`", f"`{field.name}`", str(field.id), str(field.bitwidth))
                for header in info.controller_packet_metadata
                for field in header.metadata
            ],
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def _action(action: Any, ref: Any, one: Any) -> tuple[str, str, str, str]:
    scopes = {
        p4info_pb2.ActionRef.TABLE_AND_DEFAULT: "entries and default",
        p4info_pb2.ActionRef.TABLE_ONLY: "entries",
        p4info_pb2.ActionRef.DEFAULT_ONLY: "default only",
    }
    where = scopes[ref.scope]
    if ref.id in (one.const_default_action_id, one.initial_default_action.action_id):
        where += "; the default at the start"
    parameters = ", ".join(f"`{p.name}` ({p.bitwidth} bits)" for p in action.params)
    return f"`{action.preamble.name}`", str(action.preamble.id), parameters, where
