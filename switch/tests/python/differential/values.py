"""Values that are likely to matter: few of each width in a case, so that they meet."""

from random import Random

from differential.program import DROP_PORT, FieldName, Program

PORT_WIDTH = 9
PER_WIDTH = 3
GROUPS_MAX = 6
PORTS = tuple(range(8))
PORTS_MAX = 16
NO_PORT = 500  # that is never there


class Values:
    """The values of one case."""

    def __init__(self, rng: Random, program: Program) -> None:
        self.rng = rng
        self.constants = program.constants
        self.compared = program.compared
        self.pools: dict[int, list[int]] = {}
        self.ports = ports_of(program)
        groups = [one for one in program.assigned("mcast_grp") if 3 < one < 1 << 15]
        self.groups = list(dict.fromkeys([1, 2, 3, *groups]))[:GROUPS_MAX]
        sessions = [
            *program.literals("clone_ingress_pkt_to_egress", 0),
            *program.literals("clone_egress_pkt_to_egress", 0),
        ]
        # p4c does not have session 0 in P4Runtime, but simple_switch takes it.
        self.sessions = list(dict.fromkeys([*(one & 0x7FFF for one in sessions), 1, 5]))[:4]

    def fresh(self, width: int) -> int:
        """A value of this many bits: a constant of the program, a boundary or any."""
        top = (1 << width) - 1
        choice = self.rng.random()
        if choice < 0.4:
            fitting = [one for one in self.constants if one <= top]
            if fitting:
                near = self.rng.choice([0, 0, 0, 0, 1, -1])
                return (self.rng.choice(fitting) + near) & top
        if choice < 0.6:
            return self.rng.choice([0, 1, top, top >> 1, top ^ top >> 1, top - 1]) & top
        return self.rng.getrandbits(width) if width else 0

    def draw(self, width: int) -> int:
        """A value of this many bits, mostly one that this case has elsewhere."""
        if width == PORT_WIDTH and self.rng.random() < 0.8:
            return self.port()
        if self.rng.random() < 0.3:
            return self.fresh(width)
        pool = self.pools.setdefault(width, [])
        if len(pool) < PER_WIDTH:
            pool.append(self.fresh(width))
        return self.rng.choice(pool)

    def of_field(self, name: FieldName, width: int) -> int:
        """A value for a field, often one beside a constant that it is compared with."""
        wanted = self.compared.get(name)
        if not wanted or self.rng.random() < 0.4:
            return self.draw(width)
        return self.rng.choice(wanted) + self.rng.choice([0, 0, 0, 1, -1]) & (1 << width) - 1

    def port(self) -> int:
        """A port, mostly one that is there."""
        if self.rng.random() < 0.05:
            return self.rng.choice([DROP_PORT, NO_PORT])
        return self.rng.choice(self.ports)


def ports_of(program: Program) -> list[int]:
    """The ports of a program: the first ones, and those it names, as ports before others."""
    fields = [("standard_metadata", name) for name in ("ingress_port", "egress_port", "egress_spec")]
    named = [one for field in fields for one in program.compared.get(field, [])]
    named += [*program.assigned("egress_spec"), *program.constants]
    fitting = [one for one in dict.fromkeys(named) if PORTS[-1] < one < DROP_PORT and one != NO_PORT]
    return [*PORTS, *fitting][:PORTS_MAX]
