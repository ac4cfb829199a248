"""Carries out parsers and controls of a program read by `syntax`.

Values are numbers with a width, as in P4: arithmetic is modulo two to the width. Headers know
whether they are valid; a field of one that is not reads as zero, which is what a container of the
chip holds.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from tofino.meter import GREEN
from tofino.tree import Block, Expression, Instance, Program, RegisterAction, Statement, Table, TypeName
from tofino.values import Bits, Cell, Countdown, Frame, FrameEnds, ProgramProblem, Record, Summer, Switch

PARTIAL_HEADER = 0x0002  # PARSER_ERROR_PARTIAL_HDR
NO_MATCH = 0x0001  # PARSER_ERROR_NO_MATCH


class Machine:
    """One gress of a program at work on one frame: its parser, control and deparser, in one pass."""

    def __init__(self, program: Program, switch: Switch, pipe: int = 0) -> None:
        self.program = program
        self.switch = switch
        self.pipe = pipe
        self.frame = Frame(b"")
        self.frame_bytes = 0  # of the whole frame as it came
        self.emitted = bytearray()
        self.resubmitted: bytes | None = None
        self.intrinsic: set[int] = set()  # headers that the chip fills in
        self.accessed: set[str] = set()  # registers

    # Types

    def resolve(self, kind: TypeName) -> TypeName:
        """A type without the names it has on the way."""
        while kind.name in self.program.typedefs:
            kind = self.program.typedefs[kind.name]
        if kind.name in self.program.enum_types:
            kind = self.program.enum_types[kind.name]
        return kind

    def new(self, kind: TypeName) -> Cell:
        """A variable of a type, all zero."""
        kind = self.resolve(kind)
        if kind.name == "bool":
            return Cell(False, kind)
        if kind.name == "bit":
            return Cell(Bits(0, kind.width), kind)
        header = kind.name in self.program.headers
        fields = (self.program.headers if header else self.program.structs).get(kind.name)
        if fields is None:
            raise ProgramProblem(f"type {kind.name} is not known")
        return Cell(Record(kind.name, {name: self.new(field) for name, field in fields}, header), kind)

    # Blocks

    def run(self, block: Block, cells: list[Cell]) -> int:
        """Carries out a block with these arguments; returns the parser's error, 0 for none."""
        scope = Scope(self, block, cells)
        for statement in block.locals:
            scope.execute(statement)
        scope.own = dict(scope.names)
        if block.kind == "control":
            scope.execute_all(block.apply)
            return 0
        state = "start"
        while state not in ("accept", "reject"):
            try:
                scope.execute_all(block.states[state].statements)
                following = scope.follow(state)
            except FrameEnds:
                return PARTIAL_HEADER
            if following is None:
                return NO_MATCH
            state = following
        return 0


