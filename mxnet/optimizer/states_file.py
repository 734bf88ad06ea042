"""Optimizer states as bytes: the content of ``.states`` files.

MXNet unpickles the beginning of the file and ignores the rest. MXNext reads the rest: a JSON
description of the values, with offset and checksum of each array in the pickled part, and a footer
with the offset of the description. Files of MXNet have no footer; `pickle_reader` reads their
pickle without running code.
"""

from __future__ import annotations

import json
import pickle
import struct
import zlib
from typing import Any, NoReturn

import numpy as np

from ..error import FormatError, MXNetError
from ..formats.pickle_reader import PickleError, is_key, read_pickle
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from .base import Optimizer
from .states_values import (
    MAX_DEPTH,
    MAX_VALUES,
    Named,
    build,
    make_array,
    make_numpy,
    make_object,
    program_class,
    resolve,
)

__all__ = ["UnreadableStates", "dump_states", "read_states"]

MAGIC = b"MXNextS1"
FOOTER = struct.Struct("<QI8s")  # length and checksum of the description, magic number
PICKLE_PROTOCOL = 4  # the newest protocol that every Python version of MXNet supports


class UnreadableStates(FormatError, pickle.UnpicklingError):
    """Raised for damaged optimizer states and other bytes."""


def read_states(data: bytes, live: Optimizer | None = None) -> dict | tuple[dict, Optimizer]:
    """Return the states by index, or a pair (states, optimizer).

    Attributes of the optimizer that files do not store are taken from `live`, the program's
    optimizer; without `live` they are replaced by names (see `states_values`).

    >>> read_states(dump_states({0: None}))
    {0: None}
    """
    try:
        if data[-len(MAGIC) :] == MAGIC:
            described = _Description(data)
            read = described.value()
            if described.has_names and live is not None:
                read = resolve(read, (None, live) if isinstance(read, tuple) else None)
        else:
            read = build(read_pickle(data))
    except PickleError as error:
        raise UnreadableStates(f"These are not optimizer states: {error}.") from error
    states = read
    if isinstance(read, tuple) and len(read) == 2 and isinstance(read[1], Optimizer):
        states = read[0]
    if not isinstance(states, dict):
        raise FormatError(
            "Optimizer states are a dict, or a pair of a dict and an optimizer; these bytes "
            "contain "
            f"{type(read).__name__}."
        )
    return read


def dump_states(held: dict | tuple[dict, Optimizer]) -> bytes:
    """Return states, optionally with their optimizer, as bytes that MXNet can read too."""
    pickled = pickle.dumps(held, protocol=PICKLE_PROTOCOL)
    described = _Describer(pickled).describe(held)
    text = json.dumps(described, separators=(",", ":")).encode()
    return pickled + text + FOOTER.pack(len(text), zlib.crc32(text), MAGIC)


# Containers and arrays are numbered nodes that refer only to earlier ones; {"ref": n} is node n. So
# descriptions have no cycles, and shared objects stay shared.


class _Describer:
    """Converts values to JSON, with arrays as ranges in the pickled bytes."""

    def __init__(self, pickled: bytes) -> None:
        self.pickled = pickled
        self.search_from = 0
        self.nodes: list[Any] = []
        self.known: dict[int, tuple[int, Any]] = {}  # by identity; the value is kept alive
        self.under_way: set[int] = set()

    def describe(self, value: Any) -> dict[str, Any]:
        root = self.atom(value)
        return {"format": "MXNext optimizer states", "root": root, "nodes": self.nodes}

    def atom(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) not in self.known:
            if id(value) in self.under_way:
                raise MXNetError(
                    f"Optimizer states hold {type(value).__name__} inside itself, which cannot be "
                    "saved: leave it out of the result of __getstate__."
                )
            self.under_way.add(id(value))
            node = self.node(value)
            self.under_way.discard(id(value))
            self.nodes.append(node)
            self.known[id(value)] = len(self.nodes) - 1, value
        return {"ref": self.known[id(value)][0]}

    def node(self, value: Any) -> dict[str, Any]:
        if isinstance(value, NDArray):
            return {"array": self.place(value.__getstate__()["handle"])}
        kind = type(value)
        if kind in (list, tuple, set, frozenset):
            return {kind.__name__: [self.atom(v) for v in value]}
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            raw = np.ascontiguousarray(value)
            form = "numpy" if isinstance(value, np.ndarray) else "scalar"
            return {form: [raw.dtype.str, list(np.shape(value)), raw.tobytes().hex()]}
        if isinstance(value, bytes | bytearray):
            return {type(value).__name__: value.hex()}
        if isinstance(value, dict):
            return {"dict": [[self.atom(k), self.atom(v)] for k, v in value.items()]}
        if isinstance(value, Optimizer | LRScheduler) or program_class(*Named.of(kind)) is kind:
            get_fields = getattr(kind, "__getstate__", vars)
            fields = {k: self.atom(v) for k, v in (get_fields(value) or {}).items()}
            return {"object": [kind.__module__, kind.__qualname__, fields]}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"dtype": value.__name__}
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        return {"borrowed": list(Named.of(value))}

    def place(self, record: bytes | None) -> list[int] | str | None:
        """Return the offset of a record in the pickled bytes, its length and checksum."""
        if record is None:
            return None
        at = self.pickled.find(record, self.search_from)
        if at < 0:
            at = self.pickled.find(record)
        if at < 0:
            return bytes(record).hex()
        self.search_from = at + len(record)
        return [at, len(record), zlib.crc32(record)]


