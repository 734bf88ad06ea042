"""`mx.viz`: tables of layers, drawings of graphs, and training curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._process.on_demand import import_on_demand
from ..symbol import Symbol

if TYPE_CHECKING:
    from .costs import print_costs, print_summary
    from .curves import plot_history
    from .drawing import render_svg
    from .live_curves import live
    from .network import plot_network
    from .page import render_html

__all__ = [
    "Symbol",
    "live",
    "plot_history",
    "plot_network",
    "print_costs",
    "print_summary",
    "render_html",
    "render_svg",
]

__getattr__, __dir__ = import_on_demand(
    __name__,
    {
        "live": "live_curves:live",
        "plot_history": "curves:plot_history",
        "plot_network": "network:plot_network",
        "print_costs": "costs:print_costs",
        "print_summary": "costs:print_summary",
        "render_html": "page:render_html",
        "render_svg": "drawing:render_svg",
    },
)
