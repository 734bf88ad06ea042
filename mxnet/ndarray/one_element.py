"""What `asnumpy` returns: NumPy arrays, and those of one element that still convert to a number."""

from __future__ import annotations

from typing import Any

import numpy as np


class OneElement(np.ndarray):
    """A NumPy array of one element that ``float`` and ``int`` accept.

    NumPy stopped that for shape (1,), which MXNet's ``loss.mean().asnumpy()`` has; programs print
    it with ``'%f'`` everywhere.

    >>> 'loss %.1f' % mx.nd.array([1.5]).asnumpy()
    'loss 1.5'
    """

    def _number(self) -> float:
        if self.size != 1:
            raise TypeError("only arrays of one element can be converted to Python scalars")
        return self.item()

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __array_wrap__(
        self, array: np.ndarray, context: Any = None, return_scalar: bool = False
    ) -> np.ndarray:
        """Let `sum` and other reductions return NumPy's scalars, not arrays without axes."""
        wrapped = super().__array_wrap__(array, context, return_scalar)
        return wrapped[()] if return_scalar else wrapped

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self.view(np.ndarray).__reduce__()


def convertible(array: np.ndarray) -> np.ndarray:
    """Return an array of one element in the class that converts; others as they are."""
    return array.view(OneElement) if array.size == 1 and array.ndim else array
