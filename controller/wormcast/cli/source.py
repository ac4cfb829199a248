"""Where the commands that plan take a network from: a running controller, or `--topology`."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from click.shell_completion import CompletionItem
from wormcast_planner import HOST_ID_MAX

from wormcast import routing
from wormcast.cli.completion import complete_groups, complete_hosts, items_of
from wormcast.cli.files import (
    NOTHING,
    SWITCH,
    Json,
    planned,
    read_topology,
    refuse_without_effect,
    topology_text,
)
from wormcast.cli.refusal import Refusal, unknown
from wormcast.cli.rest import API_ENVIRONMENT, Client, api_address, segment
from wormcast.network.groups import TREE_ROUTES

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
"""A host's name or id in a list."""

BRANCHING_DEFAULT = "independent"
"""As in packet mode."""

F = TypeVar("F", bound=Callable[..., Any])
Host = int | str
"""An id or a name."""


@dataclass(frozen=True)
class Group:
    """A group as it is now: what it is planned from, and what is known of it besides."""

    about: Json
    scheme: str
    members: list[int]
    """Those that take part."""
    parameters: Json
    root: int | None
    """Root of the tree along which switches copy; None if hosts forward."""
    number: int | None
    """Under which switches know it; None if they do not."""
    trees: list[list[Json]]
    """Links of trees of its own that its messages take in turn."""

    def request(self, source: int) -> Json:
        """What `routing.group` takes, seen from one sender."""
        return {
            "scheme": self.scheme,
            "source": source,
            "members": self.members,
            "parameters": self.parameters,
            **({"shared_trees": self.trees} if self.trees else {}),
        }


class Source(Protocol):
    """A network, and what is in force in it."""

    def topology(self) -> Json:
        """The topology file."""

    def text(self) -> str:
        """The same as text: a file as it is, with what only its own format has."""

    def routing(self) -> Json:
        """The routes in force, as keywords of `routing.routes`: algorithm, root, balanced."""

    def routes_in_force(self, ends: Mapping[str, int]) -> Json | None:
        """The routes file of what agents have, from `src` or to `dst`, with how many messages took each if that is
        known. None: nothing is in force."""

    def verdict(self) -> Json | None:
        """The verify file of all that may be sent. None: nothing is in force."""

    def branching(self) -> str:
        """What branches of a worm do while one is blocked, as the switches pass worms on now."""

    def group(self, key: str) -> Group | None:
        """The group of this id or name; None: groups have no names here, and the key is a host."""

    def groups(self) -> list[Group]:
        """All groups in force."""


@dataclass(frozen=True)
class FileSource:
    """A topology file or kind: nothing is in force, and there are no groups."""

    name: str

    def topology(self) -> Json:
        return read_topology(self.name, give_hosts=True)

    def text(self) -> str:
        return topology_text(self.name)

    def routing(self) -> Json:
        return {"algorithm": routing.ALGORITHM_DEFAULT, "root": None, "balanced": False}

    def routes_in_force(self, ends: Mapping[str, int]) -> Json | None:  # noqa: ARG002 - as `Source`
        return None

    def verdict(self) -> Json | None:
        return None

    def branching(self) -> str:
        return BRANCHING_DEFAULT

    def group(self, key: str) -> Group | None:  # noqa: ARG002 - as `Source`
        return None

    def groups(self) -> list[Group]:
        return []


@dataclass(frozen=True)
class ControllerSource:
    """A running controller: what is up now."""

    client: Client

    def topology(self) -> Json:
        value = self.client.get("/topology")
        if not value["switches"]:
            return {name: [] for name in NOTHING}
        return planned(lambda: routing.read(json.dumps(value), format="json", allow_split=True))

    def text(self) -> str:
        return json.dumps(self.topology())

    def routing(self) -> Json:
        value = self.client.get("/routing")
        root = None if value["root_away"] else value["root"]
        return {"algorithm": value["algorithm"], "root": root, "balanced": value["balanced"]}

    def routes_in_force(self, ends: Mapping[str, int]) -> Json | None:
        file: Json = self.client.get("/routes", **ends)
        return file

    def verdict(self) -> Json | None:
        answer: Json = self.client.get("/verify")
        return answer

    def branching(self) -> str:
        model: Json = self.client.get("/verify")["model"]
        return str(model["branching"])

    def group(self, key: str) -> Group | None:
        found = _group(self.client.get(f"/groups/{segment(key)}"))
        if not found.members:
            raise Refusal(
                f"no member of group {found.about['id']} has an agent that takes part now", code="conflict"
            )
        return found

    def groups(self) -> list[Group]:
        return [_group(value) for value in self.client.get("/groups")["groups"]]


def _group(value: Mapping[str, Any]) -> Group:
    about = {name: value[name] for name in ("id", "name", "epoch")}
    if fallback := value.get("fallback"):
        # As its messages go now: switches do not copy them by their tables.
        value = {**value, "scheme": TREE_ROUTES, "parameters": {}}
        about["fallback"] = fallback
    return Group(
        about,
        value["scheme"],
        [member["host"] for member in value["state"] if member["takes_part"]],
        {name: number for name, number in value["parameters"].items() if number},
        value["root"],
        value["number"],
        value.get("trees", []),
    )


