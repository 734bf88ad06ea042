"""The arrays that are bound to a graph: their tensors in a run, and their reshaping."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import torch
from torch import Tensor

from .. import dtypes
from .._process.memory import untouched_zeros
from ..context import Context, torch_device
from ..error import MXNetError, ShapeError, reporting_memory
from ..graph.gradient_flow import label_variables, without_gradients
from ..graph.graph import Graph
from ..graph.passes.infer import infer_from_given
from ..graph.passes.storage import infer_storage, is_sparse
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray, zeros
from ..ops.shapes import is_known
from .apply import stored_context
from .array import plain, wrap_plain
from .array_kernels import cast_arguments, dtype_of, integer_leaf
from .gradients import Gradient, write_gradients
from .recording import graph_tensor

if TYPE_CHECKING:
    from .executor import Executor


class BoundArrays:
    """Arguments, gradients and auxiliary states of a graph.

    Parameters
    ----------
    graph : the graph.
    args : one array for each argument.
    grads : arrays that receive the gradients, None for arguments without one.
    aux : one array for each auxiliary state.
    reqs : how gradients are stored.
    """

    def __init__(
        self,
        graph: Graph,
        args: list[NDArray],
        grads: list[NDArray | None],
        aux: list[NDArray],
        reqs: Sequence[str],
    ) -> None:
        self._args, self._aux = args, aux
        integers = cast_arguments(graph, args)
        # Other integers have no gradients: their gradient arrays are not written, unless an
        # operator writes zeros.
        has_gradient = [dtype_of(a).is_floating_point or i in integers for i, a in enumerate(args)]
        self.reqs = [r if h else "null" for r, h in zip(reqs, has_gradient, strict=True)]
        self.differentiated = [i for i, req in enumerate(self.reqs) if req != "null"]
        self.differentiated_nodes = [graph.arguments[i] for i in self.differentiated]
        self._records = [Gradient(grads[i], self.reqs[i]) for i in self.differentiated]
        self.records_by_node = dict(zip(self.differentiated_nodes, self._records, strict=True))
        self.leaves: list[Tensor] = []  # of the last differentiable run, one for each record
        stypes = {n.name: a.stype for n, a in zip(graph.arguments, args, strict=True)}
        self.stypes = infer_storage(graph, stypes)
        self.is_sparse = is_sparse(self.stypes)
        # For each variable: the position of its array, and its record.
        arguments = {node: i for i, node in enumerate(graph.arguments)}
        states = {node: i for i, node in enumerate(graph.auxiliary)}
        self._rows: list[tuple[list[NDArray], int, Gradient | None]] = [
            (args, arguments[n], self.records_by_node.get(n))
            if n in arguments
            else (aux, states[n], None)
            for n in graph.variables
        ]
        positions = {node: i for i, node in enumerate(graph.variables)}
        pairs = zip(graph.arguments, args, strict=True)
        sparse = [positions[node] for node, array in pairs if array._dtype is None]
        chosen = [positions[graph.arguments[i]] for i in sorted(integers) if self.reqs[i] != "null"]
        self._sparse, self._arrays = tuple(sparse), tuple(sorted([*sparse, *chosen]))
        zeroed = without_gradients(graph)
        self._zeroed = [
            grad
            for node, grad, req, has in zip(graph.arguments, grads, reqs, has_gradient, strict=True)
            if node in zeroed and req == "write" and grad is not None and not has
        ]
        labels = label_variables(graph)  # backward does not write their gradients
        self._labels = {self.records_by_node[n] for n in labels if n in self.records_by_node}

    def array_positions(self, differentiable: bool) -> tuple[int, ...]:
        """Return the positions of the variables that `feed` passes as arrays."""
        return self._arrays if differentiable else self._sparse

    def tensors(self) -> list[Tensor]:
        """Return the memory of all variables, none of which is sparse."""
        return [
            plain(arrays[i]) if (data := arrays[i]._data) is None else data
            for arrays, i, _ in self._rows
        ]

    def feed(self, differentiable: bool, copies_states: bool = False) -> list[Any]:
        """Return the inputs of a run: one value for each variable of the graph.

        In a differentiable run, arguments with gradients are new leaves. If `copies_states`, the
        run writes into copies of the states.
        """
        feed: list[Any] = []
        leaves: dict[Gradient, Tensor] = {}
        for arrays, i, record in self._rows:
            array = arrays[i]
            data = array._data
            if array._dtype is None:
                feed.append(self._feed_sparse(array, record if differentiable else None, leaves))
                continue
            if data is None:
                data = plain(array)
            if not differentiable:
                feed.append(data)
            elif record is not None:
                if data.is_floating_point():
                    leaves[record] = data = data.data.requires_grad_()
                    feed.append(data)
                else:
                    feed.append(integer := integer_leaf(data))
                    leaves[record] = graph_tensor(integer)  # pyright: ignore[reportArgumentType]
            elif arrays is self._aux:
                feed.append(data.clone() if copies_states else data)
            else:
                feed.append(data.data)  # as memory: see `array`
        if differentiable:
            self.leaves = [leaves[record] for record in self._records]
        return feed

    def _feed_sparse(
        self, array: Any, record: Gradient | None, leaves: dict[Gradient, Tensor]
    ) -> BaseSparseNDArray:
        """Return the parts of a sparse array, as a leaf if there is a record."""
        shadow = array.detach()
        if record is not None:
            leaf = array._values.new_zeros(()).expand(array.shape).requires_grad_()
            shadow._ghost, shadow._grad = leaf, record
            leaves[record] = leaf
        return shadow

    def receive(self, gradients: Sequence[Tensor | None]) -> None:
        """Write the gradients that backward computed into the arrays of the arguments."""
        received = []
        for record, gradient in zip(self._records, gradients, strict=True):
            if gradient is not None:
                received.append((record, gradient))
            elif record.is_sparse or record not in self._labels:
                record.write_zeros()
        write_gradients(received)
        for grad in self._zeroed:
            plain(grad).zero_()


class ArraySpec(NamedTuple):
    """Required shape, type, device and storage type of an array."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    ctx: Context
    stype: str

    @classmethod
    def like(cls, array: NDArray, shape: tuple[int, ...]) -> ArraySpec:
        """Return the requirements of an array with another shape."""
        return cls(shape, dtypes.to_torch(array.dtype), array.context, array.stype)

    def fits(self, old: NDArray | None) -> TypeGuard[NDArray]:
        """Return whether an array has these properties, on any device."""
        return (
            old is not None
            and old.shape == tuple(self.shape)
            and old.stype == self.stype
            and dtypes.to_torch(old.dtype) is self.dtype
        )

    def zeros(self) -> NDArray:
        """Return a new array."""
        if min(self.shape, default=0) < 0:
            raise ShapeError(f"bind: an array cannot have the shape {tuple(self.shape)}.")
        if self.stype != "default":
            dtype = dtypes.to_numpy(self.dtype)
            return zeros(self.stype, self.shape, ctx=self.ctx, dtype=dtype)
        with reporting_memory(f"bind: an array of shape {tuple(self.shape)}"):
            tensor = untouched_zeros(self.shape, self.dtype, torch_device(self.ctx))
        return wrap_plain(NDArray, tensor, stored_context(self.ctx))

    def inside(self, old: NDArray) -> NDArray:
        """Return an array in the memory of an old one, as in MXNet.

        Allocate a new one if it is larger.
        """
        size = math.prod(self.shape)
        if self.stype != "default" or size > old.size:
            return self.zeros()
        return wrap_plain(NDArray, plain(old).reshape(-1)[:size].reshape(self.shape), old._ctx)


