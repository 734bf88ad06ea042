"""Operators whose nodes hold graphs: their kernels are made by the layers that run graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..declare import Op


class HoldsGraphs(Op):
    """An operator whose kernel is made from the graphs of its node by `runner`."""

    runner: Callable[[Sequence[Any], dict], Callable]

    def instantiate(self, attrs: dict, subgraphs: Sequence = ()) -> Callable:
        """Return the kernel of one node."""
        return self.runner(subgraphs, attrs)
