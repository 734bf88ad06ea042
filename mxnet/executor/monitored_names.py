"""What MXNet calls the inputs, hidden outputs and gradients of operators that are monitored."""

from __future__ import annotations

from ..graph.node import Node, auxiliary_positions

# A single input is called `input0`, unless MXNet's operator names it.
NAMES_ITS_INPUT = frozenset(
    [
        "Dropout",
        "GridGenerator",
        "IdentityAttachKLSparseReg",
        "L2Normalization",
        "LRN",
        "LeakyReLU",
        "MakeLoss",
        "Pad",
        "Pooling",
        "SequenceLast",
        "SequenceMask",
        "SequenceReverse",
        "SliceChannel",
        "SwapAxis",
        "_contrib_BilinearResize2D",
        "_contrib_MultiBoxPrior",
        "_contrib_index_array",
        "_contrib_quadratic",
        "_contrib_quantize_v2",
        "_split_v2",
        "depth_to_space",
        "diag",
        "log_softmax",
        "moments",
        "repeat",
        "reverse",
        "softmax",
        "space_to_depth",
        "squeeze",
        "tile",
    ]
)
# Gradients are numbered, unless the operator is of MXNet's older kind: then inputs name them.
OF_THE_OLDER_KIND = frozenset(
    [
        "BilinearSampler",
        "Correlation",
        "Crop",
        "GridGenerator",
        "IdentityAttachKLSparseReg",
        "InstanceNorm",
        "L2Normalization",
        "MakeLoss",
        "Pad",
        "ROIPooling",
        "SVMOutput",
        "SequenceLast",
        "SequenceMask",
        "SequenceReverse",
        "SliceChannel",
        "SpatialTransformer",
        "SwapAxis",
        "_contrib_MultiBoxPrior",
    ]
)
GRADIENT_NAMES: dict[str, list[str | None]] = {
    "batch_dot": ["lhs_output", "rhs_output"],
    "gather_nd": ["output"],
    "pick": ["output"],
    "where": [None, "output0", "output1"],
}
# Operators that can show what they hide: by this attribute, the outputs of these names.
SHOWS_HIDDEN = {
    "BatchNorm": ("output_mean_var", ("mean", "var")),
    "LayerNorm": ("output_mean_var", ("mean", "std")),
    "GroupNorm": ("output_mean_var", ("mean", "std")),
}
PASSES_GRADIENTS_ON = frozenset({"elemwise_add"})  # its gradient is that of its output: no row


def input_rows(node: Node) -> list[str]:
    """Return the names of a node's inputs, such as ``fc1_data``."""
    names = node.input_names
    if len(names) == 1 and names[0] == "data" and node.op.name not in NAMES_ITS_INPUT:
        names = ["input0"]
    return [f"{node.name}_{n}" for n in names]


def hidden_rows(node: Node) -> tuple[str | None, list[str]]:
    """Return the attribute that shows a node's hidden outputs, and their names; or neither."""
    switch, names = SHOWS_HIDDEN.get(node.op.name, (None, ()))
    if switch is None or node.typed[switch]:
        return None, []
    return switch, [f"{node.name}_{n}" for n in names]


def gradient_rows(node: Node) -> list[str | None]:
    """Return the names of the gradients of a node's inputs; None where MXNet shows none."""
    if node.op.name in PASSES_GRADIENTS_ON:
        return [None] * len(node.inputs)
    if node.op.name == "add_n":
        return ["output"] * len(node.inputs)
    states = set(auxiliary_positions(node)) if node.op.has_aux else set()
    places = [i for i in range(len(node.inputs)) if i not in states]
    if node.op.name in GRADIENT_NAMES:
        names = GRADIENT_NAMES[node.op.name]
    elif node.op.name in OF_THE_OLDER_KIND:
        names = [node.input_names[i] for i in places]
    else:
        names = ["output"] if len(places) == 1 else [f"output{i}" for i in range(len(places))]
    rows: list[str | None] = [None] * len(node.inputs)
    for place, name in zip(places, names, strict=False):
        rows[place] = name and f"{node.name}_backward_{name}"
    return rows
