"""Evaluation metrics, accumulated over batches."""

from __future__ import annotations

from .. import ndarray, registry
from ..base import numeric_types, string_types
from .base import (
    CompositeEvalMetric,
    EvalMetric,
    alias,
    check_label_shapes,
    create,
    register,
)
from .classification import (
    F1,
    MCC,
    PCC,
    Accuracy,
    CrossEntropy,
    NegativeLogLikelihood,
    Perplexity,
    TopKAccuracy,
)
from .custom import Caffe, CustomMetric, Loss, Torch, np
from .regression import MAE, MSE, RMSE, PearsonCorrelation

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "Caffe",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Loss",
    "NegativeLogLikelihood",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "Torch",
    "alias",
    "check_label_shapes",
    "create",
    "np",
    "register",
]

for _name in __all__:  # module in MXNet's class names
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
