"""Advice on names that MXNext lacks: the fork that has them, equivalents, or a likely typo.

A proposal means the same as the name it replaces. Names that merely look alike are not proposed:
``QConv2D`` is a binary layer of a fork, and `Conv2D` another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Forks and plugins of MXNet, with names that only they define.
FORKS: dict[str, str] = {
    "BMXNet (binary networks)": (
        "QActivation QConvolution QConvolution_v1 QFullyConnected QConv1D QConv2D QConv3D QDense "
        "BinaryConvolution BinaryDense StagedActivation det_sign approx_sign"
    ),
    "the WarpCTC plugin (mx.sym.CTCLoss computes the loss, with padded labels)": "WarpCTC",
    "the Caffe plugin": "CaffeOp CaffeOperator CaffeLoss CaffeDataIter",
    "the Torch 7 plugin": "TorchModule TorchCriterion",
    "a fork that trains in 8 bits": "Quantization_int8",
    "SimpleDet's fork": (
        "Proposal_v2 Proposal_v3 GenAnchor GenProposal DecodeBBox BBoxNorm FocalLoss "
        "ProposalTarget ProposalTarget_v2 ProposalMaskTarget"
    ),
    "the fork mx-lsoftmax (large-margin softmax)": "LSoftmax",
}
_FORK_OF = {name: fork for fork, names in FORKS.items() for name in names.split()}

# Functions of mx.nd that mx.sym lacks, as in MXNet, and what both have for the same.
IN_BOTH: dict[str, str] = {
    "add": "broadcast_add",
    "subtract": "broadcast_sub",
    "multiply": "broadcast_mul",
    "divide": "broadcast_div",
    "true_divide": "broadcast_div",
    "modulo": "broadcast_mod",
    "equal": "broadcast_equal",
    "not_equal": "broadcast_not_equal",
    "greater": "broadcast_greater",
    "greater_equal": "broadcast_greater_equal",
    "lesser": "broadcast_lesser",
    "lesser_equal": "broadcast_lesser_equal",
    "logical_and": "broadcast_logical_and",
    "logical_or": "broadcast_logical_or",
    "logical_xor": "broadcast_logical_xor",
    "concatenate": "concat",
    "moveaxis": "transpose",
    "onehot_encode": "one_hot",
}

# Functions under the names of other libraries: what has the same meaning here.
SAME_MEANING: dict[str, str] = {
    "matmul": "mx.nd.dot or mx.nd.batch_dot",
    "cat": "concat",
    "unsqueeze": "expand_dims",
    "ConvTranspose2D": "Conv2DTranspose",
    "BatchNorm2D": "BatchNorm",
    "Linear": "Dense",
    "CrossEntropyLoss": "SoftmaxCrossEntropyLoss",
    "MSELoss": "L2Loss (which is half of it)",
}


def name_fork(name: str) -> str:
    """Return the fork or plugin of MXNet that a name comes from, or an empty string.

    >>> name_fork("QConvolution")
    'BMXNet (binary networks)'
    """
    return _FORK_OF.get(name, "")


def suggest(name: str, names: Iterable[str]) -> str:
    """Return a sentence with the name that was probably meant, or an empty string.

    >>> suggest("zeross", ["zeros", "ones"])
    "Did you mean 'zeros'?"
    >>> suggest("QConv2D", ["Conv2D"])
    ''
    """
    names = [n for n in names if not n.startswith("_")]
    if name in SAME_MEANING:
        return f"Write {SAME_MEANING[name]}."
    folded = _fold(name)
    match = next((n for n in names if _fold(n) == folded), None)
    match = match or next((n for n in names if is_typing_error(name, n)), None)
    return f"Did you mean {match!r}?" if match else ""


def _fold(name: str) -> str:
    return name.lower().replace("_", "")


def is_typing_error(wrong: str, right: str) -> bool:
    """Return whether two names differ by a typo of one or two lowercase letters.

    Digits, capitals and the first letter mean something: ``Conv1D`` is not ``Conv2D``, and ``sub``
    is not ``sum``.
    """
    if min(len(wrong), len(right)) < 4 or wrong[0] != right[0]:
        return False
    if re.findall(r"[A-Z0-9_]", wrong) != re.findall(r"[A-Z0-9_]", right):
        return False
    return _distance(wrong, right) <= (1 if len(right) < 8 else 2)


def _distance(a: str, b: str) -> int:
    """Return how many letters are added, left out, replaced or swapped with their neighbor."""
    rows = [list(range(len(b) + 1))]
    for i, left in enumerate(a, 1):
        row = [i]
        for j, right in enumerate(b, 1):
            cost = min(row[-1] + 1, rows[-1][j] + 1, rows[-1][j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
