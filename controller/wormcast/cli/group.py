"""`wormcast group`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
from wormcast_planner import FAN_OUT_DEFAULT, LAMBDA_MAX, SHARED_TREES_MAX

from wormcast.cli.bit_rate import read_rate_bits, show_rate
from wormcast.cli.completion import complete_groups, complete_hosts
from wormcast.cli.group_plan import SHAPES, plan_group
from wormcast.cli.lag import lag
from wormcast.cli.refusal import Commands, Refusal
from wormcast.cli.rest import Client, api_options, print_json, print_table, segment
from wormcast.counted import counted
from wormcast.decimal import read_decimal
from wormcast.network.groups import (
    AUTO,
    COPIED,
    GROUP_BOUND,
    GUARDS,
    LEASTS,
    SCHEME_DEFAULT,
    SCHEMES,
    VARIANTS,
)


@click.group(cls=Commands)
def group() -> None:
    """Create, list, change, plan and watch groups. GROUP and HOST are ids or names."""


group.add_command(plan_group)
group.add_command(lag)


def _host(value: str) -> int | str:
    number = read_decimal(value)
    return value if number is None else number


def _rate_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--rate", "rate_bits", metavar="RATE", callback=read_rate_bits, help=text)


@group.command()
@click.argument("members", nargs=-1, required=True, metavar="HOST...", shell_complete=complete_hosts)
@click.option("--scheme", type=click.Choice(SCHEMES), default=SCHEME_DEFAULT, show_default=True)
@click.option("--name", help="Name of the group. [default: group-<id>]")
@click.option("--id", "group_id", type=int, help=f"Group id, {GROUP_BOUND}. [default: a free one]")
@click.option(
    "--k",
    type=click.IntRange(min=1),
    help="k-binomial: most children of a host. [default: the agents choose]",
)
@click.option("--fan-out", type=int, help=f"tree: most children of a host. [default: {FAN_OUT_DEFAULT}]")
@click.option(
    "--packets",
    type=click.IntRange(min=1),
    help="k-binomial: packets in a typical message; the best k follows from it.",
)
@click.option(
    "--lambda",
    "lambda_",
    type=click.IntRange(1, LAMBDA_MAX),
    help="postal: time until a message is received, in send times. [default: by the costs of the fabric]",
)
@click.option(
    "--r", type=click.IntRange(min=1), help="mu-torus: members of a chain. [default: as many as a ring has]"
)
@click.option(
    "--variant",
    type=click.Choice(VARIANTS),
    help="circuit: return: messages go on to their origin, which compares what comes back with what it sent. "
    "[default: omit-last]",
)
@click.option(
    "--guard",
    type=click.Choice(GUARDS),
    help="switch, table: copies go along the spanning tree (A) or trees of the group's own (C). switch, broadcast: "
    "through the root, and the group is ordered (B). [default: A]",
)
@click.option(
    "--least", type=click.Choice(LEASTS), help="guard C: what these trees have little of. [default: links]"
)
@click.option(
    "--trees",
    type=click.IntRange(1, SHARED_TREES_MAX),
    help="switch with guard C: over how many trees messages spread. [default: 1]",
)
@click.option("--ordered", is_flag=True, help="All members read the messages of all origins in one order.")
@click.option(
    "--gather",
    is_flag=True,
    help=f"{', '.join(COPIED)}: switches gather the ACKs of the messages that they copy.",
)
@click.option("--class-d", metavar="ADDRESS", help="IP multicast address whose packets the group carries.")
@_rate_option("Most bits of messages that a host sends to the group a second, as 20M or 500k. [default: any]")
@api_options
def create(
    members: tuple[str, ...],
    scheme: str,
    name: str | None,
    group_id: int | None,
    k: int | None,
    fan_out: int | None,
    packets: int | None,
    lambda_: int | None,
    r: int | None,
    variant: str | None,
    guard: str | None,
    least: str | None,
    trees: int | None,
    ordered: bool,
    gather: bool,
    class_d: str | None,
    rate_bits: int | None,
    api: str,
    as_json: bool,
) -> None:
    """Create a group of HOSTs."""
    shape = {
        "k": k,
        "fan_out": fan_out,
        "packets": packets,
        "lambda": lambda_,
        "r": r,
        "variant": variant,
        "guard": guard,
        "least": least,
        "trees": trees,
    }
    _refuse_needless(scheme, shape)
    body = {
        "id": group_id,
        "name": name,
        "scheme": scheme,
        "members": [_host(member) for member in members],
        "parameters": {**shape, "ordered": ordered, "rate_bits": rate_bits},
        "class_d": class_d,
        "gather": gather,
    }
    _show(Client(api).send("POST", "/groups", body), as_json)


def _refuse_needless(scheme: str, shape: Mapping[str, int | str | None]) -> None:
    """Refuses parameters that the scheme does not go by."""
    for name, value in shape.items():
        option = f"--{name.replace('_', '-')}"
        because = None
        if value is not None and scheme not in SHAPES[name]:
            own = [f"--{other.replace('_', '-')}" for other, of in SHAPES.items() if scheme in of]
            takes = f"; it takes {', '.join(own)}" if own else ""
            because = f"with scheme {scheme}{takes}; {option} is for {' and '.join(SHAPES[name])}"
        elif name == "packets" and value is not None and shape["k"] is not None:
            because = "with --k; --packets chooses k, so give only one of them"
        if because is not None:
            raise Refusal(f"{option} has no effect {because}", code="without-effect", value=option)


@group.command("list")
@api_options
def list_groups(api: str, as_json: bool) -> None:
    """List all groups."""
    value = Client(api).get("/groups")
    if as_json:
        print_json(value)
        return
    print_table(
        counted(len(value["groups"]), "group"),
        ["group", "name", "scheme", "members", "taking part", "left out", "class D"],
        [
            [
                g["id"],
                g["name"],
                g["scheme"],
                " ".join(map(str, g["members"])),
                f"{sum(m['takes_part'] for m in g['state'])} of {len(g['members'])}",
                _left_out(g["left_out"]),
                g["class_d"],
            ]
            for g in value["groups"]
        ],
    )


@group.command()
@click.argument("key", metavar="GROUP", shell_complete=complete_groups)
@api_options
def show(key: str, api: str, as_json: bool) -> None:
    """Show a group and who takes part."""
    _show(Client(api).get(f"/groups/{segment(key)}"), as_json)


@group.command()
@click.argument("keys", metavar="GROUP...", nargs=-1, required=True, shell_complete=complete_groups)
@api_options
def delete(keys: tuple[str, ...], api: str, as_json: bool) -> None:
    """Delete groups. If one is refused, none is deleted."""
    client = Client(api)
    if len(keys) == 1:
        client.send("DELETE", f"/groups/{segment(keys[0])}")
    else:
        client.send("DELETE", "/groups", {"groups": [_host(key) for key in keys]})
    if as_json:
        print_json({"deleted": keys[0] if len(keys) == 1 else list(keys)})
        return
    for key in keys:
        click.echo(f"group {key} is deleted")


@group.command()
@click.argument("key", metavar="GROUP", shell_complete=complete_groups)
@click.argument("members", nargs=-1, required=True, metavar="HOST...", shell_complete=complete_hosts)
@api_options
def add(key: str, members: tuple[str, ...], api: str, as_json: bool) -> None:
    """Add HOSTs to a group."""
    body = {"members": [_host(member) for member in members]}
    _show(Client(api).send("POST", f"/groups/{segment(key)}/members", body), as_json)


@group.command()
@click.argument("key", metavar="GROUP", shell_complete=complete_groups)
@click.argument("members", nargs=-1, required=True, metavar="HOST...", shell_complete=complete_hosts)
@api_options
def remove(key: str, members: tuple[str, ...], api: str, as_json: bool) -> None:
    """Remove HOSTs from a group. If one is refused, none is removed."""
    body = {"members": [_host(member) for member in members]}
    _show(Client(api).send("DELETE", f"/groups/{segment(key)}/members", body), as_json)


@group.command("set")
@click.argument("key", metavar="GROUP", shell_complete=complete_groups)
@_rate_option("Most bits of messages that a host sends to the group a second, as 20M or 500k.")
@click.option("--any-rate", is_flag=True, help="Let hosts send as fast as they can.")
@api_options
def set_group(key: str, rate_bits: int | None, any_rate: bool, api: str, as_json: bool) -> None:
    """Bound what a host sends to a group. Messages under way go on at the new rate."""
    if any_rate == (rate_bits is not None):
        raise click.UsageError("give either --rate or --any-rate")
    _show(Client(api).send("PUT", f"/groups/{segment(key)}/rate", {"rate_bits": rate_bits or 0}), as_json)


def _show(value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    class_d = f", class D {value['class_d']} as number {value['class_d_number']}" if value["class_d"] else ""
    if others := value["class_d_shared_with"]:
        class_d += f" (shared with {', '.join(map(str, others))})"
    order = "" if value["sequencer"] is None else f", ordered by host {value['sequencer']}"
    if rate := value["parameters"].get("rate_bits"):
        order += f", at most {show_rate(rate)} a host"
    mtu = f", frames of {value['mtu']} bytes at most" if value.get("mtu") is not None else ""
    click.echo(
        f"group {value['id']} ({value['name']}): {value['scheme']}{order}{class_d}, epoch {value['epoch']}{mtu}"
    )
    if value.get("fallback"):
        click.echo(value["fallback"])
    if value.get("gathered") is not None:
        _show_gathered(value["gathered"])
    shapes = {(one["scheme"], *one["parameters"].items()) for one in value["structures"]}
    if len(shapes) > (0 if value["scheme"] == AUTO else 1):
        print_table(
            "each message takes",
            ["up to bytes", "scheme", "messages taken", "expected"],
            [
                [
                    "any" if one["bytes_most"] is None else f"{one['bytes_most']:,}",
                    " ".join(
                        [one["scheme"], *(f"{name} {number}" for name, number in one["parameters"].items())]
                    ),
                    one["messages"],
                    ", ".join(
                        f"{e['bytes']:,} B in {e['microseconds'] / 1000:.2f} ms" for e in one["expected"]
                    ),
                ]
                for one in value["structures"]
            ],
        )
    print_table(
        "",
        ["host", "name", "state", "takes part", "receives", "plan"],
        [
            [
                m["host"],
                m["name"],
                m["state"],
                "yes" if m["takes_part"] else f"no: {m['reason']}",
                _receives(m),
                m["plan_epoch"],
            ]
            for m in value["state"]
        ],
    )


def _receives(member: dict[str, Any]) -> str | None:
    """Whether a receiver is open at a member, or for whose messages; None: its agent does not say."""
    if member.get("receives") is None:
        return None
    origins = " ".join(map(str, member["receives_from"]))
    return "yes" if member["receives"] else f"from {origins}" if origins else "no"


def _left_out(members: list[dict[str, Any]], most: int = 4) -> str:
    """Members that take no part, and why."""
    named = [f"{member['host']} {member['reason']}" for member in members[:most]]
    return "; ".join([*named, *([f"{len(members) - most} more"] if len(members) > most else [])])


def _show_gathered(gathered: dict[str, Any]) -> None:
    origins, by_hosts = gathered["origins"], gathered["by_hosts"]
    click.echo(f"switches gather the ACKs for {len(origins)} of {len(origins) + len(by_hosts)} origins")
    if by_hosts:
        print_table("by hosts alone", ["origin", "why"], [[one["host"], one["reason"]] for one in by_hosts])
