"""`Symbol`: the user's handle of graph entries.

Operator methods are generated in `codegen`, overloads in `methods`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import dtypes
from ..base import is_np_shape
from ..context import Context, current_context
from ..error import MXNetError, NotImplementedForSymbol, did_you_mean
from ..formats.atomic import replacing
from ..formats.files import local_path
from ..graph import Entry, Graph
from ..graph.graph import compose, describe
from ..graph.node import apply_atomic, atomic, both_spellings, is_atomic
from ..graph.passes.infer import Inferred, infer_from_given, infer_types
from ..graph.passes.simplify import without_casts
from ..graph.quantization.fused_layers import fuse_layers
from ..graph.symbol_json import dumps, loads

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..executor import Executor
    from ._stubs.methods import SymbolMethods
else:
    SymbolMethods = object  # codegen adds the methods

__all__ = ["Symbol"]

# MXNet's subgraph backends; here the executor fuses operators itself.
BUILT_IN_BACKENDS = ("MKLDNN", "MKLDNN_QUANTIZE", "ONEDNN", "ONEDNN_QUANTIZE", "default")

_NO_VALUE = "A symbol has no shape or values until the graph is run."
_SHAPE_FREE = (
    "In hybrid_forward use operators that need no shape: F.reshape(x, (0, -1)) keeps the first "
    "axis, F.shape_array(x) computes the shape, *_like operators take it from another input. "
    "Outside, symbol.infer_shape(data=...) returns shapes."
)
_INSTEAD = {
    "shape": _SHAPE_FREE,
    "ndim": _SHAPE_FREE,
    "size": _SHAPE_FREE,
    "dtype": "Outside hybrid_forward, symbol.infer_type(data=...) returns types.",
    "context": "The context is chosen at binding, or by the data.",
    "ctx": "The context is chosen at binding, or by the data.",
}


class Symbol(SymbolMethods):
    """One or several outputs of a symbolic graph.

    Parameters
    ----------
    handle
        Entries of a graph. Create symbols with `mx.sym.var` and operators.

    >>> x = mx.sym.Variable("x")
    >>> y = mx.sym.FullyConnected(x, num_hidden=3, name="fc") * 2
    >>> y.list_arguments(), y.infer_shape(x=(4, 5))[1]
    (['x', 'fc_weight', 'fc_bias'], [(4, 3)])
    """

    __slots__ = ("__weakref__", "_cached_graph", "_heads")
    # NumPy defers arithmetic to the symbol.
    __array_priority__: ClassVar[float] = 1000.0
    # Whether operators have NumPy's semantics, as in `mx.sym.np`.
    is_numpy: ClassVar[bool] = False
    __hash__ = None  # == returns a symbol, so symbols cannot be keys

    def __init__(self, handle: Sequence[Entry]) -> None:
        self._heads = tuple(handle)
        self._cached_graph: Graph | None = None

    @property
    def _graph(self) -> Graph:
        if self._cached_graph is None:
            self._cached_graph = Graph(self._heads)
        return self._cached_graph

    @property
    def handle(self) -> tuple[Entry, ...]:
        """The entries of the symbol; ``Symbol(s.handle)`` is an equal symbol."""
        return self._heads

    @property
    def name(self) -> str | None:
        """The name of the node, or None for a group."""
        first = self._heads[0].node if self._heads else None
        if first is None or any(e.node is not first for e in self._heads):
            return None
        return first.name

    def __repr__(self) -> str:
        if self.name is not None:
            return f"<{type(self).__name__} {self.name}>"
        return f"<{type(self).__name__} group [{', '.join(str(s.name) for s in self)}]>"

    def _repr_svg_(self) -> str | None:
        """Draw the graph in a notebook, unless it is large."""
        from ..visualization.notebook import symbol_svg

        return symbol_svg(self)

    # -- parts --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._heads)

    def __iter__(self) -> Iterator[Self]:
        return (type(self)((entry,)) for entry in self._heads)

    def __getitem__(self, index: int | str | slice) -> Self:
        if isinstance(index, str):
            return self[self._index_of(index)]
        if isinstance(index, slice):
            heads = self._heads[index]
            if not heads:
                raise self._empty_slice(index)
            return type(self)(heads)
        if not hasattr(index, "__index__"):
            raise TypeError(
                "Symbol only support integer index to fetch i-th output, or the output's name; "
                f"got {index!r}."
            )
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self!r} has {len(self)} outputs, none at index {index}.")
        return type(self)((self._heads[index],))

    def _empty_slice(self, index: slice) -> Exception:
        """Return MXNet's error for an empty slice."""
        start, step = index.start or 0, index.step or 1
        beyond = range(start, len(self) if index.stop is None else index.stop, step)
        error = IndexError if beyond else TypeError
        return error(f"{index} selects none of the {len(self)} outputs of {self!r}.")

    def _index_of(self, name: str) -> int:
        names = self.list_outputs()
        matches = [i for i, n in enumerate(names) if n == name]
        if not matches:
            near = did_you_mean(name, names)
            raise ValueError(f'Cannot find output that matches name "{name}". {near}'.rstrip())
        if len(matches) > 1:
            raise ValueError(f'There are multiple outputs with name "{name}": use its index.')
        return matches[0]

    def get_internals(self) -> Symbol:
        """Return a group of all outputs inside the graph, in topological order.

        >>> fc = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc")
        >>> mx.sym.relu(fc).get_internals()["fc_output"]
        <Symbol fc>
        """
        nodes = self._graph.nodes
        # A variable's version counts the operators that mutate it; it is nonzero for auxiliary
        # states.
        return type(self)([Entry(n, i, n.version) for n in nodes for i in range(n.outputs)])

    def get_children(self) -> Symbol | None:
        """Return a group of the inputs of the head nodes, or None if they have none."""
        heads, seen = [], set()
        for entry in self._heads:
            if entry.node not in seen:
                seen.add(entry.node)
                heads.extend(entry.node.inputs)
        return type(self)(heads) if heads else None

    def list_arguments(self) -> list[str]:
        """Return the names of the inputs that are not auxiliary states."""
        return [n.name for n in self._graph.arguments]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs: ``fc1_output``."""
        return self._graph.output_names()

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the inputs that operators mutate, such as moving means."""
        return [n.name for n in self._graph.auxiliary]

    def list_inputs(self) -> list[str]:
        """Return the names of all inputs: arguments and auxiliary states."""
        return [n.name for n in self._graph.variables]

    # -- attributes ---------------------------------------------------------------------------

    def _node(self) -> Any:
        first = self._heads[0].node
        return first if all(e.node is first for e in self._heads) else None

    def attr(self, key: str) -> str | None:
        """Return an attribute of this node, or None; None for a group.

        Parameters
        ----------
        key
            Name of the attribute.
        """
        node = self._node()
        if node is None:
            return None
        return self.list_attr().get(key, node.name if key == "name" else None)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Return the attributes of this node, or of the first node of a group.

        Parameters
        ----------
        recursive
            Whether to return the attributes of all nodes.
        """
        if recursive:
            raise DeprecationWarning(
                "Symbol.list_attr with recursive=True has been deprecated. Use attr_dict instead."
            )
        return both_spellings(self._heads[0].node.all_attributes())

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes of all nodes that have any, by node name."""
        return {
            n.name: both_spellings(n.all_attributes())
            for n in self._graph.nodes
            if n.attrs or n.extra
        }

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes of this node; an operator's attributes are validated."""
        node = self._node()
        if node is None:
            raise MXNetError("Attributes of a group cannot be set: select one of its symbols.")
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ValueError(f"Set Attr only accepts string values, but {key} is {value!r}.")
            node.set_attribute(key, value)

    # -- composition --------------------------------------------------------------------------

    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """Return a copy in which variables are replaced by other symbols, by name.

        >>> net = mx.sym.relu(mx.sym.Variable("x"))
        >>> net(x=mx.sym.Variable("data")).list_arguments()
        ['data']
        """
        composed = self.__copy__()
        composed._compose(*args, **kwargs)
        return composed

    def _compose(self, *args: Symbol, **kwargs: Any) -> None:
        name = kwargs.pop("name", None)
        if args and kwargs:
            raise TypeError(
                "compose only accept input Symbols either as positional or keyword arguments, "
                "not both"
            )
        for value in (*args, *kwargs.values()):
            if not isinstance(value, Symbol):
                raise TypeError(f"Compose expect `Symbol` as arguments, got {value!r}.")
        if is_atomic(self._heads):
            self._heads = apply_atomic(self._heads[0].node, name or "", args, kwargs)
            self._cached_graph = None
            return
        if args:
            raise MXNetError("General composition only support kwargs: net(data=symbol).")
        candidates = self.list_inputs()
        fixed = len(self._heads) == 1 and self._heads[0].node.op is None  # a single variable
        for key, value in kwargs.items():
            if key not in candidates or fixed:
                listed = "\n".join(f"\t[{i}]{n}" for i, n in enumerate(candidates))
                raise MXNetError(
                    f"Symbol.ComposeKeyword argument name {key} not found.\n"
                    f"Candidate arguments:\n{listed}"
                )
            if len(value) != 1:
                raise MXNetError(
                    f"Keyword Argument {key} is a tuple, single value is required: {value!r} has "
                    f"{len(value)} outputs."
                )
        self._heads = tuple(compose(self._graph, {k: v._heads[0] for k, v in kwargs.items()}))
        self._cached_graph = None
        if name is not None:
            self._heads[0].node.name = name

    def _gen_atomic_symbol(self) -> Symbol:
        """Return this operator with its attributes, but without inputs."""
        node = self._node()
        if node is None or node.op is None:
            raise MXNetError("Only the result of one operator has an atomic symbol.")
        return type(self)(atomic(node))

    def __copy__(self) -> Symbol:
        return type(self)(compose(self._graph))

    def __deepcopy__(self, memo: Any = None) -> Symbol:
        return self.__copy__()

    # -- inference ----------------------------------------------------------------------------

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple:
        """Infer the shapes of arguments, outputs and auxiliary states from known shapes.

        If a shape cannot be inferred, warns and returns ``(None, None, None)``.

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order, or as keywords.

        >>> mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3).infer_shape(x=(4, 5))
        ([(4, 5), (3, 5), (3,)], [(4, 3)], [])
        """
        inferred = _infer_from_shapes(self._graph, args, kwargs)
        if inferred.complete:
            return _shape_lists(inferred)
        unknown = _unknown_arguments(inferred, _shown_shape)
        warnings.warn(
            "Cannot decide shape for the following arguments (0s in shape means unknown "
            f"dimensions). Consider providing them as input:\n\t{unknown}",
            stacklevel=2,
        )
        return None, None, None

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple:
        """Infer as many shapes as possible; unknown sizes are 0, unknown shapes ().

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order, or as keywords.
        """
        return _shape_lists(_infer_from_shapes(self._graph, args, kwargs))

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple:
        """Infer the data types of arguments, outputs and auxiliary states from known types.

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order, or as keywords.
        """
        inferred = _infer_from_types(self._graph, args, kwargs)
        if inferred.complete:
            return _type_lists(inferred)
        unknown = _unknown_arguments(inferred, lambda _: "None")
        warnings.warn(
            "Cannot decide type for the following arguments. Consider providing them as input:"
            f"\n\t{unknown}",
            stacklevel=2,
        )
        return None, None, None

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple:
        """Infer as many data types as possible; unknown types are None.

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order, or as keywords.
        """
        return _type_lists(_infer_from_types(self._graph, args, kwargs))

    # -- files and text -----------------------------------------------------------------------

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Return the graph as a JSON string in MXNet's format.

        Parameters
        ----------
        remove_amp_cast
            Whether to remove casts of mixed precision.
        """
        heads = without_casts(self._graph) if remove_amp_cast else self._heads
        return dumps(heads, np_shape=is_np_shape())

    def save(self, fname: str | PathLike[str], remove_amp_cast: bool = True) -> None:
        """Save the graph to a JSON file.

        Parameters
        ----------
        fname
            Path of the file.
        remove_amp_cast
            Whether to remove casts of mixed precision.
        """
        with replacing(local_path(fname)) as file:
            file.write(self.tojson(remove_amp_cast).encode("utf-8"))

    def debug_str(self) -> str:
        """Return a readable description of the graph."""
        return describe(self._graph)

    def __getstate__(self) -> dict[str, str]:
        return {"handle": self.tojson(remove_amp_cast=False)}

    def __setstate__(self, state: dict[str, str]) -> None:
        self._heads = tuple(loads(state["handle"]))
        self._cached_graph = None

    def __reduce__(self) -> tuple:
        return _empty, (type(self),), self.__getstate__()

    def as_nd_ndarray(self) -> Symbol:
        """Return this symbol with classic operators."""
        return Symbol(self._heads)

    def as_np_ndarray(self) -> Symbol:
        """Return this symbol with NumPy's operators."""
        from .numpy import _Symbol

        return _Symbol(self._heads)

    # -- running: the executors are in `mxnet.executor` -------------------------------------

    def bind(
        self,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Executor | None = None,
    ) -> Executor:
        """Bind the graph to arrays and return an executor.

        Parameters
        ----------
        ctx
            Device of the arrays.
        args
            Arrays of all arguments: a list in order, or a dict by name.
        args_grad
            Gradient arrays: a list in order, or a dict by name.
        grad_req
            How gradients are stored, for all or by name: ``'write'``, ``'add'`` or ``'null'``.
        aux_states
            Arrays of the auxiliary states.
        group2ctx
            Device of each ``ctx_group``.
        shared_exec
            Executor whose memory may be reused.
        """
        from ..executor import bind

        return bind(self, ctx, args, args_grad, grad_req, aux_states, group2ctx, shared_exec)

    def simple_bind(
        self,
        ctx: Context,
        grad_req: Any = "write",
        type_dict: Any = None,
        stype_dict: Any = None,
        group2ctx: Any = None,
        shared_arg_names: Any = None,
        shared_exec: Executor | None = None,
        shared_buffer: Any = None,
        **kwargs: Any,
    ) -> Executor:
        """Bind the graph to new arrays of inferred shapes and return an executor.

        Parameters
        ----------
        ctx
            Device of the arrays.
        grad_req
            How gradients are stored, for all or by name: ``'write'``, ``'add'`` or ``'null'``.
        type_dict
            Data types by argument.
        stype_dict
            Storage types by argument.
        group2ctx
            Device of each ``ctx_group``.
        shared_arg_names
            Arguments whose arrays may be shared.
        shared_exec
            Executor whose memory may be reused.
        shared_buffer
            Arrays by name that may be reused.
        """
        from ..executor import simple_bind

        return simple_bind(
            self,
            ctx,
            grad_req,
            type_dict,
            stype_dict,
            group2ctx,
            shared_arg_names,
            shared_exec,
            shared_buffer,
            **kwargs,
        )

    def eval(self, ctx: Context | None = None, **kwargs: Any) -> list:
        """Compute the outputs from arrays passed by argument name.

        Parameters
        ----------
        ctx
            Device of the arrays.
        """
        return self.bind(ctx or current_context(), kwargs, grad_req="null").forward()

    def gradient(self, wrt: Iterable[str]) -> Symbol:
        """Not supported, as in MXNet: gradients are computed by executors.

        Parameters
        ----------
        wrt
            Names of arguments.
        """
        raise MXNetError(
            "Symbol.gradient is not implemented. Bind the symbol with gradient arrays and call "
            "backward() of the executor."
        )

    def optimize_for(
        self,
        backend: str,
        args: Any = None,
        aux: Any = None,
        ctx: Context | None = None,
        shape_dict: Any = None,
        type_dict: Any = None,
        stype_dict: Any = None,
        skip_infer: bool = False,
        **kwargs: Any,
    ) -> Symbol:
        """Return the symbol for inference by an engine such as ``"openvino"``.

        For MXNet's own backends this is `get_backend_symbol`.

        Parameters
        ----------
        backend
            Name of the engine.
        args
            Shapes, types or arrays of the arguments, in order, or as keywords.
        aux
            Arrays of the auxiliary states.
        ctx
            Device of the arrays.
        shape_dict
            Shapes by argument.
        type_dict
            Data types by argument.
        stype_dict
            Storage types by argument.
        skip_infer
            Whether to skip the inference of shapes and types.
        """
        from ..runtime.backends import backend_names

        if backend in backend_names():
            symbol = type(self)(self._heads)
            symbol._graph.backend = backend
            return symbol
        if backend in BUILT_IN_BACKENDS:
            return self.get_backend_symbol(backend)
        warnings.warn(
            f"Error optimizing for backend '{backend}' cannot be found; the symbol is "
            "returned unchanged.",
            stacklevel=2,
        )
        return self

    def get_backend_symbol(self, backend: str) -> Symbol:
        """Return the symbol with layers fused like that backend of MXNet.

        Only for programs that use the fused nodes: the executor fuses operators itself.

        Parameters
        ----------
        backend
            Name of the backend, such as ``"MKLDNN"``.
        """
        if backend not in BUILT_IN_BACKENDS:
            raise MXNetError(
                f"SubgraphProperty {backend} is not found in SubgraphBackendRegistry; known are "
                f"{', '.join(BUILT_IN_BACKENDS)}."
            )
        if backend == "default":
            return self
        return type(self)(fuse_layers(self._graph))

    # -- unsupported methods of arrays ------------------------------------------------------------

    if not TYPE_CHECKING:  # type checkers still report misspelled attributes

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            hint = f". {_NO_VALUE} {_INSTEAD[name]}" if name in _INSTEAD else ""
            text = f"{kind!r} object has no attribute {name!r}{hint}"
            raise AttributeError(text, name=name, obj=self)

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(
            "__bool__",
            "F.where(condition, x, y) or F.contrib.cond, which select values when the graph runs,",
        )

    __nonzero__ = __bool__

    def wait_to_read(self) -> None:
        """Not supported: a symbol has no value."""
        raise NotImplementedForSymbol("wait_to_read")

    def asnumpy(self) -> None:
        """Not supported: a symbol has no value."""
        raise NotImplementedForSymbol("asnumpy")

    def asscalar(self) -> None:
        """Not supported: a symbol has no value."""
        raise NotImplementedForSymbol("asscalar")

    def copy(self) -> None:
        """Not supported: a symbol has no value."""
        raise NotImplementedForSymbol("copy")

    def as_in_context(self) -> None:
        """Not supported: a symbol has no value."""
        raise NotImplementedForSymbol("as_in_context")

    def detach(self) -> None:
        """Not supported: a symbol has no value; `BlockGrad` stops gradients in a graph."""
        raise NotImplementedForSymbol("detach", "mx.sym.BlockGrad")

    def backward(self) -> None:
        """Not supported: a symbol has no value."""
        raise NotImplementedForSymbol("backward")


