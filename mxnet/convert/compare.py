"""Comparison of what two sides compute, and the report about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..error import MXNetError

__all__ = ["ConversionError", "Difference", "Report", "compare", "test_inputs"]


class ConversionError(MXNetError, ArithmeticError):
    """Both sides of a conversion disagree by more than the tolerance.

    >>> issubclass(mx.convert.ConversionError, mx.base.MXNetError)
    True
    """


class Difference(NamedTuple):
    """The largest difference of one output: absolute, and in units of its largest number.

    Parameters
    ----------
    absolute
        The absolute difference.
    relative
        The same in units of the largest number.

    >>> Difference(absolute=0.5, relative=0.1).relative
    0.1
    """

    absolute: float
    relative: float


def compare(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> list[Difference]:
    """Return the differences of all outputs; other shapes, NaN on one side are infinite."""
    if len(found) != len(wanted):
        raise ConversionError(f"one side has {len(found)} outputs, the other {len(wanted)}.")
    return [_difference(a, b) for a, b in zip(found, wanted, strict=True)]


def _difference(found: np.ndarray, wanted: np.ndarray) -> Difference:
    if found.shape != wanted.shape:
        raise ConversionError(f"an output has the shape {found.shape}, not {wanted.shape}.")
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return Difference(0.0, 0.0)
    if not np.isfinite(a[~same]).all() or not np.isfinite(b[~same]).all():
        return Difference(np.inf, np.inf)
    absolute = float(np.abs(a - b)[~same].max())
    largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return Difference(absolute, absolute / max(float(largest), 1e-12))


@dataclass
class Report:
    """What was compared, and by how much both sides differ.

    Parameters
    ----------
    target
        What was converted to.
    tolerance
        Largest difference that passes.
    path
        The file that was written.
    rows
        What was compared, with the differences.

    >>> report = Report("onnx", 1e-5)
    >>> report.add("zeros", [Difference(0.0, 0.0)])
    >>> report.passed
    True
    """

    target: str
    tolerance: float
    path: str | None = None
    rows: dict[str, list[Difference]] = field(default_factory=dict)

    def add(self, name: str, differences: list[Difference]) -> None:
        """Add the differences of one set of inputs."""
        self.rows[name] = differences

    @property
    def largest(self) -> Difference:
        """The largest differences of all."""
        found = [d for row in self.rows.values() for d in row] or [Difference(0.0, 0.0)]
        return Difference(max(d.absolute for d in found), max(d.relative for d in found))

    @property
    def passed(self) -> bool:
        """Whether all relative errors are within the tolerance."""
        return self.largest.relative <= self.tolerance

    def check(self) -> None:
        """Raise an error unless both sides agree."""
        if not self.passed:
            raise ConversionError(
                f"conversion to {self.target}: the relative error {self.largest.relative:.2e} is "
                f"above the tolerance {self.tolerance:.0e}; nothing was written.\n{self}"
            )

    def __str__(self) -> str:
        """Return the report as a table."""
        lines = [f"{'inputs':12} output  absolute   relative"]
        for name, row in self.rows.items():
            for i, d in enumerate(row):
                lines.append(f"{name:12} {i:6}  {d.absolute:.2e}   {d.relative:.2e}")
        verdict = "agree" if self.passed else "DISAGREE"
        return "\n".join([*lines, f"both sides {verdict} within {self.tolerance:.0e}"])


def test_inputs(
    shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, np.dtype], seed: int = 0
) -> dict[str, dict[str, np.ndarray]]:
    """Return sets of inputs: random ones of three sizes, zeros, ones and an uneven edge."""
    rng = np.random.RandomState(seed)

    def each(make: Callable[[tuple[int, ...]], Any]) -> dict[str, np.ndarray]:
        return {n: np.asarray(make(tuple(s))).astype(dtypes[n]) for n, s in shapes.items()}

    return {
        "normal": each(lambda s: rng.standard_normal(s)),
        "small": each(lambda s: rng.standard_normal(s) * 1e-3),
        "positive": each(lambda s: rng.uniform(0, 2, s)),
        "zeros": each(np.zeros),
        "ones": each(np.ones),
        "alternating": each(lambda s: np.where(np.arange(np.prod(s)) % 2, -1, 1).reshape(s)),
    }


test_inputs.__test__ = False  # pytest would take it for a test
