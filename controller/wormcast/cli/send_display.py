"""What `wormcast send` shows meanwhile."""

from __future__ import annotations

import time

from wormcast.cli.bundle import shown
from wormcast.cli.progress import ProgressLine, Rate, facts_of
from wormcast.client import Progress, Sender
from wormcast.counted import counted

_GATHER_S = 0.25
"""Hosts without receiver that are found within this time are named together."""


def named(hosts: list[int]) -> str:
    """Hosts in a sentence."""
    return f"host{'s' if len(hosts) > 1 else ''} {', '.join(map(str, hosts))}"


class SendDisplay:
    """How far it has come, and who does not receive."""

    def __init__(self, name: str, size: int | None, *, as_json: bool) -> None:
        self.unclaimed: set[int] = set()
        """Hosts at which nobody received when the file came."""
        self.slow: set[int] = set()
        """Hosts that took it slower than it came."""
        self._unreported: set[int] = set()
        self._report_at = 0.0
        self._label = ""
        self._where = ""
        self._name = name
        self._size = size
        self._line = ProgressLine(quiet=as_json, as_json=as_json)
        self._rate = Rate()

    def __enter__(self) -> SendDisplay:
        self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._say()
        self._line.__exit__(*error)

    def close(self) -> None:
        """Nothing more is shown."""
        self._say()
        self._line.close()

    def describe(self, sender: Sender) -> None:
        """Once the group is known."""
        self.unclaimed.clear()
        self._label = str(sender.group.number)
        others = [member for member in sender.group.members if member != sender.origin]
        self._where = f"at {counted(len(others), 'host')}"

    def update(self, progress: Progress) -> None:
        if self._unreported and time.monotonic() >= self._report_at:
            self._say()
        rate = self._rate.note(time.monotonic(), progress.sent_bytes)
        stable = progress.stable_bytes if self._size is None else min(progress.stable_bytes, self._size)
        more = [
            self._where,
            f"{progress.sent_bytes / 2**20:.1f} MiB sent",
            counted(progress.retransmissions, "retransmission"),
        ]
        self._line.show(facts_of(self._name, stable, self._size, rate, *more))

    def expect(self, size: int | None) -> None:
        """So many bytes are to be sent."""
        self._size = size

    def note_again(self, why: str, pause: str) -> None:
        """A try has failed, and another follows."""
        self._say()
        self._line.note("again", f"{why}; {pause}")

    def note_there(self, hosts: set[int]) -> None:
        """No further try can be made; these have all of it by one before."""
        if hosts:
            self._say()
            self._line.note(
                "there", f"{named(sorted(hosts))}: has it, checked, by an earlier try", hosts=sorted(hosts)
            )

    def note_left_out(self, paths: list[str]) -> None:
        """What is neither file, directory nor link is not sent."""
        if paths:
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            text = f"{shown(paths[0])}{more}: no file, directory or link; not sent"
            self._line.note("left-out", text, paths=paths)

    def note_waiting(self, text: str, hosts: list[int]) -> None:
        """Nothing is sent yet."""
        self._line.note("members-missing", text, hosts=hosts)

    def note_unclaimed(self, host: int) -> None:
        """Nobody receives there."""
        if host not in self.unclaimed:
            self.unclaimed.add(host)
            self._report_at = self._report_at if self._unreported else time.monotonic() + _GATHER_S
            self._unreported.add(host)

    def note_slow(self, host: int) -> None:
        """What comes there waits for its receiver."""
        if host not in self.slow:
            self.slow.add(host)
            text = f"host {host} takes it slower than it comes"
            self._line.note("member-slow", text, hosts=[host])

    def _say(self) -> None:
        hosts = sorted(self._unreported)
        self._unreported.clear()
        if not hosts:
            return
        text = f"no receiver on {named(hosts)} yet; waiting for 'wormcast recv --group {self._label}' there"
        self._line.note("no-receiver", text, hosts=hosts)
