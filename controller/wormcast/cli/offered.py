"""A list that goes before files: what of it is here already, and the answer to its sender."""

from __future__ import annotations

import base64
import errno
import itertools
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import wormcast_bundle

from wormcast.cli.bundle import BundleOptions, Work, error_of
from wormcast.cli.placing import umask
from wormcast.client.files import Bundle, other_names, safe_top_name

if TYPE_CHECKING:
    from wormcast.client import IncomingMessage

PLANS_MAX = 8
"""Lists of which a receiver remembers what is here; the oldest is forgotten, and of its files all has to come."""
NAMES_MAX = 4
"""Of files that were received under one name, the last ones that are looked at."""
LACKS = "lacks:"
"""An answer to a list begins with this; what follows is in base 64."""
WHY = "why:"
"""An answer to files that are not taken begins with this; what follows is for people."""
WHY_CHARS_MAX = 200
_COMPARING = threading.Semaphore(2)
"""Lists that are compared at once; others wait."""
_WAIT_S = 0.2
"""Between two looks whether one that waits is still wanted."""


class Plans:
    """What is here of the lists that came last, each until its files have come."""

    def __init__(self) -> None:
        self._plans: dict[tuple[int, int, bytes], wormcast_bundle.Plan] = {}

    def add(self, message: IncomingMessage, plan: wormcast_bundle.Plan) -> None:
        """Of a list that came with a message."""
        self.forget(message, plan.identity)
        self._plans[_key(message, plan.identity)] = plan
        if len(self._plans) > PLANS_MAX:
            self._plans.pop(next(iter(self._plans))).close()

    def of(self, message: IncomingMessage) -> list[wormcast_bundle.Plan]:
        """Those that may be for the files of a message: of the same origin, in the same group."""
        return [plan for key, plan in list(self._plans.items()) if key == _key(message, plan.identity)]

    def forget(self, message: IncomingMessage, identity: bytes) -> None:
        """Its files have come, or it is looked at anew."""
        plan = self._plans.pop(_key(message, identity), None)
        if plan is not None:
            plan.close()


def _key(message: IncomingMessage, identity: bytes) -> tuple[int, int, bytes]:
    return message.group.number, message.origin, identity


class OfferTarget:
    """A list that arrives, and is compared with what is in a directory."""

    def __init__(
        self,
        directory: Path,
        message: IncomingMessage,
        about: Bundle,
        options: BundleOptions,
        plans: Plans,
        *,
        preserve: bool,
        overwrite: bool,
    ) -> None:
        mask = umask()
        self._is_over = False
        self._offered: wormcast_bundle.Offered | None = None

        def compare(descriptor: int) -> wormcast_bundle.Plan:
            offered = wormcast_bundle.read_offer(descriptor, about.entries, about.list_bytes)
            self._offered = offered
            # What an earlier try has found would keep others from what its plan needs.
            plans.forget(message, offered.identity)
            while not _COMPARING.acquire(timeout=_WAIT_S):
                if self._is_over:
                    raise OSError(errno.ECANCELED, "it was given up")
            try:
                if self._is_over:
                    offered.stop()
                return offered.compare(
                    os.fsencode(directory),
                    [_names(directory, top, overwrite=overwrite) for top in offered.tops()],
                    umask=mask,
                    preserve=preserve,
                    owners=options.owner,
                    attributes=options.xattrs,
                    exact=overwrite,
                )
            finally:
                _COMPARING.release()

        self._work = Work(compare)
        try:
            message.write_to(self._work.agents.fileno(), about.list_bytes)
        except BaseException:
            self.close()
            raise
        self._work.agents.close()

    @property
    def is_at_work(self) -> bool:
        return self._work.is_at_work

    def plan(self) -> wormcast_bundle.Plan:
        """What is here, once it is not at work any more. OSError or FileFormatError."""
        self._work.wait()
        fault = error_of(self._work)
        if fault is not None:
            raise fault
        assert isinstance(self._work.result, wormcast_bundle.Plan)
        return self._work.result

    def close(self) -> None:
        """What is compared is for nobody any more."""
        self._is_over = True
        if self._offered is not None:
            self._offered.stop()
        self._work.leave()


def answer_of(plan: wormcast_bundle.Plan) -> str:
    """What is told to the sender."""
    return LACKS + base64.b64encode(plan.answer).decode()


def read_answer(text: str) -> bytes | None:
    """The same at the sender; None: it is something else."""
    try:
        return base64.b64decode(text.removeprefix(LACKS), validate=True) if text.startswith(LACKS) else None
    except ValueError:
        return None


def _names(directory: Path, top: bytes, *, overwrite: bool) -> list[bytes]:
    """What a top may be called here, the likeliest first."""
    name = safe_top_name(top)
    if overwrite:
        return [os.fsencode(name)]
    there = itertools.takewhile(lambda other: os.path.lexists(directory / other), other_names(name))
    return [os.fsencode(other) for other in reversed(list(there)[-NAMES_MAX:])]
