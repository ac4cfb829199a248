"""What a program read by `syntax` consists of."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TypeName:
    """`bit<9>`, `bool`, or the name of a type, with the arguments of a generic one."""

    name: str
    width: int = 0
    arguments: tuple["TypeName", ...] = ()


@dataclass(frozen=True)
class Expression:
    """One node: what it does, and its parts.

    number (value, width), word (name), member (base, name), slice (base, high, low), call (callee,
    arguments), cast (type, base), unary and binary (operator, parts), list (parts), any (`_`).
    """

    kind: str
    parts: tuple["Expression", ...] = ()
    text: str = ""
    value: int = 0
    width: int | None = None
    type: TypeName | None = None


@dataclass
class Statement:
    """assign (target, value), call (value), if (value, body, other), block (body), declare."""

    kind: str
    target: Expression | None = None
    value: Expression | None = None
    body: list["Statement"] = field(default_factory=list)
    other: list["Statement"] = field(default_factory=list)
    type: TypeName | None = None
    name: str = ""


@dataclass
class Parameter:
    """Direction is `in`, `out`, `inout` or empty."""

    direction: str
    type: TypeName
    name: str
    control_name: str


@dataclass
class State:
    """Of a parser. `cases` pair keysets with the next state; without `select` there is one."""

    statements: list[Statement]
    select: list[Expression]
    cases: list[tuple[list[Expression], str]]


@dataclass
class Action:
    """With its name in the P4Info."""

    name: str
    control_name: str
    parameters: list[Parameter]
    body: list[Statement]


@dataclass
class Table:
    """Keys are expression, match kind and name in the P4Info. `entries` are those of the program, keysets and
    action, best first."""

    control_name: str
    keys: list[tuple[Expression, str, str]]
    default: Expression
    entries: list[tuple[list[Expression], Expression]] = field(default_factory=list)


@dataclass
class Instance:
    """Of an extern or a control, with its type and the arguments it is made with."""

    type: TypeName
    control_name: str
    arguments: list[Expression]


@dataclass
class RegisterAction:
    """What is done in one access to a cell of a register: its value is the first parameter, `out` the others."""

    register: str
    parameters: list[Parameter]
    body: list[Statement]


@dataclass
class Block:
    """A parser or a control."""

    kind: str
    name: str
    parameters: list[Parameter]
    locals: list[Statement] = field(default_factory=list)
    instances: dict[str, Instance] = field(default_factory=dict)
    register_actions: dict[str, RegisterAction] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    apply: list[Statement] = field(default_factory=list)


@dataclass
class Program:
    """Everything a set of sources declares."""

    constants: dict[str, tuple[TypeName, Expression]] = field(default_factory=dict)
    typedefs: dict[str, TypeName] = field(default_factory=dict)
    enums: dict[str, dict[str, Expression]] = field(default_factory=dict)
    enum_types: dict[str, TypeName] = field(default_factory=dict)
    headers: dict[str, list[tuple[str, TypeName]]] = field(default_factory=dict)
    structs: dict[str, list[tuple[str, TypeName]]] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    pipeline: list[str] = field(default_factory=list)
