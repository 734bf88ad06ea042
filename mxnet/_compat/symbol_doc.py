"""MXNet's texts on symbols, which are in the docstrings here; old programs import `SymbolDoc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["SymbolDoc"]


class SymbolDoc:
    """The base class of additional texts on symbols.

    >>> x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    >>> mx.symbol_doc.SymbolDoc.get_output_shape(x, data=(2, 5))
    {'fc_output': (2, 3)}
    """

    @staticmethod
    def get_output_shape(sym: Symbol, **input_shapes: Any) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all outputs by name."""
        _, shapes, _ = sym.infer_shape(**input_shapes)
        return dict(zip(sym.list_outputs(), shapes, strict=True))
