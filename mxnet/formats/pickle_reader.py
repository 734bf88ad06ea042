"""Read the data in a pickle without executing any code.

A pickle is a program for a stack machine; Python's interpreter imports and calls whatever it names.
This reader supports only the instructions that build data. A global becomes a `Name`, a call of it
a `Call`: plain records for the caller to check. Memory is checked before it is allocated: lengths
against the remaining bytes, and the number of containers and memo entries against the size of the
file.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from ..error import FormatError

MAX_PROTOCOL = 5
MAX_INTEGER_BYTES = 255  # bytes
MAX_KEY = 2**63  # larger integers could be crafted to collide in a dict
MIN_CONTAINERS = 1000
# Bytes of the file per container; real pickles of arrays need more than twice as many.
BYTES_PER_CONTAINER = 8
BYTES_PER_MEMO_ENTRY = 4
_KEY_TYPES = (str, bytes, float, bool, type(None))


class PickleError(FormatError):
    """Raised for damaged pickles, and for pickles of other than plain data."""


class Name(NamedTuple):
    """The name of a global in the pickle; it is not imported."""

    module: str
    name: str


@dataclass(eq=False, slots=True)
class Call:
    """A call in the pickle, and the state set on its result; it is not executed."""

    function: Name
    args: tuple
    state: Any = None
    pairs: dict = field(default_factory=dict)  # items set on the result


_BYTES = (
    Name("_codecs", "encode"),
    *(Name(m, n) for m in ("builtins", "__builtin__") for n in ("bytes", "bytearray")),
)


class _Mark:
    """Marks the start of a container's items on the stack."""


_MARK = _Mark()


def read_pickle(data: bytes | bytearray | memoryview) -> Any:
    """Return the data in a pickle: builtin types, with `Name` and `Call` for all others.

    >>> import pickle
    >>> read_pickle(pickle.dumps({"lr": 0.5, "betas": (0.9, 0.999)}))
    {'lr': 0.5, 'betas': (0.9, 0.999)}
    >>> read_pickle(pickle.dumps(print))
    Name(module='builtins', name='print')
    """
    return _Machine(memoryview(data).cast("B")).run()


def is_key(value: Any) -> bool:
    """Return whether a value may be a key of a dict or an element of a set."""
    if type(value) is int:
        return -MAX_KEY <= value < MAX_KEY
    return type(value) in _KEY_TYPES


