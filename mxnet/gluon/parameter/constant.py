"""`Constant`: a parameter that training does not change."""

from __future__ import annotations

import warnings
from typing import Any

from ... import initializer, ndarray
from ...ndarray import NDArray
from .parameter import Parameter


class Constant(Parameter):
    """A parameter with a fixed value, which training does not change.

    Parameters
    ----------
    name
        Name of the constant.
    value
        The value: an array, or numbers.

    >>> c = mx.gluon.Constant("c", [[1, 2], [3, 4]])
    >>> c
    Constant c (shape=(2, 2), dtype=<class 'numpy.float32'>)
    """

    def __init__(self, name: str, value: Any) -> None:
        if not isinstance(value, NDArray):
            value = ndarray.array(value)
        self.value = value
        super().__init__(
            name,
            grad_req="null",
            shape=value.shape,
            dtype=value.dtype,
            init=_Value(name, value),
        )

    def __repr__(self) -> str:
        return f"Constant {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def grad_req(self) -> str:
        """Always 'null'."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(
                f"Constant parameter {self.name!r} does not support grad_req other than 'null', "
                "and new value will be ignored.",
                stacklevel=2,
            )
        self._grad_req = "null"


class _Value(initializer.Initializer):
    """Fills a constant with its value."""

    def __init__(self, name: str, value: NDArray) -> None:
        super().__init__()
        self._name, self._value = name, value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = self._value.astype(arr.dtype, copy=False)

    _init_default = _init_bias = _init_gamma = _init_beta = _init_zero = _init_one = _init_weight

    def dumps(self) -> str:
        """Return the name that graphs carry; the value is in the parameter file."""
        return f"Constant_{self._name}_{id(self._value)}"
