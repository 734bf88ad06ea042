"""Compiles captured kernels to two Python functions, forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...torch_private import schema_of
from .kernels import Call, Capture, Function, flat

_DETACH = torch.ops.aten.detach.default
_TRANSPOSE = torch.ops.aten.t.default


class Unrepeatable(Exception):
    """Raised if a list of calls cannot repeat a captured step."""


class Line(NamedTuple):
    """One call as text, with the names that it reads and defines."""

    text: str
    reads: list[str]
    defines: list[str]


class Functions(NamedTuple):
    """A step as two functions.

    Parameters
    ----------
    forward : ``forward(inputs) -> heads, saved``.
    backward : ``backward(saved, head_gradients) -> gradients``.
    """

    forward: Function
    backward: Function


class Writer:
    """Names tensors by identity, and writes calls as source lines."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.globals: dict[str, Any] = {}
        self._owners: list[Tensor] = []  # keeps references, so that ids are not reused
        self._storages: set[int] = set()
        self._constants: set[int] = set()
        self._aliased: set[str] = set()
        self._transposed: dict[str, str] = {}  # names of matrices, by the names of their transposes
        self._reshaped: set[str] = set()

    def define(self, tensor: Tensor) -> str:
        """Return the name of a tensor. Create one if needed."""
        name = self.names.get(id(tensor))
        if name is None:
            name = f"v{len(self._owners)}"
            self._name(tensor, name)
        return name

    def _name(self, tensor: Tensor, name: str) -> None:
        self.names[id(tensor)] = name
        self._owners.append(tensor)
        self._storages.add(tensor.untyped_storage().data_ptr())

    def write(self, calls: Sequence[Call]) -> list[Line]:
        """Return the lines of calls, in order."""
        lines = [line for call in calls if (line := self._line(call)) is not None]
        if self._aliased & self._reshaped:
            raise Unrepeatable("two tensors that are one here get different shapes")
        return lines

    def _line(self, call: Call) -> Line | None:
        tensors = [a for a in flat([*call.args, *call.kwargs.values()]) if isinstance(a, Tensor)]
        unknown = [t for t in tensors if id(t) not in self.names]
        for tensor in unknown:
            self._check_constant(tensor)
        for tensor in call.written:
            if tensor is not None and id(tensor) not in self.names:
                raise Unrepeatable("a constant is written into")
        if call.kernel is _DETACH and not unknown:
            self._alias(call.results, self.names[id(tensors[0])])
            return None
        if call.kernel is _TRANSPOSE and not unknown:
            origin = self._transposed.get(self.names[id(tensors[0])])
            if origin is not None:  # the transpose of a transpose
                self._alias(call.results, origin)
                return None
            self._transposed[self.define(call.results)] = self.names[id(tensors[0])]
        if tensors and len(unknown) == len(tensors) and not _draws(call.kernel):
            self._fold(call.results)
            return None
        arguments = [self._text(a) for a in call.args]
        arguments += [f"{key}={self._text(value)}" for key, value in call.kwargs.items()]
        reads = [self.names[id(t)] for t in tensors if id(t) in self.names]
        if torch.Tag.inplace_view in call.kernel.tags or schema_of(call.kernel).name in _RESIZING:
            self._reshaped.add(reads[0])
        results = call.results if isinstance(call.results, list | tuple) else (call.results,)
        defines = ["_" if r is None else self.define(r) for r in results]
        targets = ", ".join(defines)
        if isinstance(call.results, list | tuple):
            targets = f"[{targets}]"
        text = f"{self._global(call.function)}({', '.join(arguments)})"
        defined = [d for d in defines if d != "_"]
        return Line(f"{targets} = {text}" if defined else text, reads, defined)

    def _alias(self, tensor: Tensor, name: str) -> None:
        self._aliased.add(name)
        self._name(tensor, name)

    def _check_constant(self, tensor: Tensor) -> None:
        """Raise for unknown views of known memory: their creation was not captured."""
        if id(tensor) in self._constants:
            return
        if tensor.untyped_storage().data_ptr() in self._storages:
            raise Unrepeatable("a view was made unseen")

    def _fold(self, results: Any) -> None:
        """Treat results computed only from constants as constants."""
        for result in flat(results):
            if result is not None:
                self._constants.add(id(result))
                self._owners.append(result)

    def _text(self, value: Any) -> str:
        if isinstance(value, list | tuple):
            return f"[{', '.join(self._text(item) for item in value)}]"
        if value is None or type(value) in (bool, int):
            return repr(value)
        if isinstance(value, Tensor) and id(value) in self.names:
            return self.names[id(value)]
        return self._global(value)

    def _global(self, value: Any) -> str:
        """Return the name of a value that is the same in every step."""
        name = f"g{id(value)}"
        self.globals[name] = value  # keep a reference, so that its id is not reused
        return name


_RESIZING = frozenset({"aten::resize_", "aten::set_", "aten::resize_as_"})


def _draws(kernel: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in kernel.tags


def compile_step(
    capture: Capture,
    feed: Sequence[Tensor],
    heads: Sequence[Tensor],
    starts: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
) -> Functions | None:
    """Return a captured step as functions; None if it cannot be repeated.

    Its forward ran on `feed`, its backward on `starts`.
    """
    calls = capture.calls
    if calls is None or not all(t.is_contiguous() for t in (*feed, *starts)):
        return None
    try:
        return _compile(calls, capture.forward_calls, feed, heads, starts, gradients)
    except Unrepeatable:
        return None


def _compile(
    calls: Sequence[Call],
    forward_calls: int,
    feed: Sequence[Tensor],
    heads: Sequence[Tensor],
    starts: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
) -> Functions:
    writer = Writer()
    fed = [writer.define(t) for t in feed]
    forward = writer.write(calls[:forward_calls])
    shown = [_known(writer, h) for h in heads]
    before = set(writer.names.values())
    begun = [writer.define(t) for t in starts]
    if len({*begun} - before) < len(begun):
        raise Unrepeatable("backward starts from a tensor that has another part in the step")
    backward = writer.write(calls[forward_calls:])
    found = ["None" if g is None else _known(writer, g) for g in gradients]
    read = {name for line in backward for name in line.reads} | set(found)
    saved = sorted(before & read)
    lines = [
        "def forward(feed):",
        f" [{', '.join(fed)}] = feed",
        *_with_deletions(forward, {*shown, *saved, *fed}),
        f" return [{', '.join(shown)}], [{', '.join(saved)}]",
        "def backward(saved, starts):",
        f" [{', '.join(saved)}] = saved",
        " saved.clear()",
        f" [{', '.join(begun)}] = starts",
        *_with_deletions(backward, set(found)),
        f" return [{', '.join(found)}]",
    ]
    scope = writer.globals
    exec(compile("\n".join(lines), "<captured step>", "exec"), scope)
    return Functions(scope["forward"], scope["backward"])


def _known(writer: Writer, tensor: Tensor) -> str:
    name = writer.names.get(id(tensor))
    if name is None:
        raise Unrepeatable("a result was made unseen")
    return name


def _with_deletions(lines: Sequence[Line], needed: set[str]) -> list[str]:
    """Return the source lines. Variables are deleted after their last use."""
    texts: list[str] = []
    seen = set(needed)
    for line in reversed(lines):
        dead = dict.fromkeys(n for n in (*line.reads, *line.defines) if n not in seen)
        seen.update(dead)
        texts.append(f" {line.text}" + (f"; del {', '.join(dead)}" if dead else ""))
    return texts[::-1]
