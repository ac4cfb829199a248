"""Commands that work on files, without a controller: `topo make|convert|fabric|draw`, `balance`, `change`, and
`route`, `group plan`, `verify` with `--topology`.

They read and write the JSON files of ARCHITECTURE.md. Exit codes: 0 done, 1 the routes
can deadlock (`verify`), 2 the input is refused.
"""

from wormcast.cli.offline.balance import balance
from wormcast.cli.offline.change import change
from wormcast.cli.offline.costs import costs
from wormcast.cli.offline.group import group_plan
from wormcast.cli.offline.route import route
from wormcast.cli.offline.topo import topo_convert, topo_draw, topo_fabric, topo_make
from wormcast.cli.offline.verify import verify

__all__ = [
    "balance",
    "change",
    "costs",
    "group_plan",
    "route",
    "topo_convert",
    "topo_draw",
    "topo_fabric",
    "topo_make",
    "verify",
]
