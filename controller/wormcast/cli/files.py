"""Files of ours, in and out, and refusals of what is in them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from wormcast_planner import SWITCH_ID_MAX

from wormcast import routing
from wormcast.cli.kinds import mismatch
from wormcast.cli.refusal import Refusal

SWITCH = click.IntRange(0, SWITCH_ID_MAX)
"""An option that names a switch."""
NUMBER = "[0-9]{1,9}"
"""Of a host, switch or port in a list; its bounds are checked later."""

NOTHING = ("switches", "hosts", "links")
T = TypeVar("T")
Json = dict[str, Any]


def refuse(error: routing.RoutingError, file: str | None = None) -> Refusal:
    """The refusal of an error of the planner, about a file if it has a name."""
    return Refusal(
        str(error) if file is None else f"{file}: {error}",
        code=getattr(error, "code", "refused"),
        line=getattr(error, "line", None),
        column=getattr(error, "column", None),
    )


def planned(work: Callable[[], T]) -> T:
    """What `work` gives; a refusal of the planner as one of the command line."""
    try:
        return work()
    except routing.RoutingError as error:
        raise refuse(error) from error
    except OverflowError as error:
        raise Refusal("a number is too large for an id, a port or a seed", code="outside-bounds") from error
    except UnicodeError as error:
        raise Refusal("an option or a name in a file is not UTF-8 text", code="syntax") from error


def write_text(text: str, output: Path | None) -> None:
    """To a file, or standard output."""
    if output is None:
        click.echo(text, nl=False)
        return
    write_bytes(text.encode(errors="backslashreplace"), output)


def write_answer(answer: Json, tell: Callable[[Json], str], output: Path | None, as_json: bool) -> None:
    """JSON to a file or with --json, else what `tell` says of it for people."""
    write_text(routing.to_text(answer) if as_json or output is not None else tell(answer), output)


def write_bytes(content: bytes, output: Path) -> None:
    try:
        output.write_bytes(content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Refusal(f"cannot write {output}: {reason}", code="cannot-write") from error


def as_png_file(asked: bool, output: Path | None) -> bool:
    """Whether the picture is to be PNG; the name of the file must not say otherwise."""
    if output is None:
        if asked:
            raise Refusal("a PNG needs a file; name it with --output")
        return False
    suffix = output.suffix.lower()
    if suffix not in ("", ".svg", ".png"):
        raise Refusal(
            f"{output}: pictures are SVG or PNG; name the file .svg or .png", code="unsupported", value=suffix
        )
    if asked and suffix == ".svg":
        raise Refusal(f"--png does not fit {output}; leave it out, or name the file .png", value=suffix)
    return asked or suffix == ".png"


def read_text(path: Path, what: str) -> str:
    """A text file; - is standard input."""
    is_stdin = str(path) == "-"
    try:
        content = sys.stdin.buffer.read() if is_stdin else path.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = f"{what} {path} is not text: byte {error.start + 1} is not UTF-8"
        raise Refusal(text, code="syntax") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Refusal(f"cannot read {what} {path}: {reason}", code="cannot-read") from error


def parse_json(text: str, what: str, path: Path, wanted: str = "JSON") -> Any:
    """What is in a JSON file. NaN and the like are not JSON."""

    def refuse_constant(name: str) -> None:
        raise ValueError(f"{name} is not a JSON number")

    try:
        return json.loads(text, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        message = f"{what} {path} is not {wanted}: {error.msg} at line {error.lineno}, column {error.colno}"
        raise Refusal(message, code="syntax", line=error.lineno, column=error.colno) from error
    except ValueError as error:
        raise Refusal(f"{what} {path} is not {wanted}: {error}", code="syntax") from error
    except RecursionError as error:
        raise Refusal(f"{what} {path} is nested too deeply", code="syntax") from error


def read_json(path: Path, what: str, wanted: str | None = None) -> Json:
    """A JSON object from a file; `wanted` is the kind of file, where another is refused."""
    value = parse_json(read_text(path, what), what, path)
    if not isinstance(value, dict):
        raise Refusal(f"{what} {path} is not a JSON object", code="wrong-type")
    if wanted is not None and (wrong := mismatch(value, wanted)):
        raise Refusal(f"{what} {path}: {wrong}", code="wrong-type")
    return value


def warn(text: str) -> None:
    """Says something on standard error that is no refusal."""
    click.echo(f"Warning: {text}", err=True)


def refuse_without_effect(option: str, given: object, because: str) -> None:
    """Refuses an option that would change nothing; `because` says what would."""
    if given is not None and given is not False and given != ():
        raise Refusal(f"{option} has no effect {because}", code="without-effect", value=option)


def read_topology(
    name: str,
    *,
    format: str | None = None,
    hosts_per_switch: int = 0,
    allow_split: bool = True,
    give_hosts: bool = False,
) -> Json:
    """A file in any format, `-` for standard input, or a kind such as `torus:4`. With `give_hosts` every switch of a
    file of other tools that has no hosts gets one. Warnings go to standard error."""
    if _is_kind(name):
        if format is not None or hosts_per_switch:
            option = "--from" if format is not None else "--hosts-per-switch"
            refuse_without_effect(option, True, f"on {name}, which is not a file; leave it out")
        return planned(lambda: routing.make(name))
    text = read_text(Path(name), "topology")
    try:
        return routing.read(
            text,
            format=format,
            allow_split=allow_split,
            hosts_per_switch=hosts_per_switch,
            give_hosts=give_hosts,
            warn=lambda warning: warn(f"topology {name}: {warning}"),
        )
    except routing.RoutingError as error:
        if getattr(error, "code", None) == "no-switches" and (empty := _empty(text)) is not None:
            return empty
        refusal = refuse(error, f"topology {name}")
        with contextlib.suppress(ValueError, RecursionError):
            if wrong := mismatch(json.loads(text), "topology"):
                refusal = Refusal(f"topology {name}: {wrong}", code="wrong-type")
        raise refusal from error
    except UnicodeError as error:
        raise Refusal(f"topology {name} has text that is not Unicode", code="syntax") from error


def topology_text(name: str) -> str:
    """The text of a topology file, or of the file of a kind."""
    if _is_kind(name):
        return json.dumps(planned(lambda: routing.make(name)))
    return read_text(Path(name), "topology")


def _empty(text: str) -> Json | None:
    """The network of a fabric in which nothing is up, as `wormcast topo show --json` writes it."""
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict) and all(value.get(name) == [] for name in NOTHING):
            return {name: [] for name in NOTHING}
    return None


def _is_kind(name: str) -> bool:
    if name.split(":")[0] not in {kind.split(":")[0] for kind in routing.kinds()}:
        return False
    try:
        return not Path(name).exists()
    except OSError:
        return True
