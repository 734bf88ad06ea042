"""Finds the operator that first produces a NaN, in forward or backward."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._process import env
from ..error import MXNetError
from ..ops.interpreters import Attrs, Interpreter, Proceed, Tensors

if TYPE_CHECKING:
    from ..ops.declare import Op

__all__ = ["FiniteCheck", "NotFinite", "detect_anomaly"]

BACKWARD_NAN = re.compile(r"Function '(\w+?)(?:Backward\d*)?' returned nan values")


class NotFinite(MXNetError, ArithmeticError):
    """An operator returned a NaN or an infinity for finite inputs."""


class FiniteCheck(Interpreter):
    """Raises at the first operator that returns a NaN although its inputs contain none.

    Parameters
    ----------
    infinities
        Whether infinities count as well; networks that mask with ``-inf`` need them.
    """

    def __init__(self, *, infinities: bool = False) -> None:
        self._is_bad = _has_infinity_or_nan if infinities else _has_nan

    def run(self, op: Op, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run an operator and check its results."""
        return self._look(op.name, tensors, proceed(tensors, attrs))

    def run_node(self, node: Any, tensors: Tensors, attrs: Attrs, proceed: Proceed) -> Any:
        """Run a graph node and check its results."""
        return self._look(f"{node.op.name} (node {node.name!r})", tensors, proceed(tensors, attrs))

    def _look(self, name: str, inputs: Tensors, outputs: Any) -> Any:
        for i, output in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
            if not self._is_bad(output) or any(self._is_bad(x) for x in inputs):
                continue
            bad = int((~torch.isfinite(output)).sum())
            ranges = ", ".join(_describe(x) for x in inputs if isinstance(x, Tensor))
            raise NotFinite(
                f"Error in operator {name}: {bad} of {output.numel()} values of output {i} are not "
                f"finite, though the inputs are: {ranges or 'none'}."
            )
        return outputs


def _has_nan(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.is_floating_point() and bool(tensor.isnan().any())


def _has_infinity_or_nan(tensor: Any) -> bool:
    is_float = isinstance(tensor, Tensor) and tensor.is_floating_point()
    return is_float and not bool(torch.isfinite(tensor).all())


def _describe(tensor: Tensor) -> str:
    shape = tuple(tensor.shape)
    if not tensor.numel():
        return f"{shape}"
    return f"{shape} from {tensor.min().item():g} to {tensor.max().item():g}"


def install() -> None:
    """Check every operator of the program if ``MXNET_CHECK_FINITE`` is set."""
    if env.get("MXNET_CHECK_FINITE"):
        FiniteCheck(infinities=True).__enter__()


@contextmanager
def detect_anomaly(infinities: bool = False) -> Iterator[None]:
    """Raise where a NaN first appears, in forward or in backward. For debugging: it is slow.

    ``MXNET_CHECK_FINITE=1`` looks at the forward pass of a whole program, without changing it.

    Parameters
    ----------
    infinities
        Whether infinities of the forward pass count as well.

    >>> x = mx.nd.array([1.0, -1.0])
    >>> with mx.autograd.detect_anomaly():
    ...     mx.nd.log(x)
    Traceback (most recent call last):
        ...
    mxnet.runtime.anomaly.NotFinite: Error in operator log: 1 of 2 values of output 0 are not \
finite, though the inputs are: (2,) from -1 to 1.
    """
    with FiniteCheck(infinities=infinities), torch.autograd.set_detect_anomaly(True):
        try:
            yield
        except RuntimeError as error:
            match = BACKWARD_NAN.search(str(error))
            if match is None:
                raise
            raise NotFinite(
                f"The backward pass made a NaN in the gradient of {match[1]!r} (torch's name), "
                "though its own input has none."
            ) from error
