"""pytest's side of the rig."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rig.targets import Target

Json = dict[str, Any]
STOP_TIMEOUT_S = 20


class SwitchRig:
    """A running switch in a namespace of its own. A context manager.

    `slow`: its ports send so slowly that queues build up inside it.
    """

    def __init__(self, target: Target, directory: Path, ports: list[int], slow: bool = False) -> None:
        self.target = target
        self.directory = directory
        self.state: str | None = None
        worker = Path(__file__).with_name("worker.py")
        # --kill-child and the pid namespace: when this process goes, everything goes.
        command = [
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            sys.executable,
        ]
        command += [str(worker), target.name, str(target.binary), str(directory), ",".join(map(str, ports))]
        command.append("slow" if slow else "fast")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(directory / "worker.log").open("wb"),
            text=True,
            env={**os.environ, "no_grpc_proxy": "127.0.0.1,localhost"},
        )
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, **request: Any) -> Json:
        """One request to the worker. Raises AssertionError with the logs where it failed."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def install(self, name: str, state: Json, anew: bool = False) -> None:
        """Writes a state, unless it is the one installed last; `anew`: in any case, so that registers are 0."""
        if anew or self.state != name:
            self.state = None
            self.ask(do="install", state=state)
            self.state = name

    def run(self, command: list[str], timeout_s: float = 600) -> Json:
        """Runs a P4Runtime client beside the switch; the next state is written anew."""
        self.state = None
        return self.ask(do="run", command=command, timeout_s=timeout_s)

    def _answer(self) -> Json:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the worker ended\n{self.logs()}")
        answer: Json = json.loads(line)
        if "error" in answer:
            raise AssertionError(f"{answer['error']}\n{self.logs()}")
        return answer

    def logs(self) -> str:
        """The ends of the logs."""
        parts = []
        for path in sorted(self.directory.glob("*.log")):
            text = path.read_text(errors="replace")
            parts.append(f"--- {path.name}\n{text[-3000:]}")
        return "\n".join(parts)
