"""`GraphBlock`: traces a block with symbols, prepares the graph and runs it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import symbol
from ..base import users_stacklevel
from ..context import Context
from ..error import MXNetError, ShapeError, did_you_mean
from ..executor import CachedOp
from ..executor.backends import backend_names
from ..ndarray import NDArray
from ..symbol import Symbol
from ..util import is_np_array
from .block import Block
from .nesting import are_arrays, flatten, regroup, same_structure
from .parameter import FIRST_CALL, DeferredInitializationError, Generation, Parameter
from .utils import _check_all_np_symbols, _check_same_symbol_type

__all__ = ["GraphBlock"]


class GraphBlock(Block):
    """Base of blocks that can run as a graph, which is traced at the first call."""

    def __init__(self, prefix: str | None = None, params: Any = None, **unknown: Any) -> None:
        super().__init__(prefix=prefix, params=params, **unknown)
        self._cached_graph: tuple = ()
        self._cached_op: CachedOp | None = None
        self._cached_op_args: list[tuple[int, Parameter | None]] = []
        self._held: tuple = ()  # parameter arrays of the last call, with what they depend on
        self._in_format: Any = None
        self._out_format: Any = None
        self._flags: list[tuple[str, Any]] = []
        self._callback: Callable | None = None
        self._monitor_all = False
        self._backend: str | None = None

    def _clear_cached_op(self) -> None:
        self._cached_graph = ()
        self._cached_op = None
        self._cached_op_args = []
        self._held = ()

    def _get_graph(self, *args: Any) -> tuple[list[Symbol], Symbol]:
        """Return input variables and outputs of the graph, tracing it if that was not done."""
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
                f"but it returned {out}. Leave out what is None, or do not hybridize it."
            )
        kind = _check_same_symbol_type(outputs)
        if is_np_array():
            _check_all_np_symbols(kind)
        inputs = [v for v in variables if v is not None]
        self._cached_graph = inputs, symbol.Group(outputs, kind)
        return self._cached_graph

    def _trace(self, inputs: Sequence) -> Any:
        """Return what the block makes of symbols."""
        params = {name: param.var() for name, param in self._reg_params.items()}
        with self.name_scope():
            return self.hybrid_forward(symbol, *inputs, **params)

    def _build_cache(self, *args: Any) -> None:
        with FIRST_CALL:
            if self._cached_op is None:
                self._make_cached_op(*args)

    def _make_cached_op(self, *args: Any) -> None:
        inputs, out = self._get_graph(*args)
        places = {v.name: i for i, v in enumerate(inputs)}
        params = dict(self.collect_params().items())
        used = dict.fromkeys(out.list_inputs())  # in order, and quick to look into
        for name, i in places.items():
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
            if name not in places and name not in params:
                raise ValueError(
                    f"Unknown input to HybridBlock '{self.name}': {name} is neither an input nor "
                    f"a parameter. {did_you_mean(name, params)}".rstrip()
                )
            sources.append((places.get(name, -1), params.get(name)))
        flags = list(self._flags)
        if self._backend in backend_names():
            data = tuple(i for i, (place, _) in enumerate(sources) if place >= 0)
            flags += [("backend", self._backend), ("data_indices", data)]
        made = CachedOp(out, flags)
        if self._callback is not None:
            made._register_op_hook(self._callback, self._monitor_all)
        self._held, self._cached_op_args = (), sources
        self._cached_op = made  # last: other threads take it to mean that all is there

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs with the functions of F, `mx.nd` or `mx.sym`; define this."""
        raise NotImplementedError(
            f"{type(self).__name__} must define hybrid_forward(self, F, x, *args, **params)"
        )

    def _call_cached_op(self, *args: Any) -> Any:
        """Run the prepared graph."""
        feed, ctx = self._feed_cached_op(*args)
        assert self._cached_op is not None
        made = self._cached_op.run(feed, ctx)
        if self._out_format == 0:
            return made[0]
        return regroup(made, self._out_format)[0]

    def _feed_cached_op(self, *args: Any) -> tuple[list[NDArray], Context]:
        """Return the inputs of the prepared graph, which is made if it is not there."""
        if are_arrays(*args):
            flat, structure = args, [0] * len(args)
        else:
            flat, structure = flatten(args, "input")
            flat = [item for item in flat if item is not None]
        if self._cached_op is None:
            self._build_cache(*args)
        if structure != self._in_format and not same_structure(self._in_format, structure):
            raise ValueError(
                "The argument structure of HybridBlock does not match the cached version. Stored "
                f"format = {self._in_format}, input format = {structure}. Call hybridize() again "
                "before passing inputs of another structure."
            )
        ctx = flat[0].context
        held = self._held
        if held and held[0] == Generation.number and (held[1] is ctx or held[1] == ctx):
            arrays = held[2]
        else:
            arrays = self._gather(ctx, args)
        return [flat[i] if array is None else array for i, array in arrays], ctx

    def _gather(self, ctx: Context, args: tuple) -> list[tuple[int, NDArray | None]]:
        """Return the parameters' arrays on a context, initializing those that wait."""
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
        # A user's parameter class may return another array each time, as one with dropout does.
        own = (
            param is not None and type(param).data is not Parameter.data
            for i, param in self._cached_op_args
            if i < 0
        )
        if not any(own):
            self._held = (generation, ctx, arrays)
        return arrays

    # -- inference ----------------------------------------------------------------------------

    def _infer_attrs(self, function: str, attribute: str, *args: Any) -> None:
        """Pass to the parameters what their graph says about shapes or types."""
        inputs, out = self._get_graph(*args)
        flat = [item for item in flatten(args, "input")[0] if item is not None]
        used = set(out.list_inputs())
        known = {
            v.name: getattr(item, attribute)
            for v, item in zip(inputs, flat, strict=False)
            if v.name in used
        }
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            arguments, _, auxiliary = getattr(out, function)(**known)
        if arguments is None:
            raise ValueError("".join(str(w.message) for w in caught))
        found = dict(zip(out.list_arguments(), arguments, strict=True))
        found.update(zip(out.list_auxiliary_states(), auxiliary, strict=True))
        for name, param in self.collect_params().items():
            if name in found:
                setattr(param, attribute, found[name])

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
        """Finish deferred initialization for these inputs."""
        with FIRST_CALL:
            self._initialize(args, self.collect_params().values())

    def _initialize(self, args: tuple, params: Iterable[Parameter]) -> None:
        """Initialize those parameters that still wait for their shapes."""
        waiting = [param for param in params if param._deferred_init]
        if waiting:
            self._deferred_infer_shape(*args)
            for param in waiting:
                param._finish_deferred_init()


def _input_variable(name: str) -> Symbol:
    made = symbol.var(name)
    return made.as_np_ndarray() if is_np_array() else made
