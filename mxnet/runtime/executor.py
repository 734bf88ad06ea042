"""`Executor`: a graph with arrays bound to its variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from .. import dtypes
from ..context import Context
from ..error import MXNetError, did_you_mean
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray
from ..ndarray.sparse import zeros as sparse_zeros
from ..numpy import ndarray
from ..torch_private import has_one_owner
from .apply import stored_context
from .array import plain, wrap_plain, writable
from .bound_arrays import BoundArrays, reshape_arrays
from .bound_function import BoundFunction, context_of_node
from .compiled import Compiled, memory_report, with_equal_nodes_merged

if TYPE_CHECKING:
    from ..symbol import Symbol


class Executor:
    """Runs a symbol on bound arrays. Created by `Symbol.bind` and `Symbol.simple_bind`.

    Parameters
    ----------
    symbol
        What to compute.
    ctx
        Device of the arrays.
    args
        Arrays of the arguments, in order.
    grads
        Arrays that receive gradients, in order; None where there is none.
    reqs
        How gradients are stored, in order.
    aux
        Arrays of the auxiliary states, in order.
    group2ctx
        Device of each ``ctx_group``.
    data_names
        Arguments that change with each batch.

    >>> x = mx.sym.Variable('x')
    >>> exe = (x * 2).bind(mx.cpu(), {'x': mx.nd.array([3])})
    >>> exe.forward()[0].asnumpy()
    array([6.], dtype=float32)
    """

    def __init__(
        self,
        symbol: Symbol,
        ctx: Context,
        args: Sequence[NDArray],
        grads: Sequence[NDArray | None],
        reqs: Sequence[str],
        aux: Sequence[NDArray],
        group2ctx: Mapping[str, Context] | None = None,
        data_names: Sequence[str] | None = None,
    ) -> None:
        graph = symbol._graph
        self._symbol, self._ctx, self._data_names = symbol, ctx, data_names
        self._group2ctx = dict(group2ctx or {})
        self._arg_names = [n.name for n in graph.arguments]
        self._aux_names = [n.name for n in graph.auxiliary]
        self.arg_arrays, self.grad_arrays, self.aux_arrays = list(args), list(grads), list(aux)
        arrays = (self.arg_arrays, self.grad_arrays, self.aux_arrays)
        self._bound = BoundArrays(graph, *arrays, reqs)
        self._function = BoundFunction(graph, self._bound, ctx, self._group2ctx, data_names)
        self._outputs: list[NDArray] | None = None
        self._array_class = ndarray if symbol.is_numpy else NDArray
        self._monitor: Callable[[bytes, NDArray], None] | None = None
        self._monitor_all = False
        self._in_use = RLock()

    # -- what is bound ------------------------------------------------------------------------

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """The arguments by name."""
        return _by_name(self._arg_names, self.arg_arrays, "arguments")

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """The gradients of the arguments by name; None where grad_req is 'null'."""
        return _by_name(self._arg_names, self.grad_arrays, "arguments")

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """The auxiliary states by name."""
        return _by_name(self._aux_names, self.aux_arrays, "auxiliary states")

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The outputs of the last forward by name."""
        return _by_name(self._symbol.list_outputs(), self.outputs, "outputs")

    @property
    def outputs(self) -> list[NDArray]:
        """The outputs of the last forward; the same arrays every time."""
        if self._outputs is None:
            self._outputs = self._empty_outputs()
        return self._outputs

    # -- running ------------------------------------------------------------------------------

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Compute the outputs; keywords copy new values into arguments first.

        Parameters
        ----------
        is_train
            Whether to run in training mode.
        """
        if not self._in_use.acquire(blocking=False):
            raise shared_by_threads("forward of an Executor")
        try:
            for name, value in kwargs.items():
                self._feed(name, value)
            self._set_outputs(self._function.forward(bool(is_train)))
            return self.outputs
        finally:
            self._in_use.release()

    def release_outputs(self) -> None:
        """Free the outputs of the last forward and the values saved for backward."""
        self._outputs = None
        self._function.forget()

    def backward(
        self,
        out_grads: NDArray | Sequence[NDArray] | Mapping[str, NDArray] | None = None,
        is_train: bool = True,
    ) -> None:
        """Write the gradients of the arguments.

        Pass `out_grads` for outputs that are not loss layers. If ``is_train=False``, or if forward
        ran in prediction mode, the graph of prediction mode is differentiated.

        Parameters
        ----------
        out_grads
            Gradients of the outputs; loss layers need none.
        is_train
            Whether to run in training mode.
        """
        if not self._in_use.acquire(blocking=False):
            raise shared_by_threads("backward of an Executor")
        try:
            self._function.backward(out_grads, is_train)
        finally:
            self._in_use.release()

    def _feed(self, name: str, value: Any) -> None:
        target = self.arg_dict.get(name)
        if target is None:
            raise TypeError(
                f"Unknown argument {name}: the symbol's are {', '.join(self._arg_names)}. "
                f"{did_you_mean(name, self._arg_names)}".rstrip()
            )
        source = _as_array(value)
        if source.shape != target.shape:
            raise ValueError(
                f"Shape not match! Argument {name}, need: {target.shape}, received: {source.shape}"
            )
        if target.stype != "default" or source.stype != "default":
            target[:] = source
        else:
            writable(target).copy_(plain(source))

    def _contexts(self) -> list[Context]:
        """Return the context of each output."""
        heads = self._symbol._graph.heads
        return [context_of_node(e.node, self._ctx, self._group2ctx) for e in heads]

    def _set_outputs(self, heads: Sequence[Tensor | BaseSparseNDArray]) -> None:
        """Write new results into the outputs. Existing views of the outputs see them too."""
        if self._outputs is None:
            self._outputs = [
                h.detach()
                if isinstance(h, BaseSparseNDArray)
                else wrap_plain(self._array_class, h.data, stored_context(c))
                for h, c in zip(heads, self._contexts(), strict=True)
            ]
            return
        for array, head in zip(self._outputs, heads, strict=True):
            if isinstance(head, BaseSparseNDArray):
                assert isinstance(array, BaseSparseNDArray)  # created by the previous run
                array._set(head.shape, *head._parts())
                continue
            memory = array._data
            assert memory is not None  # set by the previous run
            if has_one_owner(memory):
                array._data = head.data
            else:
                memory.copy_(head.detach())

    def _empty_outputs(self) -> list[NDArray]:
        shapes = {n: a.shape for n, a in self.arg_dict.items()}
        types = {n: a.dtype for n, a in self.arg_dict.items()}
        _, out_shapes, _ = self._symbol.infer_shape(**shapes)
        _, out_types, _ = self._symbol.infer_type(**types)
        stypes = [self._bound.stypes[e.node][e.index] for e in self._symbol._graph.heads]
        return [
            sparse_zeros(stype, shape, ctx=ctx, dtype=dtype)
            for stype, shape, dtype, ctx in zip(
                stypes, out_shapes, out_types, self._contexts(), strict=True
            )
        ]

    # -- parameters and shapes ----------------------------------------------------------------

    def copy_params_from(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copy parameters into the bound arrays by name.

        Parameters
        ----------
        arg_params, aux_params
            Parameters and auxiliary states by name.
        allow_extra_params
            Whether parameters that the symbol does not have are ignored.
        """
        for params, bound, what in (
            (arg_params, self.arg_dict, "arguments"),
            (aux_params or {}, self.aux_dict, "auxiliary states"),
        ):
            for name, value in params.items():
                if name in bound and bound[name].stype != "default":
                    bound[name][:] = value
                elif name in bound:
                    value.astype(bound[name].dtype, copy=False).copyto(bound[name])
                elif not allow_extra_params:
                    raise ValueError(
                        f'Find name "{name}" that is not in the {what}. '
                        f"{did_you_mean(name, bound)}".rstrip()
                    )

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> Executor:
        """Return an executor for other input shapes. Arrays with unchanged shapes are shared.

        A monitor watches it too.

        Parameters
        ----------
        partial_shaping
            Whether shapes of arguments that are not given may change.
        allow_up_sizing
            Whether arrays may become larger.
        """
        args, grads, aux = reshape_arrays(self, kwargs, partial_shaping, allow_up_sizing)
        reshaped = Executor(
            self._symbol,
            self._ctx,
            args,
            grads,
            self._bound.reqs,
            aux,
            self._group2ctx,
            self._data_names,
        )
        if self._monitor is not None:
            reshaped.set_monitor_callback(self._monitor, self._monitor_all)
        return reshaped

    # -- looking inside -----------------------------------------------------------------------

    def set_monitor_callback(
        self, callback: Callable[[bytes, NDArray], None], monitor_all: bool = False
    ) -> None:
        """Call ``callback(name, array)`` for every result, with `monitor_all` for inputs too.

        Parameters
        ----------
        callback
            The function. It gets the name as bytes, as in MXNet.
        monitor_all
            Whether inputs of operators are shown too.
        """
        self._monitor, self._monitor_all = callback, monitor_all
        self._function.watch(None if callback is None else self._show, monitor_all)

    def _show(self, name: str, value: Tensor | BaseSparseNDArray) -> None:
        if self._monitor is None:
            return
        is_tensor = isinstance(value, Tensor)
        array = wrap_plain(NDArray, value.detach()) if is_tensor else value.detach()
        self._monitor(name.encode(), array)  # bytes, as from MXNet's C library

    @property
    def compiled(self) -> Compiled:
        """A report of the graph of the last `forward`, or of inference before the first."""
        return Compiled(self._function.program())

    def debug_str(self) -> str:
        """Return the graph as text, and the memory that its results need, as MXNet plans it."""
        feed = self._bound.feed(False)
        report = memory_report(self._symbol._graph, feed, bool(self._bound.differentiated))
        return self._symbol.debug_str() + report

    def get_optimized_symbol(self) -> Symbol:
        """Return the symbol with equal nodes merged, unless ``MXNET_ELIMINATE_COMMON_EXPR=0``."""
        return with_equal_nodes_merged(self._symbol)


def shared_by_threads(what: str) -> MXNetError:
    """Return the error for an object that another thread is using."""
    return MXNetError(
        f"{what}: another thread is running it. It holds the outputs and gradients of one run. "
        "Give each thread its own, which may share the parameters, or protect it with a lock."
    )


def _by_name(names: Sequence[str], arrays: Sequence, what: str) -> dict:
    by_name = dict(zip(names, arrays, strict=True))
    if len(by_name) != len(names):
        twice = sorted({n for n in names if list(names).count(n) > 1})
        raise ValueError(f"Duplicate names detected in the {what}: {', '.join(twice)}.")
    return by_name


def _as_array(value: Any) -> NDArray:
    return (
        value
        if isinstance(value, NDArray)
        else wrap_plain(NDArray, dtypes.from_numpy(np.asarray(value)))
    )
