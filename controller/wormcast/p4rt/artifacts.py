"""Where the compiled data plane is: the P4Info of p4src/compiled, and what a switch loads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import finsy

from wormcast.p4rt.convert import TABLE_WORMHOLE
from wormcast.p4rt.device_ports import has_device_ports
from wormcast.p4rt.programs import V1MODEL

ENVIRONMENT = "WORMCAST_PIPELINE"
P4INFO_NAMES = ("wormcast.p4info.txtpb", "wormcast.p4info.txt")
BLOB_NAME = "wormcast.json"
INSTALLED = Path(__file__).resolve().parent.parent / "pipeline"


class ArtifactError(Exception):
    """No usable program; the text names the places looked at."""


@dataclass(frozen=True)
class Artifacts:
    """The two files a P4Runtime server is given."""

    p4info: Path
    blob: Path

    @cached_property
    def schema(self) -> Any:
        """Both, read once for all switches: to parse the P4Info takes as long as all else of a connect."""
        read = finsy.P4Schema(self.p4info, self.blob)
        return finsy.P4Schema(read.p4info, read.p4blob)

    @cached_property
    def has_device_ports(self) -> bool:
        """Whether the program numbers ports as a chip does."""
        return has_device_ports(self.schema)

    @cached_property
    def has_wormhole(self) -> bool:
        """Whether there is a wormhole mode."""
        return self.schema.tables.get(TABLE_WORMHOLE) is not None

    @property
    def holds_unicast_alone(self) -> bool:
        """Whether UNICAST worms alone hold channels in wormhole mode, and each pipe of the chip knows its own channels
        alone (p4src/CONTRACT.md, Tofino)."""
        return self.has_device_ports and self.has_wormhole


def find_artifacts(directory: Path | None = None, program: str = V1MODEL) -> Artifacts:
    """A compiled program of `PROGRAMS` in `directory`, else $WORMCAST_PIPELINE, else that of this package. Of the program
    for a chip the P4Info is in this package, so it need not be there."""
    if directory is None and (value := os.environ.get(ENVIRONMENT)):
        directory = Path(value)
    place = INSTALLED if directory is None else directory
    if program != V1MODEL:
        return _find_chip(place, program)
    p4info = next((place / name for name in P4INFO_NAMES if (place / name).is_file()), None)
    if p4info is not None and (place / BLOB_NAME).is_file():
        return Artifacts(p4info, place / BLOB_NAME)
    raise ArtifactError(
        f"no {BLOB_NAME} with {P4INFO_NAMES[0]} in {place}; say where with --pipeline or {ENVIRONMENT}"
    )


def _find_chip(place: Path, program: str) -> Artifacts:
    blob = place / f"{program}.pb.bin"
    if not blob.is_file():
        raise ArtifactError(
            f"no {blob.name} in {place}: what the compiler for the chip makes, as its P4Runtime server takes it "
            f"(docs/tofino.md); say where with --pipeline or {ENVIRONMENT}"
        )
    name = f"{program}.p4info.txtpb"
    found = next((at / name for at in (place, INSTALLED) if (at / name).is_file()), None)
    if found is None:
        raise ArtifactError(
            f"no {name} in {place} and {INSTALLED}; say where with --pipeline or {ENVIRONMENT}"
        )
    return Artifacts(found, blob)
