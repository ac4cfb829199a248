"""Groups created and deleted over REST in a running fabric: one by one and many at once.

`run` runs it in a sandbox.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from wormcast.mininet import fabric as fabrics
from wormcast.mininet import topologies
from wormcast.network.groups import SCHEMES

MEMBERS = [0, 2, 5, 7]


def main() -> None:
    """Prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", default="testbed")
    parser.add_argument("--single", type=int, default=200, help="groups made and deleted one by one")
    parser.add_argument("--bulk", type=int, default=2000, help="groups made and deleted in one request each")
    options = parser.parse_args()
    settings = fabrics.Options(topologies.load_topology(options.topology))
    with tempfile.TemporaryDirectory() as directory, fabrics.Fabric(settings, Path(directory)) as fabric:
        fabric.wait_ready()
        measure_single(fabric, options.single)
        if options.bulk:
            measure_bulk(fabric, options.bulk)


def measure_single(fabric: fabrics.Fabric, count: int) -> None:
    """One request after the other."""
    began = time.perf_counter()
    made = [fabric.post("groups", body(n))["id"] for n in range(count)]
    report(f"{count} creates, one after the other", count, began)
    time.sleep(1)
    began = time.perf_counter()
    for group in made:
        fabric.delete(f"groups/{group}")
    report(f"{count} deletes, one after the other", count, began)
    time.sleep(1)


def measure_bulk(fabric: fabrics.Fabric, count: int) -> None:
    """All in one request."""
    began = time.perf_counter()
    made = [g["id"] for g in fabric.post("groups", {"groups": [body(n) for n in range(count)]})["groups"]]
    report(f"{count} creates in one request", count, began)
    time.sleep(1)
    began = time.perf_counter()
    fabric.delete("groups", {"groups": made})
    report(f"{count} deletes in one request", count, began)


def body(number: int) -> dict[str, Any]:
    """A group of the schemes in turn."""
    return {"scheme": SCHEMES[number % len(SCHEMES)], "members": MEMBERS}


def report(what: str, count: int, began: float) -> None:
    seconds = time.perf_counter() - began
    print(f"{what}: {seconds:.2f} s, {count / seconds:.0f} a second", flush=True)


if __name__ == "__main__":
    main()
