"""Losses: how far predictions are from the labels, one value per sample."""

from __future__ import annotations

import numpy as np

from ... import ndarray
from ...util import is_np_array
from ..block import HybridBlock
from .base import Loss, numeric_types
from .base import apply_weighting as _apply_weighting
from .base import reshape_like as _reshape_like
from .classification import (
    CTCLoss,
    HingeLoss,
    KLDivLoss,
    LogisticLoss,
    SigmoidBCELoss,
    SigmoidBinaryCrossEntropyLoss,
    SoftmaxCELoss,
    SoftmaxCrossEntropyLoss,
    SquaredHingeLoss,
)
from .embedding import CosineEmbeddingLoss, SDMLLoss, TripletLoss
from .regression import HuberLoss, L1Loss, L2Loss, PoissonNLLLoss

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]

# Pickles name classes by their module; MXNet knows these by this one.
for _name in __all__:
    globals()[_name].__module__ = __name__
