"""The exit codes of `wormcast`: docs/reference/cli.md is their table. Those from 64 on are of sysexits.h."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended; one meaning for all commands."""

    DONE = 0
    NO = 1
    """It ran, and the answer is no, or what it was for failed."""
    REFUSED = 2
    """The options, the request, a file or what it names is refused."""
    INCOMPLETE = 3
    """Some members, or files, failed; the others did not."""
    TIMEOUT = 4
    """The time that --timeout, --deadline or --wait-for-members gives is over."""
    UNAVAILABLE = 69
    """Who should answer does not: the controller, the agent, a switch, a fabric."""
    BUG = 70
    """A mistake of this program."""
    CANNOT_START = 78
    """The controller cannot start as asked."""
    INTERRUPTED = 130
    """Ctrl-C."""
