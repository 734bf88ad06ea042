"""Sample rows. A row specifies a call of an operator, and all grammar tests run it.

Plain Python and NumPy only, so that the recorder can read the same rows inside real MXNet.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import pkgutil
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Values:
    """An input array drawn from a distribution; the row's key seeds it."""

    kind: str
    shape: tuple[int, ...]
    low: float = 0.0
    high: float = 1.0
    dtype: str = "float32"

    def make(self, seed: int) -> np.ndarray:
        """Return the array; RandomState's streams never change between NumPy versions."""
        rng = np.random.RandomState(seed)
        if self.kind == "normal":
            made = rng.standard_normal(self.shape) * self.high + self.low
        elif self.kind == "uniform":
            made = rng.uniform(self.low, self.high, self.shape)
        elif self.kind == "integers":
            made = rng.randint(int(self.low), int(self.high), self.shape)
        elif self.kind == "distinct":  # no ties: for max, sort, topk
            made = rng.permutation(int(np.prod(self.shape))).reshape(self.shape) * 0.37 - 1.0
        else:
            raise ValueError(self.kind)
        return np.asarray(made).astype(self.dtype)


def normal(*shape: int, dtype: str = "float32", loc: float = 0.0, scale: float = 1.0) -> Values:
    """Normally distributed values."""
    return Values("normal", shape, loc, scale, dtype)


def uniform(low: float, high: float, *shape: int, dtype: str = "float32") -> Values:
    """Uniformly distributed values in [low, high)."""
    return Values("uniform", shape, low, high, dtype)


def integers(low: int, high: int, *shape: int, dtype: str = "float32") -> Values:
    """Integers in [low, high)."""
    return Values("integers", shape, low, high, dtype)


def distinct(*shape: int, dtype: str = "float32") -> Values:
    """Distinct values."""
    return Values("distinct", shape, dtype=dtype)


@dataclass(frozen=True)
class Each:
    """An attribute that takes several values: one row for each."""

    values: tuple


def each(*values: Any) -> Each:
    """Let an attribute take each of the values in turn."""
    return Each(values)


@dataclass
class Row:
    """One call of one operator."""

    op: str
    inputs: dict[str, Any]
    attrs: dict[str, Any]
    grad: bool = True  # record and compare gradients
    derived: bool = False  # MXNet has no or a wrong gradient: check finite differences only
    numeric: bool = True  # compare gradients with numeric ones too (false at kinks and outputs)
    train: bool = False  # run in training mode
    rtol: float = 1e-4
    atol: float = 1e-5
    key: str = field(init=False)

    def __post_init__(self) -> None:
        text = repr((list(self.inputs.items()), sorted(self.attrs.items()), self.train))
        self.key = f"{self.op}-{zlib.crc32(text.encode()):08x}"

    @property
    def has_gradients(self) -> bool:
        """Whether gradients are compared, and there are floating-point inputs."""
        return self.grad and any(
            np.dtype(getattr(v, "dtype", "float32")).kind == "f" for v in self.inputs.values()
        )

    def arrays(self) -> list[np.ndarray]:
        """Return the input arrays; they are drawn once and copied for each test."""
        return [a.copy() for a in self._drawn]

    @functools.cached_property
    def _drawn(self) -> list[np.ndarray]:
        seed = zlib.crc32(self.key.encode()) & 0x7FFFFFFF
        return [
            v.make((seed + i) & 0x7FFFFFFF)
            if isinstance(v, Values)
            else np.array(v, dtype=getattr(v, "dtype", "float32"))
            for i, v in enumerate(self.inputs.values())
        ]

    def head_gradient(self, position: int, shape: tuple[int, ...]) -> np.ndarray:
        """Return the gradient that backward starts from at an output."""
        rng = np.random.RandomState(zlib.crc32(self.key.encode()) % 100_000 + position)
        return rng.uniform(0.5, 1.5, shape)


_collecting: list[Row] = []


def sample(
    op: str,
    *inputs: Any,
    grad: bool = True,
    derived: bool = False,
    numeric: bool = True,
    train: bool = False,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    **named: Any,
) -> None:
    """Add rows for one operator.

    Inputs are Values, nested lists or NumPy arrays, by position; other keywords are attributes,
    each of which may be ``each(...)``.
    """
    names = [k for k, v in named.items() if isinstance(v, Each)]
    for combination in itertools.product(*(named[k].values for k in names)):
        attrs = {**named, **dict(zip(names, combination, strict=True))}
        numbered = {f"in{i}": v for i, v in enumerate(inputs)}
        _collecting.append(Row(op, numbered, attrs, grad, derived, numeric, train, rtol, atol))


def families() -> list[str]:
    """Return the names of the modules of rows."""
    package = importlib.import_module("tests.grammar.samples")
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__))


def rows_of(family: str) -> list[Row]:
    """Return the rows of one module."""
    _collecting.clear()
    module = importlib.import_module(f"tests.grammar.samples.{family}")
    if _collecting:
        module.ROWS = list(_collecting)
    return module.ROWS
