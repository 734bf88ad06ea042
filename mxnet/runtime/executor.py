"""`Executor`: a graph with arrays bound to its variables; forward, backward, and what they left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from .. import dtypes, env
from ..accelerator import get_rng_state
from ..context import Context, torch_device
from ..error import did_you_mean
from ..graph.passes.recompute import live_bytes, training_bytes
from ..graph.passes.simplify import merge_equal_nodes
from ..graph.typed import TRAINING, Inputs, Mode, TypedGraph
from ..memory import has_one_owner
from ..ndarray import NDArray
from ..ndarray.sparse import BaseSparseNDArray
from ..ndarray.sparse import zeros as sparse_zeros
from ..numpy import ndarray
from .apply import stored_context
from .array import plain, wrap_plain, writable
from .array_kernels import member_of_graph, tensor_of
from .backends import Backend, BackendProgram, chosen_backend
from .backward import backward
from .bound_arrays import BoundArrays, reshape_arrays
from .compiled import Compiled
from .head_gradients import (
    draws_random_numbers,
    head_gradients,
    list_out_grads,
    random_stream,
)
from .monitoring import Watcher
from .program import Program
from .repetition import Repetition

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..symbol import Symbol


class Executor:
    """Runs a symbol on bound arrays. Made by `Symbol.bind` and `Symbol.simple_bind`.

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
        self._symbol, self._ctx = symbol, ctx
        self._backend, self._data_names = chosen_backend(symbol._graph), data_names
        self._group2ctx = dict(group2ctx or {})
        self._graph = symbol._graph
        self._arg_names = [n.name for n in self._graph.arguments]
        self._aux_names = [n.name for n in self._graph.auxiliary]
        self.arg_arrays, self.grad_arrays, self.aux_arrays = list(args), list(grads), list(aux)
        arrays = (self.arg_arrays, self.grad_arrays, self.aux_arrays)
        self._bound = BoundArrays(self._graph, *arrays, reqs)
        self._programs: dict[tuple[bool, bool, bool], Program | BackendProgram] = {}
        self._kernels: dict[Node, Callable] = {}
        self._heads: list[Tensor | NDArray] | None = None  # of a training forward, until backward
        self._repetition = Repetition()
        self._last_mode: bool | None = None
        self._draws = draws_random_numbers(self._graph)
        self._random_state: Tensor | None = None
        self._watcher: Watcher | None = None
        self._outputs: list[NDArray] | None = None
        self._array_class = ndarray if symbol.is_numpy else NDArray
        self._monitor: Callable[[str, NDArray], None] | None = None
        self._monitor_all = False

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
        for name, value in kwargs.items():
            self._feed(name, value)
        training = bool(is_train)
        self._last_mode = training
        self._forget()
        if self._draws:
            self._random_state = get_rng_state(torch_device(self._ctx))
        if self._monitor is not None:
            self._watcher = Watcher(self._watch, self._monitor_all)
        program = self._program(training, tracked=False)
        heads = self._run_training(program) if training else None
        self._heads = heads
        if heads is None:
            feed = [self._bound.value(node, False) for node in program.variables]
            heads = self._run(program, feed, False)
        self._set_outputs([h if isinstance(h, BaseSparseNDArray) else tensor_of(h) for h in heads])
        return self.outputs

    def release_outputs(self) -> None:
        """Forget the last forward: its outputs and what backward would need."""
        self._outputs = None
        self._forget()

    def _forget(self) -> None:
        """Free what backward would need."""
        self._heads = None
        self._repetition.reset()

    def _run_training(self, program: Program | BackendProgram) -> list[Tensor | NDArray]:
        """Return the heads of a training step; see `repetition`."""
        inputs = None
        if self._watcher is None and self._repetition.is_possible(program):
            inputs = self._bound.tensors(program.variables)
            heads = self._repetition.forward(inputs)
            if heads is not None:
                return [*heads]
        feed: list[Any] = [self._bound.value(node, True) for node in program.variables]
        if inputs is None:
            return self._run(program, feed, True)
        return self._repetition.watch_forward(feed, inputs, lambda: self._run(program, feed, True))

    def _run(
        self, program: Program | BackendProgram, feed: Sequence[Tensor | NDArray], tracked: bool
    ) -> list[Tensor | NDArray]:
        grad_mode = torch.is_grad_enabled()
        torch._C._set_grad_enabled(tracked)
        try:
            return program.run(feed) if self._watcher is None else program.run(feed, self._watcher)
        finally:
            torch._C._set_grad_enabled(grad_mode)

    def backward(
        self,
        out_grads: NDArray | Sequence[NDArray] | Mapping[str, NDArray] | None = None,
        is_train: bool = True,
    ) -> None:
        """Write the gradients of the arguments.

        Outputs need gradients of their own, `out_grads`, unless these end at a loss layer. With
        ``is_train=False``, or after a forward in prediction mode, what is differentiated is the
        computation of prediction mode.

        Parameters
        ----------
        out_grads
            Gradients of the outputs; loss layers need none.
        is_train
            Whether to run in training mode.
        """
        differentiated = self._bound.differentiated
        if not differentiated:
            return
        head_grads = list_out_grads(out_grads, self._graph)
        heads = self._heads if is_train else None
        unseen = self._monitor is not None and self._watcher is None
        if heads is None or unseen:
            heads = self._replay(is_train)
        members, starts = self._starts(heads, head_grads)
        repetition = self._repetition
        if repetition.is_repeated and not repetition.can_start(starts):
            members, starts = self._starts(self._replay(is_train), head_grads)
        self._heads = None  # what follows uses the graph up
        if repetition.is_repeated:
            gradients = repetition.backward(starts)
        else:
            gradients = self._differentiate(members, starts, differentiated)
        self._bound.receive(gradients)

    def _starts(
        self, heads: Sequence[Tensor | NDArray], head_grads: Sequence[NDArray | None]
    ) -> tuple[list[Tensor | None], dict[int, Tensor]]:
        """Return the heads that have gradients, and from which gradients backward starts."""
        members = self._repetition.tracked([member_of_graph(h) for h in heads])
        arguments = self._graph.arguments
        variables = {arguments[i] for i in self._bound.differentiated}
        return members, head_gradients(self._graph, members, head_grads, variables)

    def _replay(self, is_train: bool) -> list[Tensor | NDArray]:
        """Run the last forward again, for its graph alone.

        Torch frees a graph while it goes back through it. Keeping it for a second backward, which
        hardly ever comes, would hold all activations until the next forward (and raises the peak
        of a step: by 9 % for six convolutions). So the rare second backward pays with another
        forward: same random numbers, arguments as they are now, auxiliary states untouched.
        """
        self._forget()
        training = is_train if self._last_mode is None else bool(self._last_mode and is_train)
        program = self._program(training, tracked=True)
        feed = []
        for node in program.variables:
            value = self._bound.value(node, True)
            feed.append(tensor_of(value).clone() if self._bound.is_state(node) else value)
        if self._monitor is not None:
            self._watcher = Watcher(self._watch, False, silent=True)
        with random_stream(torch_device(self._ctx), self._random_state):
            return self._run(program, feed, True)

    def _differentiate(
        self,
        heads: Sequence[Tensor | None],
        starts: Mapping[int, Tensor],
        differentiated: Sequence[int],
    ) -> Sequence[Tensor | None]:
        if not starts:
            return [None] * len(differentiated)
        leaves = tuple(cast("Tensor", self._bound.leaves[i]) for i in differentiated)
        watcher = self._watcher
        views = () if watcher is None else watcher.views
        with self._repetition.watch_backward():
            chosen = cast("list[Tensor]", [heads[number] for number in starts])
            gradients = backward(chosen, tuple(starts.values()), leaves + views)
        self._repetition.finish(starts, gradients)
        if watcher is not None and views:
            variables = [self._graph.arguments[i] for i in differentiated]
            watcher.show_gradients(self._graph, variables, starts, gradients[len(leaves) :])
        self._watcher = None
        return gradients[: len(leaves)]

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

    def _program(self, training: bool, tracked: bool) -> Program | BackendProgram:
        """Return the graph made ready; `tracked` if prediction is to be differentiated."""
        watched = self._monitor is not None  # every node must be there to be shown
        key = (training, watched, tracked and not training)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = Program(
                self._graph,
                Mode(training, training or tracked),
                torch_device(self._ctx),
                self._input_types(),
                devices=_devices(self._graph.nodes, self._ctx, self._group2ctx),
                kernels=self._kernels,
                wrap=self._bound.kernels(training),
                optimized=not watched,
            )
            is_plain = not (self._bound.is_sparse or self._group2ctx or any(key))
            if self._backend is not None and is_plain:
                program = self._programs[key] = self._run_by(self._backend, program)
        return program

    def _run_by(self, backend: Backend, own: Program) -> BackendProgram:
        """Return what runs a program's graph by an engine."""
        names = self._data_names
        variables = enumerate(n.name for n in own.variables)
        data = None if names is None else [i for i, name in variables if name in names]
        return BackendProgram(backend, own, data)

    def _input_types(self) -> Inputs:
        arrays = [*self.arg_arrays, *self.aux_arrays]
        names = [*self._arg_names, *self._aux_names]
        dtypes = [
            a._values.dtype if isinstance(a, BaseSparseNDArray) else plain(a).dtype for a in arrays
        ]
        return Inputs(
            {n: a.shape for n, a in zip(names, arrays, strict=True)},
            dict(zip(names, dtypes, strict=True)),
            self._bound.stypes,
            lambda node: torch_device(context_of_node(node, self._ctx, self._group2ctx)),
        )

    def _contexts(self) -> list[Context]:
        """Return the context of each output."""
        return [context_of_node(e.node, self._ctx, self._group2ctx) for e in self._graph.heads]

    def _set_outputs(self, heads: Sequence[Tensor | BaseSparseNDArray]) -> None:
        """Write new results into the outputs; views that users have of them see these too."""
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
                assert isinstance(array, BaseSparseNDArray)  # as the run before made it
                array._set(head.shape, *head._parts())
                continue
            memory = array._data
            assert memory is not None  # likewise
            if has_one_owner(memory):
                array._data = head.data
            else:
                memory.copy_(head.detach())

    def _empty_outputs(self) -> list[NDArray]:
        shapes = {n: a.shape for n, a in self.arg_dict.items()}
        types = {n: a.dtype for n, a in self.arg_dict.items()}
        _, out_shapes, _ = self._symbol.infer_shape(**shapes)
        _, out_types, _ = self._symbol.infer_type(**types)
        stypes = [self._bound.stypes[e.node][e.index] for e in self._graph.heads]
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
        """Return an executor for other input shapes; arrays whose shape stays are shared.

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
        reshaped._monitor, reshaped._monitor_all = self._monitor, self._monitor_all
        return reshaped

    # -- looking inside -----------------------------------------------------------------------

    def set_monitor_callback(
        self, callback: Callable[[str, NDArray], None], monitor_all: bool = False
    ) -> None:
        """Call ``callback(name, array)`` for every result, with `monitor_all` for inputs too.

        Parameters
        ----------
        callback
            The function.
        monitor_all
            Whether inputs of operators are shown too.
        """
        self._monitor, self._monitor_all, self._watcher = callback, monitor_all, None

    def _watch(self, name: str, value: Tensor | BaseSparseNDArray) -> None:
        if self._monitor is None:
            return
        is_tensor = isinstance(value, Tensor)
        self._monitor(name, wrap_plain(NDArray, value.detach()) if is_tensor else value.detach())

    @property
    def compiled(self) -> Compiled:
        """The graph that the last `forward` ran (inference before the first), as a report."""
        return Compiled(self._program(bool(self._last_mode), tracked=False))

    def debug_str(self) -> str:
        """Return the graph as text, then how much memory its results take, as MXNet plans it.

        Training keeps results for backward, inference only until they are read for the last time.
        """
        graph = TypedGraph(self._graph.heads, TRAINING, self._input_types())
        if self._bound.differentiated:
            total = training_bytes(graph, env.get("MXNET_BACKWARD_DO_MIRROR"))
        else:
            total = live_bytes(graph)
        return (
            f"{self._symbol.debug_str()}Total {total // 2**20} MB allocated\n"
            "Total 0 TempSpace resource requested\n"
        )

    def get_optimized_symbol(self) -> Symbol:
        """Return the symbol with equal nodes merged, unless ``MXNET_ELIMINATE_COMMON_EXPR=0``."""
        if not env.get("MXNET_ELIMINATE_COMMON_EXPR"):
            return self._symbol
        return type(self._symbol)(merge_equal_nodes(self._graph).heads)


def context_of_node(node: Node, ctx: Context, group2ctx: Mapping[str, Context]) -> Context:
    """Return where a node runs, by its ``ctx_group`` attribute."""
    return group2ctx.get(node.extra.get("__ctx_group__", ""), ctx) if group2ctx else ctx


def _devices(
    nodes: Sequence[Node], ctx: Context, group2ctx: Mapping[str, Context]
) -> dict[Node, torch.device] | None:
    if not group2ctx:
        return None
    devices = {n: torch_device(context_of_node(n, ctx, group2ctx)) for n in nodes}
    return devices if len(set(devices.values())) > 1 else None


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
