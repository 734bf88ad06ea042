"""`plot_network`: a graphviz drawing of a network, also without ``dot``."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..symbol import Symbol
from .drawing import Diagram, diagram, svg_text


def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
    """Return a drawing of the network: a ``graphviz.Digraph``.

    Parameters
    ----------
    symbol : Symbol
        The network.
    title : str
        The name of the drawing and of the file that ``view`` and ``render`` write.
    save_format : str
        The format of that file.
    shape, dtype : dict, optional
        Shapes and types of the inputs; then arrows show those of the data.
    node_attrs : dict, optional
        Graphviz attributes of all nodes, such as ``{"fixedsize": "false"}``.
    hide_weights : bool
        Whether to hide weights, biases and other parameters.

    Notes
    -----
    Needs the Python package ``graphviz``. Without the program ``dot``, ``render`` and ``view``
    write an SVG with MXNext's layout; `render_svg` needs neither.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> drawing = mx.viz.plot_network(net)
    >>> "fc" in drawing.source
    True
    """
    shown = diagram(symbol, shape, dtype, hide_weights)
    _warn_of_repeated_names(symbol)
    drawing = _drawing_class()(name=title, format=save_format)
    drawing.diagram = shown
    style = {
        "shape": "box",
        "fixedsize": "true",
        "width": "1.6",
        "height": "0.8",
        "style": "filled",
        **(node_attrs or {}),
    }
    for box in shown.boxes:
        own = {"shape": "oval"} if box.is_input and "shape" not in (node_attrs or {}) else {}
        drawing.node(box.key, box.label, **{**style, **own, "fillcolor": box.color})
    for arrow in shown.arrows:
        label = {"label": arrow.label} if arrow.label else {}
        drawing.edge(arrow.target, arrow.source, dir="back", arrowtail="open", **label)
    return drawing


def _warn_of_repeated_names(symbol: Symbol) -> None:
    counts = Counter(node.name for node in symbol._graph.nodes)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    if repeated:
        warnings.warn(
            "There are multiple variables with the same name in your graph: they are drawn with "
            f"numbers. Repeated names: {','.join(repeated)}",
            stacklevel=3,
        )


@cache
def _drawing_class() -> type:
    try:
        import graphviz
    except ImportError:
        raise ImportError(
            "plot_network needs the Python package graphviz (pip install graphviz). Without it, "
            "mx.viz.render_svg(symbol, 'network.svg') draws the network."
        ) from None

    class Drawing(graphviz.Digraph):
        """A Digraph that is rendered as SVG without the program ``dot``."""

        diagram: Diagram

        def render(  # pyright: ignore[reportIncompatibleMethodOverride]  # options as they come
            self, filename: Any = None, directory: Any = None, view: bool = False, **options: Any
        ) -> str:
            try:
                return super().render(filename, directory=directory, view=view, **options)
            except graphviz.ExecutableNotFound:
                # Without `dot`, always write SVG.
                return self._render_svg(filename, directory, view)

        def _render_svg(self, filename: Any, directory: Any, view: bool) -> str:
            path = Path(directory or str(self.directory or "."), str(filename or self.filename))
            path = path.with_name(path.name + ".svg")
            warnings.warn(
                f"The program dot of Graphviz is not installed: {path} has MXNext's own layout.",
                stacklevel=3,
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(svg_text(self.diagram), encoding="utf-8")
            if view:
                _open(path)
            return str(path)

        def pipe(self, format: Any = None, *args: Any, **options: Any) -> Any:
            """Return the drawing's bytes, or text where an encoding is given."""
            try:
                return super().pipe(format, *args, **options)
            except graphviz.ExecutableNotFound:
                if (format or self.format) != "svg":
                    raise
                text = svg_text(self.diagram)
                return text if options.get("encoding") else text.encode("utf-8")

        def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # options as they come
            try:
                return super()._repr_mimebundle_(*args, **options)
            except graphviz.ExecutableNotFound:
                return {"image/svg+xml": svg_text(self.diagram)}

    Drawing.__qualname__ = "Drawing"
    return Drawing


def _open(path: Path) -> None:
    """Open a file with the system's default program."""
    if sys.platform == "win32":
        import os

        os.startfile(path)
        return
    program = "open" if sys.platform == "darwin" else "xdg-open"
    try:
        subprocess.Popen([program, str(path)], stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        warnings.warn(f"No program to show {path} with was found.", stacklevel=4)