class Scope:
    """The names of one block, and of the action or state in it that is at work."""

    def __init__(self, machine: Machine, block: Block, cells: list[Cell]) -> None:
        self.machine = machine
        self.program = machine.program
        self.block = block
        self.names = {parameter.name: cell for parameter, cell in zip(block.parameters, cells, strict=True)}
        self.own: dict[str, Cell] = {}  # those of the block alone
        self.engines: dict[str, Any] = {
            name: {"Checksum": Summer, "ParserCounter": Countdown}[instance.type.name]()
            for name, instance in block.instances.items()
            if instance.type.name in ("Checksum", "ParserCounter")
        }

    # Statements

    def execute_all(self, statements: list[Statement]) -> None:
        for statement in statements:
            self.execute(statement)

    def execute(self, statement: Statement) -> None:
        if statement.kind == "block":
            self.execute_all(statement.body)
        elif statement.kind == "if":
            assert statement.value is not None
            self.execute_all(statement.body if self.truth(statement.value) else statement.other)
        elif statement.kind == "declare":
            assert statement.type is not None
            cell = self.machine.new(statement.type)
            if statement.value is not None:
                self.store(cell, self.value(statement.value))
            self.names[statement.name] = cell
        elif statement.kind == "assign":
            assert statement.target is not None
            assert statement.value is not None
            self.store(self.cell(statement.target), self.value(statement.value))
        else:
            assert statement.value is not None
            self.value(statement.value)

    def store(self, cell: Cell, value: Any) -> None:
        """Puts a value where it fits."""
        if isinstance(value, list):
            for field_cell, part in zip(cell.value.fields.values(), value, strict=True):
                self.store(field_cell, part)
            return
        if isinstance(value, Record):
            for name, part_cell in value.fields.items():
                self.store(cell.value.fields[name], part_cell.value)
            cell.value.valid = value.valid
            return
        if isinstance(value, Bits):
            if value.width not in (None, cell.type.width):
                raise ProgramProblem(f"{value.width} bits do not fit into {cell.type}")
            value = Bits(value.value % (1 << cell.type.width), cell.type.width)
        cell.value = value

    def follow(self, state: str) -> str | None:
        """The state behind one, or None where no case holds."""
        found = self.block.states[state]
        values = [self.value(expression) for expression in found.select]
        for keysets, target in found.cases:
            if len(keysets) == 1 and keysets[0].kind == "any":
                return target
            if all(self.matches(keyset, value) for keyset, value in zip(keysets, values, strict=True)):
                return target
        return None

    def matches(self, keyset: Expression, value: Any) -> bool:
        """Whether a value is in a keyset."""
        if keyset.kind == "any":
            return True
        if keyset.kind == "mask":
            wanted, mask = (self.number(part) for part in keyset.parts)
            return bool(value.value & mask == wanted & mask)
        wanted = self.value(keyset)
        if isinstance(wanted, bool):
            return wanted == bool(value)
        return bool(wanted.value == value.value)

    # Expressions

    def number(self, expression: Expression) -> int:
        """A number, whatever its width."""
        found = self.value(expression)
        return int(found.value if isinstance(found, Bits) else found)

    def truth(self, expression: Expression) -> bool:
        found = self.value(expression)
        if not isinstance(found, bool):
            raise ProgramProblem(f"{expression} is no truth value")
        return found

    def cell(self, expression: Expression) -> Cell:
        """The variable that an expression names."""
        if expression.kind == "word":
            if expression.text not in self.names:
                raise ProgramProblem(f"{expression.text} is not known in {self.block.name}")
            return self.names[expression.text]
        if expression.kind == "member":
            record = self.cell(expression.parts[0]).value
            if isinstance(record, Record) and expression.text in record.fields:
                return record.fields[expression.text]
        raise ProgramProblem(f"{expression} names no variable")

    def value(self, expression: Expression) -> Any:
        """What an expression comes to."""
        kind = expression.kind
        if kind == "number":
            return Bits(expression.value, expression.width)
        if kind == "bool":
            return bool(expression.value)
        if kind == "word":
            return self.word(expression.text)
        if kind == "member":
            return self.member(expression)
        if kind == "slice":
            base, high, low = (self.number(part) for part in expression.parts)
            width = high - low + 1
            return Bits(base >> low & ((1 << width) - 1), width)
        if kind == "cast":
            return self.cast(expression)
        if kind == "unary":
            return self.unary(expression)
        if kind == "binary":
            return self.binary(expression)
        if kind == "call":
            return self.call(expression)
        raise ProgramProblem(f"expression {kind} has no value")

    def word(self, name: str) -> Any:
        if name in self.names:
            return self.names[name].value
        if name in self.program.constants:
            kind, expression = self.program.constants[name]
            return Bits(self.number(expression), self.machine.resolve(kind).width)
        raise ProgramProblem(f"{name} is not known in {self.block.name}")

    def member(self, expression: Expression) -> Any:
        base = expression.parts[0]
        if base.kind == "call" and expression.text == "hit":
            return self.call(base)
        if base.kind == "word" and base.text in self.program.enums:
            width = self.program.enum_types[base.text].width
            return Bits(self.number(self.program.enums[base.text][expression.text]), width)
        record = self.cell(base).value
        found = self.cell(expression).value
        if record.header and not record.valid and isinstance(found, Bits):
            return Bits(0, found.width)
        return found

    def cast(self, expression: Expression) -> Any:
        assert expression.type is not None
        if expression.parts[0].kind == "list":
            return [self.value(part) for part in expression.parts[0].parts]
        number = self.number(expression.parts[0])
        if expression.type.name == "int":
            return Bits(number)
        kind = self.machine.resolve(expression.type)
        return Bits(number % (1 << kind.width), kind.width)

    def unary(self, expression: Expression) -> Any:
        if expression.text == "!":
            return not self.truth(expression.parts[0])
        found = self.value(expression.parts[0])
        if found.width is None:
            raise ProgramProblem(f"{expression.text} of a number without width")
        number = ~found.value if expression.text == "~" else -found.value
        return Bits(number % (1 << found.width), found.width)

    def binary(self, expression: Expression) -> Any:
        operator = expression.text
        first, second = expression.parts
        if operator == "&&":
            return self.truth(first) and self.truth(second)
        if operator == "||":
            return self.truth(first) or self.truth(second)
        left, right = self.value(first), self.value(second)
        if operator == ">>":
            return Bits(left.value >> right.value, left.width)
        if operator == "++":
            return Bits(left.value << right.width | right.value, left.width + right.width)
        if None not in (left.width, right.width) and left.width != right.width:
            raise ProgramProblem(f"{operator} of {left.width} and {right.width} bits in {self.block.name}")
        comparisons: dict[str, Callable[[int, int], bool]] = {
            "==": lambda a, b: a == b,
            "!=": lambda a, b: a != b,
            "<": lambda a, b: a < b,
            ">": lambda a, b: a > b,
            "<=": lambda a, b: a <= b,
            ">=": lambda a, b: a >= b,
        }
        if operator in comparisons:
            return comparisons[operator](left.value, right.value)
        arithmetic: dict[str, Callable[[int, int], int]] = {
            "|": lambda a, b: a | b,
            "&": lambda a, b: a & b,
            "^": lambda a, b: a ^ b,
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "|-|": lambda a, b: max(a - b, 0),
        }
        width = left.width if left.width is not None else right.width
        number = arithmetic[operator](left.value, right.value)
        return Bits(number % (1 << width) if width is not None else number, width)

    # Calls

    def call(self, expression: Expression) -> Any:
        callee, arguments = expression.parts[0], expression.parts[1:]
        if callee.kind == "word":
            return self.call_action(callee.text, [self.value(argument) for argument in arguments])
        base, method = callee.parts[0], callee.text
        name = base.text if base.kind == "word" else ""
        if name in self.block.tables:
            return self.apply_table(self.block.tables[name])
        if name in self.engines:
            return self.call_engine(self.engines[name], method, arguments)
        if name in self.block.instances:
            return self.call_instance(self.block.instances[name], method, arguments)
        if name in self.block.register_actions and method == "execute":
            return self.call_register_action(self.block.register_actions[name], arguments)
        if method in ("extract", "advance", "lookahead", "emit"):
            return self.call_packet(method, arguments, expression.type)
        if method in ("isValid", "setValid", "setInvalid"):
            return self.call_header(self.cell(base).value, method)
        raise ProgramProblem(f"call of {name}.{method} in {self.block.name} is not known")

    def call_header(self, record: Record, method: str) -> Any:
        if method == "isValid":
            return record.valid
        record.valid = method == "setValid"
        return None

    def call_packet(self, method: str, arguments: tuple[Expression, ...], kind: TypeName | None) -> Any:
        frame = self.machine.frame
        if method == "lookahead":
            assert kind is not None
            return Bits(frame.look(kind.width), kind.width)
        if method == "advance":
            frame.take(self.number(arguments[0]))
            return None
        record = self.cell(arguments[0]).value
        if method == "emit":
            self.machine.emitted += record.bytes() if record.valid else b""
            return None
        if id(record) not in self.machine.intrinsic:
            frame.look(sum(cell.type.width for cell in record.fields.values()))
            for cell in record.fields.values():
                cell.value = Bits(frame.take(cell.type.width), cell.type.width)
        record.valid = True
        return None

    def call_engine(self, engine: Any, method: str, arguments: tuple[Expression, ...]) -> Any:
        if isinstance(engine, Countdown):
            if method == "is_zero":
                return engine.value == 0
            if method == "is_negative":
                return engine.value < 0
            number = self.number(arguments[0])
            engine.set(number if method == "set" else engine.value - number)
            return None
        if method == "add":
            added = self.value(arguments[0])
            is_constant = isinstance(added, Bits)
            engine.data += added.value.to_bytes(added.width // 8, "big") if is_constant else added.bytes()
            return None
        if method == "verify":  # true where the checksum is wrong
            return engine.total() != 0xFFFF
        if method == "update":
            # Where a field lies in the words is fixed by the list, whatever headers are there.
            parts = [self.value(part) for part in arguments[0].parts]
            number = width = 0
            for part in parts:
                number = number << part.width | part.value
                width += part.width
            return Bits(0xFFFF - Summer(bytearray(number.to_bytes(width // 8, "big"))).total(), 16)
        raise ProgramProblem(f"checksum.{method} is not known")

    def call_instance(self, instance: Instance, method: str, arguments: tuple[Expression, ...]) -> Any:
        kind, control_name = instance.type.name, instance.control_name
        if kind == "Counter" and method == "count":
            counter = self.machine.switch.counters.setdefault(control_name, Counter())
            counter[self.number(arguments[0])] += 1
            return None
        if kind == "Meter" and method == "execute":
            cell = self.machine.switch.meters.get(control_name, {}).get(self.number(arguments[0]))
            frame_bytes, now_ns = self.machine.frame_bytes, self.machine.switch.now_ns
            return Bits(GREEN if cell is None else cell.execute(frame_bytes, now_ns), 8)
        if kind == "Resubmit" and method == "emit":
            record = self.machine.new(TypeName("tree_t"))
            argument = arguments[0]
            if argument.kind == "list":
                self.store(record, [self.value(part) for part in argument.parts])
            else:
                record = self.cell(argument)
            self.machine.resubmitted = record.value.bytes()
            return None
        if kind in self.program.blocks and method == "apply":
            self.machine.run(self.program.blocks[kind], [self.cell(argument) for argument in arguments])
            return None
        raise ProgramProblem(f"{kind}.{method} is not known")

    # Registers

    def call_register_action(self, action: RegisterAction, arguments: tuple[Expression, ...]) -> Any:
        """`execute(index, …)`: returns the first output; the others go into the arguments behind the index."""
        cell = self.register_cell(action.register, self.value(arguments[0]))
        value, *outputs = action.parameters
        results = [self.machine.new(output.type) for output in outputs]
        if len(arguments) > max(len(results), 1):
            raise ProgramProblem(f"{action.register} is asked for {len(arguments)} outputs of {len(results)}")
        if self.machine.resolve(value.type).name != cell.type.name:
            raise ProgramProblem(f"{action.register} has cells of {cell.type}, not of {value.type}")
        outer = self.names
        named = zip([value, *outputs], [cell, *results], strict=True)
        self.names = self.own | {parameter.name: of for parameter, of in named}
        self.execute_all(action.body)
        self.names = outer
        for argument, result in zip(arguments[1:], results[1:], strict=False):
            self.store(self.cell(argument), result.value)
        return results[0].value if results else None

    def register_cell(self, name: str, index: Bits) -> Cell:
        """The cell of a register for the one access that a pass has. Those not yet written are as the program is loaded."""
        register = self.block.instances.get(name)
        if register is None or register.type.name != "Register":
            raise ProgramProblem(f"{name} is no register of {self.block.name}")
        control_name = register.control_name or f"{self.block.name}.{name}"
        if control_name in self.machine.accessed:
            raise ProgramProblem(f"{control_name} is accessed twice in one pass")
        self.machine.accessed.add(control_name)
        of_cell, of_index = (self.machine.resolve(kind) for kind in register.type.arguments)
        size = self.number(register.arguments[0])
        if index.width not in (None, of_index.width) or index.value >= size:
            raise ProgramProblem(f"{control_name} has {size} cells of index {of_index}, none at {index}")
        cells = self.machine.switch.registers.setdefault((self.machine.pipe, control_name), {})
        if index.value not in cells:
            cell = cells[index.value] = self.machine.new(of_cell)
            if len(register.arguments) > 1:
                initial = register.arguments[1]
                is_list = initial.kind == "list"
                self.store(
                    cell, [self.value(part) for part in initial.parts] if is_list else self.value(initial)
                )
        return cells[index.value]

    # Tables

    def call_action(self, name: str, values: list[Any]) -> None:
        if name == "NoAction":
            return
        action = self.block.actions[name]
        outer = self.names
        self.names = dict(outer)
        for parameter, value in zip(action.parameters, values, strict=True):
            cell = self.machine.new(parameter.type)
            self.store(cell, value)
            self.names[parameter.name] = cell
        self.execute_all(action.body)
        self.names = outer

    def apply_table(self, table: Table) -> bool:
        """Whether an entry was hit."""
        if table.entries:
            values = [self.value(expression) for expression, _, _ in table.keys]
            for keysets, action in table.entries:
                if all(self.matches(keyset, value) for keyset, value in zip(keysets, values, strict=True)):
                    self.value(action)
                    return True
            self.value(table.default)
            return False
        keys = {name: self.number(expression) for expression, _, name in table.keys}
        entries = self.machine.switch.entries.get(table.control_name, [])
        hits = [
            entry
            for entry in entries
            if all(keys[name] & mask == value for name, (value, mask) in entry.keys.items())
        ]
        if hits:
            best = max(hits, key=lambda entry: entry.priority)
            self.call_named(best.action, best.parameters)
        elif table.control_name in self.machine.switch.defaults:
            self.call_named(*self.machine.switch.defaults[table.control_name])
        else:
            self.value(table.default)
        return bool(hits)

    def call_named(self, control_name: str, parameters: dict[str, int]) -> None:
        """An action by its name in the P4Info."""
        found = [action for action in self.block.actions.values() if action.control_name == control_name]
        if not found:  # p4c makes one of each table's, all alike
            raise ProgramProblem(f"{self.block.name} has no action {control_name}")
        values = [Bits(parameters[parameter.control_name]) for parameter in found[0].parameters]
        self.call_action(found[0].name, values)
