"""What clients of gNMI do: finsy's client, finsy's switch, and gRPC's stubs. Runs beside the switch, prints JSON.

gnmi_session.py ADDRESS DEVICE ELECTION P4INFO DEVICE_CONFIG

It takes the far end of the link of port 5 down, and up again.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
from finsy.gnmiclient import GNMIClient, GNMIClientError, GNMISubscription, GNMIUpdate
from finsy.gnmipath import GNMIPath
from finsy.proto import gnmi, gnmi_grpc
from wormcast.p4rt.port_states import follow_ports

STATUS = GNMIPath("interfaces/interface[name=*]/state/oper-status")
COUNTERS = GNMIPath("interfaces/interface[name=s5]/state/counters")
SAMPLE_NS = 100_000_000
PATIENCE_S = 600.0
Seen = dict[str, Any]


def set_link(state: str) -> None:
    """Takes the far end of port 5 up or down."""
    subprocess.run(["ip", "link", "set", "h5", state], check=True)


def by_interface(updates: list[GNMIUpdate]) -> dict[str, Any]:
    """Values of one leaf by interface."""
    return {update.path["name"]: update.value for update in updates}


async def until(updates: AsyncIterator[GNMIUpdate], wanted: Callable[[GNMIUpdate], bool]) -> None:
    """Waits for an update. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_S):
        async for update in updates:
            if wanted(update):
                return


async def start(subscription: GNMISubscription) -> list[GNMIUpdate]:
    """What there is at first."""
    return [update async for update in subscription.synchronize()]


async def use_client(address: str, seen: Seen) -> None:
    """finsy's `GNMIClient`, every call of it."""
    async with GNMIClient(address) as client:
        capabilities = await client.capabilities()
        seen["models"] = [model.name for model in capabilities.supported_models]
        seen["status"] = by_interface(await client.get(STATUS))
        seen["ids"] = by_interface(await client.get(GNMIPath("interfaces/interface/state/id")))
        prefix = GNMIPath("interfaces/interface[name=s5]")
        below = await client.get(GNMIPath("state/name"), GNMIPath("config/name"), prefix=prefix)
        seen["names"] = [str(update.path) for update in below]
        once = client.subscribe()
        once.once(STATUS)
        seen["once"] = by_interface(await start(once))

        change = client.subscribe()
        change.on_change(STATUS)
        seen["first"] = by_interface(await start(change))
        set_link("down")
        await until(change.updates(), lambda update: (update.path["name"], update.value) == ("s5", "DOWN"))
        set_link("up")
        await until(change.updates(), lambda update: (update.path["name"], update.value) == ("s5", "UP"))
        change.cancel()

        samples = client.subscribe()
        samples.sample(COUNTERS, sample_interval=SAMPLE_NS)
        seen["counters"] = sorted(update.path.last for update in await start(samples))
        await until(samples.updates(), lambda update: update.path.last == "out-errors")
        samples.cancel()
        try:
            await client.set(update=[(GNMIPath("interfaces/interface[name=s5]/config/enabled"), False)])
        except GNMIClientError as error:
            seen["set"] = [error.code.name, error.message]


async def use_switch(arguments: list[str], seen: Seen) -> None:
    """finsy's `Switch`, whose list of ports follows over gNMI."""
    address, device, election, p4info, device_config = arguments
    ready = asyncio.Event()

    async def begin(_: fy.Switch) -> None:
        ready.set()

    options = fy.SwitchOptions(
        p4info=Path(p4info),
        p4blob=Path(device_config),
        device_id=int(device),
        initial_election_id=int(election),
        fail_fast=True,
        ready_handler=begin,
    )
    switch = fy.Switch("switch", address, options)
    running = asyncio.create_task(switch.run())
    async with asyncio.timeout(PATIENCE_S):
        await ready.wait()
        seen["ports"] = {port.name: port.id for port in switch.ports}
        set_link("down")
        # It has events for this too, but in 0.30 nobody emits them.
        while switch.ports["s5"].up:
            await asyncio.sleep(0.01)
        set_link("up")
        while not switch.ports["s5"].up:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def use_controller(address: str, device: int, seen: Seen) -> None:
    """What the controller makes of it."""
    told: list[list[int]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for ports in follow_ports(address, device):
            told.append(sorted(ports.down))
            if len(told) == 3:
                break
            set_link("down" if len(told) == 1 else "up")
    seen["told"] = told
    # Somebody else's switch, or none: nothing is told, and nothing fails.
    seen["told elsewhere"] = [sorted(ports.down) async for ports in follow_ports(address, device + 1)]


def refused(call: Callable[[], Any]) -> list[str]:
    """Code and text of an error."""
    try:
        call()
    except grpc.RpcError as error:
        return [error.code().name, error.details() or ""]
    return ["OK", ""]


def use_stubs(address: str, seen: Seen) -> None:
    """Messages as they are: encodings, polls, and what is wrong."""
    with grpc.insecure_channel(address) as channel:
        stub = gnmi_grpc.gNMIStub(channel)

        def get(text: str, encoding: Any) -> Any:
            request = gnmi.GetRequest(path=[GNMIPath(text).path], encoding=encoding)
            return stub.Get(request, timeout=PATIENCE_S)

        def subscribe(*requests: Any) -> Iterator[Any]:
            responses: Iterator[Any] = stub.Subscribe(iter(requests), timeout=PATIENCE_S)
            return responses

        ietf = get("interfaces/interface[name=s5]/state", gnmi.JSON_IETF)
        seen["ietf"] = json.loads(ietf.notification[0].update[0].val.json_ietf_val)
        plain = get("interfaces", gnmi.JSON)
        seen["json"] = json.loads(plain.notification[0].update[0].val.json_val)
        paths = gnmi.SubscriptionList(
            mode=gnmi.SubscriptionList.POLL,
            encoding=gnmi.PROTO,
            subscription=[gnmi.Subscription(path=GNMIPath("interfaces/interface[name=s5]/state/id").path)],
        )
        poll = gnmi.SubscribeRequest(poll=gnmi.Poll())
        answers = list(subscribe(gnmi.SubscribeRequest(subscribe=paths), poll, poll))
        seen["polls"] = [answer.WhichOneof("response") for answer in answers]

        quick = gnmi.SubscriptionList(
            subscription=[gnmi.Subscription(path=COUNTERS.path, mode=gnmi.SAMPLE, sample_interval=1)]
        )
        seen["refused"] = {
            "path": refused(lambda: get("interfaces/interface/state/speed", gnmi.PROTO)),
            "interface": refused(lambda: get("interfaces/interface[name=s99]/state", gnmi.PROTO)),
            "encoding": refused(lambda: get("interfaces", gnmi.ASCII)),
            "interval": refused(lambda: list(subscribe(gnmi.SubscribeRequest(subscribe=quick)))),
            "poll": refused(lambda: list(subscribe(poll))),
        }


def main() -> None:
    """Runs all of them; an error ends the program."""
    seen: Seen = {}
    arguments = sys.argv[1:6]
    asyncio.run(use_client(arguments[0], seen))
    asyncio.run(use_switch(arguments, seen))
    asyncio.run(use_controller(arguments[0], int(arguments[1]), seen))
    use_stubs(arguments[0], seen)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
