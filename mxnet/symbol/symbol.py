"""`Symbol`: a user's handle to entries of a graph.

How it is run is in `binding`; operator methods are generated in `codegen`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

from ..error import MXNetError, did_you_mean
from ..formats.atomic import replacing
from ..formats.files import local_path
from ..graph import Entry, Graph
from ..graph.compose import compose
from ..graph.create import apply_atomic, atomic, is_atomic
from ..graph.describe import describe
from ..graph.node import both_spellings
from ..graph.passes.amp import without_casts
from ..graph.symbol_json import dumps, loads
from ..shape_mode import is_np_shape
from . import inference
from .array_only import ArrayOnly
from .binding import Binding

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._stubs.methods import SymbolMethods
else:
    SymbolMethods = object  # codegen adds the methods

__all__ = ["Symbol"]


class Symbol(Binding, ArrayOnly, SymbolMethods):
    """One or several outputs of a graph that is not computed yet.

    Parameters
    ----------
    handle
        Entries of a graph; use `mx.sym.var` and operators in place of the class.

    >>> x = mx.sym.Variable("x")
    >>> y = mx.sym.FullyConnected(x, num_hidden=3, name="fc") * 2
    >>> y.list_arguments(), y.infer_shape(x=(4, 5))[1]
    (['x', 'fc_weight', 'fc_bias'], [(4, 3)])
    """

    __slots__ = ("__weakref__", "_cached_graph", "_heads")
    # NumPy leaves arithmetic with symbols to the symbol.
    __array_priority__: ClassVar[float] = 1000.0
    # Whether operators have NumPy's semantics, as those of `mx.sym.np` do.
    is_numpy: ClassVar[bool] = False
    __hash__ = None  # == makes a symbol, so symbols cannot be keys

    def __init__(self, handle: Sequence[Entry]) -> None:
        self._heads = tuple(handle)
        self._cached_graph: Graph | None = None

    @property
    def _graph(self) -> Graph:
        """The graph below this symbol."""
        if self._cached_graph is None:
            self._cached_graph = Graph(self._heads)
        return self._cached_graph

    @property
    def handle(self) -> tuple[Entry, ...]:
        """The outputs of the graph that this symbol holds; ``Symbol(s.handle)`` holds the same."""
        return self._heads

    @property
    def name(self) -> str | None:
        """The name of the node, or None for a group of several."""
        first = self._heads[0].node if self._heads else None
        if first is None or any(e.node is not first for e in self._heads):
            return None
        return first.name

    def __repr__(self) -> str:
        if self.name is not None:
            return f"<Symbol {self.name}>"
        return f"<Symbol group [{', '.join(str(s.name) for s in self)}]>"

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
                raise TypeError(f"{index} selects none of the {len(self)} outputs of {self!r}.")
            return type(self)(heads)
        if not hasattr(index, "__index__"):
            raise TypeError(
                "Symbol only support integer index to fetch i-th output, or the output's name; "
                f"got {index!r}."
            )
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self!r} has {len(self)} outputs, there is no number {index}.")
        return type(self)((self._heads[index],))

    def _index_of(self, name: str) -> int:
        names = self.list_outputs()
        found = [i for i, n in enumerate(names) if n == name]
        if not found:
            near = did_you_mean(name, names)
            raise ValueError(f'Cannot find output that matches name "{name}". {near}'.rstrip())
        if len(found) > 1:
            raise ValueError(f'There are multiple outputs with name "{name}": use the number.')
        return found[0]

    def get_internals(self) -> Symbol:
        """Return a group of all outputs inside the graph, in topological order.

        >>> fc = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc")
        >>> mx.sym.relu(fc).get_internals()["fc_output"]
        <Symbol fc>
        """
        nodes = self._graph.nodes
        # The version of a variable counts the operators that change it: auxiliary states have one.
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
        """Return the names of the inputs that operators keep and change, such as moving means."""
        return [n.name for n in self._graph.auxiliary]

    def list_inputs(self) -> list[str]:
        """Return the names of arguments and auxiliary states together."""
        return [n.name for n in self._graph.variables]

    # -- attributes ---------------------------------------------------------------------------

    def _node(self) -> Any:
        first = self._heads[0].node
        return first if all(e.node is first for e in self._heads) else None

    def attr(self, key: str) -> str | None:
        """Return one attribute of this node, or None; a group of several nodes has none.

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
        """Return the attributes of this node, or of the first one of a group.

        Parameters
        ----------
        recursive
            Whether to return those of all nodes.
        """
        if recursive:
            raise DeprecationWarning(
                "Symbol.list_attr with recursive=True has been deprecated. Use attr_dict instead."
            )
        return both_spellings(self._heads[0].node.all_attributes())

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes of all nodes that have some, by name."""
        return {
            n.name: both_spellings(n.all_attributes())
            for n in self._graph.nodes
            if n.attrs or n.extra
        }

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes of this node; those of an operator are checked."""
        node = self._node()
        if node is None:
            raise MXNetError("Attributes of a group cannot be set: take one of its symbols.")
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
        made = self.__copy__()
        made._compose(*args, **kwargs)
        return made

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
        fixed = len(self._heads) == 1 and self._heads[0].node.op is None  # a variable by itself
        for key, value in kwargs.items():
            if key not in candidates or fixed:
                known = "\n".join(f"\t[{i}]{n}" for i, n in enumerate(candidates))
                raise MXNetError(
                    f"Symbol.ComposeKeyword argument name {key} not found.\n"
                    f"Candidate arguments:\n{known}"
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
        """Return this operator with its attributes, but without inputs: a call gives it some."""
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
        """Return the shapes of arguments, outputs and auxiliary states, from those of some.

        What cannot be inferred gives a warning and ``(None, None, None)``.

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order; others go by name.

        >>> mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3).infer_shape(x=(4, 5))
        ([(4, 5), (3, 5), (3,)], [(4, 3)], [])
        """
        found = inference.shapes(self._graph, args, kwargs)
        if found.complete:
            return inference.shape_lists(found)
        unknown = inference.unknown_arguments(found, inference.shown_shape)
        warnings.warn(
            "Cannot decide shape for the following arguments (0s in shape means unknown "
            f"dimensions). Consider providing them as input:\n\t{unknown}",
            stacklevel=2,
        )
        return None, None, None

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple:
        """Return the shapes as far as they are known; unknown sizes are 0, unknown shapes ().

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order; others go by name.
        """
        return inference.shape_lists(inference.shapes(self._graph, args, kwargs))

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple:
        """Return the data types of arguments, outputs and auxiliary states, from those of some.

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order; others go by name.
        """
        found = inference.types(self._graph, args, kwargs)
        if found.complete:
            return inference.type_lists(found)
        unknown = inference.unknown_arguments(found, lambda _: "None")
        warnings.warn(
            "Cannot decide type for the following arguments. Consider providing them as input:"
            f"\n\t{unknown}",
            stacklevel=2,
        )
        return None, None, None

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple:
        """Return the data types as far as they are known, None where they are not.

        Parameters
        ----------
        args
            Shapes, types or arrays of the arguments, in order; others go by name.
        """
        return inference.type_lists(inference.types(self._graph, args, kwargs))

    # -- files and text -----------------------------------------------------------------------

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Return MXNet's JSON text of the graph; casts put in by AMP are left out.

        Parameters
        ----------
        remove_amp_cast
            Whether casts of mixed precision are left out.
        """
        heads = without_casts(self._graph) if remove_amp_cast else self._heads
        return dumps(heads, np_shape=is_np_shape())

    def save(self, fname: str | PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write the JSON text to a file.

        Parameters
        ----------
        fname
            Path of the file.
        remove_amp_cast
            Whether casts of mixed precision are left out.
        """
        with replacing(local_path(fname)) as file:
            file.write(self.tojson(remove_amp_cast).encode("utf-8"))

    def debug_str(self) -> str:
        """Return the graph as text for people."""
        return describe(self._graph)

    def __getstate__(self) -> dict[str, str]:
        return {"handle": self.tojson(remove_amp_cast=False)}

    def __setstate__(self, state: dict[str, str]) -> None:
        self._heads = tuple(loads(state["handle"]))
        self._cached_graph = None

    def __reduce__(self) -> tuple:
        return _empty, (type(self),), self.__getstate__()

    def as_nd_ndarray(self) -> Symbol:
        """Return this symbol with the classic operators."""
        return Symbol(self._heads)

    def as_np_ndarray(self) -> Symbol:
        """Return this symbol with NumPy's operators."""
        from .numpy import _Symbol

        return _Symbol(self._heads)


def _empty(cls: type[Symbol]) -> Symbol:
    """Return a symbol that unpickling fills."""
    return cls(())
