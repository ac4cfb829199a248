"""What to type instead, where a fabric of `wormcast up` runs here and a command was not sent to one of its hosts."""

from __future__ import annotations

import os


def hint(variable: str) -> str:
    """The end of a sentence, or nothing. `variable`: of the environment, set on the hosts of fabrics."""
    from wormcast.mininet import choice, sandbox

    if os.environ.get(variable):
        return ""
    try:
        newest = choice.choose(sandbox.running(), None, None, os.environ)[-1]
    except choice.NotFound:
        return ""
    return f"; the fabric {newest.name!r} runs here: put `wormcast on h0` before the command"