class _Machine:
    """The stack, the memo, and the position in the bytes."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.containers_left = MIN_CONTAINERS + len(data) // BYTES_PER_CONTAINER
        self.memo_limit = MIN_CONTAINERS + len(data) // BYTES_PER_MEMO_ENTRY

    def run(self) -> Any:
        data, size, stack = self.data, len(self.data), self.stack
        while self.at < size:
            code = data[self.at]
            self.at += 1
            if code == ord("."):
                if len(stack) != 1 or stack[0] is _MARK:
                    self.fail("one value is left at the end", f"{len(stack)} values")
                if self.at != size:
                    self.fail("the end of the bytes", f"{size - self.at} more")
                return stack[0]
            instruction = _INSTRUCTIONS.get(code)
            if instruction is None:
                self.fail("an instruction that builds data", f"{bytes([code])!r}")
            instruction(self)
        raise self.error("the instruction that ends a pickle", "the end of the bytes")

    # -- reading operands ---------------------------------------------------------------------

    def take(self, count: int) -> memoryview:
        if count > len(self.data) - self.at:
            self.fail(f"{count} bytes", f"{len(self.data) - self.at} before the end")
        part = self.data[self.at : self.at + count]
        self.at += count
        return part

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def line(self) -> bytes:
        window = 4096
        while True:
            part = bytes(self.data[self.at : self.at + window])
            end = part.find(b"\n")
            if end >= 0:
                self.at += end + 1
                return part[:end]
            if len(part) < window:
                self.fail("a line", "no end of it")
            window *= 2

    def decoded(self, raw: bytes | memoryview, encoding: str) -> str:
        errors = "surrogatepass" if encoding == "utf-8" else "strict"
        try:
            return codecs.decode(bytes(raw), encoding, errors)
        except ValueError:
            self.fail(f"text in {encoding}", repr(bytes(raw[:40])))

    def integer(self, text: bytes) -> int:
        try:
            # The number of digits of the longest binary integer.
            return int(text[:600].rstrip(b"L"))
        except ValueError:
            self.fail("an integer", repr(text[:40]))

    # -- the stack ----------------------------------------------------------------------------

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            self.fail("a value on the stack", "none")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            self.fail("a value on the stack", "none")
        return self.stack[-1]

    def items(self) -> list:
        """Pop and return the values above the last mark, and the mark."""
        for position in range(len(self.stack) - 1, -1, -1):
            if self.stack[position] is _MARK:
                result = self.stack[position + 1 :]
                del self.stack[position:]
                return result
        raise self.error("a mark on the stack", "none")

    def container(self, value: Any) -> None:
        """Push a new container, if the file is large enough for that many."""
        self.containers_left -= 1
        if self.containers_left < 0:
            self.fail("no more containers than a file of this size may hold", "more")
        self.stack.append(value)

    def keys(self, values: list) -> list:
        for value in values:
            if not is_key(value):
                self.fail("a key that is text or a number of 64 bits", type(value).__name__)
        return values

    def update(self, pairs: list) -> None:
        target = self.top()
        if isinstance(target, Call):
            target = target.pairs
        if type(target) is not dict:
            self.fail("a dict to put items into", type(target).__name__)
        if len(pairs) % 2:
            self.fail("pairs of keys and values", "an odd number")
        target.update(zip(self.keys(pairs[::2]), pairs[1::2], strict=True))

    def extend(self, values: list, kind: type) -> None:
        target = self.top()
        if type(target) is not kind:
            self.fail(f"a {kind.__name__} to add to", type(target).__name__)
        if kind is list:
            target.extend(values)
        else:
            target.update(self.keys(values))

    def keep(self, index: int) -> None:
        if index < 0 or len(self.memo) >= self.memo_limit:
            self.fail("no more memo entries than a file of this size may hold", str(index))
        self.memo[index] = self.top()

    def recall(self, index: int) -> None:
        if index not in self.memo:
            self.fail("a memo entry", f"none at {index}")
        self.stack.append(self.memo[index])

    # -- names and calls ----------------------------------------------------------------------

    def call(self) -> None:
        args, function = self.pop(), self.pop()
        if type(function) is not Name or type(args) is not tuple:
            self.fail("a name and a tuple to call it with", type(function).__name__)
        if function in _BYTES:
            self.push(self.old_bytes(function, args))
        else:
            self.container(Call(function, args))

    def old_bytes(self, function: Name, args: tuple) -> bytes | bytearray:
        """Return the bytes that older protocols store as a call with a string."""
        kind = bytearray if function.name == "bytearray" else bytes
        if not args:
            return kind()
        content = args[0]
        if type(content) is bytes and len(args) == 1:
            return kind(content)
        if type(content) is str and args[1:] in (("latin1",), ("latin-1",)):
            return kind(self.encoded(content))
        raise self.error(f"bytes for {function.name}", f"{type(content).__name__}")

    def encoded(self, text: str) -> bytes:
        try:
            return text.encode("latin1")
        except UnicodeEncodeError:
            self.fail("text that stands for bytes", repr(text[:40]))

    def build(self) -> None:
        state, target = self.pop(), self.top()
        if type(target) is not Call or target.state is not None:
            self.fail("an object that has no state yet", type(target).__name__)
        target.state = state

    def name(self) -> None:
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            self.fail("the text of a name", type(name).__name__)
        self.container(Name(module, name))

    def error(self, expected: str, found: str) -> PickleError:
        return PickleError(f"at byte {self.at} expected {expected}, found {found}")

    def fail(self, expected: str, found: str) -> NoReturn:
        raise self.error(expected, found)


# -- instructions, by their code -------------------------------------------------------------------


def _long(size: str) -> Callable[[_Machine], None]:
    def read(m: _Machine) -> None:
        count = m.number(size)
        if not 0 <= count <= MAX_INTEGER_BYTES:
            m.fail(f"an integer of at most {MAX_INTEGER_BYTES} bytes", f"{count} bytes")
        m.push(int.from_bytes(m.take(count), "little", signed=True))

    return read


def _int_line(m: _Machine) -> None:
    text = m.line()
    m.push(text == b"01" if text in (b"00", b"01") else m.integer(text))


def _float_line(m: _Machine) -> None:
    text = m.line()
    try:
        m.push(float(text[:400]))
    except ValueError:
        m.fail("a number", repr(text[:40]))


def _quote(m: _Machine) -> None:
    text = m.line()
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
        m.fail("a quoted string", repr(text[:40]))
    try:
        m.push(m.decoded(codecs.escape_decode(text[1:-1])[0], "ascii"))
    except ValueError:
        m.fail("a quoted string", repr(text[:40]))


def _text(size: str, encoding: str) -> Callable[[_Machine], None]:
    return lambda m: m.push(m.decoded(m.take(_length(m, size)), encoding))


def _bytes(size: str, kind: type) -> Callable[[_Machine], None]:
    return lambda m: m.push(kind(m.take(_length(m, size))))


def _length(m: _Machine, size: str) -> int:
    count = m.number(size)
    return count if count >= 0 else m.fail("a length", str(count))


def _tuple(count: int) -> Callable[[_Machine], None]:
    def make(m: _Machine) -> None:
        m.container(tuple([m.pop() for _ in range(count)][::-1]))

    return make


def _dict(m: _Machine) -> None:
    items = m.items()
    m.container({})
    m.update(items)


def _protocol(m: _Machine) -> None:
    result = m.number("<B")
    if result > MAX_PROTOCOL:
        m.fail(f"a protocol up to {MAX_PROTOCOL}", str(result))


def _set_pair(m: _Machine) -> None:
    value = m.pop()
    m.update([m.pop(), value])


def _append(m: _Machine) -> None:
    value = m.pop()
    m.extend([value], list)


def _global_line(m: _Machine) -> None:
    m.push(m.decoded(m.line(), "utf-8"))
    m.push(m.decoded(m.line(), "utf-8"))
    m.name()


_INSTRUCTIONS: dict[int, Callable[[_Machine], Any]] = {
    code[0]: instruction
    for code, instruction in {
        b"\x80": _protocol,
        b"\x95": lambda m: m.number("<Q"),  # a frame: the number of bytes to read ahead
        b"(": lambda m: m.push(_MARK),
        b"0": lambda m: m.pop() if m.stack[-1:] != [_MARK] else m.items(),
        b"1": lambda m: m.items(),
        b"N": lambda m: m.push(None),
        b"\x88": lambda m: m.push(True),
        b"\x89": lambda m: m.push(False),
        b"I": _int_line,
        b"J": lambda m: m.push(m.number("<i")),
        b"K": lambda m: m.push(m.number("<B")),
        b"M": lambda m: m.push(m.number("<H")),
        b"L": lambda m: m.push(m.integer(m.line())),
        b"\x8a": _long("<B"),
        b"\x8b": _long("<i"),
        b"F": _float_line,
        b"G": lambda m: m.push(m.number(">d")),
        b"S": _quote,
        b"T": _text("<i", "ascii"),
        b"U": _text("<B", "ascii"),
        b"V": lambda m: m.push(m.decoded(m.line(), "raw-unicode-escape")),
        b"X": _text("<I", "utf-8"),
        b"\x8c": _text("<B", "utf-8"),
        b"\x8d": _text("<Q", "utf-8"),
        b"B": _bytes("<I", bytes),
        b"C": _bytes("<B", bytes),
        b"\x8e": _bytes("<Q", bytes),
        b"\x96": _bytes("<Q", bytearray),
        b"]": lambda m: m.container([]),
        b"l": lambda m: m.container(m.items()),
        b"a": _append,
        b"e": lambda m: m.extend(m.items(), list),
        b")": lambda m: m.push(()),
        b"t": lambda m: m.container(tuple(m.items())),
        b"\x85": _tuple(1),
        b"\x86": _tuple(2),
        b"\x87": _tuple(3),
        b"}": lambda m: m.container({}),
        b"d": _dict,
        b"s": _set_pair,
        b"u": lambda m: m.update(m.items()),
        b"\x8f": lambda m: m.container(set()),
        b"\x90": lambda m: m.extend(m.items(), set),
        b"\x91": lambda m: m.container(frozenset(m.keys(m.items()))),
        b"p": lambda m: m.keep(m.integer(m.line())),
        b"q": lambda m: m.keep(m.number("<B")),
        b"r": lambda m: m.keep(m.number("<I")),
        b"\x94": lambda m: m.keep(len(m.memo)),
        b"g": lambda m: m.recall(m.integer(m.line())),
        b"h": lambda m: m.recall(m.number("<B")),
        b"j": lambda m: m.recall(m.number("<I")),
        b"c": _global_line,
        b"\x93": lambda m: m.name(),
        b"R": lambda m: m.call(),
        b"\x81": lambda m: m.call(),  # creates an instance of a class
        b"b": lambda m: m.build(),
    }.items()
}
