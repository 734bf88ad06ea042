"""What MXNet calls the outputs of operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ops.declare import Op

if TYPE_CHECKING:
    from .node import Facts

_NORMALIZED = ("output", "mean", "var")
_STANDARDIZED = ("output", "mean", "std")
_QUANTIZED = ("output", "min_output", "max_output")
_ONE = ("output",)

# Operators that name their outputs; those hidden from users come last.
NAMED = {
    "BatchNorm": _NORMALIZED,
    "BatchNorm_v1": _NORMALIZED,
    "BilinearSampler": _ONE,
    "Correlation": _ONE,
    "Dropout": _ONE,
    "GridGenerator": _ONE,
    "GroupNorm": _STANDARDIZED,
    "InstanceNorm": _ONE,
    "L2Normalization": _ONE,
    "LRN": _ONE,
    "LayerNorm": _STANDARDIZED,
    "LeakyReLU": ("output", "mask"),
    "Pooling": _ONE,
    "RNN": ("output", "state_output", "statecell_output"),
    "ROIPooling": _ONE,
    "SpatialTransformer": _ONE,
    "make_loss": ("loss",),
    "_contrib_BatchNormWithReLU": _NORMALIZED,
    "_contrib_DeformablePSROIPooling": _ONE,
    "_contrib_MultiBoxTarget": ("loc_target", "loc_mask", "cls_target"),
    "_contrib_MultiProposal": ("output", "score"),
    "_contrib_Proposal": ("output", "score"),
    "_contrib_SyncBatchNorm": _NORMALIZED,
    "_contrib_calibrate_entropy": ("threshold", "divergence"),
    "_contrib_hawkesll": ("output", "out_state"),
    "_contrib_quantize_asym": ("output", "scale", "shift"),
    "_contrib_quantized_act": _QUANTIZED,
    "_contrib_quantized_batch_norm": _QUANTIZED,
    "_contrib_quantized_concat": _QUANTIZED,
    "_contrib_quantized_conv": _QUANTIZED,
    "_contrib_quantized_elemwise_add": _QUANTIZED,
    "_contrib_quantized_elemwise_mul": _QUANTIZED,
    "_contrib_quantized_embedding": _QUANTIZED,
    "_contrib_quantized_flatten": _QUANTIZED,
    "_contrib_quantized_fully_connected": _QUANTIZED,
    "_contrib_quantized_pooling": _QUANTIZED,
    "_npi_concatenate": ("out",),
    "_npi_dstack": ("out",),
    "_npi_hstack": ("out",),
    "_npi_matmul": ("out",),
    "_npi_std": ("std",),
    "_npi_var": ("var",),
}
# These count their outputs even when there is one.
NUMBERED = frozenset({"SliceChannel"})


def output_names(op: Op, facts: Facts) -> list[str]:
    """Return the names of the visible outputs, without the node's name before them.

    MXNet numbers the outputs of operators that do not name them, if there are several, hidden
    ones included: ``box_nms0_output0``.
    """
    named = NAMED.get(op.name) or op.names_of_outputs(facts.attrs)
    if named is not None and len(named) >= facts.outputs:
        return list(named[: facts.outputs])
    if facts.total == 1 and op.name not in NUMBERED:
        return ["output"]
    return [f"output{i}" for i in range(facts.outputs)]