def _empty(cls: type[Symbol]) -> Symbol:
    return cls(())


# -- conversion between the users' shapes and types and those of the passes --------------


def _infer_from_shapes(graph: Graph, args: tuple, kwargs: Mapping[str, Any]) -> Inferred:
    shapes = _by_name(graph, args, kwargs, "shapes")
    for name, shape in shapes.items():
        if not isinstance(shape, tuple):
            raise TypeError(f"Arguments need to be shapes (tuple), but '{name}' is {type(shape)}.")
    _check_names(graph, kwargs, "InferShape")
    return infer_from_given(graph, shapes)


def _infer_from_types(graph: Graph, args: tuple, kwargs: Mapping[str, Any]) -> Inferred:
    known_types = {
        name: dtypes.to_torch(dtype)
        for name, dtype in _by_name(graph, args, kwargs, "types").items()
    }
    _check_names(graph, kwargs, "InferType")
    return infer_types(graph, known_types)


def _by_name(graph: Graph, args: tuple, kwargs: Mapping[str, Any], what: str) -> dict[str, Any]:
    if args and kwargs:
        raise ValueError(
            f"Can only specify known argument {what} either by positional or kwargs way."
        )
    if len(args) > len(graph.arguments):
        raise MXNetError(
            f"{len(args)} {what} were given for {len(graph.arguments)} arguments: "
            f"{[n.name for n in graph.arguments]}"
        )
    pairs = zip((n.name for n in graph.arguments), args, strict=False) if args else kwargs.items()
    return {name: value for name, value in pairs if value is not None}


