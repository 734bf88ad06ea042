"""Operators without an equivalent in torch: functions of the library `functions/`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ....runtime.custom.custom import props
from ...torch_rows import NoRow
from ..text.file import plain_text
from ..tree import Call, Const
from .layers import row

if TYPE_CHECKING:
    from ..steps import StepWriter


SKELETON = '''class {name}(torch.autograd.Function):
    """The custom operator `{op_type}`, which is still to be written."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Any:
        raise NotImplementedError("port forward of {source}")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise NotImplementedError("port backward of {source}")'''


@row("Custom")
def custom(w: StepWriter, call: Any, *inputs: Any) -> Any:
    """A class that raises NotImplementedError and names the MXNet class to port."""
    op_type = call.attrs["op_type"]
    name = "".join(word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", op_type))
    name = f"{name.lstrip('0123456789')}Function"
    cls = props.get(op_type)
    source = op_type if cls is None else f"{cls.__module__}.{cls.__qualname__}"
    text = SKELETON.format(name=name, op_type=plain_text(op_type), source=plain_text(source))
    w.port.skeletons[name] = text
    return w.add(Call(f"{name}.apply", inputs), call.node.outputs)


def _options(pairs: dict[str, tuple[Any, Any]]) -> tuple[tuple[str, Const], ...]:
    """Return the keyword arguments that differ from their defaults."""
    return tuple((k, Const(v)) for k, (v, default) in pairs.items() if v != default)


@row("_contrib_MultiBoxPrior")
def multibox_prior(w: StepWriter, call: Any, x: Any) -> Any:
    """The function `multibox_prior`."""
    a = call.attrs
    args = (x, Const(tuple(map(float, a["sizes"]))), Const(tuple(map(float, a["ratios"]))))
    options = _options(
        {
            "clip": (a["clip"], False),
            "steps": (tuple(map(float, a["steps"])), (-1.0, -1.0)),
            "offsets": (tuple(map(float, a["offsets"])), (0.5, 0.5)),
        }
    )
    return w.add(Call(w.use_function("multibox_prior", "boxes"), args, options))


@row("_contrib_MultiBoxDetection")
def multibox_detection(w: StepWriter, call: Any, scores: Any, offsets: Any, anchors: Any) -> Any:
    """The function `multibox_detection`."""
    a = call.attrs
    options = _options(
        {
            "clip": (a["clip"], True),
            "threshold": (float(a["threshold"]), 0.01),
            "nms_threshold": (float(a["nms_threshold"]), 0.5),
            "force_suppress": (a["force_suppress"], False),
            "variances": (tuple(map(float, a["variances"])), (0.1, 0.1, 0.2, 0.2)),
            "topk": (a["nms_topk"], -1),
        }
    )
    name = w.use_function("multibox_detection", "boxes")
    return w.add(Call(name, (scores, offsets, anchors), options))


@row("_contrib_box_nms")
def box_nms(w: StepWriter, call: Any, rows: Any) -> Any:
    """The function `box_nms`."""
    a = call.attrs
    if a["in_format"] != a["out_format"]:
        raise w.unsupported(call, "changes the format of boxes, too.")
    options = _options(
        {
            "threshold": (float(a["overlap_thresh"]), 0.5),
            "valid_threshold": (float(a["valid_thresh"]), 0.0),
            "topk": (a["topk"], -1),
            "coord_start": (a["coord_start"], 2),
            "score_index": (a["score_index"], 1),
            "id_index": (a["id_index"], -1),
            "background_id": (a["background_id"], -1),
            "force_suppress": (a["force_suppress"], False),
            "from_center": (a["in_format"] == "center", False),
        }
    )
    return w.add(Call(w.use_function("box_nms", "boxes"), (rows,), options))


@row("_contrib_box_iou")
def box_iou(w: StepWriter, call: Any, a: Any, b: Any) -> Any:
    """The function `box_iou`."""
    if call.attrs["format"] != "corner":
        raise NoRow
    return w.add(Call(w.use_function("box_iou", "boxes"), (a, b)))


@row("_contrib_box_decode")
def box_decode(w: StepWriter, call: Any, offsets: Any, anchors: Any) -> Any:
    """The function `box_decode`."""
    a = call.attrs
    options = _options(
        {
            "stds": (tuple(float(a[f"std{i}"]) for i in range(4)), (1.0,) * 4),
            "clip": (float(a["clip"]), -1.0),
            "from_center": (a["format"] == "center", True),
        }
    )
    return w.add(Call(w.use_function("box_decode", "boxes"), (offsets, anchors), options))


@row("ROIPooling")
def roi_pooling(w: StepWriter, call: Any, x: Any, regions: Any) -> Any:
    """The function `roi_pooling`."""
    a = call.attrs
    args = (x, regions, Const(tuple(a["pooled_size"])), Const(float(a["spatial_scale"])))
    return w.add(Call(w.use_function("roi_pooling", "regions"), args))


@row("_contrib_ROIAlign")
def roi_align(w: StepWriter, call: Any, x: Any, regions: Any) -> Any:
    """The function `roi_align`."""
    a = call.attrs
    if a["sample_ratio"] <= 0 or a["position_sensitive"]:
        raise w.unsupported(call, "with a number of samples that depends on the region.")
    args = (x, regions, Const(tuple(a["pooled_size"])), Const(float(a["spatial_scale"])))
    options = _options({"samples": (a["sample_ratio"], 2), "aligned": (a["aligned"], False)})
    return w.add(Call(w.use_function("roi_align", "regions"), args, options))


@row("smooth_l1")
def smooth_l1(w: StepWriter, call: Any, x: Any) -> Any:
    """The function `smooth_l1`."""
    options = _options({"scalar": (float(call.attrs["scalar"]), 1.0)})
    return w.add(Call(w.use_function("smooth_l1"), (x,), options))


@row("SequenceMask")
def sequence_mask(w: StepWriter, call: Any, x: Any, lengths: Any = None) -> Any:
    """The function `sequence_mask`."""
    a = call.attrs
    if not a["use_sequence_length"]:
        return x
    options = _options({"value": (float(a["value"]), 0.0), "dim": (a["axis"], 0)})
    return w.add(Call(w.use_function("sequence_mask", "sequences"), (x, lengths), options))


@row("_contrib_interleaved_matmul_selfatt_qk")
def attention_scores(w: StepWriter, call: Any, qkv: Any) -> Any:
    """The function `attention_scores`."""
    name = w.use_function("attention_scores", "sequences")
    return w.add(Call(name, (qkv,), (("heads", Const(call.attrs["heads"])),)))


@row("_contrib_interleaved_matmul_selfatt_valatt")
def attend(w: StepWriter, call: Any, qkv: Any, weights: Any) -> Any:
    """The function `attend`."""
    name = w.use_function("attend", "sequences")
    return w.add(Call(name, (qkv, weights), (("heads", Const(call.attrs["heads"])),)))
