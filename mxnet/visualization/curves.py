"""`plot_history`: plots of training metrics."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..error import InvalidValue, MXNetError


def plot_history(
    history: Mapping[str, Sequence[float]],
    path: str | os.PathLike[str] | None = None,
    metrics: Sequence[str] | None = None,
) -> Any:
    """Plot the result of `fit`: a chart per metric, with training and validation.

    Parameters
    ----------
    history : History
        Result of `fit`, or a dict of lists with names such as ``train_accuracy`` and
        ``val_accuracy``.
    path : str, optional
        A file to save the figure to; the suffix chooses the format (png, svg, pdf).
    metrics : list of str, optional
        The metrics to plot, such as ``["accuracy"]``; by default all.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it.

    >>> history = {"train_accuracy": [0.5, 0.9], "val_accuracy": [0.4, 0.8]}
    >>> figure = mx.viz.plot_history(history)
    >>> [chart.get_title() for chart in figure.axes]
    ['accuracy']
    """
    charts = _group_by_metric(history, metrics)
    epochs = getattr(history, "epoch", None)
    figure = _figure_class()(figsize=(5.2 * len(charts), 3.6), layout="constrained")
    for axes, (metric, curves) in zip(
        figure.subplots(1, len(charts), squeeze=False)[0], charts.items(), strict=True
    ):
        for split, values in curves.items():
            steps = epochs if epochs is not None else range(len(values))
            axes.plot(steps, values, label=split, marker="o", markersize=3)
        axes.set(title=metric, xlabel="epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    if path is not None:
        figure.savefig(os.fspath(path), dpi=150)
    return figure


@functools.cache
def _figure_class() -> Any:
    """Return a figure class for notebooks without pyplot, which would keep figures alive."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MXNetError(
            "plot_history needs the package matplotlib: pip install matplotlib"
        ) from None

    class Curves(Figure):
        def _repr_png_(self) -> bytes:
            output = io.BytesIO()
            self.savefig(output, format="png")
            return output.getvalue()

    return Curves


def _group_by_metric(
    history: Mapping[str, Sequence[float]], metrics: Sequence[str] | None
) -> dict[str, dict[str, Sequence[float]]]:
    splits = {"train": "training", "val": "validation"}
    results: dict[str, dict[str, Sequence[float]]] = {}
    for name, values in history.items():
        split, _, metric = name.partition("_")
        if split not in splits:
            split, metric = name, name
        results.setdefault(metric, {})[splits.get(split, split)] = values
    unknown = [name for name in metrics or () if name not in results]
    if unknown or not results:
        names = ", ".join(results) or "no metrics: was anything trained?"
        what = f"metrics={list(metrics or ())}" if unknown else "plot_history"
        raise InvalidValue(f"{what}: the history has {names}.")
    return results if metrics is None else {name: results[name] for name in metrics}
