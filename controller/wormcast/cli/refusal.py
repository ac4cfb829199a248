"""Refusals: one form for all commands, on standard error.

For people a sentence; with `--json` {"error": {"code", "message", "line", "column"}}, and
"value", "bound" and "choices" where they are known (`wormcast schema refusal`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import IO, Any

import click

from wormcast.exits import Exit

CHOICES_MAX = 16
"""Choices named in full; of more only those nearest to what was given are."""
JSON_OPTION = "--json"

_FIELDS = ("value", "bound", "choices")


class Refusal(click.ClickException):
    """Something is refused; the message says what, why and what would do."""

    exit_code: int = Exit.REFUSED  # type: ignore[misc]

    def __init__(
        self,
        message: str,
        *,
        code: str = "refused",
        line: int | None = None,
        column: int | None = None,
        exit_code: int = Exit.REFUSED,
        **more: Any,
    ) -> None:
        """`more`: value, bound, choices."""
        super().__init__(message)
        self.exit_code = exit_code
        known = {name: more[name] for name in _FIELDS if more.get(name) is not None}
        self.error = {"code": code, "message": message, "line": line, "column": column, **known}


class Commands(click.Group):
    """Names the commands there are where one is unknown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but for the words of the refusal."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing and args[0][:1] != "-":
            below = self._below(ctx, args[0])
            if below:
                said = f"there is no command {args[0]!r} here; there is {' and '.join(below)}"
            else:
                said = unknown("command", args[0], self.list_commands(ctx))
            raise click.UsageError(said, ctx)
        return super().resolve_command(ctx, args)

    def _below(self, ctx: click.Context, name: str) -> list[str]:
        """How commands of this name are written that are a level below."""
        found = []
        for group in self.list_commands(ctx):
            # What is not installed has no commands.
            with contextlib.suppress(click.ClickException):
                command = self.get_command(ctx, group)
                if isinstance(command, click.Group) and name in command.list_commands(ctx):
                    found.append(f"`{ctx.command_path} {group} {name}`")
        return found


def unknown(what: str, value: str, choices: Iterable[str]) -> str:
    """A sentence that names the choices, or those nearest where there are many."""
    known = list(choices)
    if len(known) <= CHOICES_MAX:
        return (
            f"there is no {what} {value!r}; {'there are ' + ', '.join(known) if known else 'there are none'}"
        )
    import difflib

    near = difflib.get_close_matches(value, known, n=3, cutoff=0.0)
    return f"there is no {what} {value!r}; nearest of {len(known)} are {', '.join(near)}"


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether refusals are to be JSON: also those of the options themselves."""
    own = list(arguments)
    return JSON_OPTION in (own[: own.index("--")] if "--" in own else own)


def describe(error: BaseException) -> Refusal | click.ClickException:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(error)
    if isinstance(error, click.MissingParameter):
        return _missing(error)
    if isinstance(error, click.BadParameter):
        return _with_bounds(error)
    if isinstance(error, click.ClickException):
        return error
    if isinstance(error, click.Abort):
        return Refusal("interrupted", code="interrupted", exit_code=Exit.INTERRUPTED)
    if isinstance(error, RecursionError):
        return Refusal("the input is nested too deeply", code="syntax")
    if isinstance(error, OSError):
        return Refusal(explain_os(error), code="cannot-read")
    kind = type(error).__name__
    return Refusal(
        f"wormcast has a bug: {kind}: {error} ({_place(error)})", code="internal", exit_code=Exit.BUG
    )


def show(error: click.ClickException, as_json: bool, file: IO[Any] | None = None) -> None:
    """Prints a refusal on standard error."""
    if not as_json:
        error.show(file)
        return
    detail = getattr(error, "error", None)
    if detail is None:
        text = re.sub(r"\s*\n\s*", " ", error.format_message()).strip()
        code = "cannot-read" if isinstance(error, click.FileError) else "usage"
        detail = {"code": code, "message": text or "no command is given", "line": None, "column": None}
    click.echo(json.dumps({"error": detail}), file=file, err=file is None)


def explain_os(error: OSError, what: str | None = None) -> str:
    """What the system refused, and of which file, without numbers."""
    reason = error.strerror or (os.strerror(error.errno) if error.errno else str(error)) or "it failed"
    # What raises without a number has a text of its own.
    if error.errno is None and error.args and isinstance(error.args[0], str):
        reason = error.args[0]
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    where = what or " to ".join(names)
    return f"{where}: {reason}" if where else reason


def _with_bounds(error: click.BadParameter) -> click.BadParameter:
    """Names the bounds where something is no number at all: click says "not a valid integer range"."""
    kind = None if error.param is None else error.param.type
    if isinstance(kind, click.IntRange):
        within = f"is not an integer in the range {kind._describe_range()}"
        message = error.message.replace("is not a valid integer range", within)
        return click.BadParameter(message, error.ctx, error.param, error.param_hint)
    return error


def _missing(error: click.MissingParameter) -> click.ClickException:
    """Names what completions would offer in its place."""
    if error.param is None or error.ctx is None:
        return error
    items = error.param.shell_complete(error.ctx, "")
    known = [str(item.value) for item in items if item.type == "plain" and item.value]
    text = error.format_message().rstrip(".")
    if not known or isinstance(error.param.type, click.Choice):
        return error
    more = f", and {len(known) - CHOICES_MAX} more" if len(known) > CHOICES_MAX else ""
    return click.UsageError(f"{text}; there are {', '.join(known[:CHOICES_MAX])}{more}", error.ctx)


def _no_such_option(error: click.NoSuchOption) -> click.ClickException:
    """Names the options where none is like it."""
    if error.possibilities or error.ctx is None:
        return error
    own = (option for parameter in error.ctx.command.get_params(error.ctx) for option in parameter.opts)
    options = [option for option in own if option.startswith("--")]
    text = unknown("option", error.option_name, options)
    return click.UsageError(text, error.ctx)


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    name = trace.tb_frame.f_code.co_filename.rsplit("/", 1)[-1]
    return f"{name}:{trace.tb_lineno}"
