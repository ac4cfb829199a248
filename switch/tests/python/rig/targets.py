"""The switches the tests know, and where their binaries are."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[4]
COMPILED = REPOSITORY / "p4src" / "compiled"


@dataclass(frozen=True)
class Target:
    """A switch program. `binary` is None where it is not installed."""

    name: str
    binary: Path | None

    @property
    def missing(self) -> str:
        """Why it can not run, for the reason of a skip."""
        return f"{self.name} is not on this machine"


def _wormcast_switch() -> Path | None:
    """WORMCAST_SWITCH, else target/release, else target/debug."""
    named = os.environ.get("WORMCAST_SWITCH")
    if named:
        path = Path(named)
        if not path.is_file():
            raise FileNotFoundError(f"WORMCAST_SWITCH={named} is not a file")
        return path.resolve()
    built = [REPOSITORY / "target" / profile / "wormcast-switch" for profile in ("release", "debug")]
    return next((path for path in built if path.is_file()), None)


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def targets() -> list[Target]:
    """Both switches, installed or not."""
    return [
        Target("wormcast-switch", _wormcast_switch()),
        Target("simple_switch_grpc", _on_path("simple_switch_grpc")),
    ]
