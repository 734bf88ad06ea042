"""A live plot of the metrics during training."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..error import InvalidValue
from .curves import plot_history
from .tracking import History, Logger

__all__ = ["live"]

# Readable on white and on black.
GRAY = "#808080"
LINES = ("#2f8fd6", "#e8781e", "#2fa84f", "#c05fd0")


def live(
    path: str | os.PathLike[str] | None = None, metrics: Sequence[str] | None = None
) -> Logger:
    """Return a logger that draws the metrics after each epoch, for ``fit(loggers=mx.viz.live())``.

    In a notebook the plot is updated in place. With a path it is also written to that file.

    Parameters
    ----------
    path : str, optional
        A file to save the plot to, such as ``curves.svg``. Required outside of notebooks.
    metrics : list of str, optional
        The metrics to plot, such as ``["accuracy"]``; by default all.

    >>> logger = mx.viz.live("curves.svg")
    >>> isinstance(logger, mx.tracking.Logger)
    True
    """
    shell = sys.modules.get("IPython")
    display = shell.display if shell is not None and shell.get_ipython() is not None else None
    if path is None and display is None:
        raise InvalidValue(
            "mx.viz.live() plots in notebooks; elsewhere pass a path, such as curves.svg"
        )
    return _LivePlot(path, metrics, display)


class _LivePlot(Logger):
    """Draws the history of a training after each of its epochs."""

    def __init__(self, path: Any, metrics: Sequence[str] | None, display: Any) -> None:
        self.shows_metrics = display is not None
        self._path, self._metrics, self._display = path, metrics, display
        self._handle: Any = None
        self._history = History()

    def begin(self, history: History) -> None:
        """Continue the drawing of a resumed run."""
        self._history = history
        self._handle = None

    def log(self, row: Mapping[str, Any]) -> None:
        if not self._history:
            return
        figure = plot_history(self._history, None, self._metrics)
        _suit_every_background(figure)
        if self._path is not None:
            figure.savefig(os.fspath(self._path), dpi=150)
        if self._display is None:
            return
        if self._handle is None:
            self._handle = self._display.display(figure, display_id=True)
        else:
            self._handle.update(figure)


def _suit_every_background(figure: Any) -> None:
    figure.patch.set_alpha(0)
    for axes in figure.axes:
        axes.patch.set_alpha(0)
        for line, color in zip(axes.lines, itertools.cycle(LINES), strict=False):
            line.set_color(color)
        axes.legend(frameon=False)
        axes.title.set_color(GRAY)
        axes.xaxis.label.set_color(GRAY)
        axes.tick_params(colors=GRAY)
        for spine in axes.spines.values():
            spine.set_color(GRAY)
        for text in axes.get_legend().get_texts():
            text.set_color(GRAY)
