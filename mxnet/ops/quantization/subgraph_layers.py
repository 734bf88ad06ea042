"""Layers that MXNet's oneDNN backend fused: operators that hold the graph of the layer.

Files of `quantize_net`, `quantize_model_mkldnn` and ``get_backend_symbol("MKLDNN_QUANTIZE")`` have
such nodes. In compiled graphs calibrated layers become 8-bit layers (`fuse_quantized`). Elsewhere
the graph inside runs on real numbers, and the result is rounded to the calibrated range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor

from ...error import MXNetError
from ..attributes import Positive
from ..declare import Op, OpContext, op
from ..fused.subgraph_operators import HoldsGraphs
from .conversions import DTYPES, INT32_STEPS, STEPS, EightBit, _round, range_step
from .layers import OUTPUTS

if TYPE_CHECKING:
    from ...graph.node import Node

INTEGERS = (torch.int8, torch.uint8, torch.int32)


def _auxiliary_positions(node: Node) -> list[int]:
    """Return which inputs are auxiliary states of the layer."""
    if len(node.subgraphs) != 1:
        return []
    graph = node.subgraphs[0]
    states = set(graph.auxiliary)
    return [i for i, variable in enumerate(graph.variables) if variable in states]


def _outputs(names: tuple[str, ...]) -> Callable[[dict], int | tuple[str, ...]]:
    return lambda a: names if a["quantized"] and not a["enable_float_output"] else 1


def _kind(attrs: dict) -> EightBit | None:
    """Return the type of a calibrated 8-bit result."""
    low, high = attrs["min_calib_range"], attrs["max_calib_range"]
    if low is None or high is None:
        return None
    return "uint8" if low >= 0 else "int8"


def _make_kernel(name: str, graphs: Sequence[Any], attrs: dict) -> Callable:
    """Return what runs the layer that a node holds."""
    if len(graphs) != 1:
        raise MXNetError(f"{name}: the node holds {len(graphs)} graphs, not one.")
    body, count = HoldsGraphs.prepare(graphs[0]), len(graphs[0].variables)

    def kernel(*tensors: Tensor, run: OpContext, **_: Any) -> Any:
        arrays, ends = list(tensors[:count]), list(tensors[count:])
        for i, array in enumerate(arrays):
            if array.dtype in INTEGERS:
                if len(ends) < 2:
                    raise MXNetError(f"{name}: an integer input has no range.")
                arrays[i] = array.float() * range_step(array, ends.pop(0), ends.pop(0))
        (real,) = body.run(arrays, run)
        if not attrs["quantized"] or attrs["enable_float_output"]:
            return real
        return _round_result(real, attrs)

    return kernel


def _round_result(real: Tensor, attrs: dict) -> tuple[Tensor, Tensor, Tensor]:
    """Return 8-bit integers of the calibrated range, else 32-bit ones of the result's range."""
    kind = _kind(attrs)
    if kind is None:
        end = real.abs().amax().reshape(1).clamp_min(1e-30)
        sums = (real.double() * (INT32_STEPS / end.double())).round_()
        return sums.to(torch.int32), -end, end
    low, high = attrs["min_calib_range"], attrs["max_calib_range"]
    largest = max(abs(low), abs(high))
    integers = _round(real * (STEPS[kind] / largest if largest else 0.0), kind)
    return integers, real.new_tensor([low]), real.new_tensor([high])


def _infer(
    node: Node, ins: list, solve: Callable, merge: Callable, axis: Any
) -> tuple[tuple, tuple]:
    """Solve the layer for shapes; types follow from the attributes."""
    attrs, ranges = node.typed, len(OUTPUTS) - 1
    (body,) = node.subgraphs
    if axis.is_of_types:
        types, kind = _input_types(node, ins), _kind(attrs)
        if node.outputs == 1:
            return types, (torch.float32,)
        first = torch.int32 if kind is None else DTYPES[kind]
        return types, (first, *[torch.float32] * ranges)
    count = len(body.variables)
    values = {v: s for v, s in zip(body.variables, ins, strict=False) if s is not None}
    variables, heads = solve(body, values)
    merged = [merge(value, shape) for value, shape in zip(variables, ins, strict=False)]
    ends = [merge((1,), shape) for shape in ins[count:]]
    outs = (heads[0], *[(1,)] * ranges) if node.outputs > 1 else (heads[0],)
    return (*merged, *ends), outs


