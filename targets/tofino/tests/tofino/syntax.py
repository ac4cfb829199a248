"""Reads P4_16: as much of the language as targets/tofino uses, and what p4c's front end makes of it.

What it does not know is an error.
"""

from pathlib import Path

from tofino.tokens import Sources, SyntaxProblem, Token
from tofino.tree import (
    Action,
    Block,
    Expression,
    Instance,
    Parameter,
    Program,
    RegisterAction,
    State,
    Statement,
    Table,
    TypeName,
)

__all__ = ["Program", "SyntaxProblem", "TypeName", "read_program"]

# Binary operators, weakest first. In P4, unlike C, `&` binds more tightly than `==`.
LEVELS = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("++", "+", "-", "|-|"),
)


# One output, or none; as many as the name says.
REGISTER_ACTIONS = ("RegisterAction", "RegisterAction2", "RegisterAction3", "RegisterAction4")

# Methods that may be given types.
GENERIC = ("lookahead", "emit", "extract", "add", "update", "set")


class Reader:
    """A recursive descent over the tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.program = Program()

    # Tokens

    def peek(self, ahead: int = 0) -> str:
        """Text of a token; empty at the end."""
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        """The next token, which has to be one of those expected, if any are."""
        if self.at >= len(self.tokens):
            raise SyntaxProblem(f"the source ends where {expected} should come")
        token = self.tokens[self.at]
        if expected and token.text not in expected:
            raise SyntaxProblem(f"{token.where}: {token.text!r} where {expected} should come")
        self.at += 1
        return token.text

    def given(self, text: str) -> bool:
        """Takes the next token if it is this one."""
        if self.peek() != text:
            return False
        self.at += 1
        return True

    # Declarations

    def read(self) -> Program:
        while self.at < len(self.tokens):
            annotations = self.annotations()
            word = self.take()
            if word == "const":
                self.constant()
            elif word == "typedef":
                kind = self.type_name()
                alias = self.take()
                self.program.typedefs[alias] = kind
                self.take(";")
            elif word == "enum":
                self.enum()
            elif word in ("header", "struct"):
                self.fields(word)
            elif word in ("parser", "control"):
                self.block(word)
            elif word in ("Pipeline", "Switch"):
                self.package(word)
            elif word in ("extern", "error", "match_kind", "package"):
                self.skip_declaration()
            else:
                where = self.tokens[self.at - 1].where
                raise SyntaxProblem(f"{where}: declaration {word!r} {annotations} is not known")
        return self.program

    def skip_declaration(self) -> None:
        """What an architecture declares and the chip knows: up to a semicolon, or a block."""
        depth = 0
        while True:
            text = self.take()
            depth += {"{": 1, "}": -1}.get(text, 0)
            if depth == 0 and text in (";", "}"):
                return

    def annotations(self) -> dict[str, str]:
        """@name("…") and the like; the string without quotes, or the raw text."""
        found: dict[str, str] = {}
        while self.given("@"):
            name = self.take()
            inside: list[str] = []
            if self.given("("):
                depth = 1
                while depth:
                    text = self.take()
                    depth += {"(": 1, ")": -1}.get(text, 0)
                    if depth:
                        inside.append(text)
            found[name] = "".join(inside).strip('"')
        return found

    def type_name(self) -> TypeName:
        name = self.take()
        if self.given("<"):
            if name == "bit":
                width = int(self.take())
                self.take(">")
                return TypeName("bit", width)
            self.at -= 1
            return TypeName(name, arguments=self.arguments_of_type())
        return TypeName(name)

    def arguments_of_type(self) -> tuple[TypeName, ...]:
        """`<…>`."""
        self.take("<")
        found = [self.type_name()]
        while self.given(","):
            found.append(self.type_name())
        self.take(">")
        return tuple(found)

    def constant(self) -> None:
        kind = self.type_name()
        name = self.take()
        self.take("=")
        self.program.constants[name] = (kind, self.expression())
        self.take(";")

    def enum(self) -> None:
        kind = self.type_name() if self.peek() == "bit" else TypeName("bit", 8)
        name = self.take()
        self.take("{")
        members: dict[str, Expression] = {}
        while not self.given("}"):
            member = self.take()
            members[member] = (
                self.expression() if self.given("=") else Expression("number", value=len(members), width=8)
            )
            self.given(",")
        self.program.enums[name] = members
        self.program.enum_types[name] = kind

    def fields(self, word: str) -> None:
        name = self.take()
        self.take("{")
        fields: list[tuple[str, TypeName]] = []
        while not self.given("}"):
            self.annotations()
            if self.peek() == "varbit":  # shared with v1model; no header of this program has one
                while self.take() != ";":
                    pass
                continue
            kind = self.type_name()
            fields.append((self.take(), kind))
            self.take(";")
        (self.program.headers if word == "header" else self.program.structs)[name] = fields

    def package(self, word: str) -> None:
        names: list[str] = []
        if self.peek() == "<":
            self.arguments_of_type()
        self.take("(")
        while not self.given(")"):
            names.append(self.take())
            if self.given("("):
                self.take(")")
            self.given(",")
        self.take()
        self.take(";")
        if word == "Pipeline":
            self.program.pipeline = names

    def parameters(self) -> list[Parameter]:
        self.take("(")
        found: list[Parameter] = []
        while not self.given(")"):
            annotations = self.annotations()
            direction = self.take() if self.peek() in ("in", "out", "inout") else ""
            kind = self.type_name()
            name = self.take()
            found.append(Parameter(direction, kind, name, annotations.get("name", name)))
            self.given(",")
        return found

    def block(self, word: str) -> None:
        name = self.take()
        if self.peek() == "<":  # a prototype
            self.skip_declaration()
            return
        block = Block(word, name, self.parameters())
        self.take("{")
        while not self.given("}"):
            annotations = self.annotations()
            control_name = annotations.get("name", "").lstrip(".")
            if self.given("state"):
                state = self.take()
                block.states[state] = self.state()
            elif self.given("action"):
                action = self.take()
                block.actions[action] = Action(action, control_name, self.parameters(), self.body())
            elif self.given("table"):
                table = self.take()
                block.tables[table] = self.table(control_name)
            elif self.given("apply"):
                block.apply = self.body()
            else:
                kind = self.type_name()
                if self.given("("):
                    self.instance(block, kind, control_name)
                else:
                    block.locals.append(self.declaration(kind))
        self.program.blocks[name] = block

    def instance(self, block: Block, kind: TypeName, control_name: str) -> None:
        """`Type(arguments) name;`, or the same of a RegisterAction with what it does."""
        arguments = self.listed(")")
        where = self.tokens[self.at].where
        name = self.take()
        if kind.name not in REGISTER_ACTIONS:
            block.instances[name] = Instance(kind, control_name, arguments)
            self.take(";")
            return
        for text in ("=", "{"):
            self.take(text)
        self.annotations()
        for text in ("void", "apply"):
            self.take(text)
        parameters, body = self.parameters(), self.body()
        self.take("}")
        self.take(";")
        directions = [parameter.direction for parameter in parameters]
        outputs = len(kind.arguments) - 2
        if kind.name == "RegisterAction":
            is_known = directions[:1] == ["inout"] and set(directions[1:]) <= {"out"}
        else:
            is_known = directions == ["inout"] + outputs * ["out"]
        if not is_known or [argument.kind for argument in arguments] != ["word"]:
            raise SyntaxProblem(f"{where}: {kind.name} {name} takes {arguments} and applies {directions}")
        block.register_actions[name] = RegisterAction(arguments[0].text, parameters, body)

    def table(self, control_name: str) -> Table:
        keys: list[tuple[Expression, str, str]] = []
        entries: list[tuple[list[Expression], Expression]] = []
        default: Expression | None = None
        self.take("{")
        while not self.given("}"):
            self.given("const")
            word = self.take("key", "actions", "default_action", "entries", "size")
            self.take("=")
            if word == "key":
                self.take("{")
                while not self.given("}"):
                    first = self.at
                    key = self.expression()
                    text = "".join(token.text for token in self.tokens[first : self.at])
                    self.take(":")
                    match = self.take("exact", "ternary")
                    keys.append((key, match, self.annotations().get("name", text)))
                    self.take(";")
            elif word == "actions":
                self.take("{")
                while not self.given("}"):
                    self.take()
            elif word == "entries":
                self.take("{")
                while not self.given("}"):
                    keysets = self.listed(")") if self.given("(") else [self.keyset()]
                    self.take(":")
                    entries.append((keysets, self.expression()))
                    self.take(";")
            else:
                value = self.expression()
                default = value if word == "default_action" else default
                self.take(";")
        if default is None:
            raise SyntaxProblem(f"table {control_name} has no default action")
        return Table(control_name, keys, default, entries)

    # Parser states

    def state(self) -> State:
        statements: list[Statement] = []
        self.take("{")
        while self.peek() != "transition":
            statements.append(self.statement())
        self.take("transition")
        select: list[Expression] = []
        cases: list[tuple[list[Expression], str]] = []
        if self.given("select"):
            self.take("(")
            select = self.listed(")")
            self.take("{")
            while not self.given("}"):
                keysets = self.listed(")") if self.given("(") else [self.keyset()]
                self.take(":")
                cases.append((keysets, self.take()))
                self.take(";")
        else:
            cases.append(([], self.take()))
            self.take(";")
        self.take("}")
        return State(statements, select, cases)

    def listed(self, end: str) -> list[Expression]:
        found: list[Expression] = []
        while not self.given(end):
            found.append(self.keyset())
            self.given(",")
        return found

    def keyset(self) -> Expression:
        if self.peek() in ("_", "default"):
            self.take()
            return Expression("any")
        value = self.expression()
        if self.given("&&&"):
            return Expression("mask", (value, self.expression()))
        return value

    # Statements

    def body(self) -> list[Statement]:
        self.take("{")
        found: list[Statement] = []
        while not self.given("}"):
            found.append(self.statement())
        return found

    def statement(self) -> Statement:
        self.annotations()
        if self.peek() == "{":
            return Statement("block", body=self.body())
        if self.given(";"):
            return Statement("block")
        if self.given("if"):
            self.take("(")
            value = self.expression()
            self.take(")")
            body = [self.statement()]
            other = [self.statement()] if self.given("else") else []
            return Statement("if", value=value, body=body, other=other)
        if self.peek() in ("bit", "bool") or (
            self.tokens[self.at + 1].kind == "word" and self.tokens[self.at].kind == "word"
        ):
            return self.declaration(self.type_name())
        target = self.expression()
        if self.given("="):
            value = self.expression()
            self.take(";")
            return Statement("assign", target=target, value=value)
        self.take(";")
        return Statement("call", value=target)

    def declaration(self, kind: TypeName) -> Statement:
        name = self.take()
        value = self.expression() if self.given("=") else None
        self.take(";")
        return Statement("declare", type=kind, name=name, value=value)

    # Expressions

    def expression(self, level: int = 0) -> Expression:
        if level == len(LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while self.operator() in LEVELS[level]:
            operator = self.operator()
            self.at += 2 if operator == ">>" else 1
            left = Expression("binary", (left, self.expression(level + 1)), operator)
        return left

    def operator(self) -> str:
        """The next token; two closing angles, which also end types, are a shift here."""
        return ">>" if self.peek() == self.peek(1) == ">" else self.peek()

    def unary(self) -> Expression:
        if self.peek() in ("!", "~", "-"):
            operator = self.take()
            return Expression("unary", (self.unary(),), operator)
        if self.peek() == "(" and self.is_cast():
            self.take("(")
            kind = self.type_name()
            self.take(")")
            return Expression("cast", (self.unary(),), type=kind)
        return self.postfix()

    def is_cast(self) -> bool:
        """`(bit<9>)…` or `(name)` followed by the beginning of an operand."""
        if self.peek(1) in ("bit", "int", "bool"):
            return True
        after = self.at + 3
        return (
            self.tokens[self.at + 1].kind == "word"
            and self.peek(2) == ")"
            and after < len(self.tokens)
            and (self.tokens[after].kind in ("word", "number") or self.tokens[after].text in ("(", "~", "{"))
        )

    def postfix(self) -> Expression:
        node = self.primary()
        while True:
            if self.given("."):
                node = Expression("member", (node,), self.take())
            elif self.given("["):
                high = self.expression()
                self.take(":")
                node = Expression("slice", (node, high, self.expression()))
                self.take("]")
            elif self.peek() == "<" and node.kind == "member" and node.text in GENERIC:
                kind = self.arguments_of_type()[0]
                self.take("(")
                node = Expression("call", (node, *self.listed(")")), type=kind)
            elif self.given("("):
                node = Expression("call", (node, *self.listed(")")))
            else:
                return node

    def primary(self) -> Expression:
        token = self.tokens[self.at]
        text = self.take()
        if token.kind == "number":
            width, found, digits = text.partition("w")
            digits = (digits if found else text).replace("_", "")
            return Expression("number", value=int(digits, 0), width=int(width) if found else None)
        if text in ("true", "false"):
            return Expression("bool", value=int(text == "true"))
        if token.kind == "word":
            return Expression("word", text=text)
        if text == "(":
            node = self.expression()
            self.take(")")
            return node
        if text == "{":
            return self.list_of_values()
        raise SyntaxProblem(f"{token.where}: {text!r} begins no expression")

    def list_of_values(self) -> Expression:
        """`{a, b}`, or `{name = a, …}` in the order of the header's fields."""
        parts: list[Expression] = []
        while not self.given("}"):
            if self.peek(1) == "=":
                self.take()
                self.take("=")
            parts.append(self.expression())
            self.given(",")
        return Expression("list", tuple(parts))


def read_program(*paths: Path) -> Program:
    """The program of some sources, in this order, and of what they include."""
    sources = Sources()
    tokens = [token for path in paths for token in sources.tokens(path.resolve())]
    return Reader(tokens).read()
