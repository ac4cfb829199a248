"""What to type instead, where a fabric of `wormcast up` runs here and a command was not sent to one of its hosts."""

from __future__ import annotations

import os


def hint(variable: str) -> str:
    """The end of a sentence, or nothing. `variable`: of the environment, set on the hosts of fabrics."""
    from wormcast.mininet import sandbox

    if os.environ.get(variable) or not (names := [fabric.name for fabric in sandbox.running()]):
        return ""
    which = f" --name {names[0]}" if len(names) > 1 else ""
    return f"; the fabric {names[0]!r} runs here: put `wormcast on{which} h0` before the command"
