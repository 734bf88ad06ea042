"""`mx.viz`: tables of a network's layers, drawings of its graph, and curves of its training."""

from __future__ import annotations

from ..symbol import Symbol
from .costs import print_costs
from .curves import plot_history
from .network import plot_network
from .page import render_html
from .summary import print_summary
from .svg import render_svg

__all__ = [
    "Symbol",
    "plot_history",
    "plot_network",
    "print_costs",
    "print_summary",
    "render_html",
    "render_svg",
]
