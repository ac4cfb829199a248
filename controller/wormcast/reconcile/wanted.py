"""Whether a plan has to be made or brought out again, and who waits for it: what the network, switches, agents and
requests say, and the reconciler hears."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """What a request waits for."""

    planned: asyncio.Future[None]
    """All that was noticed until it asked is planned, or was found to need no other plan."""
    out: asyncio.Future[None]
    """And brought out."""


class Wanted:
    """What was asked for since the reconciler looked last."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._asked = asyncio.Event()
        """A request waits: it is not put off to be planned with others."""
        self._again = False
        self._waiting: list[Asked] = []

    def notice(self) -> None:
        """Something may have changed."""
        self._changed.set()

    def bring_out_again(self) -> None:
        """A switch is there again, or what it refused may be tried again."""
        self._again = True
        self._changed.set()

    def ask(self) -> Asked:
        """All that was noticed so far is to be planned and brought out."""
        loop = asyncio.get_running_loop()
        asked = Asked(loop.create_future(), loop.create_future())
        self._waiting.append(asked)
        self._asked.set()
        self.notice()
        return asked

    @property
    def is_any(self) -> bool:
        """Whether something may have changed."""
        return self._changed.is_set()

    async def wait(self) -> None:
        """Returns when something may have changed."""
        await self._changed.wait()

    async def put_off(self, most_s: float) -> None:
        """Returns after so long, so that changes that come together share a plan, or when a request waits. All that was
        noticed until then is taken."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), most_s)
        self._changed.clear()
        self._asked.clear()

    def take_waiting(self) -> list[Asked]:
        """Requests that the next plan covers."""
        waiting, self._waiting = self._waiting, []
        return waiting

    @property
    def is_again(self) -> bool:
        """Whether what is planned has to be brought out once more."""
        return self._again

    def take_again(self) -> None:
        """It is brought out."""
        self._again = False
