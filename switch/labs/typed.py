"""A program with a prompt, typed into as a person would, and what one would see on the terminal."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from labs.rig import LabError

TERMINAL = re.compile(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;]*[A-Za-z]")
"""Titles and colours."""
ANSWER_SECONDS_MAX = 300.0
STOP_SECONDS_MAX = 60.0


class Typed:
    """A running program. `prompt` ends what it prints when it waits for a line; `shown` stands for it in the transcript.

    Raises LabError when the program ends, or does not come to its prompt.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        prompt: str,
        shown: str,
        directory: Path,
        variables: Mapping[str, str],
    ) -> None:
        self.name, self.shown = name, shown
        self.prompt = re.compile(f"(?:{prompt})$")
        self.transcript = ""
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, **variables, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        try:
            self.transcript += self._answer()
        except LabError:
            self.kill()
            raise

    def type(self, line: str) -> str:
        """Type a line; give what is printed until the next prompt."""
        self._in.write(line.encode() + b"\n")
        self._in.flush()
        answer = self._answer()
        self.transcript += f"{self.shown}{line}\n{answer}"
        return answer

    def comment(self, text: str) -> None:
        """Note in the transcript what happens beside it."""
        self.transcript += f"# {text}\n"

    def type_all(self, lines: Sequence[str]) -> str:
        """Type several lines; give the last answer."""
        return [self.type(line) for line in lines][-1]

    def close(self, last: str = "") -> int:
        """Type a last line if there is one, and end the input; give the exit code."""
        if self.process.poll() is None:
            self._in.write(last.encode())
            self._in.close()
            self.transcript += self.clean(TERMINAL.sub("", self._out.read().decode(errors="replace")))
        try:
            return self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return self.kill()
        finally:
            self._out.close()

    def kill(self) -> int:
        """End it in any case; what it has started ends with the sandbox."""
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()

    def clean(self, text: str) -> str:
        """What is kept of what it prints."""
        return text

    def _answer(self) -> str:
        text, deadline = "", time.monotonic() + ANSWER_SECONDS_MAX
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while not self.prompt.search(text):
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise LabError(f"{self.name} does not come to its prompt; it said: {text[-800:]}")
                data = os.read(self._out.fileno(), 65_536)
                if not data:
                    raise LabError(f"{self.name} has ended; it said: {text[-1200:]}")
                text = TERMINAL.sub("", text + data.decode(errors="replace"))
        return self.clean(self.prompt.sub("", text))


class MininetScript(Typed):
    """A script that ends in Mininet's prompt."""

    def __init__(self, command: Sequence[str], directory: Path, variables: Mapping[str, str]) -> None:
        super().__init__("Mininet", command, "mininet> ", "mininet> ", directory, variables)