Arrays = list[NDArray]


def reshape_arrays(
    executor: Executor,
    shapes: Mapping[str, Sequence[int]],
    partial_shaping: bool,
    allow_up_sizing: bool,
) -> tuple[Arrays, list[NDArray | None], Arrays]:
    """Return arguments, gradients and auxiliary states of these shapes for an executor's graph."""
    graph = executor._symbol._graph
    inferred = infer_from_given(graph, shapes)
    names = [n.name for n in graph.arguments]
    missing = [n for n, s in zip(names, inferred.arguments, strict=True) if not is_known(s)]
    if missing:
        raise ShapeError(
            f"reshape: the shapes of {', '.join(shapes) or 'no arguments'} are not enough to infer "
            f"those of {', '.join(missing)}. Give them too."
        )
    args, grads = [], []
    for name, shape, old, grad in zip(
        names, inferred.arguments, executor.arg_arrays, executor.grad_arrays, strict=True
    ):
        if old.shape == shape:
            args.append(old)
            grads.append(grad)
            continue
        if not partial_shaping and name not in shapes:
            raise _unexpected_change(name, old.shape, shape)
        if not allow_up_sizing and math.prod(shape) > old.size:
            raise _larger(name)
        args.append(ArraySpec.like(old, shape).inside(old))
        grads.append(None if grad is None else ArraySpec.like(grad, shape).inside(grad))
    aux = [
        old if old.shape == shape else ArraySpec.like(old, shape).inside(old)
        for old, shape in zip(executor.aux_arrays, inferred.auxiliary, strict=True)
    ]
    return args, grads, aux


def _unexpected_change(name: str, old: tuple[int, ...], new: tuple[int, ...]) -> MXNetError:
    return MXNetError(
        f"Shape of unspecified arg: {name} changed from {old} to {new}. This can cause the new "
        "executor to not share parameters with the old one. Please check for error in the "
        "network. If this is intended, set partial_shaping=True to suppress this warning."
    )


def _larger(name: str) -> MXNetError:
    return MXNetError(
        f"New shape of arg: {name} is larger than original. First making a big executor and then "
        "down sizing it is more efficient than the reverse. If you really want to up size, set "
        "allow_up_sizing=True to enable allocation of new arrays."
    )
