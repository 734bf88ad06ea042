"""`HybridBlock`: a block whose forward is written once for arrays and for symbols.

Eagerly it runs on arrays. Hybridized, it is called once with symbols; the graph that comes out is
prepared and run from then on.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from typing import Any

from .. import autograd, ndarray, symbol
from ..context import Context, current_context
from ..error import MXNetError, did_you_mean
from ..executor import Compiled
from ..executor.backends import backend_names
from ..formats.atomic import one_commit, replacing
from ..formats.files import local_path
from ..ndarray import NDArray
from ..ndarray.utils import save_with_info
from ..symbol import Symbol
from ..symbol.binding import BUILT_IN_BACKENDS
from .block import Block
from .graph_block import GraphBlock
from .nesting import are_arrays, leaves
from .parameter import FIRST_CALL, DeferredInitializationError

__all__ = ["HybridBlock"]


def check_backend(backend: str | None) -> None:
    """Warn of the name of a backend that is not here; MXNet too goes on without it."""
    known = (*BUILT_IN_BACKENDS, *backend_names())
    if backend is not None and backend not in known:
        near = did_you_mean(backend, known)
        warnings.warn(
            f"Error optimizing for backend '{backend}' cannot be found. {near} Known are "
            f"{', '.join(known)}. The built-in executor, which fuses by itself, is used now.",
            stacklevel=3,
        )


class HybridBlock(GraphBlock):
    """A block that runs eagerly or, after `hybridize()`, as a graph, with the same numbers.

    Define ``hybrid_forward(self, F, x, *args, **params)``: F is `mx.nd` or `mx.sym`, and the
    parameters that are attributes of the block come as keywords.

    Parameters
    ----------
    prefix
        What the names of parameters begin with; by default the class name and a number.
    params
        Parameters of another block, to share them.

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

    def __init__(self, prefix: str | None = None, params: Any = None, **unknown: Any) -> None:
        super().__init__(prefix=prefix, params=params, **unknown)
        self._active = False
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
            An engine that runs the graph in inference: ``"onnxruntime"``, ``"openvino"``,
            ``"inductor"`` (torch.compile), ``"auto"`` (the fastest on the given shapes) or a name
            of `mx.executor.register_backend`. Its first result is checked against our own. Names of
            MXNet's that fuse operators are accepted; their work is the built-in executor's.
        clear : bool
            Forget a graph traced before.
        static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size
            Hints that MXNet takes; they do not change what is computed.
        recompute : bool or "sublinear" or int
            Whether training keeps few results for backward and computes the others again, or how
            many bytes it may keep; by default ``MXNET_BACKWARD_DO_MIRROR`` decides.
        """
        check_backend(backend)
        self._backend, self._backend_opts = backend, kwargs
        self._active = active
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
        """Trace and prepare the graph for these inputs now, engines included; see `hybridize`.

        Parameters
        ----------
        x
            The first input.
        args
            The inputs.
        backend
            Name of the engine; None is the built-in one.
        clear
            Whether to forget a graph traced before.
        static_alloc
            Accepted for compatibility, without effect.
        static_shape
            Accepted for compatibility, without effect.
        inline_limit
            Accepted for compatibility, without effect.
        forward_bulk_size
            Accepted for compatibility, without effect.
        backward_bulk_size
            Accepted for compatibility, without effect.
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
        self, callback: Callable[[str, str, NDArray], None], monitor_all: bool = False
    ) -> None:
        """Call ``callback(name, operator, array)`` for results inside the hybridized graph.

        Parameters
        ----------
        callback
            The function.
        monitor_all
            Whether inputs of operators are shown too.
        """
        self._callback, self._monitor_all = callback, monitor_all
        if self._cached_op is not None:
            self._cached_op._register_op_hook(callback, monitor_all)
        super().register_op_hook(callback, monitor_all)

    def compiled(self, *args: Any, training: bool = False) -> Compiled:
        """Return a report of the graph that the hybridized block runs on such inputs.

        It prints which rules were applied and every operator that runs; `Compiled.save` writes
        the graph to a file.

        Parameters
        ----------
        args
            The inputs.
        training
            Whether to show the graph of training.

        >>> net = mx.gluon.nn.Dense(2, activation="relu", prefix="fc_")
        >>> net.initialize(); net.hybridize()
        >>> net.compiled(mx.nd.ones((1, 3))).symbol.list_outputs()
        ['fc_relu_fwd_output']
        """
        if not self._active:
            raise RuntimeError(f"{self.name} is not hybridized: call hybridize() first.")
        feed, _ = self._feed_cached_op(*args)
        assert self._cached_op is not None
        return self._cached_op.compiled(feed, training)

    # -- running ------------------------------------------------------------------------------

    def forward(self, x: Any, *args: Any) -> Any:
        """Run `hybrid_forward` on arrays or symbols, or the graph made of it.

        Parameters
        ----------
        x
            The first input.
        args
            The inputs.
        """
        found = (x, *args)
        if not are_arrays(*found):
            found = self._arrays_or_symbols(x, *args)
            if isinstance(found[0], Symbol):
                return self._trace((x, *args))
        ctx = found[0].context
        if self._active:
            for other in found[1:]:
                if (place := other.context) is not ctx and place != ctx:
                    raise ValueError(
                        "Find multiple contexts in the input, After hybridized, the HybridBlock "
                        f"only supports one input context. '{self.name}' got {[ctx, place]}: move "
                        "the arrays with as_in_context()."
                    )
            return self._call_cached_op(x, *args)
        if ctx is current_context():  # nearly always; entering it would change nothing
            return self._run_eagerly(ctx, x, *args)
        with ctx:
            return self._run_eagerly(ctx, x, *args)

    def _run_eagerly(self, ctx: Context, x: Any, *args: Any) -> Any:
        registered = self._reg_params
        try:
            params = {name: registered[name].data(ctx) for name in registered}
        except DeferredInitializationError:
            with FIRST_CALL:
                self._initialize((x, *args), registered.values())
            params = {name: p.data(ctx) for name, p in registered.items()}
        return self.hybrid_forward(ndarray, x, *args, **params)

    def _arrays_or_symbols(self, *args: Any) -> list[Any]:
        """Return the arrays in nested arguments, or the symbols; there must be one kind of them."""
        found = [item for item in leaves(args) if isinstance(item, Symbol | NDArray)]
        kinds = {isinstance(item, Symbol) for item in found}
        if len(kinds) == 1:
            return found
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
            The shapes of the inputs; most layers do not need them.
        """
        from ..convert import to_torch

        return to_torch(self, shapes=shapes)

    def export(self, path: str, epoch: int = 0, remove_amp_cast: bool = True) -> None:
        """Write the graph and its parameters: ``path-symbol.json`` and ``path-0000.params``.

        `SymbolBlock.imports` and `mx.model.load_checkpoint` read them, in MXNet 1.9 too. The block
        must have been hybridized and run.

        Parameters
        ----------
        path
            What the names of the files begin with.
        epoch
            Number of the epoch, which ends the name of the parameters' file.
        remove_amp_cast
            Whether casts of mixed precision are left out.
        """
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
            known = {*self.collect_params(), *(v.name for v in inputs)}
            if known.issuperset(graph.list_inputs()):  # else this block, named otherwise, traces
                self._cached_graph = inputs, graph
                self._in_format, self._out_format = described["in_format"], described["out_format"]

    def __getstate__(self) -> dict[str, Any]:
        # Prepared graphs are made again on the first call.
        fresh = {"_cached_op": None, "_cached_op_args": [], "_held": (), "_cached_graph": ()}
        return {**self.__dict__, **fresh}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _recompute_limit(given: bool | str | int) -> bool | int:
    """Return what to recompute in training: nothing, by the planner's choice, or to a limit."""
    if given == "sublinear":
        return True
    if isinstance(given, bool | int) and given >= 0:
        return given
    raise ValueError(
        f'hybridize: recompute={given!r} is neither True, False, "sublinear" nor a number of bytes.'
    )
