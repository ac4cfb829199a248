"""What a program takes of a chip, from the reports of p4c's Tofino backend (`-g`)."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRESSES = ("ingress", "egress")


@dataclass(frozen=True)
class Resources:
    """Of both gresses together, but for stages and rows of the parsers: ingress, then egress."""

    stages: tuple[int, int]
    phv_bits: int
    sram: int
    """Blocks: 16 KiB each."""
    tcam: int
    """Blocks: 512 entries of 44 bits each."""
    rows: tuple[int, int]

    def cells(self) -> list[str]:
        """As the table in targets/tofino/README.md has them."""
        stages, rows = (" + ".join(map(str, pair)) for pair in (self.stages, self.rows))
        return [stages, str(self.phv_bits), str(self.sram), str(self.tcam), rows]


def read_resources(pipe: Path, program: str) -> Resources:
    """From the folder `pipe` that the compiler made."""
    assembly = (pipe / f"{program}.bfa").read_text()
    logs = pipe / "logs"
    mau: list[Json] = json.loads((logs / "resources.json").read_text())["resources"]["mau"]["mau_stages"]
    containers: list[Json] = json.loads((logs / "phv.json").read_text())["containers"]
    characters = (logs / "parser.characterize.log").read_text()

    def stages(gress: str) -> int:
        return 1 + max(map(int, re.findall(rf"^stage (\d+) {gress}:", assembly, re.MULTILINE)))

    def rows(gress: str) -> int:
        found = re.search(rf"Number of matches on {gress}: (\d+)", characters)
        assert found is not None
        return int(found.group(1))

    return Resources(
        (stages("ingress"), stages("egress")),
        sum(container["bit_width"] for container in containers if container["slices"]),
        sum(len(stage["rams"]["srams"]) for stage in mau),
        sum(len(stage["tcams"]["tcams"]) for stage in mau),
        (rows("ingress"), rows("egress")),
    )


Json = dict[str, Any]
