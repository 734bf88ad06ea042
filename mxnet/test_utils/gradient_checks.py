"""Checks of symbols: forward and backward against expected values, and numeric gradients."""

# ruff: noqa: NPY002 (np.random.seed has to rule these numbers)

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import mxnet as mx

from ..context import Context
from ..error import MXNetError
from ..executor import Executor
from ..ndarray import NDArray
from ..symbol import Symbol
from .comparison import assert_almost_equal, default_atols, default_numeric_eps, default_rtols
from .consistency import default_context

Values = Sequence[Any] | Mapping[str, Any]
_FLOATS = (np.float16, np.float32, np.float64)


def simple_forward(
    sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any
) -> np.ndarray | list[np.ndarray]:
    """Return the outputs of a symbol for NumPy inputs, as NumPy arrays.

    Parameters
    ----------
    sym
        The symbol.
    ctx
        Device; by default that of tests.
    is_train
        Whether to run in training mode.

    >>> x = mx.sym.Variable("x")
    >>> simple_forward(x * 2, x=np.ones(2))
    array([2., 2.], dtype=float32)
    """
    ctx = ctx or default_context()
    arrays = {name: mx.nd.array(value, ctx=ctx) for name, value in inputs.items()}
    exe = sym.bind(ctx, args=arrays)
    outputs = [out.asnumpy() for out in exe.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


# -- arrays for arguments ----------------------------------------------------------------------


def _array(value: Any, ctx: Context, dtype: Any) -> NDArray:
    if isinstance(value, NDArray):
        return value.as_in_context(ctx)
    values = np.asarray(value)
    return mx.nd.array(values, ctx=ctx, dtype=values.dtype if dtype == "asnumpy" else dtype)


def _check_dtype(dtype: Any) -> None:
    if dtype != "asnumpy" and dtype not in _FLOATS:
        raise AssertionError(f"dtype must be float16, float32, float64 or 'asnumpy', not {dtype}")


def _parse_location(
    sym: Symbol, location: Values, ctx: Context, dtype: Any = np.float32
) -> OrderedDict[str, NDArray]:
    _check_dtype(dtype)
    names = sym.list_arguments()
    if isinstance(location, Mapping):
        if set(location) != set(names):
            raise ValueError(
                "Symbol arguments and keys of the given location do not match."
                f"symbol args:{set(names)}, location.keys():{set(location)}"
            )
        pairs = [(n, location[n]) for n in names]
    else:
        pairs = list(zip(names, location, strict=False))
    return OrderedDict((n, _array(v, ctx, dtype)) for n, v in pairs)


def _parse_aux_states(
    sym: Symbol, aux_states: Values | None, ctx: Context, dtype: Any = np.float32
) -> dict[str, NDArray] | None:
    _check_dtype(dtype)
    if aux_states is None:
        return None
    names = sym.list_auxiliary_states()
    if isinstance(aux_states, Mapping):
        if set(aux_states) != set(names):
            raise ValueError(
                "Symbol aux_states names and given aux_states do not match."
                f"symbol aux_names:{set(names)}, aux_states.keys:{set(aux_states)}"
            )
        return {n: _array(aux_states[n], ctx, dtype) for n in names}
    return {n: _array(v, ctx, dtype) for n, v in zip(names, aux_states, strict=False)}


def _random_gradients(
    names: Sequence[str],
    location: Mapping[str, NDArray],
    stypes: Mapping[str, str] | None,
    ctx: Context,
) -> dict[str, NDArray]:
    """Return gradient arrays of random numbers, so that unwritten elements are detected."""
    gradients = {}
    for name in names:
        like = location[name]
        values = np.random.normal(size=like.shape)
        dense = mx.nd.array(values, ctx=ctx, dtype=like.dtype)
        stype = (stypes or {}).get(name, "default")
        gradients[name] = dense if stype == "default" else dense.tostype(stype)
    return gradients


def _requirements(grad_req: Any, names: Sequence[str]) -> dict[str, str]:
    if isinstance(grad_req, str):
        return dict.fromkeys(names, grad_req)
    if isinstance(grad_req, Mapping):
        return {n: grad_req.get(n, "null") for n in names}
    return dict(zip(names, grad_req, strict=True))


# -- forward and backward ----------------------------------------------------------------------


def check_symbolic_forward(
    sym: Symbol,
    location: Values,
    expected: Values,
    rtol: Any = None,
    atol: Any = None,
    aux_states: Values | None = None,
    ctx: Context | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> list[NDArray]:
    """Compare the outputs of a symbol with expected ones, and return them.

    Parameters
    ----------
    sym : Symbol
        The symbol.
    location
        Values of the arguments, in their order or by name.
    expected
        Values of the outputs, in their order or by name.
    rtol, atol
        Tolerances; by default those of the data type.
    aux_states
        Values of the auxiliary states, in their order or by name.
    ctx
        Device; by default that of tests.
    equal_nan
        Whether NaN equals NaN.
    dtype
        The type of the arrays; 'asnumpy' keeps that of each value.

    >>> x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    >>> out = check_symbolic_forward(x + y, [np.ones(2), np.ones(2)], [2 * np.ones(2)])
    """
    ctx = ctx or default_context()
    arguments = _parse_location(sym, location, ctx, dtype)
    aux = _parse_aux_states(sym, aux_states, ctx, dtype)
    names = sym.list_outputs()
    targets = [expected[n] for n in names] if isinstance(expected, Mapping) else list(expected)
    grads = {n: mx.nd.zeros(a.shape, ctx=ctx, dtype=a.dtype) for n, a in arguments.items()}
    exe = sym.bind(ctx, args=arguments, args_grad=grads, aux_states=aux)
    outputs = exe.forward(is_train=False)
    for name, want, got in zip(names, targets, outputs, strict=True):
        labels = (f"EXPECTED_{name}", f"FORWARD_{name}")
        assert_almost_equal(want, got.asnumpy(), rtol, atol, labels, equal_nan=equal_nan)
    return outputs


def check_symbolic_backward(
    sym: Symbol,
    location: Values,
    out_grads: Values | None,
    expected: Values,
    rtol: Any = None,
    atol: Any = None,
    aux_states: Values | None = None,
    grad_req: Any = "write",
    ctx: Context | None = None,
    grad_stypes: Mapping[str, str] | None = None,
    equal_nan: bool = False,
    dtype: Any = np.float32,
) -> dict[str, NDArray]:
    """Compare the gradients of a symbol with expected ones, and return them.

    Parameters
    ----------
    sym : Symbol
        The symbol.
    location
        Values of the arguments, in their order or by name.
    out_grads
        Gradients of the outputs, in their order or by name; None for loss operators.
    expected
        Gradients of the arguments, in their order or by name (then perhaps only some).
    rtol, atol
        Tolerances; by default those of the data type.
    aux_states
        Values of the auxiliary states, in their order or by name.
    grad_req
        {'write', 'add', 'null'}, a list or a dict of them.
    ctx
        Device; by default that of tests.
    grad_stypes
        Storage types of gradients by name.
    equal_nan
        Whether NaN equals NaN.
    dtype
        The type of the arrays; 'asnumpy' keeps that of each value.

    >>> x = mx.sym.Variable("x")
    >>> grads = check_symbolic_backward(x * 3, [np.ones(2)], [np.ones(2)], [3 * np.ones(2)])
    """
    ctx = ctx or default_context()
    arguments = _parse_location(sym, location, ctx, dtype)
    aux = _parse_aux_states(sym, aux_states, ctx, dtype)
    if not isinstance(expected, Mapping):
        expected = dict(zip(sym.list_arguments(), expected, strict=False))
    grads = _random_gradients(list(expected), arguments, grad_stypes, ctx)
    before = {n: g.asnumpy() for n, g in grads.items()}
    reqs = _requirements(grad_req, sym.list_arguments())
    exe = sym.bind(ctx, args=arguments, args_grad=grads, aux_states=aux, grad_req=reqs)
    exe.forward(is_train=True)
    exe.backward(_parse_out_grads(sym, exe, out_grads, ctx, dtype))
    for name, want in expected.items():
        want = want.asnumpy() if isinstance(want, NDArray) else want
        target = {"write": want, "add": want + before[name], "null": before[name]}[reqs[name]]
        labels = (f"EXPECTED_{name}", f"BACKWARD_{name}")
        gradient = grads[name].asnumpy()
        assert_almost_equal(target, gradient, rtol, atol, labels, equal_nan=equal_nan)
    return grads


def _parse_out_grads(
    sym: Symbol, exe: Executor, out_grads: Values | None, ctx: Context, dtype: Any
) -> list[NDArray] | None:
    if out_grads is None:
        return None
    if isinstance(out_grads, Mapping):
        out_grads = [out_grads[n] for n in sym.list_outputs()]
    if not isinstance(out_grads, list | tuple):
        raise AssertionError(f"out_grads must be a list or a dict of arrays, not {out_grads!r}")
    return [
        _array(g, ctx, out.dtype if dtype == "asnumpy" else dtype)
        for g, out in zip(out_grads[: len(exe.outputs)], exe.outputs, strict=True)
    ]


# -- numeric gradients -------------------------------------------------------------------------


def numeric_grad(
    executor: Executor,
    location: Mapping[str, Any],
    aux_states: Mapping[str, Any] | None = None,
    eps: float = 1e-4,
    use_forward_train: bool = True,
    dtype: Any = np.float32,
) -> dict[str, np.ndarray]:
    """Return the gradients of the sum of the first output by central differences.

    ``df/dx = (f(x + eps/2) - f(x - eps/2)) / eps``, one element at a time; arguments that are
    not floating-point have none.

    Parameters
    ----------
    executor
        The executor.
    location
        Values of the arguments by name.
    aux_states
        Values of the auxiliary states.
    eps
        The step.
    use_forward_train
        Whether differences are taken in training mode.
    dtype
        Data type of the array.

    >>> x = mx.nd.array([3.0])
    >>> executor = (mx.sym.var("x") ** 2).bind(mx.cpu(), {"x": x}, {"x": mx.nd.zeros(1)})
    >>> slope = mx.test_utils.numeric_grad(executor, {"x": x}, eps=0.125)["x"]
    >>> slope.round(2)
    array([6.], dtype=float32)
    """
    values = {n: np.array(_host(v)) for n, v in location.items()}
    aux = None if aux_states is None else {n: _host(v) for n, v in aux_states.items()}

    def output() -> np.floating:
        if aux is not None:  # training changes them
            for name, value in aux.items():
                executor.aux_dict[name][:] = value
        return executor.forward(is_train=use_forward_train)[0].asnumpy().astype(np.float64).sum()

    bound = executor.arg_dict
    for name, value in values.items():
        bound[name][:] = value
    gradients = {}
    for name, value in values.items():
        if value.dtype.kind != "f":
            continue
        gradients[name] = slope = np.zeros(value.shape, dtype=dtype)
        for index in np.ndindex(*value.shape):
            here = value[index]
            ends = []
            for step in (eps / 2, -eps / 2):
                value[index] = here + step
                bound[name][:] = value
                ends.append((float(value[index]), output()))  # the step as it was after rounding
            value[index] = here
            (x1, f1), (x0, f0) = ends
            slope[index] = (f1 - f0) / (x1 - x0)
        bound[name][:] = value
    return gradients


def _host(value: Any) -> np.ndarray:
    return value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)


def check_numeric_gradient(
    sym: Symbol,
    location: Values,
    aux_states: Values | None = None,
    numeric_eps: float | None = None,
    rtol: Any = None,
    atol: Any = None,
    grad_nodes: Sequence[str] | Mapping[str, str] | None = None,
    use_forward_train: bool = True,
    ctx: Context | None = None,
    grad_stype_dict: Mapping[str, str] | None = None,
    dtype: Any = np.float32,
) -> None:
    """Compare the gradients of a symbol with numeric ones, in a random direction of its outputs.

    Parameters
    ----------
    sym : Symbol
        The symbol.
    location
        Values of the arguments, in their order or by name.
    aux_states
        Values of the auxiliary states, in their order or by name.
    numeric_eps
        The step; by default that of the data type.
    rtol, atol
        Tolerances; by default those of the data type.
    grad_nodes
        The arguments to check, by default all; a dict gives their grad_req.
    use_forward_train
        Whether the differences are taken in training mode.
    ctx
        Device; by default that of tests.
    grad_stype_dict
        Storage types of gradients by name.
    dtype
        Float16, float32 or float64.

    >>> check_numeric_gradient(mx.sym.tanh(mx.sym.Variable("x")), [np.array([0.5, -1.0])])
    """
    if dtype not in _FLOATS:
        raise AssertionError(f"dtype must be float16, float32 or float64, not {dtype}")
    kind = np.dtype(dtype)
    ctx = ctx or default_context()
    arguments = _parse_location(sym, location, ctx, dtype)
    aux = _parse_aux_states(sym, aux_states, ctx, dtype)
    reqs = _checked_nodes(sym, grad_nodes)
    weighted, directions = _weighted(sym, arguments, aux, ctx, dtype)
    bound = {**arguments, **directions}
    grads = _random_gradients(list(reqs), arguments, grad_stype_dict, ctx)
    before = {n: g.asnumpy() for n, g in grads.items()}
    start = None if aux is None else {n: a.copy() for n, a in aux.items()}
    loss = mx.sym.MakeLoss(mx.sym.sum(weighted))
    exe = loss.bind(ctx, args=bound, args_grad=grads, aux_states=aux, grad_req=reqs)
    exe.forward(is_train=True)
    exe.backward()
    values = {n: g.asnumpy() for n, g in grads.items()}
    eps = default_numeric_eps()[kind] if numeric_eps is None else numeric_eps
    fine = _fine_executor(weighted, bound, start, ctx, use_forward_train)
    checked = {n: fine.arg_dict[n] for n in reqs}
    numeric = numeric_grad(fine, checked, start, eps, use_forward_train, dtype)
    rtol = default_rtols()[kind] if rtol is None else rtol
    atol = default_atols()[kind] if atol is None else atol
    for name, req in reqs.items():
        labels = (f"NUMERICAL_{name}", f"BACKWARD_{name}")
        if req == "null":
            assert_almost_equal(before[name], values[name], rtol, atol, labels)
        else:
            got = values[name] - before[name] if req == "add" else values[name]
            assert_almost_equal(numeric[name], got, rtol, atol, labels)


def _checked_nodes(sym: Symbol, grad_nodes: Any) -> dict[str, str]:
    if grad_nodes is None:
        grad_nodes = sym.list_arguments()
    if isinstance(grad_nodes, Mapping):
        return dict(grad_nodes)
    if isinstance(grad_nodes, list | tuple):
        return dict.fromkeys(grad_nodes, "write")
    raise ValueError(f"grad_nodes must be a list or a dict of names, not {grad_nodes!r}")


def _weighted(
    sym: Symbol,
    arguments: Mapping[str, NDArray],
    aux: Mapping[str, NDArray] | None,
    ctx: Context,
    dtype: Any,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return all outputs times random numbers in one vector, and those numbers by name."""
    shapes = {n: a.shape for n, a in {**arguments, **(aux or {})}.items()}
    _, out_shapes, _ = sym.infer_shape(**shapes)
    directions, parts = {}, []
    for i, (output, shape) in enumerate(zip(sym, out_shapes, strict=True)):
        name = f"__random_proj{i}"
        values = np.random.normal(size=shape) + 0.1
        directions[name] = mx.nd.array(values, ctx=ctx, dtype=dtype)
        weighted = output.as_nd_ndarray() * mx.sym.Variable(name)
        parts.append(mx.sym.reshape(weighted, shape=(-1,)))
    return parts[0] if len(parts) == 1 else mx.sym.concat(*parts, dim=0), directions


def _fine_executor(
    sym: Symbol,
    arguments: Mapping[str, NDArray],
    aux: Mapping[str, NDArray] | None,
    ctx: Context,
    training: bool,
) -> Executor:
    """Return an executor for finite differences, in float64 if the operators support it."""

    def finer(arrays: Mapping[str, NDArray] | None) -> dict[str, NDArray] | None:
        if arrays is None:
            return None
        floats = {n: np.dtype(a.dtype).kind == "f" for n, a in arrays.items()}
        return {n: a.astype("float64") if floats[n] else a for n, a in arrays.items()}

    try:
        exe = sym.bind(ctx, args=finer(arguments), aux_states=finer(aux), grad_req="null")
        exe.forward(is_train=training)
    except (MXNetError, TypeError):  # an operator that is tied to another type
        copies = None if aux is None else {n: a.copy() for n, a in aux.items()}
        exe = sym.bind(ctx, args=dict(arguments), aux_states=copies, grad_req="null")
    return exe
