"""Native part of Wormcast: topologies, deadlock-free routes, multicast structures.

Files (topology, routes, group, verify) are JSON text. `wormcast.routing` is the same with
dictionaries. Whatever is refused raises RoutingError. The interpreter lock is released
while planning.
"""

from collections.abc import Sequence

class RoutingError(ValueError):
    """Input that is refused; the text names the value, the bound and the choices.

    Errors of topology files carry more: `code`, a word such as "port-used-twice", and
    `line` and `column`, from 1, or None where the mistake is at no one place.
    """

def kinds() -> list[str]:
    """Every kind of topology that generate_topology makes, and how it is written."""

def topology_formats() -> list[str]:
    """Names of the file formats of topologies."""

def algorithms() -> list[str]:
    """Names of the routing algorithms."""

def schemes() -> list[str]:
    """Names of the schemes."""

def generate_topology(spec: str) -> str:
    """A topology file of this kind, as in "torus:4"."""

def read_topology_file(
    content: str, format: str | None = None, allow_split: bool = False, hosts_per_switch: int = 0
) -> str:
    """A topology file in any format, as JSON; the format is found out if not given."""

def write_topology_file(topology: str, format: str) -> str:
    """A topology file in another format."""

def check_topology(topology: str, allow_split: bool = False) -> str:
    """Checks a topology file; a split fabric is refused unless allowed."""

def damage_topology(
    topology: str, links: Sequence[tuple[int, int]], switches: Sequence[int], hosts: Sequence[int]
) -> str:
    """What remains without links (named by switch and port), switches and hosts."""

def plan_all_routes(
    topology: str,
    algorithm: str = "osud",
    root: int | None = None,
    seed: int = 1,
    src: int | None = None,
    dst: int | None = None,
) -> str:
    """A file of routes: between all hosts, or from one, or to one, or both."""

def plan_route(
    topology: str,
    src: int,
    dst: int,
    algorithm: str = "osud",
    root: int | None = None,
    seed: int = 1,
) -> str:
    """One route, as an entry of a file of routes; of several, the first."""

def summarize_routes(
    topology: str, algorithm: str = "osud", root: int | None = None, seed: int = 1
) -> str:
    """Figures over all routes: how long, how many in-transit hosts, which load."""

def forwarding(topology: str, algorithm: str = "osud", root: int | None = None) -> bytes:
    """First ports from every switch to every host, row by row; 255 where there is no way."""

def balance_report(topology: str, algorithm: str = "osud", root: int | None = None) -> str:
    """Loads of all channels under the plain routes and under the balanced ones."""

def plan_balanced_routes(topology: str, algorithm: str = "osud", root: int | None = None) -> str:
    """A file of the balanced routes between all hosts."""

def spanning_tree(topology: str, root: int | None = None) -> str:
    """The up*/down* spanning tree: root, roots, links (parent's side first), levels."""

def plan_group(
    topology: str, request: str, root: int | None = None, metrics: bool = False
) -> str:
    """A group file from scheme, source, members and parameters; with metrics, what its
    sends cost the network."""

def cost_sets() -> list[str]:
    """Names of the sets of costs."""

def complete_costs(costs: str) -> str:
    """A file of costs with every field, from a set's name or what differs from one."""

def replay_group(topology: str, request: str, costs: str, root: int | None = None) -> str:
    """When each member has the message, and how the channels were used."""

def order_members(
    topology: str,
    members: Sequence[int],
    kind: str = "cco",
    root: int | None = None,
    seed: int = 0,
) -> list[int]:
    """Members in an order: "id" (or "ascending"), "cco", "dimension", "hamiltonian",
    "random" from a seed."""

def tree_edges(
    topology: str, members: Sequence[int], fan_out: int = 3, root: int | None = None
) -> list[tuple[int, int]]:
    """Edges (parent, child) of the rooted tree over these members."""

def optimal_k(hosts: int, packets: int) -> tuple[int, int]:
    """(k, steps) of the best k-binomial tree for hosts, source included, and packets."""

def encode_tree(paths: Sequence[tuple[int, bytes]]) -> list[tuple[bytes, list[int]]]:
    """TREE routes that reach each host by its port path: [(route, hosts reached)]."""

def decode_tree(route: bytes) -> list[bytes]:
    """Port paths that a TREE route leads along, ascending."""

def multicast_root(topology: str, members: int = 8) -> tuple[int, float]:
    """The root from which guard B crosses the fewest links on average, and how many."""

def verify(
    topology: str,
    routes: str | None = None,
    algorithm: str | None = None,
    trees: Sequence[tuple[int, bytes]] = (),
    branching: str = "independent",
    root: int | None = None,
    groups: Sequence[str] = (),
    buffers: str = "spill",
    forwarding: str = "store",
) -> str:
    """Deadlock check of routes from a file, of an algorithm, of TREE routes and of files
    of group plans."""

def plan_change(
    topology: str,
    new: str,
    algorithm: str = "osud",
    root: int | None = None,
    routes: str | None = None,
    new_root: int | None = None,
    planned: bool = False,
) -> str:
    """A change file: steps from the routes in force to those of the new topology."""

def find_buffer_cycle(
    topology: str, requests: Sequence[str], root: int | None = None
) -> list[tuple[int, int]] | None:
    """A cycle of buffers (host, class) that these groups can make if they share them."""
