"""What only arrays can do: symbols refuse it, and say what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..error import NotImplementedForSymbol

_NO_VALUE = "A symbol is a part of a graph, without shape or values until the graph is run."
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
    "context": "Choose the context when the graph is bound, or by that of the data.",
    "ctx": "Choose the context when the graph is bound, or by that of the data.",
}


class ArrayOnly:
    """The methods and attributes of an array that a symbol, being without values, has not."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a checker should still find misspelled attributes

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            hint = f". {_NO_VALUE} {_INSTEAD[name]}" if name in _INSTEAD else ""
            text = f"{kind!r} object has no attribute {name!r}{hint}"
            raise AttributeError(text, name=name, obj=self)

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(
            "__bool__",
            "F.where(condition, x, y) or F.contrib.cond, which choose when the graph runs,",
        )

    __nonzero__ = __bool__

    def wait_to_read(self) -> None:
        """Refuse: a symbol has no value."""
        raise NotImplementedForSymbol("wait_to_read")

    def asnumpy(self) -> None:
        """Refuse: a symbol has no value."""
        raise NotImplementedForSymbol("asnumpy")

    def asscalar(self) -> None:
        """Refuse: a symbol has no value."""
        raise NotImplementedForSymbol("asscalar")

    def copy(self) -> None:
        """Refuse: a symbol has no value."""
        raise NotImplementedForSymbol("copy")

    def as_in_context(self) -> None:
        """Refuse: a symbol has no value."""
        raise NotImplementedForSymbol("as_in_context")

    def detach(self) -> None:
        """Refuse: a symbol has no value; `BlockGrad` stops gradients in a graph."""
        raise NotImplementedForSymbol("detach", "mx.sym.BlockGrad")

    def backward(self) -> None:
        """Refuse: a symbol has no value."""
        raise NotImplementedForSymbol("backward")
