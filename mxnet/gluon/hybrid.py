"""`HybridBlock`: a block whose forward is written once for arrays and for symbols.

Eagerly it runs on arrays. Hybridized, it is called once with symbols, and the resulting graph runs
from then on.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import autograd, ndarray, symbol
from ..base import users_stacklevel
from ..context import Context, current_context
from ..error import InvalidValue, MXNetError, ShapeError, did_you_mean
from ..executor import CachedOp, Compiled
from ..formats.atomic import one_commit, replacing
from ..formats.files import local_path
from ..ndarray import NDArray
from ..ndarray.utils import save_with_info
from ..ops.documentation import inherits_parameters
from ..runtime.backends import backend_names
from ..runtime.recording import state
from ..symbol import Symbol
from ..symbol.symbol import BUILT_IN_BACKENDS
from ..util import is_np_array
from .block import Block
from .parameter import FIRST_CALL, DeferredInitializationError, Generation, Parameter
from .utils import _check_all_np_symbols, _check_same_symbol_type

__all__ = ["HybridBlock"]


def check_backend(backend: str | None) -> None:
    """Warn of an unknown backend and continue without it, as MXNet does."""
    names = (*BUILT_IN_BACKENDS, *backend_names())
    if backend is not None and backend not in names:
        near = did_you_mean(backend, names)
        warnings.warn(
            f"Error optimizing for backend '{backend}' cannot be found. {near} Known are "
            f"{', '.join(names)}. The built-in executor, which fuses by itself, is used now.",
            stacklevel=3,
        )


@inherits_parameters
class HybridBlock(Block):
    """A block that runs eagerly or, after `hybridize()`, as a graph, with the same results.

    Define ``hybrid_forward(self, F, x, *args, **params)``: F is `mx.nd` or `mx.sym`; parameters
    that are attributes of the block are passed as keywords.

    >>> class Scale(mx.gluon.HybridBlock):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.factor = self.params.get("factor", shape=(1,), init=mx.init.Constant(3))
    ...     def hybrid_forward(self, F, x, factor):
    ...         return F.broadcast_mul(x, factor)
    >>> net = Scale()
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(mx.nd.array([1, 2])).asnumpy()
    array([3., 6.], dtype=float32)
    """

    _has_graph = True  # whether the block itself can be traced

    def __init__(self, prefix: str | None = None, params: Any = None, **unknown: Any) -> None:
        super().__init__(prefix=prefix, params=params, **unknown)
        self._active = False
        self._cached_graph: tuple = ()
        self._cached_op: CachedOp | None = None
        self._cached_op_args: list[tuple[int, Parameter | None]] = []
        self._held: tuple = ()  # parameter arrays of the last call, and the key of their validity
        self._in_format: Any = None
        self._out_format: Any = None
        self._flags: list[tuple[str, Any]] = []
        self._callback: Callable | None = None
        self._monitor_all = False
        self._backend: str | None = None
        self._backend_opts: dict[str, Any] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, HybridBlock):
            self._clear_cached_op()

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make a block a child; it must be a HybridBlock.

        Parameters
        ----------
        block
            The block.
        name
            Name of the child; by default its number.
        """
        if not isinstance(block, HybridBlock):
            raise ValueError(
                f"Children of HybridBlock must also be HybridBlock, but {block} has type "
                f"{type(block)}. If you are using Sequential, please try HybridSequential instead."
            )
        super().register_child(block, name)
        self._clear_cached_op()

    # -- switches -----------------------------------------------------------------------------

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        recompute: bool | str | int | None = None,
        **kwargs: Any,
    ) -> None:
        """Run as a graph from now on (or, with ``active=False``, eagerly again).

        Parameters
        ----------
        active : bool
            Whether to run as a graph; with False, eagerly again.
        backend : str
            Engine that runs the graph in inference: ``"onednn_graph"`` (networks of convolutions;
            needs only torch), ``"onnxruntime"``, ``"openvino"``, ``"inductor"`` (torch.compile),
            ``"auto"`` (the fastest on the given shapes) or a name of
            `mx.executor.register_backend`. Its first result is compared with the built-in
            executor's. MXNet's names of fusing backends are accepted; the built-in executor fuses
            operators itself.
        clear : bool
            Drop the traced graph.
        static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
            Hints of MXNet; they do not change results.
        recompute : bool or "sublinear" or int
            Whether training recomputes intermediate results in backward to save memory, or the
            number of bytes it may keep; by default ``MXNET_BACKWARD_DO_MIRROR``.
        """
        check_backend(backend)
        self._backend, self._backend_opts = backend, kwargs
        self._active = active and self._is_traceable()
        if active and self._has_graph and not self._active:
            warnings.warn(
                f"'{self.name}' holds a TorchBlock, which has no graph: it runs eagerly, and its "
                "other children run as graphs.",
                stacklevel=users_stacklevel(),
            )
        bulk = {"forward_bulk_size": forward_bulk_size, "backward_bulk_size": backward_bulk_size}
        hints = {
            "static_alloc": static_alloc,
            "static_shape": static_shape,
            "inline_limit": inline_limit,
            **{key: value for key, value in bulk.items() if value is not None},
        }
        if recompute is not None:
            hints["recompute"] = _recompute_limit(recompute)
        self._flags = list(hints.items())
        if clear:
            self._clear_cached_op()
        if active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(
                f'"{self}" is being hybridized while still having forward hook/pre-hook. If '
                f'"{self}" is a child of HybridBlock, the hooks will not take effect.',
                stacklevel=2,
            )
        super().hybridize(active, **hints)

    def optimize_for(
        self,
        x: Any,
        *args: Any,
        backend: str | None = None,
        clear: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Trace and compile the graph for these inputs immediately; see `hybridize`.

        Parameters
        ----------
        x
            The first input.
        args
            The inputs.
        backend
            Name of the engine; None: the built-in executor.
        clear
            Whether to drop a previously traced graph.
        static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
            Accepted for compatibility; has no effect.
        """
        self.hybridize(
            True,
            backend,
            clear,
            static_alloc,
            static_shape,
            inline_limit,
            forward_bulk_size,
            backward_bulk_size,
            **kwargs,
        )
        self._initialize_for(x, *args)
        if self._cached_op is None:
            self._build_cache(x, *args)
        if backend in backend_names():
            with autograd.pause(train_mode=False):
                self(x, *args)

    def cast(self, dtype: Any) -> None:
        """Convert the parameters to another type.

        Parameters
        ----------
        dtype
            The data type.
        """
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(
        self, callback: Callable[[bytes, bytes, NDArray], None], monitor_all: bool = False
    ) -> None:
        """Call ``callback(name, operator, array)`` for results inside the hybridized graph.

        Parameters
        ----------
        callback
            The function. It gets both names as bytes, as in MXNet.
        monitor_all
            Whether inputs of operators are shown too.
        """
        self._callback, self._monitor_all = callback, monitor_all
        if self._cached_op is not None:
            self._cached_op._register_op_hook(callback, monitor_all)
        super().register_op_hook(callback, monitor_all)

    def compiled(self, *args: Any, training: bool = False) -> Compiled:
        """Return a report of the graph that the hybridized block runs on these inputs.

        Its text lists the applied rules and every operator that runs; `Compiled.save` writes the
        graph to a file.

        Parameters
        ----------
        args
            The inputs.
        training
            Whether to show the training graph.

        >>> net = mx.gluon.nn.Dense(2, activation="relu", prefix="fc_")
        >>> net.initialize(); net.hybridize()
        >>> net.compiled(mx.nd.ones((1, 3))).symbol.list_outputs()
        ['fc_relu_fwd_output']
        """
        if not self._active:
            raise RuntimeError(f"{self.name} is not hybridized: call hybridize() first.")
        arrays = _flat_arrays(args)
        feed = self._feed(args, arrays, arrays[0].context)
        assert self._cached_op is not None
        return self._cached_op.compiled(feed, training)

    def _is_traceable(self) -> bool:
        children = (c for c in self._children.values() if isinstance(c, HybridBlock))
        return self._has_graph and all(child._is_traceable() for child in children)

    # -- tracing -------------------------------------------------------------------------------

    def _clear_cached_op(self) -> None:
        self._cached_graph = ()
        self._cached_op = None
        self._cached_op_args = []
        self._held = ()

    def _get_graph(self, *args: Any) -> tuple[list[Symbol], Symbol]:
        if self._cached_graph:
            return self._cached_graph
        with FIRST_CALL:
            return self._cached_graph or self._make_graph(*args)

    def _make_graph(self, *args: Any) -> tuple[list[Symbol], Symbol]:
        flat, self._in_format = flatten(args, "input")
        count = sum(item is not None for item in flat)
        names = iter(["data"] if count == 1 else [f"data{i}" for i in range(count)])
        variables = [None if item is None else _input_variable(next(names)) for item in flat]
        grouped, _ = regroup(variables, self._in_format)
        out = self._trace(grouped)
        outputs, self._out_format = flatten(out, "output")
        if not outputs or any(o is None for o in outputs):
            raise TypeError(
                f"Expected a list of symbols from the forward of HybridBlock '{self.name}', "
                f"but it returned {out}. Leave out outputs that are None, or do not hybridize it."
            )
        kind = _check_same_symbol_type(outputs)
        if is_np_array():
            _check_all_np_symbols(kind)
        inputs = [v for v in variables if v is not None]
        self._cached_graph = inputs, symbol.Group(outputs, kind)
        return self._cached_graph

    def _trace(self, inputs: Sequence) -> Any:
        params = {name: param.var() for name, param in self._reg_params.items()}
        with self.name_scope():
            return self.hybrid_forward(symbol, *inputs, **params)

    def _build_cache(self, *args: Any) -> None:
        with FIRST_CALL:
            if self._cached_op is None:
                self._make_cached_op(*args)

    def _make_cached_op(self, *args: Any) -> None:
        inputs, out = self._get_graph(*args)
        positions = {v.name: i for i, v in enumerate(inputs)}
        params = dict(self.collect_params().items())
        used = dict.fromkeys(out.list_inputs())  # a dict: ordered, with fast lookup
        for name, i in positions.items():
            if name not in used:
                warnings.warn(
                    f"The {i}-th input to HybridBlock is not used by any computation. "
                    "Is this intended?",
                    stacklevel=users_stacklevel(),
                )
        for name in params:
            if name not in used:
                warnings.warn(
                    f"Parameter {name} is not used by any computation. Is this intended?",
                    stacklevel=users_stacklevel(),
                )
        sources: list[tuple[int, Parameter | None]] = []
        for name in used:
            if name not in positions and name not in params:
                raise InvalidValue(
                    f"Unknown input to HybridBlock '{self.name}': {name} is neither an input nor "
                    f"a parameter. {did_you_mean(name, params)}".rstrip()
                )
            sources.append((positions.get(name, -1), params.get(name)))
        flags = list(self._flags)
        if self._backend in backend_names():
            data = tuple(i for i, (position, _) in enumerate(sources) if position >= 0)
            flags += [("backend", self._backend), ("data_indices", data)]
        cached_op = CachedOp(out, flags)
        if self._callback is not None:
            cached_op._register_op_hook(self._callback, self._monitor_all)
        self._held, self._cached_op_args = (), sources
        self._cached_op = cached_op  # assigned last: other threads read it as "complete"

    # -- inference ----------------------------------------------------------------------------

    def _infer_attrs(self, function: str, attribute: str, *args: Any) -> None:
        inputs, out = self._get_graph(*args)
        flat = [item for item in flatten(args, "input")[0] if item is not None]
        used = set(out.list_inputs())
        facts = {
            v.name: getattr(item, attribute)
            for v, item in zip(inputs, flat, strict=False)
            if v.name in used
        }
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            arguments, _, auxiliary = getattr(out, function)(**facts)
        if arguments is None:
            raise ValueError("".join(str(w.message) for w in caught))
        inferred = dict(zip(out.list_arguments(), arguments, strict=True))
        inferred.update(zip(out.list_auxiliary_states(), auxiliary, strict=True))
        for name, param in self.collect_params().items():
            if name in inferred:
                setattr(param, attribute, inferred[name])

    def infer_shape(self, *args: Any) -> None:
        """Infer the shapes of all parameters from inputs.

        Parameters
        ----------
        args
            The inputs.
        """
        self._infer_attrs("infer_shape", "shape", *args)

    def infer_type(self, *args: Any) -> None:
        """Infer the data types of all parameters from inputs.

        Parameters
        ----------
        args
            The inputs.
        """
        self._infer_attrs("infer_type", "dtype", *args)

    def _deferred_infer_shape(self, *args: Any) -> None:
        try:
            self.infer_shape(*args)
        except (MXNetError, ValueError) as error:
            failed = ShapeError(
                "Deferred initialization failed because shape cannot be inferred in "
                f"{type(self).__name__} '{self.name}'. {error}"
            )
            failed.node = getattr(error, "node", None)
            raise failed from error

    def _initialize_for(self, *args: Any) -> None:
        with FIRST_CALL:
            self._initialize(args, self.collect_params().values())

    def _initialize(self, args: tuple, params: Iterable[Parameter]) -> None:
        waiting = [param for param in params if param._deferred_init]
        if waiting:
            self._deferred_infer_shape(*args)
            for param in waiting:
                param._finish_deferred_init()

    # -- running ------------------------------------------------------------------------------

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs by functions of F, `mx.nd` or `mx.sym`; subclasses define this."""
        raise NotImplementedError(
            f"{type(self).__name__} must define hybrid_forward(self, F, x, *args, **params)"
        )

    def forward(self, x: Any, *args: Any) -> Any:
        """Run `hybrid_forward` on arrays or symbols, or the graph traced from it.

        Parameters
        ----------
        x
            The first input.
        args
            The inputs.
        """
        # 1. The arguments: arrays, or symbols to trace.
        inputs = arrays = (x, *args)
        if args or not isinstance(x, NDArray):
            if not are_arrays(*inputs):
                arrays = self._arrays_or_symbols(*inputs)
            if isinstance(arrays[0], Symbol):
                return self._trace(inputs)
        ctx = arrays[0].context
        if not self._active:
            if ctx is current_context():  # the common case: no scope to enter
                return self._run_eagerly(ctx, *inputs)
            with ctx:
                return self._run_eagerly(ctx, *inputs)
        if args:
            self._check_contexts(arrays, ctx)
        return self._run_graph(inputs, arrays, ctx)

    def _run_eagerly(self, ctx: Context, *args: Any) -> Any:
        registered = self._reg_params
        try:
            params = {name: registered[name].data(ctx) for name in registered}
        except DeferredInitializationError:
            with FIRST_CALL:
                self._initialize(args, registered.values())
            params = {name: p.data(ctx) for name, p in registered.items()}
        return self.hybrid_forward(ndarray, *args, **params)

    def _check_contexts(self, arrays: Sequence[NDArray], ctx: Context) -> None:
        for array in arrays[1:]:
            if (other := array.context) is not ctx and other != ctx:
                raise ValueError(
                    "Find multiple contexts in the input, After hybridized, the HybridBlock "
                    f"only supports one input context. '{self.name}' got {[ctx, other]}: move "
                    "the arrays with as_in_context()."
                )

    def _run_graph(self, args: tuple, arrays: Sequence[NDArray], ctx: Context) -> Any:
        # 2. The feed: parameters, held since the last call if nothing has changed, and the arrays.
        held = self._held
        is_flat = arrays is args and self._in_format == [0] * len(args)
        if (
            is_flat
            and held
            and held[0] == Generation.number
            and (held[1] is ctx or held[1] == ctx)
            and state.substitutes is None
        ):
            feed = held[2].copy()
            for position, i in held[3]:
                feed[position] = arrays[i]
        else:
            feed = self._feed(args, arrays, ctx)
        # 3. The function.
        assert self._cached_op is not None
        outputs = self._cached_op.run(feed, ctx)
        # 4. The outputs, in the structure that the block returned when it was traced.
        if self._out_format == 0:
            return outputs[0]
        return regroup(outputs, self._out_format)[0]

    def _feed(self, args: tuple, arrays: Sequence[NDArray], ctx: Context) -> list[NDArray]:
        structure = [0] * len(args) if arrays is args else flatten(args, "input")[1]
        if self._cached_op is None:
            self._build_cache(*args)
        if structure != self._in_format and not same_structure(self._in_format, structure):
            raise ValueError(
                "The argument structure of HybridBlock does not match the cached version. Stored "
                f"format = {self._in_format}, input format = {structure}. Call hybridize() again "
                "before passing inputs of a different structure."
            )
        return [arrays[i] if array is None else array for i, array in self._gather(ctx, args)]

    def _gather(self, ctx: Context, args: tuple) -> list[tuple[int, NDArray | None]]:
        generation = Generation.number
        try:
            arrays = [
                (i, None if param is None or i >= 0 else param.data(ctx))
                for i, param in self._cached_op_args
            ]
        except DeferredInitializationError:
            with FIRST_CALL:
                self._initialize(args, [p for _, p in self._cached_op_args if p is not None])
            return self._gather(ctx, args)
        # A user's parameter class may return a new array each time, for example with dropout.
        own = (
            param is not None and type(param).data is not Parameter.data
            for i, param in self._cached_op_args
            if i < 0
        )
        if state.substitutes is None and not any(own):
            places = [(position, i) for position, (i, array) in enumerate(arrays) if array is None]
            self._held = (generation, ctx, [array for _, array in arrays], places)
        return arrays

    def _call_cached_op(self, *args: Any) -> Any:
        """Run the prepared graph; contexts are not compared."""
        arrays = _flat_arrays(args)
        return self._run_graph(args, arrays, arrays[0].context)

    def _arrays_or_symbols(self, *args: Any) -> list[Any]:
        """Return the arrays or the symbols in nested arguments; raise if both kinds are mixed."""
        items = [item for item in leaves(args) if isinstance(item, Symbol | NDArray)]
        kinds = {isinstance(item, Symbol) for item in items}
        if len(kinds) == 1:
            return items
        types = [type(arg).__name__ for arg in args]
        if not kinds:
            raise ValueError(
                "In HybridBlock, there must be one NDArray or one Symbol in the input of "
                f"'{self.name}'. Please check the type of the args: {types}. Make an array of "
                "them: mx.nd.array(x)."
            )
        raise ValueError(
            "In HybridBlock, we do not support mixed NDArrays and Symbols types for the input of "
            f"'{self.name}': {types}."
        )

    # -- files --------------------------------------------------------------------------------

    def to_torch(self, shapes: Any = None) -> Any:
        """Return this network as a `torch.fx.GraphModule` that runs without MXNext.

        See `mx.convert.to_torch`.

        Parameters
        ----------
        shapes : list of tuple, optional
            Shapes of the inputs; most layers do not need them.
        """
        from ..interop import to_torch

        return to_torch(self, shapes=shapes)

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Save the graph and its parameters as ``path-symbol.json`` and ``path-0000.params``.

        `SymbolBlock.imports` and `mx.model.load_checkpoint` read them, in MXNet 1.9 too. The block
        must have been hybridized and run.

        Parameters
        ----------
        path
            Prefix of the file names.
        epoch
            Number of the epoch, at the end of the parameter file's name.
        remove_amp_cast
            Whether to leave out casts of mixed precision.
        """
        if not self._is_traceable():
            raise MXNetError(
                f"'{self.name}' cannot be exported: it holds a torch module, which has no symbol. "
                "Convert the module first: mx.convert.from_torch(module, ...)."
            )
        if not self._cached_graph:
            raise MXNetError(
                "Please first call block.hybridize() and then run forward with this block at least "
                f"once before calling export: '{self.name}' has no graph yet."
            )
        graph = self._cached_graph[1]
        text = graph.tojson(remove_amp_cast=remove_amp_cast).encode("utf-8")
        auxiliary = set(graph.list_auxiliary_states())
        params = self.collect_params()
        arrays = {
            f"{'aux' if name in auxiliary else 'arg'}:{name}": params[name]._reduce()
            for name in graph.list_inputs()
            if name in params
        }
        with one_commit():
            with replacing(local_path(f"{path}-symbol.json")) as file:
                file.write(text)
            info = {"symbol_crc32": zlib.crc32(text)}
            save_with_info(f"{path}-{epoch:04d}.params", arrays, info)

    def _traced(self) -> dict[str, Any]:
        if not self._cached_graph:
            return {"hybridized": False}
        inputs, out = self._cached_graph
        return {
            "in_format": self._in_format,
            "out_format": self._out_format,
            "inputs": [v.tojson() for v in inputs],
            "symbol": out.tojson(),
            "hybridized": True,
        }

    def _restore(self, described: dict[str, Any]) -> None:
        super()._restore(described)
        if described.get("hybridized"):
            self._active = True
            inputs = [symbol.load_json(text) for text in described["inputs"]]
            graph = symbol.load_json(described["symbol"])
            sources = {*self.collect_params(), *(v.name for v in inputs)}
            # A block whose parameters have other names is traced again.
            if sources.issuperset(graph.list_inputs()):
                self._cached_graph = inputs, graph
                self._in_format, self._out_format = described["in_format"], described["out_format"]

    def __getstate__(self) -> dict[str, Any]:
        # Programs are prepared again on the first call.
        fresh = {"_cached_op": None, "_cached_op_args": [], "_held": (), "_cached_graph": ()}
        return {**self.__dict__, **fresh}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _recompute_limit(limit: bool | str | int) -> bool | int:
    """Return the recomputation in training: none, chosen by the planner, or a memory limit."""
    if limit == "sublinear":
        return True
    if isinstance(limit, bool | int) and limit >= 0:
        return limit
    raise ValueError(
        f'hybridize: recompute={limit!r} is neither True, False, "sublinear" nor a number of bytes.'
    )


def _input_variable(name: str) -> Symbol:
    variable = symbol.var(name)
    return variable.as_np_ndarray() if is_np_array() else variable


# -- nested lists of arrays or symbols ---------------------------------------------------------


def are_arrays(*args: Any) -> bool:
    """Return whether all arguments are arrays, none of them a list."""
    for arg in args:  # noqa: SIM110 (a generator takes longer than the question)
        if not isinstance(arg, NDArray):
            return False
    return True


def flatten(args: Any, inout: str) -> tuple[list, Any]:
    """Flatten nested lists of arrays or symbols; return the flat list and the structure.

    In the structure an array is 0, None is -1, and a symbol of n outputs is n.
    """
    if isinstance(args, NDArray):
        return [args], 0
    if isinstance(args, Symbol):
        return [args], len(args) if len(args) > 1 else 0
    if args is None:
        return [None], -1
    if not isinstance(args, list | tuple):
        raise ValueError(
            f"When hybridized, the {inout} of HybridBlock must be (nested) list of Symbol or "
            f"NDArray, but got {args} of type {type(args)}"
        )
    flat, structure = [], []
    for item in args:
        items, part = flatten(item, inout)
        flat.extend(items)
        structure.append(part)
    return flat, structure


def regroup(flat: Sequence, structure: Any) -> tuple[Any, list]:
    """Rebuild nested lists from a flat list; return them and the unused rest."""
    if isinstance(structure, int):
        if structure <= 0:
            return flat[0], list(flat[1:])
        return list(flat[:structure]), list(flat[structure:])
    grouped, rest = [], list(flat)
    for part in structure:
        item, rest = regroup(rest, part)
        grouped.append(item)
    return grouped, rest


def same_structure(stored: list, structure: list) -> bool:
    """Return whether two structures agree; a trailing None is ignored."""
    while stored and stored[-1] == -1:
        stored = stored[:-1]
    while structure and structure[-1] == -1:
        structure = structure[:-1]
    return stored == structure


def leaves(args: Any) -> list:
    """Return the leaves of nested lists."""
    if isinstance(args, list | tuple):
        return [leaf for item in args for leaf in leaves(item)]
    return [args]


def _flat_arrays(args: tuple) -> Sequence[NDArray]:
    """Return the arrays of nested arguments; the arguments themselves if none is a list."""
    if are_arrays(*args):
        return args
    return [item for item in flatten(args, "input")[0] if item is not None]