def topology_name(source: Source) -> str:
    """What to call the network in messages."""
    return f"topology {source.name}" if isinstance(source, FileSource) else "the controller's network"


def chosen_routing(source: Source, algorithm: str | None, root: int | None) -> Json:
    """The routes that options name, as keywords of `routing.routes`; what they leave open is as in force."""
    if algorithm is not None:
        return {"algorithm": algorithm, "root": root, "balanced": False}
    in_force = source.routing()
    return in_force if root is None else {**in_force, "root": root}


def at_least_one_switch(topology: Json) -> Json:
    """What is planned in place of a network without switches, which has no routes and no channels either."""
    return topology if topology["switches"] else {**topology, "switches": [{"id": 0, "ports": 1}]}


class HostType(click.ParamType):  # type: ignore[type-arg]
    """A host by id or by name, as the topology has it."""

    name = "host"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """An id as a number within the bounds of ids, a name as it is."""
        if isinstance(value, str) and not re.fullmatch("-?[0-9]+", value):
            return value
        number: int = HOST_ID.convert(value, param, ctx)
        return number


HOST_ID = click.IntRange(0, HOST_ID_MAX)
HOST = HostType()


def host_list(context: click.Context, parameter: click.Parameter, value: str | None) -> list[Host]:
    """Hosts of an option, between commas or spaces."""
    if value is None:
        return []
    if not re.fullmatch(rf"{NAME}([,\s]+{NAME})*", value.strip()):
        raise click.BadParameter(f"{value!r} is not a list of hosts; write it as 1,5,9")
    return [HOST.convert(key, parameter, context) for key in re.findall(NAME, value)]


def find_host(topology: Json, key: Host) -> int:
    """The id of a host of a topology. An id that is none is left to the planner to refuse."""
    if isinstance(key, int):
        return key
    ids = {host["name"]: int(host["id"]) for host in topology["hosts"] if "name" in host}
    if key in ids:
        return ids[key]
    # As `wormcast up` and the deadlock check call hosts without a name.
    ids |= {f"h{host['id']}": int(host["id"]) for host in topology["hosts"] if f"h{host['id']}" not in ids}
    if key not in ids:
        named = [host["name"] for host in topology["hosts"] if "name" in host]
        known = named or [str(host["id"]) for host in topology["hosts"]]
        raise Refusal(unknown("host", key, known), code="not-found", value=key, choices=known)
    return ids[key]


class PlanningCommand(click.Command):
    """A command on a network; one that has `--topology` is not offered the controller's address."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        return [item for item in found if item.value != "--api" or ctx.params.get("topology") is None]


def source_options(command: F) -> F:
    """Adds --topology and --api, which make the argument `source`, and --root, --output and --json."""

    @functools.wraps(command)
    def with_source(topology: str | None, api: str | None, **options: Any) -> Any:
        if topology is not None:
            refuse_without_effect("--api", api, "with --topology, which takes the place of a controller")
            return command(source=FileSource(topology), **options)
        return command(source=ControllerSource(Client(api_address(api))), **options)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON, and refusals as JSON."),
        click.option(
            "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON to a file."
        ),
        click.option("--root", type=SWITCH, help="Root switch. [default: the one of least eccentricity]"),
        click.option(
            "--api",
            metavar="ADDRESS",
            help="Controller to ask, as http://host:port or unix:/path. "
            f"[default: ${API_ENVIRONMENT} or {api_address(None, environment={})}]",
        ),
        click.option(
            "--topology",
            metavar="FILE|KIND",
            shell_complete=complete_topology,
            help="Plan for this network, without a controller: a topology file "
            f"({', '.join(routing.topology_formats())}), - for standard input, or a kind such as torus:4. "
            "[default: the network of the running controller]",
        ),
    ):
        with_source = option(with_source)
    return with_source  # type: ignore[return-value]


def complete_topology(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    """Kinds, and files; where no kind fits, as the shell completes them."""
    names = [kind.split(":")[0] for kind in routing.kinds()]
    kinds = [name for name in names if name.startswith(incomplete)]
    if not kinds:
        return [CompletionItem(incomplete, type="file")]
    files = sorted(path.name for path in Path().glob(f"{incomplete}*") if path.name[0] != ".")
    return [CompletionItem(name) for name in [*kinds, *files]]


def complete_algorithm(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    return [name for name in routing.algorithms() if name.startswith(incomplete)]


def complete_end(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Hosts of the file, or of the controller."""
    if (topology := context.params.get("topology")) is None:
        return complete_hosts(context, parameter, incomplete)
    with contextlib.suppress(Exception):
        return list(items_of(context, parameter, incomplete, _named(read_topology(topology))))
    return []


def complete_group_or_end(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Hosts, and groups where a controller has some and none is named yet."""
    groups: list[CompletionItem] = []
    if context.params.get("topology") is None and not context.params.get(parameter.name or ""):
        groups = complete_groups(context, parameter, incomplete)
    return [*groups, *complete_end(context, parameter, incomplete)]


def _named(topology: Json) -> list[Json]:
    return [{"id": host["id"], "name": host.get("name", host["id"])} for host in topology["hosts"]]
