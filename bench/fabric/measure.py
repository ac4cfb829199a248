"""One part, or all of them one after another. `run` runs it in a sandbox.

Each part writes PART.json and PART.svg into the directory OUT. Figures are of this machine and of what else runs on
it: both are in the file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import failure
import frames
import itb
import nic
import packet
import reconvergence
import scale
import torus
import worm
from rig import save

PARTS = {
    part.__name__: part for part in (itb, worm, torus, nic, packet, reconvergence, failure, scale, frames)
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=False, metavar="PART")
    for name, part in PARTS.items():
        said = (part.__doc__ or "").splitlines()[0]
        part.options(parts.add_parser(name, help=said, description=part.__doc__))
    options = parser.parse_args()
    out = Path(os.environ["OUT"])
    for name in [options.part] if options.part else list(PARTS):
        chosen = options if options.part else parser.parse_args([name])
        print(f"== {name}", flush=True)
        rows = PARTS[name].measure(chosen)
        save(out, name, vars(chosen), rows, PARTS[name].draw)


if __name__ == "__main__":
    main()
