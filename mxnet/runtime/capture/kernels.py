"""A training step of a small graph as the kernels that torch ran in it, forward and backward.

One step is watched below torch's autograd, and every kernel is written down with its arguments.
From then on the list itself runs, as two Python functions without loops: the same kernels in the
same order, so the same bits, but no graph is built and none is walked. In a chain of small
operators that is most of the time.

Nothing is captured that a list cannot repeat: values that reach Python (`Tensor.item`), kernels
that are not known to make the same calls each time (`Facts.repeatable`), steps that would hold much
memory while they are watched. Such steps run as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ...torch_private import KernelWatcher, find_functions, schema_of

MAX_BYTES = 2**24  # of all results of one step: with larger arrays Python is not what takes long
MAX_CALLS = 50_000
ATTEMPTS = (2, 8, 32)  # after so many steps: kernels that check their first inputs may stop
# Calls that read values on the host; other reads are kernels.
_READS = frozenset(
    {
        Tensor.__array__,
        Tensor.__dlpack__,
        Tensor.data_ptr,
        Tensor.item,
        Tensor.numpy,
        Tensor.tolist,
        Tensor.untyped_storage,
    }
)
Function = Callable[..., Any]


class Call(NamedTuple):
    """One kernel that ran."""

    kernel: Any
    function: Function  # a shorter way to it
    args: tuple
    kwargs: dict[str, Any]
    results: Any

    @property
    def written(self) -> Iterator[Any]:
        """The arguments that it writes into."""
        for position, argument in enumerate(schema_of(self.kernel).arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                is_given = position < len(self.args)
                yield from flat(self.args[position] if is_given else self.kwargs.get(argument.name))


class Capture:
    """The kernels of a watched step; `calls` is None once it cannot be repeated."""

    def __init__(self) -> None:
        self.calls: list[Call] | None = []
        self.forward_calls = 0
        self._bytes = 0

    def refuse(self) -> None:
        """Abort the capture; the step still runs."""
        self.calls = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Write down what this thread runs."""
        with _Reads(self), _Kernels(self):
            yield

    def add(self, call: Call) -> None:
        """Write down one call."""
        if self.calls is None:
            return None
        for result in flat(call.results):
            if not isinstance(result, Tensor):
                if result is not None:
                    return self.refuse()  # a value has reached Python
            elif result.layout is not torch.strided or not result.is_cpu:
                return self.refuse()
            elif not schema_of(call.kernel).is_mutable:
                self._bytes += result.nbytes
        self.calls.append(call)
        if self._bytes > MAX_BYTES or len(self.calls) > MAX_CALLS:
            self.refuse()
        return None


class _Reads(TorchFunctionMode):
    """Notices Python code that looks at values."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._capture = capture

    def __torch_function__(
        self, func: Function, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _READS:
            self._capture.refuse()
        return func(*args, **(kwargs or {}))


class _Kernels(KernelWatcher):
    """Writes down the kernels that run."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._capture = capture

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._capture.calls is None:
            return func(*args, **kwargs)
        try:
            function, results = _run_shortest(func, args, kwargs)
        except Exception:
            self._capture.refuse()  # what follows depends on values: a label out of range
            raise
        self._capture.add(Call(func, function, args, kwargs, results))
        return results


class _OtherKernel(Exception):
    """A Python function of torch calls another kernel than expected."""


class _Expect(KernelWatcher):
    """Runs one kernel, and refuses to run any other."""

    def __init__(self, expected: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        super().__init__()
        self._expected, self._given = expected, [*args, *kwargs.items()]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = [*args, *(kwargs or {}).items()]
        if func is not self._expected or not _are_same(given, self._given):
            raise _OtherKernel
        return func(*args, **(kwargs or {}))


def _are_same(first: Any, second: Any) -> bool:
    """Return whether two arguments are the same tensors and equal values of the same types."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return first is second
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(_are_same(a, b) for a, b in pairs)
    return type(first) is type(second) and repr(first) == repr(second)


def _run_shortest(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Function, Any]:
    """Return torch's quickest Python function for a kernel, and what it makes of the arguments.

    `torch.add` reads its arguments in half the time of ``torch.ops.aten.add.Tensor``. It is taken
    if it calls that very kernel with these very arguments.
    """
    *functions, own = find_functions(func)
    for function in functions:
        try:
            with _Expect(func, args, kwargs):
                return function, function(*args, **kwargs)
        except (_OtherKernel, TypeError):
            continue
    return own, func(*args, **kwargs)


def flat(value: Any) -> Iterator[Any]:
    """Return the items of nested lists."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value
