"""Python source for EVM code: one function for what runs from a place on, as far as that is straight or a tree of branches.

The stack is kept in the text: an operand is a constant, the name of a local variable, or `S[-2]`, an entry of the real
stack, which is written once, where the function is left. Static gas is paid ahead for a whole segment, the code up to the
next branch. Before anything happens that could fail (too little gas, stack, a bad jump, a write in a static call) the
function asks, and if so hands over to the interpreter with everything as it was before that opcode: no compiled code
ever fails by itself, so that errors are the interpreter's own.
"""

import re
from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import Any, Final, TypeGuard

from devnet.evm.compiled_names import ACCOUNTS, CONDITIONS, COPIES, EXPRESSIONS, NAMES, READINGS
from devnet.evm.opcodes import BY_NAME, OPERANDS
from devnet.evm.opcodes import NAMES as OPCODES

STACK_LIMIT: Final = 1_024
_MOST_OPCODES: Final = 600  # in one function
_MOST_NESTED: Final = 60  # Python allows 100 indentations
_MOST_VISITS: Final = 3  # of one place on one path: a routine called again is another copy, a loop is left
_MOST_COMPARED: Final = 256  # bytes of memory
_SPARE: Final = re.compile(r"«(\d+)»")
_LOG_BYTE, _LOG_TOPIC, _COPY_WORD, _KECCAK_WORD, _EXP_BYTE = 8, 375, 3, 6, 50
_JUMPDEST: Final = BY_NAME["JUMPDEST"]
# Left to py-evm: rare, or they begin another frame, which costs far more than the call of an opcode.
_FOREIGN: Final = {
    *("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2"),
    *("EXTCODECOPY", "BLOCKHASH", "DIFFICULTY", "BLOBHASH"),
}

Value = int | str


class _Truth(str):
    """A condition that is an entry of the stack: 1 where it holds, else 0. Its text, by itself, is no number."""

    def opposite(self) -> "_Truth":
        """It does not hold."""
        return _Truth(self[5:-1] if self.startswith("not (") else f"not ({self})")


def text_of(value: Value) -> str:
    """An operand as it stands in an expression."""
    if isinstance(value, int):
        return hex(value)
    return f"(1 if {value} else 0)" if isinstance(value, _Truth) else value


def jump_destinations(code: bytes) -> frozenset[int]:
    """Where a jump may lead."""
    found, pc = [], 0
    while pc < len(code):
        opcode = code[pc]
        if opcode == _JUMPDEST:
            found.append(pc)
        pc += opcode - 0x5E if 0x60 <= opcode <= 0x7F else 1
    return frozenset(found)


class _Path:
    """What is known where a path has come to: the stack, words in memory, values that do not change."""

    def __init__(self) -> None:
        self.taken = 0  # entries of the real stack that are gone or moved into `stack`
        self.stack: list[Value] = []
        self.deepest = 0  # entries that were shown to be there
        self.highest = 0  # entries on top of the real stack that were shown to have room
        self.memory = 0  # bytes it has at least
        self.words: dict[int, Value] = {}
        self.known: dict[str, str] = {}
        self.visits: dict[int, int] = {}

    def fork(self) -> "_Path":
        """The same for another branch."""
        other = copy(self)
        other.stack, other.words = self.stack.copy(), self.words.copy()
        other.known, other.visits = self.known.copy(), self.visits.copy()
        return other

    def reach(self, depth: int) -> None:
        """Have so many entries in `stack`."""
        while len(self.stack) < depth:
            self.taken += 1
            self.stack.insert(0, f"S[-{self.taken}]")

    def pop(self) -> Value:
        """Take the topmost entry."""
        self.reach(1)
        return self.stack.pop()

    def as_arguments(self) -> str:
        """How high the real stack stays as it is, and what comes on top."""
        taken, stack = self.taken, [text_of(value) for value in self.stack]
        while stack and stack[0] == f"S[-{taken}]":
            del stack[0]
            taken -= 1
        return f"n - {taken}, ({''.join(f'{value}, ' for value in stack)})"

    def forget(self, offset: Value, size: Value) -> None:
        """What was known of this area of memory holds no more."""
        if isinstance(offset, int) and isinstance(size, int):
            for at in [at for at in self.words if offset - 32 < at < offset + size]:
                del self.words[at]
        else:
            self.words.clear()

    def content(self, offset: Value, size: Value) -> str | None:
        """What an area of memory holds, where all of it is known: areas with equal text are equal."""
        if not isinstance(offset, int) or not isinstance(size, int) or size % 32 or size > _MOST_COMPARED:
            return None
        places = range(offset, offset + size, 32)
        if any(at not in self.words for at in places):
            return None
        return f"[{', '.join(text_of(self.words[at]) for at in places)}]"

    def handed_over(self) -> None:
        """The stack is real again, and memory and accounts may have changed in between."""
        self.taken = self.deepest = self.highest = 0
        self.stack, self.words, self.known = [], {}, {}


