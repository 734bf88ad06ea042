"""`NumpyOp` and `NDArrayOp`, from before `CustomOp`: they run as custom operators."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from ...context import Context
from ...ndarray import NDArray
from ..array import exported
from .custom import CustomOp, CustomOpProp, props

_numbers = itertools.count()


class PythonOp:
    """Base of `NumpyOp` and `NDArrayOp`: one object defines and describes the operator.

    Parameters
    ----------
    need_top_grad
        Whether backward uses the gradients of the outputs; False for losses.

    >>> mx.operator.PythonOp(need_top_grad=False).need_top_grad()
    False
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad
        self._op_type: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a symbol that applies this operator to symbols."""
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Return a symbol that applies this operator to symbols."""
        from ...symbol import Custom

        if self._op_type is None:
            self._op_type = f"_python_op{next(_numbers)}"
            props[self._op_type] = functools.partial(_LegacyProp, self)
        return Custom(*args, op_type=self._op_type, **kwargs)

    def forward(self, in_data: list, out_data: list) -> None:
        """Compute the outputs in place; by default the first is a copy of the first input."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list, in_data: list, out_data: list, in_grad: list) -> None:
        """Compute the gradients in place; by default the first is 1."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list) -> tuple[list, list]:
        """Return shapes of inputs and outputs."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Return the names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Return whether backward uses the gradients of the outputs."""
        return self.need_top_grad_

    @staticmethod
    def _converted(arrays: list[NDArray]) -> list:
        """Convert the arrays to the type that `forward` and `backward` take."""
        return arrays


class NumpyOp(PythonOp):
    """An operator on NumPy arrays. It writes its results in place.

    Parameters
    ----------
    need_top_grad
        Whether backward uses the gradients of the outputs; False for losses.

    >>> issubclass(mx.operator.NumpyOp, mx.operator.PythonOp)
    True
    """

    @staticmethod
    def _converted(arrays: list[NDArray]) -> list:
        return [exported(a).cpu().numpy() for a in arrays]


class NDArrayOp(PythonOp):
    """An operator on NDArrays. It writes its results in place.

    Parameters
    ----------
    need_top_grad
        Whether backward uses the gradients of the outputs; False for losses.

    >>> issubclass(mx.operator.NDArrayOp, mx.operator.PythonOp)
    True
    """

    def declare_backward_dependency(
        self, out_grad: Sequence[int], in_data: Sequence[int], out_data: Sequence[int]
    ) -> list[int]:
        """Return which arrays backward reads."""
        heads = list(out_grad) if self.need_top_grad() else []
        return [*heads, *in_data, *out_data]


class _LegacyProp(CustomOpProp):
    """Describes an older operator as a custom one."""

    def __init__(self, owner: PythonOp) -> None:
        super().__init__(owner.need_top_grad())
        self._owner = owner
        self.list_arguments = owner.list_arguments
        self.list_outputs = owner.list_outputs

    def infer_shape(self, in_shape: list) -> tuple[list, list, list]:
        """Infer shapes with the legacy operator, which has no auxiliary states."""
        inputs, outputs = self._owner.infer_shape(in_shape)
        return inputs, outputs, []

    def create_operator(self, ctx: Context, in_shapes: list, in_dtypes: list) -> CustomOp:
        """Return a runner of the older operator."""
        return _LegacyOp(self._owner)


class _LegacyOp(CustomOp):
    """Runs an older operator on the arrays of a custom one."""

    def __init__(self, owner: PythonOp) -> None:
        self._owner = owner

    def forward(
        self,
        is_train: bool,
        req: list[str],
        in_data: list[NDArray],
        out_data: list[NDArray],
        aux: list[NDArray],
    ) -> None:
        """Run the older operator's forward."""
        to = self._owner._converted
        self._owner.forward(in_data=to(in_data), out_data=to(out_data))

    def backward(
        self,
        req: list[str],
        out_grad: list[NDArray],
        in_data: list[NDArray],
        out_data: list[NDArray],
        in_grad: list[NDArray],
        aux: list[NDArray],
    ) -> None:
        """Run the older operator's backward."""
        to = self._owner._converted
        self._owner.backward(
            out_grad=to(out_grad), in_data=to(in_data), out_data=to(out_data), in_grad=to(in_grad)
        )
