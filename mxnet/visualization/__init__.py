"""`mx.viz`: tables of a network's layers, drawings of its graph, and curves of its training."""

from __future__ import annotations

from ..symbol import Symbol
from .costs import print_costs, print_summary
from .curves import plot_history
from .drawing import render_svg
from .live import live
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
