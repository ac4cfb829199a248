"""p4runtime-shell as a person uses it."""

from __future__ import annotations

import re
from pathlib import Path

from labs.rig import ROOT, LabError
from labs.typed import Typed

PYTHON = ROOT / ".build" / "p4runtime-shell" / "bin" / "python"
"""p4runtime-shell wants an older protobuf than ours, so it has a place of its own (setup/peer)."""
PROMPT = "P4Runtime sh >>> "
PROMPT_WITHOUT_TERMINAL = r"In \[\d+\]: "


def check_installed() -> None:
    """Raise LabError unless p4runtime-shell is there."""
    if not PYTHON.is_file():
        raise LabError("p4runtime-shell is not installed in .build/p4runtime-shell; setup/peer installs it")


class Shell(Typed):
    """A running p4runtime-shell that has set the program of a switch."""

    def __init__(self, address: str, device: int, p4info: Path, program: Path, directory: Path) -> None:
        check_installed()
        options = ["--grpc-addr", address, "--device-id", str(device), "--election-id", "0,1", "--config"]
        command = [str(PYTHON), "-m", "p4runtime_sh", *options, f"{p4info},{program}"]
        variables = {"IPYTHONDIR": str(directory / "ipython")}
        super().__init__(
            "p4runtime-shell", command, f"{PROMPT}|{PROMPT_WITHOUT_TERMINAL}", PROMPT, directory, variables
        )
        typed = ["p4runtime-shell", *options, f"{p4info.name},{program.name}"]
        self.transcript = f"$ {' '.join(typed)}\n{self.transcript}"

    def close(self, last: str = "exit\n") -> int:
        """Leave the shell; give its exit code."""
        return super().close(last)

    def clean(self, text: str) -> str:
        """Without empty lines, and without where this checkout is."""
        return re.sub(r"^\n|\n(?=\n)", "", text).replace(f"{ROOT}/", "")