def _check_names(graph: Graph, kwargs: Mapping[str, Any], what: str) -> None:
    variables = {n.name for n in graph.variables}
    for name in kwargs:
        if name not in variables:
            names = "\n".join(f"\t[{i}]{n.name}" for i, n in enumerate(graph.variables))
            raise MXNetError(
                f"{what}Keyword argument name {name} not found.\nCandidate arguments:\n{names}"
            )


def _shown_shape(shape: tuple | None) -> tuple | None:
    if is_np_shape():
        return shape
    return () if shape is None else tuple(max(n, 0) for n in shape)


def _shape_lists(inferred: Inferred) -> tuple[list, list, list]:
    parts = inferred.arguments, inferred.heads, inferred.auxiliary
    if inferred.complete:  # no size is unknown
        return parts
    arguments, heads, auxiliary = ([_shown_shape(s) for s in part] for part in parts)
    return arguments, heads, auxiliary


def _type_lists(inferred: Inferred) -> tuple[list, list, list]:
    """Return NumPy types of arguments, outputs and auxiliary states."""
    parts = inferred.arguments, inferred.heads, inferred.auxiliary
    arguments, heads, auxiliary = ([_numpy_type(t) for t in part] for part in parts)
    return arguments, heads, auxiliary


def _numpy_type(dtype: Any) -> type[np.generic] | None:
    return None if dtype is None else dtypes.to_numpy(dtype)


def _unknown_arguments(inferred: Inferred, show: Callable[[Any], Any]) -> str:
    lines = [
        f"{node.name}: {show(value)}"
        for node, value in zip(inferred.graph.arguments, inferred.arguments, strict=True)
        if value is None or (isinstance(value, tuple) and -1 in value)
    ]
    return "\n\t".join(lines)
