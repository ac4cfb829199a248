"""`wormcast verify` of routes that others made: forwarding tables, paths, running switches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from wormcast import routing, verify
from wormcast.cli.files import Json, planned, refuse, refuse_without_effect, write_text
from wormcast.cli.files import read_text as read_file
from wormcast.cli.refusal import Refusal
from wormcast.cli.source import FileSource, Source, topology_name

F = TypeVar("F", bound=Callable[..., Any])

ENDS = ["hosts", "all"]


@dataclass(frozen=True)
class Foreign:
    """What the options name; at most one of `tables`, `paths` and `p4runtime`."""

    tables: tuple[Path, ...]
    records: Path | None
    ends: str | None
    paths: Path | None
    p4runtime: str | None
    device_id: int | None
    table: str | None
    key: str | None
    port_parameter: str | None
    save_tables: Path | None

    @property
    def option(self) -> str | None:
        """The option that says where the routes are; None: they are ours."""
        given = {"--tables": self.tables, "--paths": self.paths, "--p4runtime": self.p4runtime}
        named = [name for name, value in given.items() if value]
        if len(named) > 1:
            raise Refusal(f"{' and '.join(named)} do not go together; give one", value=named[1])
        return named[0] if named else None

    def refuse_needless(self) -> None:
        """Refuses those that would change nothing, and ends that are none."""
        if self.ends not in (None, *ENDS):
            text = f"ends cannot be {self.ends!r}; choices are {', '.join(ENDS)}"
            raise Refusal(text, value=self.ends, choices=ENDS)
        if self.option not in ("--tables", "--p4runtime"):
            refuse_without_effect("--ends", self.ends, "without --tables or --p4runtime")
        if self.option != "--tables":
            refuse_without_effect("--path-records", self.records, "without --tables")
        if self.p4runtime is None:
            for name in ("device_id", "table", "key", "port_parameter", "save_tables"):
                option = f"--{name.replace('_', '-')}"
                refuse_without_effect(option, getattr(self, name), "without --p4runtime")
        elif self.table is None:
            because = "without --table, which names a table of the switches' program"
            refuse_without_effect("--key", self.key, because)
            refuse_without_effect("--port-parameter", self.port_parameter, because)


def foreign_options(command: F) -> F:
    """Adds the options of routes that others made, which make the argument `foreign`."""

    @functools.wraps(command)
    def with_foreign(**options: Any) -> Any:
        given = {name: options.pop(name) for name in Foreign.__dataclass_fields__}
        return command(foreign=Foreign(**given), **options)

    for option in (
        click.option(
            "--save-tables",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write what --p4runtime reads to this tables file, which --tables takes.",
        ),
        click.option(
            "--port-parameter",
            metavar="NAME",
            help="Its action's parameter that is the egress port. [default: port]",
        ),
        click.option(
            "--key",
            metavar="FIELD",
            help="Its match field that is the destination. [default: the only one in use]",
        ),
        click.option(
            "--table",
            metavar="NAME",
            help="Table of the switches' program that forwards. [default: those of Wormcast's own program]",
        ),
        click.option(
            "--device-id",
            type=click.IntRange(0, (1 << 64) - 1),
            help="Device id of all switches of --p4runtime. [default: that in the switches file; of addresses the id of the switch]",
        ),
        click.option(
            "--p4runtime",
            metavar="FILE|ADDRESSES",
            help="Check what running switches have in their tables: a switches file, or addresses as "
            "127.0.0.1:50051,127.0.0.1:50052, one for each switch of the topology, by id.",
        ),
        click.option(
            "--paths",
            type=Path,
            help="Check the paths of a CSV file with the columns path and, if wanted, src, dst and vc. A path is written as s1:3 s2:1 s3, with ports or without.",
        ),
        click.option(
            "--ends",
            help="Who sends to whom, where tables are checked. hosts: hosts to hosts. all: switches too. [default: hosts]",
            shell_complete=lambda _context, _parameter, incomplete: [
                e for e in ENDS if e.startswith(incomplete)
            ],
        ),
        click.option(
            "--path-records",
            "records",
            type=Path,
            help="What saquery PR printed. Packets then use the virtual lane of their service level; without, "
            "all use one.",
        ),
        click.option(
            "--tables",
            type=Path,
            multiple=True,
            help="Check forwarding tables: what dump_lfts, ibroute or OpenSM wrote (--topology is then what "
            "ibnetdiscover printed), or a tables file. May be given several times.",
        ),
    ):
        with_foreign = option(with_foreign)
    return with_foreign  # type: ignore[return-value]


@dataclass(frozen=True)
class Routes:
    """What is to be checked, as texts."""

    topology: str | None
    tables: list[str]
    paths: str | None
    ends: str
    records: str | None = None

    def verify(self) -> Json:
        """The verify file. Raises `RoutingError`."""
        if self.paths is not None:
            return verify.verify_paths(self.paths, self.topology)
        assert self.topology is not None
        return verify.verify_tables(self.topology, self.tables, self.ends, self.records)

    def check(self, certificate: Json) -> dict[str, int]:
        """Checks an order, by the second program. Raises `Violation`, or `ValueError`."""
        network = None
        if self.topology is not None:
            network = verify.CheckedNetwork(routing.read(self.topology, allow_split=True), self.topology)
        if self.paths is not None:
            return verify.check_paths(self.paths, certificate, network)
        assert network is not None
        return verify.check_tables(network, self.tables, certificate, self.ends, self.records)


def read_routes(foreign: Foreign, source: Source, api: str | None) -> tuple[Routes, list[str]]:
    """What the options name, and what to call the texts of it in errors."""
    ends = foreign.ends or "hosts"
    network_name = topology_name(source)
    if foreign.paths is not None:
        topology = source.text() if isinstance(source, FileSource) else None
        if topology is None:
            refuse_without_effect(
                "--api", api, "with --paths, whose network is that of --topology, or its own"
            )
        return Routes(topology, [], read_file(foreign.paths, "paths"), ends), [
            f"paths {foreign.paths}",
            network_name,
        ]
    topology = source.text()
    if foreign.p4runtime is not None:
        from wormcast.cli.switch_tables import read_switch_tables

        network = planned(lambda: routing.read(topology, allow_split=True))
        value = read_switch_tables(
            foreign.p4runtime,
            network,
            foreign.device_id,
            table=foreign.table,
            key=foreign.key,
            port_parameter=foreign.port_parameter,
        )
        text = routing.to_text(value)
        if foreign.save_tables is not None:
            write_text(text, foreign.save_tables)
        return Routes(topology, [text], None, ends), [f"tables of {foreign.p4runtime}", network_name]
    texts = [read_file(path, "tables") for path in foreign.tables]
    names = [f"tables {path}" for path in foreign.tables]
    if foreign.records is None:
        return Routes(topology, texts, None, ends), [*names, network_name]
    records = read_file(foreign.records, "path records")
    return Routes(topology, texts, None, ends, records), [
        *names,
        f"path records {foreign.records}",
        network_name,
    ]


def answer_foreign(routes: Routes, names: Sequence[str], certificate: Json | None, file: Path | None) -> Json:
    """The verify file; with a certificate whether that holds. `names` are what to call the
    texts in errors, the topology last."""
    try:
        if certificate is None:
            return routes.verify()
        return {"holds": True, **routes.check(certificate)}
    except verify.Violation as violation:
        worm, held, needed = violation.worm, violation.held, violation.needed
        return {"holds": False, "worm": worm, "held": held, "needed": needed, "reason": violation.reason}
    except routing.RoutingError as error:
        number = getattr(error, "text", None)
        raise refuse(error, names[-1 if number is None else number]) from error
    except ValueError as error:
        raise Refusal(f"certificate {file}: {error}") from error


def is_good(answer: Mapping[str, Any]) -> bool:
    """Whether nothing is wrong with the routes."""
    if "holds" in answer:
        return bool(answer["holds"])
    return bool(answer["deadlock_free"]) and not answer.get("lost_count")
