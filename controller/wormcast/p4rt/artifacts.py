"""Where the compiled data plane is: P4Info and BMv2 JSON of p4src/compiled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import finsy

from wormcast.p4rt.device_ports import has_device_ports

ENVIRONMENT = "WORMCAST_PIPELINE"
P4INFO_NAMES = ("wormcast.p4info.txtpb", "wormcast.p4info.txt")
BLOB_NAME = "wormcast.json"


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


def find_artifacts(directory: Path | None = None) -> Artifacts:
    """The compiled program in `directory`, else $WORMCAST_PIPELINE, else that of this package."""
    if directory is None and (value := os.environ.get(ENVIRONMENT)):
        directory = Path(value)
    place = directory if directory is not None else Path(__file__).resolve().parent.parent / "pipeline"
    p4info = next((place / name for name in P4INFO_NAMES if (place / name).is_file()), None)
    if p4info is not None and (place / BLOB_NAME).is_file():
        return Artifacts(p4info, place / BLOB_NAME)
    raise ArtifactError(
        f"no {BLOB_NAME} with {P4INFO_NAMES[0]} in {place}; say where with --pipeline or {ENVIRONMENT}"
    )
