"""Wormcast: reliable multicast on programmable Ethernet.

The package holds the controller (`network`, `discovery`, `reconcile`, `p4rt`, `directory`, `store`, `api`), the
command line (`cli`), the client library of the host agent (`client`), planning on files (`routing`, `pictures`) and
fabrics in Mininet (`mininet`). `network`, `discovery`, `routing` and `pictures` are pure: no IO, no clock.
"""

__version__ = "0.1.0"
