"""What a receiver has found of a list that was offered: until its files have come, and no longer."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import wormcast_bundle
from wormcast.cli.bundle import BundleOptions, pack
from wormcast.cli.offered import PLANS_MAX, Plans


def message(origin: int = 1, group: int = 1) -> Any:
    return SimpleNamespace(origin=origin, group=SimpleNamespace(number=group))


def through_pipe(write: Any, read: Any) -> Any:
    """What reads gets what writes."""
    out, into = os.pipe()

    def write_all() -> None:
        try:
            write(into)
        finally:
            os.close(into)

    thread = threading.Thread(target=write_all)
    thread.start()
    try:
        return read(out)
    finally:
        thread.join()
        os.close(out)


def offer_of(path: Path) -> wormcast_bundle.Offer:
    return pack([path], BundleOptions()).offer()


def plan_of(offer: wormcast_bundle.Offer, into: Path) -> wormcast_bundle.Plan:
    offered: wormcast_bundle.Offered = through_pipe(
        lambda descriptor: os.write(descriptor, offer.list),
        lambda descriptor: wormcast_bundle.read_offer(descriptor, len(offer), len(offer.list)),
    )
    return offered.compare(
        os.fsencode(into),
        [[top] for top in offered.tops()],
        umask=0o022,
        preserve=True,
        owners=False,
        attributes=False,
        exact=False,
    )


def unpacked(
    packed: wormcast_bundle.Packed, into: Path, plans: list[wormcast_bundle.Plan] | None
) -> wormcast_bundle.Unpacked:
    result: wormcast_bundle.Unpacked = through_pipe(
        packed.write,
        lambda descriptor: wormcast_bundle.unpack(
            descriptor,
            os.fsencode(into),
            len(packed),
            packed.list_bytes,
            packed.size,
            umask=0o022,
            preserve=True,
            owners=False,
            attributes=False,
            sync=False,
            plans=plans,
        ),
    )
    return result


def test_a_plan_is_for_its_sender_in_its_group_and_until_its_files_have_come(tmp_path: Path) -> None:
    file, into = tmp_path / "a", tmp_path / "into"
    file.write_bytes(b"content")
    into.mkdir()
    (into / "a").write_bytes(b"content")
    offer, plans = offer_of(file), Plans()
    for one in (message(1, 1), message(1, 2), message(2, 1)):
        plans.add(one, plan_of(offer, into))
    offer.begin()
    found = plans.of(message(1, 1))
    assert len(found) == 1
    assert offer.note(found[0].answer)
    made = unpacked(offer.bundle(), into, found)
    assert (made.unchanged(), made.planned) == ([b"a"], found[0].identity)
    plans.forget(message(1, 1), found[0].identity)
    assert plans.of(message(1, 1)) == []
    assert [len(plans.of(one)) for one in (message(1, 2), message(2, 1))] == [1, 1]
    # It is closed: of no use to anybody, whoever has it.
    with pytest.raises(wormcast_bundle.BundleError, match="was not offered"):
        unpacked(offer.bundle(), into, found)
    (into / "a").write_bytes(b"changed")
    with pytest.raises(wormcast_bundle.BundleError, match="changed here since the list came"):
        made.unchanged()


def test_a_receiver_remembers_so_many(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"content")
    offer, plans = offer_of(file), Plans()
    for origin in range(PLANS_MAX + 3):
        plans.add(message(origin), plan_of(offer, tmp_path))
    left = [origin for origin in range(PLANS_MAX + 3) if plans.of(message(origin))]
    assert left == list(range(3, PLANS_MAX + 3))
