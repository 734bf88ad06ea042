"""Operators that users write in Python: `CustomOp`, and the older `NumpyOp` and `NDArrayOp`.

The class `CustomOpProp` describes an operator (its names, shapes and types) and makes `CustomOp`
objects that compute. Both run in `mx.nd.Custom` and `mx.sym.Custom`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import dtypes
from .context import Context, context_of
from .error import MXNetError, did_you_mean
from .ndarray import NDArray
from .ndarray.state import state
from .ndarray.storage import plain, wrap_plain
from .ops import registry
from .ops.declare import Op, OpContext, op
from .ops.shapes import Shapes, TypePattern, is_known, unify

__all__ = [
    "CustomOp",
    "CustomOpProp",
    "NDArrayOp",
    "NumpyOp",
    "OperatorArguments",
    "PythonOp",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]

_props: dict[str, Callable[..., CustomOpProp]] = {}


class CustomOp:
    """Computes a custom operator; define `forward`, and `backward` if it has a gradient."""

    def forward(
        self,
        is_train: bool,
        req: list[str],
        in_data: list[NDArray],
        out_data: list[NDArray],
        aux: list[NDArray],
    ) -> None:
        """Write the outputs with `assign`."""
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
        """Write the gradients of the inputs with `assign`; by default there are none."""

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Put a result into an array as `req` asks: write it, add it, or leave the array alone."""
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
    need_top_grad : whether backward uses the gradients of the outputs; False for losses.

    The keyword arguments of the call reach ``__init__`` as text.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape: list) -> tuple[list, list, list]:
        """Return shapes of inputs, outputs and auxiliary states; by default all like the first."""
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list) -> tuple[list, list, list]:
        """Return dtypes of inputs, outputs and auxiliary states; by default all like the first."""
        return (
            in_type,
            [in_type[0]] * len(self.list_outputs()),
            [in_type[0]] * len(self.list_auxiliary_states()),
        )

    def infer_storage_type(self, in_stype: list[str]) -> tuple[list, list, list]:
        """Return storage types; custom operators work on dense arrays."""
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
        """Return storage types for backward; custom operators work on dense arrays."""
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
        """Return which arrays backward reads."""
        heads = list(out_grad) if self.need_top_grad_ else []
        return [*heads, *in_data, *out_data]

    def create_operator(self, ctx: Context, in_shapes: list, in_dtypes: list) -> CustomOp:
        """Return the object that computes."""
        return CustomOp()


def register(reg_name: str) -> Callable[[type[CustomOpProp]], type[CustomOpProp]]:
    """Register a `CustomOpProp` class under the name that ``op_type=`` asks for."""

    def remember(prop_class: type[CustomOpProp]) -> type[CustomOpProp]:
        if not (inspect.isclass(prop_class) and issubclass(prop_class, CustomOpProp)):
            raise TypeError(f"register({reg_name!r}) needs a subclass of CustomOpProp.")
        _props[reg_name] = prop_class
        _prop.cache_clear()
        return prop_class

    return remember


@functools.lru_cache(maxsize=1024)
def _prop(op_type: str, arguments: tuple[tuple[str, str], ...]) -> CustomOpProp:
    maker = _props.get(op_type)
    if maker is None:
        raise MXNetError(
            f"Custom operator {op_type!r} is not registered: use @mx.operator.register({op_type!r})"
            f" on its CustomOpProp. {did_you_mean(op_type, _props)}".rstrip()
        )
    try:
        return maker(**dict(arguments))
    except Exception as error:
        raise _in_user_code(op_type, "__init__", error) from error


def _prop_of(attrs: dict[str, Any]) -> CustomOpProp:
    free = {k: v for k, v in attrs.items() if k not in ("op_type", "run")}
    return _prop(attrs["op_type"], tuple(free.items()))


def _in_user_code(op_type: str, where: str, error: Exception) -> MXNetError:
    if isinstance(error, MXNetError):
        return error
    return MXNetError(
        f"Error in custom operator {op_type!r}, {where}: {type(error).__name__}: {error}"
    )


class _CustomOperator(Op):
    """The operator `Custom`: what it takes and gives depends on the class behind ``op_type``."""

    def aux_names(self, attrs: dict | None = None) -> list[str]:
        """Return the auxiliary states that the prop lists."""
        return [] if attrs is None else list(_prop_of(attrs).list_auxiliary_states())

    def names_of_outputs(self, attrs: dict) -> tuple[str, ...]:
        """Return the outputs that the prop lists."""
        return tuple(_prop_of(attrs).list_outputs())

    def instantiate(self, attrs: dict, subgraphs: Sequence = ()) -> Callable:
        """Return a kernel that keeps its own `CustomOp` from call to call."""
        return _CustomKernel(_prop_of(attrs), attrs["op_type"])


