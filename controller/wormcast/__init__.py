"""Wormcast: reliable multicast on programmable Ethernet.

The package holds the controller (`fabric`, `discovery`, `p4rt`, `directory`,
`store`, `control`, `api`), the command line (`cli`) and the client library of
the host agent (`agent`). `fabric` and `discovery` are pure: no IO, no clock.
"""

__version__ = "0.1.0"
