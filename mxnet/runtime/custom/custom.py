"""The base classes of user-defined operators: `CustomOpProp` and `CustomOp`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...context import Context
from ...error import MXNetError, did_you_mean
from ...ndarray import NDArray

props: dict[str, Callable[..., CustomOpProp]] = {}  # by the name passed as ``op_type=``


class CustomOp:
    """Computes a custom operator; define `forward`, and `backward` if it has a gradient.

    >>> class Double(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 2)
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
    """

    def forward(
        self,
        is_train: bool,
        req: list[str],
        in_data: list[NDArray],
        out_data: list[NDArray],
        aux: list[NDArray],
    ) -> None:
        """Write the outputs with `assign`.

        Parameters
        ----------
        is_train
            Whether this is training.
        req
            What to do: ``'write'``, ``'inplace'``, ``'add'`` or ``'null'``; one for each array.
        in_data
            Arrays of the inputs.
        out_data
            Arrays of the outputs.
        aux
            Arrays of the auxiliary states.
        """
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    def backward(
        self,
        req: list[str],
        out_grad: list[NDArray],
        in_data: list[NDArray],
        out_data: list[NDArray],
        in_grad: list[NDArray],
        aux: list[NDArray],
    ) -> None:
        """Write the gradients of the inputs with `assign`; by default there are none.

        Parameters
        ----------
        req
            What to do: ``'write'``, ``'inplace'``, ``'add'`` or ``'null'``; one for each array.
        out_grad
            Gradients of the outputs.
        in_data
            Arrays of the inputs.
        out_data
            Arrays of the outputs.
        in_grad
            Arrays that receive the gradients of the inputs.
        aux
            Arrays of the auxiliary states.
        """

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Write a result into an array, add it, or do nothing, according to `req`.

        Parameters
        ----------
        dst
            The array.
        req
            What to do: ``'write'``, ``'inplace'``, ``'add'`` or ``'null'``; one for each array.
        src
            The result.
        """
        if req == "null":
            return
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src
        else:
            raise MXNetError(f"assign: req {req!r} is none of null, write, inplace, add.")


class CustomOpProp:
    """Describes a custom operator.

    Parameters
    ----------
    need_top_grad
        Whether backward uses the gradients of the outputs; False for losses.

    >>> class Sum(mx.operator.CustomOpProp):
    ...     def list_arguments(self):
    ...         return ["a", "b"]
    >>> Sum().list_arguments()
    ['a', 'b']
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape: list) -> tuple[list, list, list]:
        """Return shapes of inputs, outputs and auxiliary states.

        By default all equal the first input's.

        Parameters
        ----------
        in_shape
            Shapes of the inputs.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list) -> tuple[list, list, list]:
        """Return dtypes of inputs, outputs and auxiliary states.

        By default all equal the first input's.

        Parameters
        ----------
        in_type
            Data types of the inputs.
        """
        return (
            in_type,
            [in_type[0]] * len(self.list_outputs()),
            [in_type[0]] * len(self.list_auxiliary_states()),
        )

    def infer_storage_type(self, in_stype: list[str]) -> tuple[list, list, list]:
        """Return storage types; custom operators work on dense arrays.

        Parameters
        ----------
        in_stype
            Storage types of the inputs.
        """
        for i, stype in enumerate(in_stype):
            if stype != "default":
                raise MXNetError(
                    f"input {i} of {type(self).__name__} is {stype}: custom operators take dense "
                    "arrays unless they define infer_storage_type. Convert it: x.tostype('default')"
                )
        outputs, aux = self.list_outputs(), self.list_auxiliary_states()
        return in_stype, ["default"] * len(outputs), ["default"] * len(aux)

    def infer_storage_type_backward(
        self,
        ograd_stype: list[str],
        in_stype: list[str],
        out_stype: list[str],
        igrad_stype: list[str],
        aux_stype: list[str],
    ) -> tuple[list, list, list, list, list]:
        """Return storage types for backward; custom operators work on dense arrays.

        Parameters
        ----------
        ograd_stype
            Storage types of the outputs' gradients.
        in_stype
            Storage types of the inputs.
        out_stype
            Storage types of the outputs.
        igrad_stype
            Storage types of the inputs' gradients.
        aux_stype
            Storage types of the auxiliary states.
        """
        return ograd_stype, in_stype, out_stype, ["default"] * len(igrad_stype), aux_stype

    def list_arguments(self) -> list[str]:
        """Return the names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the auxiliary states, which come after the inputs."""
        return []

    def declare_backward_dependency(
        self, out_grad: Sequence[int], in_data: Sequence[int], out_data: Sequence[int]
    ) -> list[int]:
        """Return which arrays backward reads.

        Parameters
        ----------
        out_grad
            Numbers of the outputs' gradients.
        in_data
            Numbers of the inputs.
        out_data
            Numbers of the outputs.
        """
        heads = list(out_grad) if self.need_top_grad_ else []
        return [*heads, *in_data, *out_data]

    def create_operator(self, ctx: Context, in_shapes: list, in_dtypes: list) -> CustomOp:
        """Return the object that computes.

        Parameters
        ----------
        ctx
            The device.
        in_shapes
            Shapes of the inputs.
        in_dtypes
            Data types of the inputs.
        """
        return CustomOp()


def register(reg_name: str) -> Callable[[type[CustomOpProp]], type[CustomOpProp]]:
    """Register a `CustomOpProp` class under the name to pass as ``op_type=``.

    Parameters
    ----------
    reg_name
        The name.

    >>> class Triple(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 3)
    >>> @mx.operator.register("triple_example")
    ... class TripleProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return Triple()
    >>> mx.nd.Custom(mx.nd.array([2]), op_type="triple_example").asnumpy()
    array([6.], dtype=float32)
    """

    def remember(prop_class: type[CustomOpProp]) -> type[CustomOpProp]:
        if not (inspect.isclass(prop_class) and issubclass(prop_class, CustomOpProp)):
            raise TypeError(f"register({reg_name!r}) needs a subclass of CustomOpProp.")
        props[reg_name] = prop_class
        _prop.cache_clear()
        return prop_class

    return remember


@functools.lru_cache(maxsize=1024)
def _prop(op_type: str, arguments: tuple[tuple[str, str], ...]) -> CustomOpProp:
    maker = props.get(op_type)
    if maker is None:
        raise MXNetError(
            f"Cannot find custom operator {op_type!r}: use @mx.operator.register({op_type!r})"
            f" on its CustomOpProp. {did_you_mean(op_type, props)}".rstrip()
        )
    try:
        return maker(**dict(arguments))
    except Exception as error:
        raise in_user_code(op_type, "__init__", error) from error


def prop_of(attrs: dict[str, Any]) -> CustomOpProp:
    """Return the `CustomOpProp` for these attributes. Equal attributes share one object."""
    free = {k: v for k, v in attrs.items() if k not in ("op_type", "run")}
    return _prop(attrs["op_type"], tuple(free.items()))


# Methods whose arguments are passed by name, as in MXNet.
_CALLED_BY_NAME = {
    "forward": "is_train, req, in_data, out_data, aux",
    "backward": "req, out_grad, in_data, out_data, in_grad, aux",
}


def in_user_code(op_type: str, where: str, error: Exception) -> MXNetError:
    """Return an exception of user code, with the operator and the method in its message."""
    if isinstance(error, MXNetError):
        return error
    message = f"Error in custom operator {op_type!r}, {where}: {type(error).__name__}: {error}"
    if where in _CALLED_BY_NAME and "unexpected keyword argument" in str(error):
        message += f". Its parameters must be named ({_CALLED_BY_NAME[where]})."
    return MXNetError(message)
