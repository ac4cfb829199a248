"""`wormcast worms`: worms that hold channels in running switches, and whether they are stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import click
import finsy

from wormcast.cli.files import Json
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import print_json
from wormcast.cli.source import FileSource, complete_topology
from wormcast.cli.switch_tables import places_of
from wormcast.exits import Exit
from wormcast.p4rt.registers import RegisterError, read_registers, read_registers_thrift
from wormcast.p4rt.thrift import ThriftError
from wormcast.routing.held import REGISTERS, Channel, channels_of, explain_held, find_stuck, held_json
from wormcast.wire import RECIRCULATE_PORT

READ_SECONDS_MAX = 60.0
"""For all switches together."""
BETWEEN_DEFAULT_S, BETWEEN_MAX_S = 1.0, 60.0


@click.command()
@click.option(
    "--topology",
    required=True,
    metavar="FILE|KIND",
    shell_complete=complete_topology,
    help="The network: a topology file, or a kind such as torus:4.",
)
@click.option(
    "--p4runtime",
    metavar="FILE|ADDRESSES",
    help="Where the switches are: a switches file, or addresses as 127.0.0.1:50051,127.0.0.1:50052, one for each "
    "switch of the topology, by id.",
)
@click.option(
    "--thrift",
    metavar="ADDRESSES",
    help="The same over Thrift, for BMv2, whose P4Runtime does not tell registers: 127.0.0.1:9090,127.0.0.1:9091.",
)
@click.option(
    "--device-id",
    type=click.IntRange(0, (1 << 64) - 1),
    help="Device id of all switches of --p4runtime. [default: as in verify]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.0, BETWEEN_MAX_S),
    default=BETWEEN_DEFAULT_S,
    show_default=True,
    help="Between the two readings in which nothing must have moved.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.pass_context
def worms(
    context: click.Context,
    topology: str,
    p4runtime: str | None,
    thrift: str | None,
    device_id: int | None,
    seconds: float,
    as_json: bool,
) -> None:
    """Show worms that hold channels in switches in wormhole mode.

    Registers are read twice. Worms that wait in a circle, and of which no frame has left any
    switch in between, are stuck: each is named with the switch where it waits, the port it
    waits for, and the worm that has it. Switches with the program for Tofino cannot be asked.

    Exit status 1: worms are stuck.
    """
    if (p4runtime is None) == (thrift is None):
        raise Refusal("give one of --p4runtime and --thrift; it says where the switches are", code="usage")
    if thrift is not None and device_id is not None:
        raise Refusal("--device-id has no effect with --thrift; leave it out", code="usage")
    if thrift is not None and (":" not in thrift or "unix:" in thrift):
        text = f"--thrift {thrift}: name one address for each switch, as 127.0.0.1:9090,127.0.0.1:9091"
        raise Refusal(text, code="usage", value=thrift)
    network = FileSource(topology).topology()
    given = p4runtime if p4runtime is not None else thrift
    assert given is not None
    places = places_of(given, device_id, network)
    before, after = asyncio.run(_read_twice(places, network, thrift is not None, seconds))
    answer = held_json(after, find_stuck(before, after))
    if as_json:
        print_json(answer)
    else:
        click.echo(explain_held(answer, network), nl=False)
    if answer["stuck"]:
        context.exit(Exit.NO)


Places = Mapping[int, tuple[str, int]]
"""Address and device id by switch."""


async def _read_twice(
    places: Places, topology: Json, over_thrift: bool, seconds: float
) -> tuple[list[Channel], list[Channel]]:
    before = await read_channels(places, topology, over_thrift)
    await asyncio.sleep(seconds)
    return before, await read_channels(places, topology, over_thrift)


async def read_channels(places: Places, topology: Json, over_thrift: bool) -> list[Channel]:
    """The channels that worms have now, at all switches of a topology. Raises `Refusal`."""
    switches = {one["id"]: one for one in topology["switches"]}

    async def read_one(number: int) -> list[Channel]:
        address, device_id = places[number]
        name = str(switches[number].get("name", f"s{number}"))
        # Also of worms that the switch has taken itself.
        cells = (*range(switches[number]["ports"]), RECIRCULATE_PORT)
        try:
            if over_thrift:
                host, _, port = address.rpartition(":")
                registers = await read_registers_thrift(host, int(port), REGISTERS, cells)
            else:
                registers = await read_registers(address, device_id, REGISTERS, cells)
        except (RegisterError, ThriftError) as error:
            raise _unavailable(name, address, str(error)) from error
        except finsy.P4ClientError as error:
            raise _unavailable(name, address, error.message or error.code.name) from error
        return channels_of(number, registers)

    numbers = sorted(places)
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            found: list[Any] = await asyncio.gather(*map(read_one, numbers), return_exceptions=True)
    except TimeoutError:
        text = f"the switches did not answer within {READ_SECONDS_MAX:g} s"
        raise Refusal(text, code="unavailable", exit_code=Exit.UNAVAILABLE) from None
    # Of several that fail always the same one is reported.
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [channel for one in found for channel in one]


def _unavailable(name: str, address: str, reason: str) -> Refusal:
    text = f"switch {name} at {address}: {reason}"
    return Refusal(text, code="unavailable", exit_code=Exit.UNAVAILABLE)