def _input_types(node: Node, ins: list) -> tuple:
    """Return the types of inputs: dense layers may have weights that are integers already."""
    attrs, count = node.typed, len(node.subgraphs[0].variables)
    is_stored = node.op is fused_dense_layer and attrs["quantized"]
    is_stored = is_stored and not attrs["channel_wise_quantize"]
    weights = torch.int8 if is_stored else torch.float32
    types = [dtype if i < count else torch.float32 for i, dtype in enumerate(ins)]
    return tuple(weights if dtype is None and i else dtype for i, dtype in enumerate(types))


def _declare(name: str, layer: Callable, doc: str, outputs: tuple[str, ...] = OUTPUTS) -> Op:
    """Declare an operator that holds a layer as a graph; its function gives the attributes."""
    layer.__doc__ = doc
    declared = op(
        name,
        count="num_args",
        outputs=_outputs(outputs),
        cls=HoldsGraphs,
        holds_layer=True,
    )(layer)
    declared.runner = partial(_make_kernel, name)
    declared.subgraph_rule, declared.auxiliary_rule = _infer, _auxiliary_positions
    return declared


def _raise_outside_graphs() -> NoReturn:
    raise MXNetError("a fused layer runs inside graphs only: it is made by loading a file.")


def _declare_layer(name: str, what: str, outputs: tuple[str, ...]) -> Op:
    def layer(
        *data: Tensor,
        quantized: bool = False,
        with_bn: bool = False,
        with_act: bool = False,
        with_sum: bool = False,
        with_postsum_act: bool = False,
        with_eltwise: bool = False,
        channel_wise_quantize: bool | None = None,
        enable_float_output: bool = False,
        min_calib_range: float | None = None,
        max_calib_range: float | None = None,
        run: OpContext,
    ) -> Tensor:
        _raise_outside_graphs()

    doc = f"""Run {what} and what MXNet's oneDNN backend fused into it.

    Parameters
    ----------
    data
        The layer's inputs, then both ends of the range of each that is an integer array.
    quantized
        Whether inputs are 8-bit integers.
    with_bn, with_act, with_sum, with_postsum_act, with_eltwise
        What the layer holds, which its graph says as well.
    channel_wise_quantize
        Whether weights are float32 numbers that MXNet quantizes by rows.
    enable_float_output
        Whether the result is float32, without a range.

    >>> hasattr(mx.sym.contrib, "quantized_conv")  # only files contain such layers
    True
    """
    return _declare(name, layer, doc, outputs)


CONVOLUTION_OUTPUTS = ("output", "output_min", "output_max")
fused_convolution_layer = _declare_layer("_sg_mkldnn_conv", "a convolution", CONVOLUTION_OUTPUTS)
fused_dense_layer = _declare_layer("_sg_mkldnn_fully_connected", "a linear transformation", OUTPUTS)


def _declare_attention(name: str, what: str) -> Op:
    def layer(
        *data: Tensor,
        heads: Positive,
        quantized: bool = False,
        enable_float_output: bool = False,
        min_calib_range: float | None = None,
        max_calib_range: float | None = None,
        run: OpContext,
    ) -> Tensor:
        _raise_outside_graphs()

    doc = f"""Compute {what} of interleaved self-attention.

    Parameters
    ----------
    data
        The layer's inputs, then both ends of the range of each that is an integer array.
    heads
        Number of heads.
    quantized
        Whether inputs are 8-bit integers.
    enable_float_output
        Whether the result is float32, without a range.

    >>> hasattr(mx.sym.contrib, "interleaved_matmul_selfatt_qk")  # fused ones come from files
    True
    """
    return _declare(name, layer, doc)


fused_attention_scores = _declare_attention("_sg_mkldnn_selfatt_qk", "the scores")
fused_attention_values = _declare_attention("_sg_mkldnn_selfatt_valatt", "the weighted values")
