"""Captures the kernels that torch runs in a training step of a small graph.

One step is recorded below torch's autograd: every kernel with its arguments. Later steps run this
list as two Python functions without loops. The same kernels run in the same order, so results are
equal bit for bit, but torch neither builds nor traverses a graph. For chains of small operators,
that saves most of the time.

Steps that a list cannot repeat are not captured: values reach Python (`Tensor.item`), kernels may
make different calls each time (`Facts.repeatable`), or the capture would hold much memory. Such
steps run normally.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ...torch_private import KernelWatcher, find_functions, schema_of

MAX_BYTES = 2**24  # of all results of one step: for larger arrays, the overhead of Python is small
MAX_CALLS = 50_000
ATTEMPTS = (2, 8, 32)  # steps to capture at: some kernels only check their first inputs
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
    """A kernel call."""

    kernel: Any
    function: Function  # the fastest Python function that calls the kernel
    args: tuple
    kwargs: dict[str, Any]
    results: Any

    @property
    def written(self) -> Iterator[Any]:
        """The arguments that the kernel writes into."""
        for position, argument in enumerate(schema_of(self.kernel).arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                is_given = position < len(self.args)
                yield from flat(self.args[position] if is_given else self.kwargs.get(argument.name))


class Capture:
    """The kernels of a captured step. `calls` is None if the step cannot be repeated."""

    def __init__(self) -> None:
        self.calls: list[Call] | None = []
        self.forward_calls = 0
        self._bytes = 0

    def refuse(self) -> None:
        """Abort the capture; the step still runs."""
        self.calls = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record the kernels that this thread runs."""
        with _Reads(self), _Kernels(self):
            yield

    def add(self, call: Call) -> None:
        """Record one call."""
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
    """Detects Python code that reads values."""

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
    """Records the kernels that run."""

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
            self._capture.refuse()  # the kernels depend on values, such as a label out of range
            raise
        self._capture.add(Call(func, function, args, kwargs, results))
        return results


class _OtherKernel(Exception):
    """Raised if a Python function of torch calls another kernel than expected."""


class _Expect(KernelWatcher):
    """Runs one kernel, and raises for any other."""

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
    """Return whether two arguments are identical tensors, or equal values of the same type."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return first is second
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(_are_same(a, b) for a, b in pairs)
    return type(first) is type(second) and repr(first) == repr(second)


def _run_shortest(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Function, Any]:
    """Run a kernel. Return torch's fastest Python function for it, and the result.

    `torch.add` parses its arguments in half the time of ``torch.ops.aten.add.Tensor``. It is used
    if it calls the same kernel with the same arguments.
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
