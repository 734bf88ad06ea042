"""Binding arrays to variables: `bind` takes existing arrays, `simple_bind` allocates them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import dtypes
from ..context import Context
from ..error import InvalidValue, MXNetError, did_you_mean
from ..graph.passes.infer import infer_from_given, infer_types
from ..graph.passes.storage import check_stypes, infer_gradient_storage, infer_storage
from ..ndarray import NDArray
from ..ops.shapes import is_known
from .bound_arrays import ArraySpec
from .bound_function import context_of_node
from .executor import Executor
from .gradients import check_req

if TYPE_CHECKING:
    from ..symbol import Symbol


def bind(
    symbol: Symbol,
    ctx: Context,
    args: Sequence[NDArray] | Mapping[str, NDArray],
    args_grad: Sequence[NDArray | None] | Mapping[str, NDArray] | None = None,
    grad_req: str | Sequence[str] | Mapping[str, str] = "write",
    aux_states: Sequence[NDArray] | Mapping[str, NDArray] | None = None,
    group2ctx: Mapping[str, Context] | None = None,
    shared_exec: Executor | None = None,
) -> Executor:
    """Return an executor that uses the given arrays.

    Parameters
    ----------
    symbol
        What to compute.
    ctx
        Device of the arrays.
    args
        Arrays of all arguments: a list in order, or a dict by name.
    args_grad
        Arrays that receive gradients: a list in order, or a dict by name.
    grad_req
        How gradients are stored, for all or by name: ``'write'``, ``'add'`` or ``'null'``.
    aux_states
        Arrays of the auxiliary states.
    group2ctx
        Device of each ``ctx_group``.
    shared_exec
        Executor whose memory may be used again.

    >>> x = mx.sym.var("x")
    >>> executor = mx.executor.bind(x * 2, mx.cpu(), {"x": mx.nd.array([3])})
    >>> executor.forward()[0].asnumpy()
    array([6.], dtype=float32)
    """
    _check_context(ctx)
    names = symbol.list_arguments()
    try:
        arrays = _list_arrays("args", args, names, allow_missing=False)
    except ValueError as error:
        raise ValueError(f"{error}{_explain_missing(symbol, names, args)}") from None
    grads = _list_arrays("args_grad", args_grad, names, allow_missing=True)
    aux = _list_arrays(
        "aux_states", aux_states, symbol.list_auxiliary_states(), allow_missing=False
    )
    reqs = requirements(grad_req, names)
    reqs = ["null" if g is None else r for r, g in zip(reqs, grads, strict=True)]
    _check_shapes(symbol, names, arrays, grads)
    return Executor(symbol, ctx, arrays, grads, reqs, aux, group2ctx)


def simple_bind(
    symbol: Symbol,
    ctx: Context,
    grad_req: str | Sequence[str] | Mapping[str, str] = "write",
    type_dict: Mapping[str, Any] | None = None,
    stype_dict: Mapping[str, str] | None = None,
    group2ctx: Mapping[str, Context] | None = None,
    shared_arg_names: Sequence[str] | None = None,
    shared_exec: Executor | None = None,
    shared_buffer: dict[str, NDArray] | None = None,
    **shapes: tuple[int, ...],
) -> Executor:
    """Infer all shapes and types, make the arrays, and return an executor on them.

    Parameters
    ----------
    symbol
        What to compute.
    ctx
        Device of the arrays.
    grad_req
        How gradients are stored, for all or by name: ``'write'``, ``'add'`` or ``'null'``.
    type_dict
        Data types by argument; float32 by default.
    stype_dict
        Storage types by argument.
    group2ctx
        Device of each ``ctx_group``.
    shared_arg_names
        Arguments whose arrays may be shared.
    shared_exec
        Executor whose memory may be used again.
    shared_buffer
        Arrays by name that may be used again.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> executor = mx.executor.simple_bind(net, mx.cpu(), data=(4, 3))
    >>> executor.arg_dict["fc_weight"].shape
    (2, 3)
    """
    _check_context(ctx)
    group2ctx = dict(group2ctx or {})
    names = symbol.list_arguments()
    arg_shapes, arg_types, aux_shapes, aux_types = _infer(symbol, type_dict, shapes)
    reqs = requirements(grad_req, names)
    pool = _Pool(shared_exec, shared_buffer, shared_arg_names)
    graph = symbol._graph
    stypes = infer_storage(graph, check_stypes(stype_dict))
    grad_stypes = infer_gradient_storage(graph, stypes)
    args, grads = [], []
    for node, shape, dtype, req in zip(graph.arguments, arg_shapes, arg_types, reqs, strict=True):
        what = ArraySpec(shape, dtype, context_of_node(node, ctx, group2ctx), stypes[node][0])
        args.append(pool.argument(node.name, what))
        what = what._replace(stype=grad_stypes[node])
        grads.append(None if req == "null" else pool.gradient(node.name, what))
    aux = [
        pool.auxiliary(n.name, ArraySpec(s, t, context_of_node(n, ctx, group2ctx), "default"))
        for n, s, t in zip(graph.auxiliary, aux_shapes, aux_types, strict=True)
    ]
    return Executor(symbol, ctx, args, grads, reqs, aux, group2ctx, list(shapes))


class _Pool:
    """Allocates arrays from a shared executor, a shared buffer, or new memory."""

    def __init__(
        self,
        shared: Executor | None,
        buffer: dict[str, NDArray] | None,
        shared_arg_names: Sequence[str] | None,
    ) -> None:
        self._args = {} if shared is None else shared.arg_dict
        self._grads = {} if shared is None else shared.grad_dict
        self._aux = {} if shared is None else shared.aux_dict
        self._buffer = buffer
        self._shared_names = None if shared_arg_names is None else set(shared_arg_names)

    def argument(self, name: str, what: ArraySpec) -> NDArray:
        is_shareable = self._shared_names is None or name in self._shared_names
        return self._take(self._args.get(name) if is_shareable else None, name, name, what)

    def gradient(self, name: str, what: ArraySpec) -> NDArray:
        return self._take(self._grads.get(name), name, f"grad of {name}", what)

    def auxiliary(self, name: str, what: ArraySpec) -> NDArray:
        old = self._aux.get(name)
        return old if what.fits(old) else what.zeros()

    def _take(self, old: NDArray | None, name: str, key: str, what: ArraySpec) -> NDArray:
        """Return the old array, or one in the buffer's memory.

        Shared names are not in the buffer.
        """
        if what.fits(old):
            return old
        is_shared = self._shared_names is not None and name in self._shared_names
        if self._buffer is None or is_shared or what.stype != "default":
            return what.zeros()
        stored = self._buffer.get(key)
        is_large = stored is not None and stored.size >= math.prod(what.shape)
        if stored is not None and is_large and what._replace(shape=stored.shape).fits(stored):
            return what.inside(stored)
        self._buffer[key] = array = what.zeros()
        return array


def _infer(symbol: Symbol, type_dict: Mapping[str, Any] | None, shapes: Mapping) -> tuple:
    graph = symbol._graph
    names = {n.name for n in graph.variables}  # shapes of other names are ignored, as in MXNet
    inferred = infer_from_given(graph, {n: s for n, s in shapes.items() if n in names})
    variables = [*graph.arguments, *graph.auxiliary]
    shapes_found = [*inferred.arguments, *inferred.auxiliary]
    missing = [n.name for n, s in zip(variables, shapes_found, strict=True) if not is_known(s)]
    if missing:
        raise MXNetError(
            "simple_bind error. Arguments:\n"
            + "\n".join(f"{n}: {s}" for n, s in shapes.items())
            + f"\nThe shapes of these arguments are still unknown: {', '.join(missing)}. "
            "Give them as keywords."
        )
    given = {n: dtypes.to_torch(t) for n, t in (type_dict or {}).items() if t is not None}
    types = infer_types(graph, given, torch.float32)  # float32 if the dtype cannot be inferred
    return inferred.arguments, types.arguments, inferred.auxiliary, types.auxiliary


def requirements(
    grad_req: str | Sequence[str] | Mapping[str, str] | None, names: Sequence[str]
) -> list[str]:
    """Return one grad_req for each argument."""
    if grad_req is None:
        return ["null"] * len(names)
    if isinstance(grad_req, str):
        reqs = [grad_req] * len(names)
    elif isinstance(grad_req, Mapping):
        reqs = [grad_req.get(name, "null") for name in names]
    else:
        reqs = list(grad_req)
        if len(reqs) != len(names):
            raise InvalidValue(
                f"grad_req has {len(reqs)} entries, but there are {len(names)} arguments: "
                f"{', '.join(names)}."
            )
    return [check_req(r) for r in reqs]


def _check_context(ctx: Any) -> None:
    if not isinstance(ctx, Context):
        raise TypeError("Context type error: bind needs one mx.Context, such as mx.cpu().")


def _explain_missing(symbol: Any, names: Sequence[str], args: Any) -> str:
    """Describe the missing arguments of `bind`, with their shapes if they can be inferred."""
    if not isinstance(args, Mapping):
        return ""
    arg_shapes = {name: args[name].shape for name in names if name in args}
    try:
        shapes = symbol.infer_shape_partial(**arg_shapes)[0] or [()] * len(names)
    except MXNetError:
        shapes = [()] * len(names)
    missing = [
        f"{name} {tuple(shape)}" if shape and all(shape) else name
        for name, shape in zip(names, shapes, strict=True)
        if name not in arg_shapes
    ]
    return (
        f" bind needs an array for every argument; these are missing: {', '.join(missing)}. "
        "simple_bind creates them from the shapes of the data."
    )


def _list_arrays(what: str, arrays: Any, names: Sequence[str], *, allow_missing: bool) -> list:
    if arrays is None:
        if names and not allow_missing:
            raise ValueError(f"{what} is needed: arrays for {', '.join(names)}.")
        return [None] * len(names)
    if isinstance(arrays, Mapping):
        missing = [n for n in names if n not in arrays]
        if missing and not allow_missing:
            near = did_you_mean(missing[0], arrays)
            raise ValueError(f"key `{missing[0]}` is missing in `{what}`. {near}".rstrip())
        return [arrays.get(n) for n in names]
    arrays = list(arrays)
    if len(arrays) != len(names):
        raise ValueError(
            f"Length of {what} do not match number of arguments: {len(arrays)} arrays for "
            f"{len(names)} names ({', '.join(names)})."
        )
    for name, array in zip(names, arrays, strict=True):
        if not isinstance(array, NDArray) and not (allow_missing and array is None):
            raise TypeError(f"{what}: an NDArray is needed for {name!r}, not {type(array)}.")
    return arrays


def _check_shapes(
    symbol: Symbol, names: Sequence[str], arrays: Sequence[NDArray], grads: Sequence
) -> None:
    symbol.infer_shape_partial(**{n: a.shape for n, a in zip(names, arrays, strict=True)})
    for name, array, grad in zip(names, arrays, grads, strict=True):
        if grad is not None and grad.shape != array.shape:
            raise MXNetError(
                f"bind: the gradient array of {name!r} has shape {grad.shape}, "
                f"the argument {array.shape}; they must be equal."
            )
