"""Fabrics in Mininet.

For scripts of your own, three classes to hand to `mininet.net.Mininet`:

    from mininet.net import Mininet
    from mininet.topolib import TreeTopo
    from wormcast.mininet import WormcastController, WormcastHost, WormcastSwitch
    net = Mininet(TreeTopo(2, 2), switch=WormcastSwitch, host=WormcastHost, controller=WormcastController)
    net.start()

Whole fabrics in a sandbox of their own come up with `wormcast up`.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["WormcastController", "WormcastHost", "WormcastSwitch"]


def __getattr__(name: str) -> Any:
    # Late, so that commands which need no Mininet start without it.
    if name in __all__:
        return getattr(importlib.import_module("wormcast.mininet.script"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
