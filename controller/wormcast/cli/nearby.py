"""What to type instead, where a fabric of `wormcast up` runs here and a command was not sent to one of its hosts."""

from __future__ import annotations

import os

ASK_TIMEOUT_S = 1.0
"""What a controller has to say goes without saying after so long: the command is about something else."""


def mtu_problems() -> list[str]:
    """Links that carry too little, as the controller of the environment names them; nothing if it does not answer."""
    from wormcast.cli.rest import API_ENVIRONMENT, Client, Refused, Unavailable

    address = os.environ.get(API_ENVIRONMENT)
    if not address:
        return []
    try:
        found = Client(address, timeout_s=ASK_TIMEOUT_S).get("/status").get("mtu_problems", [])
    except (Refused, Unavailable, AttributeError):
        return []
    return [str(problem) for problem in found]


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