class Source:
    """Writes one function. `seen` are the places that were run before: branches to others are not followed."""

    def __init__(
        self,
        code: bytes,
        opcodes: Mapping[int, Any],
        destinations: frozenset[int],
        seen: Collection[int],
    ) -> None:
        self._code = code
        self._table = opcodes
        self._destinations = destinations
        self._seen = seen
        self._lines: list[str] = []
        self._indent = 1
        self._names = 0
        self._left = _MOST_OPCODES
        self._path = _Path()
        # of the opcode
        self._pc = 0
        self._name = self._hand_over = ""
        # of the segment: where its lines begin, its gas, and how deep and high it goes
        self._begin = self._price = self._depth = self._height = 0
        self._refusal = ""

    def write(self, pc: int) -> str:
        """The source of `block(c)`, which runs a computation from `pc` on.

        It returns the pc to go on at, -1 less the pc where the interpreter must, or None at the end; REVERT is raised.
        """
        self._walk(pc)
        body = "\n".join(line for line in self._lines if line)
        head = ["def block(c):", " S = c._stack.values", " G = c._gas_meter", " g = G.gas_remaining", " n = len(S)"]
        if re.search(r"\bm\b", body):
            head.append(" m = c._memory._bytes")
        if re.search(r"\b[aw]\b", body):
            head += [" w = c.state.world", " a = c.msg.storage_address"]
        if re.search(r"\bst\b", body):
            head.append(" st = w.storage(a)")
        return "\n".join([*head, body])

    # -- lines --

    def _line(self, text: str) -> None:
        self._lines.append(" " * self._indent + text)

    def _set(self, expression: str) -> str:
        """A local variable with the value of an expression."""
        self._names += 1
        self._line(f"v{self._names} = {expression}")
        return f"v{self._names}"

    def _pure(self, expression: str) -> str:
        """As `_set`, for an expression whose value does not change while the function runs."""
        known = self._path.known
        if expression not in known:
            known[expression] = self._set(expression)
        return known[expression]

    def _push(self, value: Value) -> None:
        self._path.stack.append(value)

    def _pops(self) -> list[Value]:
        return [self._path.pop() for _ in range(OPERANDS[BY_NAME[self._name]])]

    def _leave(self, pc: int | str, gas: str = "g") -> str:
        return f"return leave(c, {self._path.as_arguments()}, {gas}, {pc})"

    def _handing_over(self, pc: int) -> str:
        """Lets the interpreter go on at an opcode that the segment, all of it paid for, has come to."""
        return self._leave(-1 - pc, f"g + «{self._price}»")

    # -- segments: code without branches, paid for at its begin --

    def _open(self, pc: int) -> None:
        self._begin, self._price = len(self._lines), 0
        self._lines.append("")
        self._refusal = self._handing_over(pc)
        self._depth, self._height = self._path.deepest, self._path.highest

    def _close(self) -> None:
        path, price = self._path, self._price
        wrong = ["g < 0"] if price else []
        if self._depth > path.deepest:
            wrong.append(f"n < {self._depth}")
        if self._height > path.highest:
            wrong.append(f"n > {STACK_LIMIT - self._height}")
        path.deepest, path.highest = self._depth, self._height
        if wrong:
            indent = " " * self._indent
            pay = f"{indent}g -= {price}\n" if price else ""
            self._lines[self._begin] = f"{pay}{indent}if {' or '.join(wrong)}: {self._refusal}"
        for at in range(self._begin, len(self._lines)):
            self._lines[at] = _SPARE.sub(lambda paid: str(price - int(paid[1])), self._lines[at])

    # -- the walk along the code --

    def _walk(self, pc: int) -> None:
        self._open(pc)
        following: int | None = pc
        while following is not None:
            if self._left <= 0:
                self._close()
                self._line(self._leave(following))
                return
            self._left -= 1
            following = self._step(following)

    def _step(self, pc: int) -> int | None:
        """Write one opcode; where the walk goes on."""
        opcode = self._code[pc] if pc < len(self._code) else 0
        path = self._path
        self._pc, self._name = pc, OPCODES[opcode] if opcode in self._table and opcode in OPCODES else ""
        self._hand_over = self._handing_over(pc)
        self._depth = max(self._depth, path.taken + OPERANDS.get(opcode, 0) - len(path.stack))
        if self._name in _FOREIGN:
            return self._foreign(opcode)
        if self._name not in self._WRITERS and not self._name.startswith("PUSH"):
            self._line(self._hand_over)  # no opcode, SELFDESTRUCT, INVALID
            self._close()
            return None
        self._price += self._table[opcode].gas_cost
        if self._name in self._BRANCHES:
            return self._BRANCHES[self._name](self)
        if self._name in self._WRITERS:
            self._WRITERS[self._name](self)
        else:
            size = opcode - BY_NAME["PUSH0"]
            self._push(int.from_bytes(self._code[pc + 1 : pc + 1 + size].ljust(size, b"\0"), "big"))
            pc += size
        self._height = max(self._height, len(path.stack) - path.taken)
        return pc + 1

    def _foreign(self, opcode: int) -> int:
        self._close()
        self._line(self._leave(self._pc).removeprefix("return "))
        self._line(f"c.code.program_counter = {self._pc + 1}")
        self._line(f"OPCODES[{opcode}](computation=c)")
        self._line("g, n, m = G.gas_remaining, len(S), c._memory._bytes")
        if self._name != "EXTCODECOPY":
            self._line("if type(S[-1]) is not int: S[-1] = number(S[-1], 'big')")
        self._path.handed_over()
        self._open(self._pc + 1)
        return self._pc + 1

    def _may_follow(self, target: Value) -> TypeGuard[int]:
        """Whether a jump there becomes part of this function."""
        if not isinstance(target, int) or target not in self._destinations:
            return False
        visits = self._path.visits[target] = self._path.visits.get(target, 0) + 1
        return visits <= _MOST_VISITS

    def _leap(self, target: Value) -> None:
        """Go on at a target in another function."""
        if isinstance(target, int):
            self._line(self._leave(target) if target in self._destinations else self._hand_over)
        else:
            self._line(f"if {text_of(target)} not in DESTINATIONS: {self._hand_over}")
            self._line(self._leave(text_of(target)))

    def _jump(self) -> int | None:
        target = self._path.pop()
        if self._may_follow(target):
            return target
        self._leap(target)
        self._close()
        return None

    def _jump_if(self) -> int | None:
        self._hand_over = self._leave(-1 - self._pc, f"g + {self._table[BY_NAME['JUMPI']].gas_cost}")
        target, condition = self._path.pop(), self._path.pop()
        self._close()
        test = _Truth(condition if isinstance(condition, str) else f"{condition}")
        onward = self._pc + 1 in self._seen
        if target in self._seen and self._indent < _MOST_NESTED and self._may_follow(target):
            if not onward:
                self._line(f"if {test.opposite()}: {self._leave(self._pc + 1)}")
                self._open(target)
                return target
            self._branch(test, lambda: self._walk(target))
        else:
            self._branch(test, lambda: self._leap(target))
        if not onward:
            self._line(self._leave(self._pc + 1))
            return None
        self._open(self._pc + 1)
        return self._pc + 1

    def _branch(self, test: _Truth, write: Callable[[], None]) -> None:
        """What is done where a condition holds, on a path of its own."""
        path, pc = self._path, self._pc
        self._path = path.fork()
        self._line(f"if {test}:")
        self._indent += 1
        write()
        self._indent -= 1
        self._path, self._pc = path, pc

    def _gas(self) -> int:
        self._height = max(self._height, len(self._path.stack) + 1 - self._path.taken)
        self._close()
        self._push(self._set("g"))
        self._open(self._pc + 1)
        return self._pc + 1

    def _stop(self) -> None:
        self._close()
        self._line("G.gas_remaining = g")
        self._line("return None")

    def _end(self) -> None:
        offset, size = self._pops()
        self._claim(offset, size)
        self._line(f"c._output = bytes({_area(offset, size)})")
        self._line("G.gas_remaining = g")
        self._line("raise Revert(c._output)" if self._name == "REVERT" else "return None")
        self._close()

    # -- opcodes --

    def _pay(self, price: str) -> None:
        self._line(f"k = {price}")
        self._line(f"if k > g: {self._hand_over}")
        self._line("g -= k")

    def _ask(self, call: str, indent: str = "") -> None:
        """Have a function do and charge what it may refuse to."""
        self._line(f"{indent}k = {call}")
        self._line(f"{indent}if k == REFUSED: {self._hand_over}")
        self._line(f"{indent}g = k")

    def _claim(self, offset: Value, size: Value, word_price: int = 0, byte_price: int = 0) -> None:
        """Pay for an area of memory, and for what is done with each word or byte of it."""
        indent, price = "", "0"
        if isinstance(size, int):
            self._price += word_price * ((size + 31) // 32) + byte_price * size
            if not size:
                return
            end: Value = f"{text_of(offset)} + {size}"
            if isinstance(offset, int):
                end = offset + size
                if end <= self._path.memory:
                    return
                self._path.memory = (end + 31) // 32 * 32
            self._line(f"if len(m) < {end}:")
            indent = " "
        elif word_price:
            price = f"{word_price} * ({text_of(size)} + 31 >> 5)"
        elif byte_price:
            price = f"{byte_price} * {text_of(size)}"
        self._ask(f"claim(m, {text_of(offset)}, {text_of(size)}, {price}, g)", indent)

    def _pop(self) -> None:
        if self._path.stack:
            self._path.stack.pop()
        else:
            self._path.taken += 1

    def _dup(self) -> None:
        depth = int(self._name.removeprefix("DUP"))
        self._path.reach(depth)
        self._push(self._path.stack[-depth])

    def _swap(self) -> None:
        depth = int(self._name.removeprefix("SWAP")) + 1
        self._path.reach(depth)
        stack = self._path.stack
        stack[-1], stack[-depth] = stack[-depth], stack[-1]

    def _place(self) -> None:
        self._push(self._pc)

    def _nothing(self) -> None:
        """JUMPDEST."""

    def _condition(self) -> None:
        operands = self._pops()
        if all(isinstance(operand, int) for operand in operands):
            self._push(int(_value(CONDITIONS[self._name], operands)))
        elif self._name == "ISZERO" and isinstance(operands[0], _Truth):
            self._push(operands[0].opposite())
        else:
            self._push(_Truth(CONDITIONS[self._name].format(*map(text_of, operands))))

    def _expression(self) -> None:
        operands = self._pops()
        if operands and all(isinstance(operand, int) for operand in operands) and self._name != "CALLDATALOAD":
            self._push(_value(EXPRESSIONS[self._name], operands))
            return
        expression = EXPRESSIONS[self._name]
        if self._name in {"SHL", "BYTE"} and isinstance(operands[0], int):  # what it depends on is known
            if operands[0] >= (256 if self._name == "SHL" else 32):
                self._push(0)
                return
            expression = expression.partition(" if ")[0]
        self._push(self._pure(expression.format(*map(text_of, operands))))

    def _reading(self) -> None:
        self._push(self._set(READINGS[self._name].format(*map(text_of, self._pops()))))

    def _account(self) -> None:
        self._line(f"t = ({text_of(self._path.pop())} & (1 << 160) - 1).to_bytes(20, 'big')")
        self._pay("100 if c.state.is_address_warm(t) else 2600")
        self._line("if k > 100: c.state.mark_address_warm(t)")
        self._push(self._set(ACCOUNTS[self._name]))

    def _exp(self) -> None:
        base, exponent = self._pops()
        if isinstance(exponent, int):
            self._price += _EXP_BYTE * ((exponent.bit_length() + 7) // 8)
        else:
            self._pay(f"{_EXP_BYTE} * (({text_of(exponent)}).bit_length() + 7 >> 3)")
        self._push(self._pure(f"pow({text_of(base)}, {text_of(exponent)}, WORD + 1)"))

    def _keccak(self) -> None:
        offset, size = self._pops()
        self._claim(offset, size, _KECCAK_WORD)
        expression = f"number(keccak({_area(offset, size)}), 'big')"
        content = self._path.content(offset, size)
        if content is None:
            self._push(self._set(expression))
            return
        known = self._path.known  # the place of a mapping's entry, above all: hashed to read it, hashed to write it
        if content not in known:
            known[content] = self._set(expression)
        self._push(known[content])

    def _mload(self) -> None:
        path = self._path
        offset = path.pop()
        self._claim(offset, 32)
        value = path.words.get(offset) if isinstance(offset, int) else None
        if value is None:
            value = self._set(f"number({_area(offset, 32)}, 'big')")
            if isinstance(offset, int):
                path.words[offset] = value
        path.stack.append(value)

    def _mstore(self) -> None:
        offset, value = self._pops()
        self._claim(offset, 32)
        self._path.forget(offset, 32)
        if isinstance(offset, int):
            self._path.words[offset] = value
        word = f"({text_of(value)}).to_bytes(32, 'big')"
        if isinstance(value, int):
            word = repr(value.to_bytes(32, "big"))
        self._line(f"{_area(offset, 32)} = {word}")

    def _mstore8(self) -> None:
        offset, value = self._pops()
        self._claim(offset, 1)
        self._path.forget(offset, 1)
        self._line(f"m[{text_of(offset)}] = {text_of(value)} & 255")

    def _copy(self) -> None:
        to, source, size = self._pops()
        if self._name == "RETURNDATACOPY":
            self._line(f"if {text_of(source)} + {text_of(size)} > len(c.return_data): {self._hand_over}")
        last: Value = to
        if self._name == "MCOPY":
            both = isinstance(to, int) and isinstance(source, int)
            last = max(to, source) if both else f"max({text_of(to)}, {text_of(source)})"
        self._claim(last, size, _COPY_WORD)
        self._path.forget(to, size)
        content = COPIES[self._name].format(text_of(source), text_of(size))
        self._line(f"{_area(to, size)} = {content}.ljust({text_of(size)}, b'\\0')")

    def _sload(self) -> None:
        slot = text_of(self._path.pop())
        self._pay(f"100 if (a, {slot}) in w.warm else 2100")
        self._line(f"if k > 100: w.write(w.warm, (a, {slot}), True)")
        self._push(self._set(f"st.get({slot}, 0)"))

    def _sstore(self) -> None:
        spare = f"«{self._price}»"
        slot, value = self._pops()
        self._ask(f"sstore(c, w, st, {text_of(slot)}, {text_of(value)}, g, {spare})")

    def _tstore(self) -> None:
        slot, value = self._pops()
        self._line(f"if c.msg.is_static: {self._hand_over}")
        self._line(f"w.write(w.transient, (a, {text_of(slot)}), {text_of(value)})")

    def _log(self) -> None:
        offset, size, *topics = self._pops()
        self._price += _LOG_TOPIC * len(topics)
        self._line(f"if c.msg.is_static: {self._hand_over}")
        self._claim(offset, size, byte_price=_LOG_BYTE)
        named = "".join(f"{text_of(topic)}, " for topic in topics)
        entry = f"c.transaction_context.get_next_log_counter(), a, ({named}), bytes({_area(offset, size)})"
        self._line(f"c._log_entries.append(({entry}))")

    _BRANCHES: Final[Mapping[str, Callable[["Source"], int | None]]] = {
        "JUMP": _jump,
        "JUMPI": _jump_if,
        "GAS": _gas,
        "STOP": _stop,
        "RETURN": _end,
        "REVERT": _end,
    }
    _WRITERS: Final[Mapping[str, Callable[["Source"], object]]] = {
        **_BRANCHES,
        **dict.fromkeys(CONDITIONS, _condition),
        **dict.fromkeys(EXPRESSIONS, _expression),
        **dict.fromkeys(READINGS, _reading),
        **dict.fromkeys(ACCOUNTS, _account),
        **dict.fromkeys(COPIES, _copy),
        **dict.fromkeys([f"DUP{depth}" for depth in range(1, 17)], _dup),
        **dict.fromkeys([f"SWAP{depth}" for depth in range(1, 17)], _swap),
        **dict.fromkeys([f"LOG{topics}" for topics in range(5)], _log),
        "POP": _pop,
        "PC": _place,
        "JUMPDEST": _nothing,
        "EXP": _exp,
        "KECCAK256": _keccak,
        "MLOAD": _mload,
        "MSTORE": _mstore,
        "MSTORE8": _mstore8,
        "SLOAD": _sload,
        "SSTORE": _sstore,
        "TSTORE": _tstore,
    }


def _area(offset: Value, size: Value) -> str:
    if isinstance(offset, int) and isinstance(size, int):
        return f"m[{offset}:{offset + size}]"
    return f"m[{text_of(offset)}:{text_of(offset)} + {text_of(size)}]"


def _value(expression: str, operands: list[Value]) -> int:
    return int(eval(expression.format(*map(text_of, operands)), NAMES))  # our own text
