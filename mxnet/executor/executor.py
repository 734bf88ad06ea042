"""`Executor`: a graph with arrays bound to its variables; forward, backward, and what they left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .. import dtypes
from ..context import Context, torch_device
from ..error import MXNetError, ShapeError, did_you_mean
from ..ndarray import NDArray
from ..ndarray.gradient import _run_engine, explain
from ..ndarray.invoke import stored_context
from ..ndarray.storage import plain, wrap_plain, writable
from .passes import chosen
from .program import Program, open_sources, source_shapes

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..symbol import Symbol


class Executor:
    """Runs a symbol on bound arrays. Made by `Symbol.bind` and `Symbol.simple_bind`.

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
        owns_grads: bool = False,
    ) -> None:
        self._symbol, self._ctx = symbol, ctx
        self._group2ctx = dict(group2ctx or {})
        self._graph = symbol._graph
        self._arg_names = [n.name for n in self._graph.arguments]
        self._aux_names = [n.name for n in self._graph.auxiliary]
        self.arg_arrays, self.grad_arrays, self.aux_arrays = list(args), list(grads), list(aux)
        self._reqs = list(reqs)
        self._owns_grads = owns_grads
        self._programs: dict[tuple[bool, bool], Program] = {}
        self._kernels: dict[Node, Callable] = {}
        self._heads: list[Tensor] | None = None
        self._leaves: list[Tensor | None] = [None] * len(self.arg_arrays)
        self._outputs: list[NDArray] | None = None
        self._monitor: Callable[[str, NDArray], None] | None = None
        self._monitor_all = False
        self._bound = dict(zip(self._graph.arguments, range(len(args)), strict=True))
        self._kept = dict(zip(self._graph.auxiliary, range(len(aux)), strict=True))

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
        """Compute the outputs; keywords copy new values into arguments first."""
        for name, value in kwargs.items():
            self._feed(name, value)
        program = self._program(bool(is_train))
        tensors = [self._tensor_of(node, bool(is_train)) for node in program.variables]
        grad_mode = torch.is_grad_enabled()
        torch._C._set_grad_enabled(bool(is_train))
        try:
            if self._monitor is None:
                heads = program.run(tensors)
            else:
                heads = program.run_watched(tensors, self._watch, self._monitor_all)
        finally:
            torch._C._set_grad_enabled(grad_mode)
        self._heads = heads if is_train else None
        self._show(heads)
        return self.outputs

    def backward(
        self,
        out_grads: NDArray | Sequence[NDArray] | Mapping[str, NDArray] | None = None,
        is_train: bool = True,
    ) -> None:
        """Write the gradients of the arguments, after a ``forward(is_train=True)``."""
        if self._heads is None:
            raise MXNetError(
                "backward needs the values of a forward in training mode, and each forward serves "
                "one backward: call forward(is_train=True) first."
            )
        heads, self._heads = self._heads, None
        given = self._listed_out_grads(out_grads, heads)
        chosen = [(h, g) for h, g in zip(heads, given, strict=True) if h.requires_grad]
        leaves = [(i, leaf) for i, leaf in enumerate(self._leaves) if leaf is not None]
        if not leaves:
            return
        found: Sequence[Tensor | None] = [None] * len(leaves)
        if chosen:
            try:
                found = _run_engine(
                    tuple(h for h, _ in chosen),
                    tuple(g for _, g in chosen),
                    False,
                    False,
                    tuple(leaf for _, leaf in leaves),
                    True,
                    accumulate_grad=False,
                )
            except MXNetError:
                raise
            except RuntimeError as error:
                raise explain(error) from error
        for (i, _), gradient in zip(leaves, found, strict=True):
            self._receive(i, gradient)

    def _receive(self, position: int, gradient: Tensor | None) -> None:
        target = self.grad_arrays[position]
        if gradient is not None and gradient.layout is not torch.strided:  # Embedding(sparse_grad)
            gradient = gradient.to_dense()
        if self._reqs[position] == "add":
            if gradient is not None:
                plain(target).add_(gradient)
        elif gradient is None:
            plain(target).zero_()
        elif self._owns_grads and gradient.is_contiguous() and gradient._base is None:
            target._data = gradient
        else:
            plain(target).copy_(gradient)

    def _listed_out_grads(self, out_grads: Any, heads: list[Tensor]) -> list[Tensor]:
        if out_grads is None:
            return [torch.ones_like(h) for h in heads]
        if isinstance(out_grads, NDArray):
            out_grads = [out_grads]
        elif isinstance(out_grads, Mapping):
            out_grads = [out_grads.get(name) for name in self._symbol.list_outputs()]
        if len(out_grads) != len(heads):
            raise MXNetError(
                f"backward: {len(out_grads)} out_grads were given for {len(heads)} outputs."
            )
        listed = []
        for grad, head in zip(out_grads, heads, strict=True):
            value = torch.ones_like(head) if grad is None else plain(_as_array(grad))
            if value.shape != head.shape:
                raise ShapeError(
                    f"backward: an out_grad has shape {tuple(value.shape)}, "
                    f"its output {tuple(head.shape)}."
                )
            listed.append(value.to(device=head.device, dtype=head.dtype))
        return listed

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
        writable(target).copy_(plain(source))

    def _tensor_of(self, node: Node, training: bool) -> Tensor:
        position = self._bound.get(node)
        if position is None:
            return plain(self.aux_arrays[self._kept[node]])
        array = self.arg_arrays[position]
        tensor = plain(array)
        if not training or self._reqs[position] == "null":
            return tensor
        leaf = self._leaves[position]
        if leaf is None or leaf.data_ptr() != tensor.data_ptr():
            leaf = self._leaves[position] = tensor.detach().requires_grad_()
        return leaf

    def _program(self, training: bool) -> Program:
        watched = self._monitor is not None  # every node must be there to be shown
        program = self._programs.get((training, watched))
        if program is None:
            devices = _devices(self._graph.nodes, self._ctx, self._group2ctx)
            device = torch_device(self._ctx)
            sources = open_sources(self._graph)
            known = {n: a.shape for n, a in self.arg_dict.items()} if sources else {}
            shapes = source_shapes(self._graph, sources, known)
            passes = () if watched else chosen(training, False, device)
            program = Program(self._graph, training, device, devices, shapes, self._kernels, passes)
            self._programs[training, watched] = program
        return program

    def _contexts(self) -> list[Context]:
        """Return the context of each output."""
        return [context_of_node(e.node, self._ctx, self._group2ctx) for e in self._graph.heads]

    def _show(self, heads: list[Tensor]) -> None:
        if self._outputs is None:
            self._outputs = [
                wrap_plain(NDArray, h.detach(), stored_context(c))
                for h, c in zip(heads, self._contexts(), strict=True)
            ]
            return
        for array, head in zip(self._outputs, heads, strict=True):
            array._data = head.detach()

    def _empty_outputs(self) -> list[NDArray]:
        shapes = {n: a.shape for n, a in self.arg_dict.items()}
        types = {n: a.dtype for n, a in self.arg_dict.items()}
        _, out_shapes, _ = self._symbol.infer_shape(**shapes)
        _, out_types, _ = self._symbol.infer_type(**types)
        return [
            NDArray(torch.zeros(s, dtype=dtypes.to_torch(t), device=torch_device(c)))
            for s, t, c in zip(out_shapes, out_types, self._contexts(), strict=True)
        ]

    # -- parameters and shapes ----------------------------------------------------------------

    def copy_params_from(
        self,
        arg_params: Mapping[str, NDArray],
        aux_params: Mapping[str, NDArray] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copy parameters into the bound arrays by name."""
        for params, bound, what in (
            (arg_params, self.arg_dict, "arguments"),
            (aux_params or {}, self.aux_dict, "auxiliary states"),
        ):
            for name, value in params.items():
                if name in bound:
                    value.astype(bound[name].dtype, copy=False).copyto(bound[name])
                elif not allow_extra_params:
                    raise ValueError(
                        f'Find name "{name}" that is not in the {what}. '
                        f"{did_you_mean(name, bound)}".rstrip()
                    )

    def reshape(
        self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any
    ) -> Executor:
        """Return an executor for other input shapes; arrays whose shape stays are shared."""
        arg_shapes, _, aux_shapes = self._symbol.infer_shape(**kwargs)
        if arg_shapes is None:
            raise ValueError("Insufficient argument shapes provided.")
        args, grads = [], []
        for name, shape, old, grad in zip(
            self._arg_names, arg_shapes, self.arg_arrays, self.grad_arrays, strict=True
        ):
            if old.shape == shape:
                args.append(old)
                grads.append(grad)
                continue
            if not partial_shaping and name not in kwargs:
                raise AssertionError(
                    f"Shape of unspecified array arg:{name} changed from {old.shape} to {shape}. "
                    "This can cause the new executor to not share parameters with the old one. "
                    "Please check for error in the network. If this is intended, set "
                    "partial_shaping=True to suppress this warning."
                )
            if not allow_up_sizing and np.prod(shape) > old.size:
                raise AssertionError(
                    f"New shape of arg:{name} larger than original. First making a big executor "
                    "and then down sizing it is more efficient than the reverse. If you really "
                    "want to up size, set allow_up_sizing=True to enable allocation of new arrays."
                )
            args.append(_fresh_like(old, shape))
            grads.append(None if grad is None else _fresh_like(grad, shape))
        aux = [
            old if old.shape == shape else _fresh_like(old, shape)
            for old, shape in zip(self.aux_arrays, aux_shapes, strict=True)
        ]
        return Executor(
            self._symbol, self._ctx, args, grads, self._reqs, aux, self._group2ctx, self._owns_grads
        )

    # -- looking inside -----------------------------------------------------------------------

    def set_monitor_callback(
        self, callback: Callable[[str, NDArray], None], monitor_all: bool = False
    ) -> None:
        """Call ``callback(name, array)`` for every result, with `monitor_all` for inputs too."""
        self._monitor, self._monitor_all = callback, monitor_all

    def _watch(self, name: str, tensor: Tensor) -> None:
        self._monitor(name, wrap_plain(NDArray, tensor.detach()))

    def debug_str(self) -> str:
        """Return the graph as text, and how much memory the bound arrays take."""
        arrays = [
            *self.arg_arrays,
            *self.aux_arrays,
            *(g for g in self.grad_arrays if g is not None),
        ]
        arrays += self._outputs or []
        total = sum(plain(a).nbytes for a in arrays) / 2**20
        return f"{self._symbol.debug_str()}Total {total:.4f} MB allocated\n"

    def get_optimized_symbol(self) -> Symbol:
        """Return the symbol that is run."""
        return self._symbol


def context_of_node(node: Node, ctx: Context, group2ctx: Mapping[str, Context]) -> Context:
    """Return where a node runs, by its ``ctx_group`` attribute."""
    return group2ctx.get(node.extra.get("__ctx_group__", ""), ctx) if group2ctx else ctx


def _devices(
    nodes: Sequence[Node], ctx: Context, group2ctx: Mapping[str, Context]
) -> dict[Node, torch.device] | None:
    if not group2ctx:
        return None
    found = {n: torch_device(context_of_node(n, ctx, group2ctx)) for n in nodes}
    return found if len(set(found.values())) > 1 else None


def _by_name(names: Sequence[str], arrays: Sequence, what: str) -> dict:
    found = dict(zip(names, arrays, strict=True))
    if len(found) != len(names):
        twice = sorted({n for n in names if list(names).count(n) > 1})
        raise ValueError(f"Duplicate names detected in the {what}: {', '.join(twice)}.")
    return found


def _as_array(value: Any) -> NDArray:
    return value if isinstance(value, NDArray) else NDArray(torch.as_tensor(np.asarray(value)))


def _fresh_like(old: NDArray, shape: tuple[int, ...]) -> NDArray:
    tensor = plain(old)
    if np.prod(shape) <= tensor.numel():  # smaller: a part of the old memory, as MXNet has it
        part = tensor.reshape(-1)[: int(np.prod(shape))].reshape(shape)
        return wrap_plain(NDArray, part, old._ctx)
    return wrap_plain(NDArray, tensor.new_zeros(shape), old._ctx)
