"""Many groups: several in one request, all or none; and what the registry of groups knows without looking at all of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from controller_lab.running import rest, running, until
from controller_lab.small import make_group
from wormcast.discovery.hosts import HostRegistry
from wormcast.network.group_body import GroupBody
from wormcast.network.ids import PortId, SwitchId
from wormcast.reconcile.change_rate import (
    CHANGES_CALM,
    WAITING_S_MAX,
    WAITING_WINDOW_S,
    WINDOW_S,
    ChangeRate,
)
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.group_registry import GroupRegistry
from wormcast.store.database import Database, StoreError, SwitchSpec
from wormcast_planner import CLASS_D_MODES, GROUP_BROADCAST, GROUP_ID_MAX, HASHED_FIRST, assign_class_d

HOSTS = 4
MANY = 2000


def with_hosts(test: Callable[[httpx.AsyncClient, Controller], Awaitable[None]]) -> None:
    async def main() -> None:
        async with running() as controller:
            controller.put_switches([SwitchSpec(SwitchId(0), "127.0.0.1:40000", 0, 8)])
            for host in range(HOSTS):
                controller.declare_host(f"h{host}", 0, host, None)
            async with rest(controller) as client:
                await test(client, controller)

    asyncio.run(main())


def group(**fields: Any) -> dict[str, Any]:
    return {"scheme": "tree", "members": [0, 1], **fields}


async def remove(client: httpx.AsyncClient, *groups: int | str) -> httpx.Response:
    return await client.request("DELETE", "groups", json={"groups": list(groups)})


@pytest.mark.parametrize("wrap", [lambda groups: groups, lambda groups: {"groups": groups}])
def test_several_groups_are_made_and_deleted_in_one_request(wrap: Callable[[Any], Any]) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        made = await client.post("groups", json=wrap([group(name="a"), group(id=9), group()]))
        assert made.status_code == 201
        assert [(g["id"], g["name"]) for g in made.json()["groups"]] == [
            (0, "a"),
            (9, "group-9"),
            (1, "group-1"),
        ]
        assert (await client.get("groups")).json()["groups"] == sorted(
            made.json()["groups"], key=lambda g: g["id"]
        )
        gone = await remove(client, "a", 9)
        assert (gone.status_code, gone.json()) == (200, {"deleted": [0, 9]})
        assert [g.id for g in controller.groups.groups()] == [1]
        kinds = [e.kind for e in controller.events.history() if e.kind.startswith("group_")]
        assert kinds == ["group_created"] * 3 + ["group_deleted"] * 2

    with_hosts(test)


@pytest.mark.parametrize(
    ("groups", "status", "message"),
    [
        ([group(), group(members=[99])], 422, "groups.1: there is no host 99; there are 0, 1, 2, 3"),
        ([group(id=3), group(id=3)], 409, "groups.1: group 3 exists; delete it first"),
        ([group(name="x"), group(), group(name="x")], 409, "groups.2: a group is named 'x' already"),
        ([group(), {"scheme": "tree"}], 422, "body.groups.1.members: missing"),
        ([group()] * 4097, 422, "body.groups: list should have at most 4096 items"),
    ],
)
def test_of_several_groups_all_are_made_or_none(groups: list[Any], status: int, message: str) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        answer = await client.post("groups", json={"groups": groups})
        assert answer.status_code == status
        assert message in answer.json()["error"]["message"]
        assert controller.groups.groups() == []
        assert (await client.post("groups", json=group())).json()["id"] == 0

    with_hosts(test)


def test_of_several_members_all_are_removed_or_none() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        await client.post("groups", json=group(members=[0, 1, 2, 3]))

        async def leave(*members: object) -> httpx.Response:
            return await client.request("DELETE", "groups/0/members", json={"members": members})

        for wrong, status in (
            (("h1", 9), 404),
            (("h1", "nobody"), 422),
            (("h1", 1), 422),
            ((), 422),
            ((0, 1, 2, 3), 409),
        ):
            assert (await leave(*wrong)).status_code == status, wrong
        assert controller.groups.groups()[0].members == (0, 1, 2, 3)
        assert (await leave("h1", 3)).json()["members"] == [0, 2]
        kinds = [e.kind for e in controller.events.history() if e.kind.startswith("group_")]
        assert kinds == ["group_created", "group_changed"]

    with_hosts(test)


def test_of_several_groups_all_are_deleted_or_none() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        await client.post("groups", json=[group(), group()])
        for wrong, status in (([0, 7], 404), ([0, "group-0"], 422), ([], 422), (["²"], 404), ([0.5], 422)):
            assert (await remove(client, *wrong)).status_code == status
        assert (await client.request("DELETE", "groups")).status_code == 422
        assert [g.id for g in controller.groups.groups()] == [0, 1]

    with_hosts(test)


def test_thousands_of_groups_come_and_go_at_once_and_no_watcher_is_cut_off() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        seen: list[str] = []

        async def watch() -> None:
            with controller.events.watch() as watcher:
                async for event in watcher:
                    seen.append(event.kind)

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        made = (await client.post("groups", json={"groups": [group()] * MANY})).json()["groups"]
        assert [g["id"] for g in made] == [n for n in range(MANY + 1) if n != GROUP_BROADCAST]
        assert len((await client.get("groups")).json()["groups"]) == MANY
        assert (await remove(client, *(g["id"] for g in made))).json()["deleted"] == [g["id"] for g in made]
        await until(lambda: seen.count("group_deleted") == MANY or controller.events.cut_off)
        watching.cancel()
        assert controller.events.cut_off == 0
        assert seen.count("group_created") == seen.count("group_deleted") == MANY

    with_hosts(test)


def test_a_burst_of_changes_does_not_wait_for_a_plan_each_and_one_change_does() -> None:
    rate = ChangeRate()
    assert all(rate.calm(n * 0.001) for n in range(CHANGES_CALM))
    assert not rate.calm(0.5)
    assert rate.calm(0.5 + 2 * WINDOW_S)
    held_up = ChangeRate()
    assert held_up.calm(0.0)
    held_up.waited(WAITING_S_MAX, WAITING_S_MAX)  # as long as a request waits at most
    assert not held_up.calm(WAITING_S_MAX)
    assert held_up.calm(WAITING_S_MAX + WAITING_WINDOW_S)

    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        settled = 0
        settle = controller.reconciler.settle

        async def count() -> None:
            nonlocal settled
            settled += 1
            await settle()

        controller.reconciler.settle = count  # type: ignore[method-assign]
        await client.post("groups", json=group(), params={"wait": False})
        assert settled == 0
        for _ in range(3 * CHANGES_CALM):
            await client.post("groups", json=group())
        assert 0 < settled < 3 * CHANGES_CALM
        before = settled
        await client.delete("groups/0", params={"wait": True})
        assert settled == before + 1

    with_hosts(test)


def registry(mode: str) -> GroupRegistry:
    hosts = HostRegistry()
    for host in range(HOSTS):
        hosts.declare(f"h{host}", (SwitchId(0), PortId(host)), host, 0.0)
    return GroupRegistry(Database(None), hosts, mode)


@pytest.mark.parametrize("mode", CLASS_D_MODES)
@pytest.mark.parametrize("seed", range(4))
def test_the_registry_knows_what_looking_at_every_group_shows(mode: str, seed: int) -> None:
    random_ = random.Random(seed)
    groups = registry(mode)
    for _ in range(300):
        before, numbers = groups.groups(), groups.class_d
        address = (
            f"239.{random_.randrange(3)}.0.{random_.choice([1, 2, 9, 255])}"
            if random_.random() < 0.5
            else None
        )
        try:
            if before and random_.random() < 0.4:
                groups.delete(random_.choice(before).id)
            else:
                wish = random_.choice([None, None, random_.randrange(12), 65_300])
                free = free_id(groups) if wish is None and address is None else None
                made = make_group(groups, "tree", (0,), wish, class_d=address)
                assert free is None or made.id == free
        except RequestError:
            assert (groups.groups(), groups.class_d) == (before, numbers)
        assert groups.class_d == assign_class_d(mode, groups.groups(), numbers)
        assert groups._index._numbers.keys() == numbers_of(groups)
        assert GroupRegistry(groups._database, HostRegistry()).groups() == groups.groups()


def numbers_of(groups: GroupRegistry) -> set[int]:
    """Ids of groups and numbers of their addresses."""
    addresses = {group.class_d for group in groups.groups()} - {None}
    numbers = {int(groups.class_d.number(address)) for address in addresses if address is not None}
    return ({int(group.id) for group in groups.groups()} | numbers) - {GROUP_BROADCAST}


def free_id(groups: GroupRegistry) -> int:
    used = numbers_of(groups) | {GROUP_BROADCAST}
    last = GROUP_ID_MAX if groups.class_d.mode == "narrow" else HASHED_FIRST - 1
    return next(n for n in range(last + 1) if n not in used)


@pytest.mark.parametrize("mode", CLASS_D_MODES)
def test_what_the_state_file_does_not_take_is_taken_back(mode: str) -> None:
    groups = registry(mode)
    kept = make_group(groups, "tree", (0, 1), class_d="239.1.1.9")
    numbers = groups.class_d
    groups._database.close()
    changes: list[Callable[[], object]] = [
        lambda: groups.create_all(
            [GroupBody(scheme="tree", members=[0], class_d=f"239.1.2.{n}") for n in range(3)]
        ),
        lambda: groups.delete_all([kept.id]),
        lambda: groups.add(kept.id, [2]),
    ]
    for change in changes:
        with pytest.raises(StoreError):
            change()
        assert (groups.groups(), groups.class_d) == ([kept], numbers)
