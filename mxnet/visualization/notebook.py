"""Notebook representations of symbols, blocks, trainers and loaders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from ..symbol import Symbol
from .drawing import diagram, svg_text

MAX_NODES = 150  # larger graphs are shown as text; `render_html` makes a page of them
MAX_CHILDREN = 400


def symbol_svg(symbol: Symbol) -> str | None:
    """Return a drawing of a small graph; None for a large one, which is shown as text."""
    if sum(node.op is not None for node in symbol._graph.nodes) > MAX_NODES:
        return None
    return svg_text(diagram(symbol))


def facts_html(title: str, facts: Mapping[str, Any]) -> str:
    """Return a table of names and values.

    >>> facts_html("Trainer", {"optimizer": "SGD"})
    '<table><caption>Trainer</caption><tr><th>optimizer</th><td>SGD</td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def block_html(block: Any) -> str:
    """Return a tree of a block and its children, each with the number of its parameters."""
    left = [MAX_CHILDREN]
    return f'<div style="font-family:monospace">{_tree("", block, left, is_open=True)}</div>'


def _tree(key: str, block: Any, left: list[int], *, is_open: bool = False) -> str:
    left[0] -= 1
    name = f"({escape(key)}) " if key else ""
    count = _count(block)
    total = f' <span style="opacity:.6">{count:,} parameters</span>' if count else ""
    children = block._children
    if not children:
        return f"<div>{name}{escape(repr(block))}{total}</div>"
    shown = []
    for inner, child in children.items():
        if left[0] <= 0:
            shown.append("<div>…</div>")
            break
        shown.append(_tree(inner, child, left))
    body = f'<div style="margin-left:1.5em">{"".join(shown)}</div>'
    state = ' open=""' if is_open else ""
    title = f"{name}<b>{escape(type(block).__name__)}</b>{total}"
    return f"<details{state}><summary>{title}</summary>{body}</details>"


def _count(block: Any) -> int:
    """Return the number of parameters of a block and its children; 0 if shapes are unknown."""
    shapes = [p.shape for p in block.collect_params().values()]
    if any(not s or min(s) <= 0 for s in shapes):
        return 0
    return sum(map(math.prod, shapes))