class _CustomKernel:
    """Runs one use of a custom operator; shapes and devices seen before keep their object."""

    def __init__(self, prop: CustomOpProp, op_type: str) -> None:
        self.prop, self.op_type = prop, op_type
        self.n_inputs = len(prop.list_arguments())
        self._made: dict[tuple, CustomOp] = {}

    def __call__(self, *tensors: Tensor, run: OpContext, **_: Any) -> Any:
        wanted = self.n_inputs + len(self.prop.list_auxiliary_states())
        if len(tensors) != wanted:
            names = [*self.prop.list_arguments(), *self.prop.list_auxiliary_states()]
            raise MXNetError(
                f"Custom operator {self.op_type!r} expects {wanted} inputs ({', '.join(names)}), "
                f"but got {len(tensors)}."
            )
        outs = _Bridge.apply(self, run.training, *tensors)
        return outs[0] if len(outs) == 1 else outs

    def operator_for(self, inputs: Sequence[Tensor]) -> CustomOp:
        """Return the object that computes for inputs like these."""
        ctx = context_of(inputs[0].device) if inputs else Context("cpu")
        key = (str(ctx), *((t.shape, t.dtype) for t in inputs))
        made = self._made.get(key)
        if made is None:
            shapes = [list(t.shape) for t in inputs]
            types = [dtypes.to_numpy(t.dtype) for t in inputs]
            made = self.guard("create_operator", self.prop.create_operator, ctx, shapes, types)
            self._made[key] = made
        return made

    def guard(self, where: str, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call the user's code outside recording; its exceptions keep their traceback."""
        recording, state.recording = state.recording, False
        try:
            with torch.no_grad():
                return function(*args, **kwargs)
        except Exception as error:
            raise _in_user_code(self.op_type, where, error) from error
        finally:
            state.recording = recording

    def outputs_for(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return empty outputs of the shapes and types that the prop infers."""
        shapes = _ask_shapes(self.prop, [tuple(t.shape) for t in inputs])
        types = self.prop.infer_type([dtypes.to_numpy(t.dtype) for t in inputs])[1]
        device = inputs[0].device if inputs else torch.device("cpu")
        return [
            torch.zeros(tuple(s), dtype=dtypes.to_torch(t), device=device)
            for s, t in zip(shapes.outputs, types, strict=True)
        ]


class _Bridge(torch.autograd.Function):
    """Puts a custom operator into torch's graph."""

    @staticmethod
    def forward(ctx: Any, kernel: _CustomKernel, training: bool, *tensors: Tensor) -> tuple:
        inputs, aux = tensors[: kernel.n_inputs], tensors[kernel.n_inputs :]
        computing = kernel.operator_for(inputs)
        outs = kernel.guard("infer_shape", kernel.outputs_for, inputs)
        kernel.guard(
            "forward",
            computing.forward,
            is_train=training,
            req=["write"] * len(outs),
            in_data=_wrapped(inputs),
            out_data=_wrapped(outs),
            aux=_wrapped(aux),
        )
        ctx.kernel, ctx.computing, ctx.aux = kernel, computing, aux
        ctx.save_for_backward(*inputs, *outs)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        n = ctx.kernel.n_inputs
        inputs, outs = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
        found = [torch.zeros_like(t) for t in inputs]
        reqs = ["write" if needed else "null" for needed in ctx.needs_input_grad[2 : 2 + n]]
        ctx.kernel.guard(
            "backward",
            ctx.computing.backward,
            req=reqs,
            out_grad=_wrapped([g.contiguous() for g in grads]),
            in_data=_wrapped(inputs),
            out_data=_wrapped(outs),
            in_grad=_wrapped(found),
            aux=_wrapped(ctx.aux),
        )
        return (None, None, *found, *(None for _ in ctx.aux))


def _wrapped(tensors: Sequence[Tensor]) -> list[NDArray]:
    return [wrap_plain(NDArray, t.detach()) for t in tensors]


class _Told(NamedTuple):
    """Shapes as a prop tells them."""

    inputs: list
    outputs: list
    aux: list


def _ask_shapes(prop: CustomOpProp, known: Sequence[tuple | None]) -> _Told:
    """Ask a prop for shapes; unknown ones go in as [] with 0 for unknown sizes, as MXNet has it."""
    given = [[] if s is None else [max(n, 0) for n in s] for s in known]
    found = prop.infer_shape(given)
    if not 2 <= len(found) <= 3:
        raise MXNetError(
            f"{type(prop).__name__}.infer_shape must return (inputs, outputs[, aux]), "
            f"but gave {len(found)} lists."
        )
    inputs, outputs, *aux = found
    return _Told(list(inputs), list(outputs), list(aux[0]) if aux else [])


def _custom_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    prop = _prop_of(attrs)
    n = len(prop.list_arguments())
    try:
        told = _ask_shapes(prop, ins[:n])
    except (IndexError, TypeError, ValueError) as error:
        if all(is_known(s) for s in ins[:n]):
            raise _in_user_code(attrs["op_type"], "infer_shape", error) from error
        return ins, outs  # the prop reads a shape that is not known yet
    new_ins = [*map(_partial, told.inputs), *map(_partial, told.aux)]
    new_ins += [None] * (len(ins) - len(new_ins))
    return (
        [unify(new, old, "shapes") for new, old in zip(new_ins, ins, strict=True)],
        [unify(_partial(o), old, "the output") for o, old in zip(told.outputs, outs, strict=True)],
    )


def _partial(shape: Sequence[int]) -> tuple[int, ...] | None:
    return tuple(int(n) or -1 for n in shape) or None


class _CustomTypes(TypePattern):
    """Dtypes as the prop tells them, once its inputs are known."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        prop = _prop_of(attrs)
        n = len(prop.list_arguments())
        if not any(ins[:n]):
            return ins, outs
        first = next(t for t in ins[:n] if t is not None)
        given = [dtypes.to_numpy(t or first) for t in ins[:n]]
        found = [[dtypes.to_torch(t) for t in part] for part in prop.infer_type(given)]
        aux = found[2] if len(found) > 2 else []
        told = [*found[0], *aux]
        return told + list(ins[len(told) :]), found[1]


def _custom(*data: Tensor, op_type: str, run: OpContext, **attributes: str) -> Any:
    """Run an operator that was registered with `mx.operator.register`.

    >>> class Double(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 2)
    >>> @mx.operator.register("double")
    ... class DoubleProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return Double()
    >>> mx.nd.Custom(mx.nd.array([1, 2]), op_type="double").asnumpy()
    array([2., 4.], dtype=float32)
    """
    attrs = {"op_type": op_type, **attributes}
    return _CustomKernel(_prop_of(attrs), op_type)(*data, run=run)


_custom_op = op(
    "Custom",
    "_npi_Custom",
    outputs=lambda a: len(_prop_of(a).list_outputs()),
    input_names=lambda a: [
        *_prop_of(a).list_arguments(),
        *_prop_of(a).list_auxiliary_states(),
    ],
    shape=_custom_shapes,
    cls=_CustomOperator,
)(_custom)
_custom_op.has_aux = True
_custom_op.type_pattern = _CustomTypes(None)


# -- the older forms --------------------------------------------------------------------------

_numbers = itertools.count()


class PythonOp:
    """Base of `NumpyOp` and `NDArrayOp`: an object that is the operator and its description."""

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad
        self._op_type: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a symbol that applies this operator to symbols."""
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Return a symbol that applies this operator to symbols."""
        from .symbol import Custom

        if self._op_type is None:
            self._op_type = f"_python_op{next(_numbers)}"
            _props[self._op_type] = functools.partial(_LegacyProp, self)
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
        """Return the arrays as `forward` and `backward` want them."""
        return arrays


class NumpyOp(PythonOp):
    """An operator on NumPy arrays, which are to be filled in place."""

    @staticmethod
    def _converted(arrays: list[NDArray]) -> list:
        return [plain(a).cpu().numpy() for a in arrays]


class NDArrayOp(PythonOp):
    """An operator on NDArrays, which are to be filled in place."""

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
        """Ask the older operator, which knows no auxiliary states."""
        inputs, outputs = self._owner.infer_shape(in_shape)
        return inputs, outputs, []

    def create_operator(self, ctx: Context, in_shapes: list, in_dtypes: list) -> CustomOp:
        """Return a runner of the older operator."""
        return _LegacyOp(self._owner)


class _LegacyOp(CustomOp):
    """Runs an older operator on the arrays of a custom one."""

    def __init__(self, owner: PythonOp) -> None:
        self._owner = owner

    def forward(self, is_train, req, in_data, out_data, aux) -> None:
        to = self._owner._converted
        self._owner.forward(in_data=to(in_data), out_data=to(out_data))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux) -> None:
        to = self._owner._converted
        self._owner.backward(
            out_grad=to(out_grad), in_data=to(in_data), out_data=to(out_data), in_grad=to(in_grad)
        )


# -- looking at operators ---------------------------------------------------------------------


class OperatorArguments(NamedTuple):
    """How many arguments an operator has, their names and their types."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """Return the names of all operators."""
    return registry.names()


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Return the inputs and attributes of an operator.

    >>> mx.operator.get_operator_arguments("Activation").names
    ['data', 'act_type']
    """
    found = registry.get(op_name)
    names = [i.name for i in found.inputs] + list(found.attributes)
    if found.variadic is not None:
        names.insert(0, found.variadic)
    types = ["NDArray-or-Symbol"] * (len(names) - len(found.attributes))
    types += [a.type.label for a in found.attributes.values()]
    return OperatorArguments(len(names), names, types)
