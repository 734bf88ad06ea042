"""The short way from `mx.nd.X(...)` to a kernel.

Dense arrays by position, with attributes in words that were used before, need no sorting and no
parsing: what is to be done is remembered. Everything else goes the general way, and is learned.
The functions differ in how many arrays they take, since each is as hot as it can be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..error import MXNetError
from ..ops.declare import KERNEL_ERRORS, MAX_CACHED_ATTRS, Op, OpContext, operator_error
from .handle import Handle, current, new_object, wrap_plain, wrap_recorded
from .state import recording_scopes, state

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray

FLOATING = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})
_CPU = torch.device("cpu")
_ON_CPU = {training: OpContext(training, _CPU) for training in (False, True)}


class Known:
    """What calls of one operator come to, by their arguments other than arrays."""

    __slots__ = ("calls", "general", "op")

    def __init__(self, op: Op, general: Callable) -> None:
        self.op, self.general = op, general
        self.calls: dict[Any, Callable] = {}
        op.follow(self.calls.clear)

    def learn(self, key: Any, args: tuple, given: dict[str, Any]) -> Any:
        """Call the general way; if that works, remember the short one."""
        result = self.general(*args, **given)
        if len(self.calls) < MAX_CACHED_ATTRS and (call := _short(self.op, args, given)):
            self.calls[key] = call
        return result


def _short(op: Op, args: tuple, given: dict[str, Any]) -> Callable | None:
    """Return a function of tensors that does what this call did, if there is one."""
    if "out" in given or any(isinstance(v, Handle | list) for v in given.values()):
        return None
    given = {word: value for word, value in given.items() if not _idle(op, word, value)}
    n = len(args) if op.variadic is not None else min(len(args), len(op.inputs))
    words = [name for name in op.attributes if name != op.count]
    if not all(isinstance(a, Handle) for a in args[:n]) or len(args) - n > len(words):
        return None
    attrs = dict(zip(words, args[n:], strict=False)) | given
    if op.count in op.attributes:
        attrs.setdefault(op.count, n)
    attrs = op.parse(attrs)
    absent: tuple[None, ...] = ()
    if op.variadic is None:
        absent = (None,) * (len(op.inputs) - n)
        names = tuple(i.name for i in op.inputs[:n])
        if op.optional and names != tuple(op.wanted_inputs(attrs)):
            return None
    return _bound(op, absent, attrs)


def _idle(op: Op, word: str, value: Any) -> bool:
    """Return whether a word says nothing: the name of the call, or an input that is None."""
    if word == "name":
        return "name" not in op.attributes
    return value is None and word in op.input_index


def _bound(op: Op, absent: tuple[None, ...], attrs: dict[str, Any]) -> Callable:
    kernel, surroundings = op.kernel, op.context_parameter
    if surroundings is not None:

        def in_context(*tensors: Tensor) -> Any:
            first = tensors[0]
            if first.is_cpu:
                run = _ON_CPU[state.training]
            else:
                run = OpContext(state.training, first.device)
            return kernel(*tensors, *absent, **attrs, **{surroundings: run})

        return in_context
    if absent:
        return lambda *tensors: kernel(*tensors, *absent, **attrs)
    if attrs:
        return lambda *tensors: kernel(*tensors, **attrs)
    return kernel


def of_floats(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    """Return the function of an elementwise operator; on floats its bare kernel will do."""
    kernel = op.kernel

    def take_kernel() -> None:
        nonlocal kernel
        kernel = op.raw if op.gradient_rule is None else op.kernel

    op.follow(take_kernel)

    def function(data: Any = None, *rest: Any, **given: Any) -> Any:
        if type(data) is not cls or rest or given:
            return general(data, *rest, **given)
        dtype, x = data._dtype, data._data
        if dtype not in FLOATING:
            return general(data)
        if x is None or recording_scopes:
            return wrap_recorded(cls, kernel(current(data)), dtype, (data,))
        array = new_object(cls)
        array._data = kernel(x)
        array._tracked = None
        array._dtype = dtype
        array._ctx = data._ctx
        array._grad = None
        return array

    return function


def of_one(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    """Return the function of an operator with one input."""
    known = Known(op, general)
    calls = known.calls

    def function(*args: Any, **given: Any) -> Any:
        key = (args[1:], *given.items()) if given or len(args) > 1 else ()
        try:
            call = calls.get(key)
        except TypeError:  # something that is no key
            return general(*args, **given)
        if call is None or not args:
            return known.learn(key, args, given)
        first = args[0]
        if type(first) is not cls:
            return general(*args, **given)
        x = first._data
        if x is None or recording_scopes:
            x = current(first)
        try:
            out = call(x)
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            raise operator_error(op.name, (x,), error) from error
        if recording_scopes or type(out) is not Tensor:
            return _wrapped(cls, out, (first,))
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._dtype = out.dtype
        array._ctx = first._ctx
        array._grad = None
        return array

    return function


def of_two(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    """Return the function of an operator with two inputs."""
    known = Known(op, general)
    calls = known.calls

    def function(*args: Any, **given: Any) -> Any:
        key = (args[2:], *given.items()) if given or len(args) > 2 else ()
        try:
            call = calls.get(key)
        except TypeError:
            return general(*args, **given)
        if call is None or len(args) < 2:
            return known.learn(key, args, given)
        first, second = args[0], args[1]
        if type(first) is not cls or type(second) is not cls:
            return general(*args, **given)
        x, y = first._data, second._data
        if x is None or y is None or recording_scopes:
            x, y = current(first), current(second)
        try:
            out = call(x, y)
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            raise operator_error(op.name, (x, y), error) from error
        if recording_scopes or type(out) is not Tensor:
            return _wrapped(cls, out, (first, second))
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._dtype = out.dtype
        array._ctx = first._ctx
        array._grad = None
        return array

    return function


def of_many(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    """Return the function of an operator with more inputs, some of them perhaps absent."""
    return _of_several(op, cls, general, len(op.inputs))


def of_any_number(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    """Return the function of an operator that takes as many arrays as it is given."""
    return _of_several(op, cls, general, None)


def _of_several(op: Op, cls: type[NDArray], general: Callable, most: int | None) -> Callable:
    known = Known(op, general)
    calls = known.calls

    def function(*args: Any, **given: Any) -> Any:
        arrays = args[:most]
        key = (len(arrays), args[most:] if most else (), *given.items())
        try:
            call = calls.get(key)
        except TypeError:
            return general(*args, **given)
        if call is None:
            return known.learn(key, args, given)
        tensors = []
        for array in arrays:
            if type(array) is not cls:
                return general(*args, **given)
            x = array._data
            if x is None or recording_scopes:
                x = current(array)
            tensors.append(x)
        try:
            out = call(*tensors)
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            raise operator_error(op.name, tensors, error) from error
        if recording_scopes or type(out) is not Tensor:
            return _wrapped(cls, out, arrays)
        return wrap_plain(cls, out, arrays[0]._ctx)

    return function


def _wrapped(cls: type[NDArray], out: Any, sources: tuple) -> Any:
    """Return the array of a recorded result, or the arrays of several results."""
    if type(out) is Tensor:
        return wrap_recorded(cls, out, out.dtype, sources)
    return [wrap_recorded(cls, each, each.dtype, sources) for each in out]
