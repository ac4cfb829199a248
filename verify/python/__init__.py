"""Whether routes are free of deadlock: those planned here, and those of other networks.

Verdicts are dictionaries in the form of the files that `wormcast verify` writes. The check itself is in the native
library (`wormcast_planner`). `check_certificate`, `check_tables` and `check_paths` see again whether an order holds,
with code of their own. Everything refused raises `wormcast.routing.RoutingError`.
"""

from wormcast.verify.certificate import check as check_certificate
from wormcast.verify.foreign import verify_paths, verify_tables
from wormcast.verify.foreign_certificate import check_paths, check_tables
from wormcast.verify.foreign_files import Network as CheckedNetwork
from wormcast.verify.verdicts import explain, plans_of, saw_nothing, trees_of, verify
from wormcast.verify.worms import Violation

__all__ = [
    "CheckedNetwork",
    "Violation",
    "check_certificate",
    "check_paths",
    "check_tables",
    "explain",
    "plans_of",
    "saw_nothing",
    "trees_of",
    "verify",
    "verify_paths",
    "verify_tables",
]
