"""A directory to every host of a fabric whose links lose frames: all of them have all of it."""

from __future__ import annotations

import filecmp
import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric, parse_impair

SECONDS_MAX = 600.0
"""Only against hanging for ever."""
FILES = 300


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    # Only our switch loses frames on purpose.
    lossy = {"impair": parse_impair("loss=0.01,reorder=0.01")} if switch == "wormcast" else {}
    return make_fabric("testbed", switch=switch, rate_mbps=50.0 if switch == "wormcast" else 5.0, **lossy)


def make_directory(top: Path) -> None:
    draw = random.Random(FILES)
    for number in range(FILES):
        place = top / f"d{number % 13}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"file {number}").write_bytes(draw.randbytes(draw.choice([0, 17, 4096, 9000])))
    (top / "link").symlink_to("d0")
    (top / "d1" / "run").write_bytes(b"#!/bin/sh\n")
    (top / "d1" / "run").chmod(0o755)


def assert_same(one: Path, two: Path) -> None:
    found = filecmp.dircmp(one, two)
    assert not found.left_only
    assert not found.right_only
    _, different, errors = filecmp.cmpfiles(one, two, found.common_files, shallow=False)
    assert not different
    assert not errors
    for name in found.common_dirs:
        assert_same(one / name, two / name)


@pytest.mark.parametrize("scheme", ["switch", "circuit"])
def test_every_host_has_the_whole_directory(fabric: Fabric, tmp_path: Path, scheme: str) -> None:
    top = tmp_path / "data"
    make_directory(top)
    group = fabric.post("groups", {"scheme": scheme, "members": list(range(8))})["id"]
    fabric.wait_group(group)
    receivers = []
    for host in range(1, 8):
        (tmp_path / f"h{host}").mkdir()
        words = ["wormcast", "recv", "-g", str(group), "-o", str(tmp_path / f"h{host}"), "--count", "1"]
        receivers.append(fabric.popen(host, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    wait_for_receivers(fabric, [(host, group) for host in range(1, 8)])
    words = ["wormcast", "send", str(top), "-g", str(group), "--json"]
    sender = fabric.popen(0, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, error = sender.communicate(timeout=SECONDS_MAX)
    assert sender.returncode == 0, error
    assert json.loads(out)["delivered"] == 7
    for host, receiver in enumerate(receivers, start=1):
        assert receiver.wait(timeout=SECONDS_MAX) == 0
        assert_same(top, tmp_path / f"h{host}" / "data")
        assert (tmp_path / f"h{host}" / "data" / "d1" / "run").stat().st_mode & 0o111 == 0o111
    fabric.delete(f"groups/{group}")