class _Description:
    def __init__(self, data: bytes) -> None:
        self.has_names = False  # names of objects of the program
        if len(data) < FOOTER.size:
            self.fail("they are truncated")
        length, checksum, _ = FOOTER.unpack_from(data, len(data) - FOOTER.size)
        end = len(data) - FOOTER.size
        if length > end:
            self.fail("their description is longer than the file")
        text = memoryview(data)[end - length : end]
        if zlib.crc32(text) != checksum:
            self.fail("the checksum of their description is wrong")
        self.pickled = memoryview(data)[: end - length]
        try:
            described = json.loads(bytes(text))
            self.root, self.nodes = described["root"], described["nodes"]
        except (ValueError, KeyError, TypeError, RecursionError):
            self.fail("their description is invalid")

    def value(self) -> Any:
        built: list[Any] = []
        sizes: list[int] = []
        depths: list[int] = []

        def atom(described: Any) -> Any:
            nonlocal size, depth
            if not isinstance(described, dict):
                return described
            index = described["ref"]
            if type(index) is not int or not 0 <= index < len(built):
                self.fail("a reference is invalid")
            size += sizes[index]
            depth = max(depth, depths[index] + 1)
            return built[index]

        try:
            for described in self.nodes:
                size, depth = 1, 0
                ((kind, content),) = described.items()
                value = self.node(kind, content, atom)
                if size > MAX_VALUES or depth > MAX_DEPTH:
                    self.fail(f"they have more than {MAX_VALUES} values, or are nested too deeply")
                built.append(value)
                sizes.append(size)
                depths.append(depth)
            size, depth = 1, 0
            return atom(self.root)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            if isinstance(error, FormatError):
                raise
            self.fail(f"their description is invalid ({error})")

    def node(self, kind: str, content: Any, atom: Any) -> Any:
        if kind == "array":
            return make_array(self.record(content))
        if kind in ("numpy", "scalar"):
            code, shape, data = content
            array = make_numpy(code, shape, bytes.fromhex(data))
            return array if kind == "numpy" else array[()]
        if kind in ("bytes", "bytearray"):
            raw = bytes.fromhex(content)
            return raw if kind == "bytes" else bytearray(raw)
        if kind == "dict":
            return {self.key(atom(k)): atom(v) for k, v in content}
        if kind in ("list", "tuple"):
            values = [atom(v) for v in content]
            return values if kind == "list" else tuple(values)
        if kind in ("set", "frozenset"):
            keys = [self.key(atom(v)) for v in content]
            return set(keys) if kind == "set" else frozenset(keys)
        if kind == "object":
            module, name, fields = content
            return make_object(module, name, {k: atom(v) for k, v in fields.items()})
        if kind == "dtype":
            code = np.dtype(str(content))
            return code.type if code.kind in "biufc" else self.fail("an unknown number type")
        if kind == "complex":
            return complex(float(content[0]), float(content[1]))
        if kind == "borrowed":
            self.has_names = True
            return Named(str(content[0]), str(content[1]))
        raise _damaged(f"they have an unknown kind {kind!r:.80}")

    def key(self, value: Any) -> Any:
        return value if is_key(value) else self.fail("a key is neither a string nor a number")

    def record(self, position: Any) -> Any:
        if position is None or isinstance(position, str):
            return None if position is None else bytes.fromhex(position)
        at, length, checksum = position
        if not (at >= 0 and 0 <= length <= len(self.pickled) - at):
            self.fail("an array lies outside of the file")
        record = self.pickled[at : at + length]
        if zlib.crc32(record) != checksum:
            self.fail(f"the checksum of the array at byte {at} is wrong: the file is damaged")
        return record

    def fail(self, why: str) -> NoReturn:
        raise _damaged(why)


def _damaged(why: str) -> UnreadableStates:
    return UnreadableStates(f"These are no valid optimizer states: {why}.")
