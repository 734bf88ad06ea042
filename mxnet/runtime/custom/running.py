"""The operator `Custom`: runs user-defined operators in torch's graph and in ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import dtypes
from ..._process import caches
from ..._process.memory import expose
from ...context import Context, context_of
from ...error import MXNetError
from ...ndarray import NDArray
from ...numpy import ndarray
from ...ops.declare import Op, OpContext, op
from ...ops.gradients import OutputLayers
from ...ops.shapes import Shapes, TypePattern, is_known, unify
from ...torch_private import record_function
from ...util import is_np_array
from ..array import wrap_plain
from ..gradients import running_user_code
from ..recording import state
from .custom import CustomOp, CustomOpProp, in_user_code, prop_of

CONTIGUOUS = torch.contiguous_format
MAX_OPERATORS = 1024  # cached `CustomOp` objects per kernel, one for each shape
PURE_PYTHON = "pure_python"  # name of user code in profiles: `MyOp::pure_python`


def reads_head_gradients(prop: CustomOpProp) -> bool:
    """Return whether backward of a custom operator depends on the gradients of its outputs."""
    heads = list(range(len(prop.list_outputs())))
    inputs = [len(heads) + i for i in range(len(prop.list_arguments()))]
    outputs = [len(heads) + len(inputs) + i for i in heads]
    read = prop.declare_backward_dependency(heads, inputs, outputs)
    return any(i in heads for i in read)


class _CustomOperator(Op):
    """The operator `Custom`.

    Its inputs and outputs depend on the class registered as ``op_type``.
    """

    def aux_names(self, attrs: dict | None = None) -> list[str]:
        """Return the names of the auxiliary states declared by the `CustomOpProp`."""
        return [] if attrs is None else list(prop_of(attrs).list_auxiliary_states())

    def writes_into(self, name: str | None) -> bool:
        """Return True: user code may write into any input."""
        return True

    def needs_head_gradient(self, attrs: dict) -> bool:
        """Return whether backward depends on the gradients of the outputs."""
        return reads_head_gradients(prop_of(attrs))

    def instantiate(self, attrs: dict, subgraphs: Sequence = ()) -> Callable:
        """Return a kernel that reuses its own `CustomOp` in all calls."""
        return _CustomKernel(prop_of(attrs), attrs["op_type"])


class _CustomKernel:
    """Runs a custom operator.

    It keeps one `CustomOp` for each combination of shapes and devices.
    """

    def __init__(self, prop: CustomOpProp, op_type: str) -> None:
        self.prop, self.op_type = prop, op_type
        self.n_inputs = len(prop.list_arguments())
        self._made: dict[tuple, CustomOp] = {}

    def __call__(self, *tensors: Tensor, run: OpContext, **_: Any) -> Any:
        required = self.n_inputs + len(self.prop.list_auxiliary_states())
        if len(tensors) != required:
            names = [*self.prop.list_arguments(), *self.prop.list_auxiliary_states()]
            raise MXNetError(
                f"Custom operator {self.op_type!r} expects {required} inputs ({', '.join(names)}), "
                f"but got {len(tensors)}."
            )
        outs = _Bridge.apply(self, run.training, *tensors)
        return outs[0] if len(outs) == 1 else outs

    def operator_for(self, inputs: Sequence[Tensor]) -> CustomOp:
        """Return the `CustomOp` for the shapes and devices of these inputs."""
        ctx = context_of(inputs[0]) if inputs else Context("cpu")
        key = (str(ctx), *((t.shape, t.dtype) for t in inputs))
        operator = self._made.get(key)
        if operator is None:
            shapes = [list(t.shape) for t in inputs]
            types = [dtypes.to_numpy(t.dtype) for t in inputs]
            operator = self.guard("create_operator", self.prop.create_operator, ctx, shapes, types)
            caches.store(self._made, key, operator, MAX_OPERATORS)
        return operator

    def guard(self, where: str, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call user code outside of recording. Its exceptions keep their traceback."""
        session, state.session = state.session, None
        name = f"_backward_{self.op_type}" if where == "backward" else self.op_type
        outer, state.custom_operator = state.custom_operator, name
        try:
            with torch.no_grad():
                if where not in ("forward", "backward"):
                    return function(*args, **kwargs)
                with record_function(f"{name}::{PURE_PYTHON}"):
                    return function(*args, **kwargs)
        except Exception as error:
            raise in_user_code(self.op_type, where, error) from error
        finally:
            state.session, state.custom_operator = session, outer

    def outputs_for(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return empty outputs with the inferred shapes and types."""
        shapes = _ask_shapes(self.prop, [tuple(t.shape) for t in inputs])
        types = self.prop.infer_type([dtypes.to_numpy(t.dtype) for t in inputs])[1]
        device = inputs[0].device if inputs else torch.device("cpu")
        return [
            torch.zeros(tuple(s), dtype=dtypes.to_torch(t), device=device)
            for s, t in zip(shapes.outputs, types, strict=True)
        ]


class _Bridge(torch.autograd.Function):
    """Connects a custom operator to torch's graph."""

    @staticmethod
    def forward(ctx: Any, kernel: _CustomKernel, training: bool, *tensors: Tensor) -> tuple:
        inputs, aux = tensors[: kernel.n_inputs], tensors[kernel.n_inputs :]
        if state.session is not None:
            state.session.runs_user_code = True
        computing = kernel.operator_for(inputs)
        outs = kernel.guard("infer_shape", kernel.outputs_for, inputs)
        kernel.guard(
            "forward",
            computing.forward,
            is_train=training,
            req=["write"] * len(outs),
            in_data=_wrap(inputs),
            out_data=_wrap(outs),
            aux=_wrap(aux),
        )
        ctx.kernel, ctx.computing, ctx.aux = kernel, computing, aux
        if not reads_head_gradients(kernel.prop):
            OutputLayers.note(ctx)
        ctx.save_for_backward(*(t.data for t in (*inputs, *outs)))  # as memory: see `handle`
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        n = ctx.kernel.n_inputs
        inputs, outs = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
        gradients = [torch.zeros_like(t) for t in inputs]
        reqs = ["write" if needed else "null" for needed in ctx.needs_input_grad[2 : 2 + n]]
        training, state.training = state.training, state.backward_training
        try:
            with running_user_code():
                ctx.kernel.guard(
                    "backward",
                    ctx.computing.backward,
                    req=reqs,
                    out_grad=_wrap([g.clone(memory_format=CONTIGUOUS) for g in grads]),
                    in_data=_wrap(inputs),
                    out_data=_wrap(outs),
                    in_grad=_wrap(gradients),
                    aux=_wrap(ctx.aux),
                )
        finally:
            state.training = training
        return (None, None, *gradients, *(None for _ in ctx.aux))


def _wrap(tensors: Sequence[Tensor]) -> list[NDArray]:
    """Return arrays on the memory of tensors, which the user's code may write into.

    `data` has a version counter of its own: as in MXNet, backward reads the current values, so a
    write must not invalidate tensors that earlier operators have saved.
    """
    cls = ndarray if is_np_array() else NDArray
    for tensor in tensors:
        expose(tensor)
    return [wrap_plain(cls, t.data) for t in tensors]


class _Told(NamedTuple):
    """Shapes inferred by a `CustomOpProp`."""

    inputs: list
    outputs: list
    aux: list


def _ask_shapes(prop: CustomOpProp, shapes: Sequence[tuple | None]) -> _Told:
    """Call `infer_shape`. Unknown shapes are passed as [] and unknown sizes as 0, as in MXNet."""
    sizes = [[] if s is None else [max(n, 0) for n in s] for s in shapes]
    inferred = prop.infer_shape(sizes)
    if not 2 <= len(inferred) <= 3:
        raise MXNetError(
            f"{type(prop).__name__}.infer_shape must return (inputs, outputs[, aux]), "
            f"but gave {len(inferred)} lists."
        )
    inputs, outputs, *aux = inferred
    return _Told(list(inputs), list(outputs), list(aux[0]) if aux else [])


def _custom_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    prop = prop_of(attrs)
    n = len(prop.list_arguments())
    try:
        answer = _ask_shapes(prop, ins[:n])
    except (IndexError, TypeError, ValueError) as error:
        if all(is_known(s) for s in ins[:n]):
            raise in_user_code(attrs["op_type"], "infer_shape", error) from error
        return ins, outs  # the prop reads a shape that is not known yet
    new_ins = [*map(_partial, answer.inputs), *map(_partial, answer.aux)]
    new_ins += [None] * (len(ins) - len(new_ins))
    return (
        [unify(new, old, "shapes") for new, old in zip(new_ins, ins, strict=True)],
        [
            unify(_partial(o), old, "the output")
            for o, old in zip(answer.outputs, outs, strict=True)
        ],
    )


def _partial(shape: Sequence[int]) -> tuple[int, ...] | None:
    return tuple(int(n) or -1 for n in shape) or None


class _CustomTypes(TypePattern):
    """Infers dtypes by the `CustomOpProp` when the inputs are known."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        prop = prop_of(attrs)
        n = len(prop.list_arguments())
        if not any(ins[:n]):
            return ins, outs
        first = next(t for t in ins[:n] if t is not None)
        types = [dtypes.to_numpy(t or first) for t in ins[:n]]
        inferred = [[dtypes.to_torch(t) for t in part] for part in prop.infer_type(types)]
        aux = inferred[2] if len(inferred) > 2 else []
        answer = [*inferred[0], *aux]
        return answer + list(ins[len(answer) :]), inferred[1]


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
    return _CustomKernel(prop_of(attrs), op_type)(*data, run=run)


_custom_op = op(
    "Custom",
    "_npi_Custom",
    outputs=lambda a: tuple(prop_of(a).list_outputs()),
    input_names=lambda a: [
        *prop_of(a).list_arguments(),
        *prop_of(a).list_auxiliary_states(),
    ],
    shape=_custom_shapes,
    cls=_CustomOperator,
    random=True,  # user code may draw random numbers
    precision="full",
)(_custom)
_custom_op.has_aux = True
_custom_op.type_pattern = _CustomTypes(None)
