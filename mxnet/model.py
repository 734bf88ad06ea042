"""Checkpoints, the exchange of gradients and weights between devices, and `FeedForward`."""

from __future__ import annotations

import importlib.util

from . import io, metric
from . import kvstore as kvs
from . import ndarray as nd
from . import optimizer as opt
from . import symbol as sym
from ._compat.executor_manager import DataParallelExecutorManager, _check_arguments, _load_data
from ._compat.star_imports import complete_star_imports
from .callback import BatchEndParam, LogValidationMetricsCallback
from .context import Context, cpu
from .formats.model_files import load_checkpoint, load_params, save_checkpoint
from .initializer import Uniform
from .io import DataDesc
from .kvstore.gradient_exchange import (
    _create_kvstore,
    _create_sparse_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
)
from .module.feed_forward import FeedForward
from .ndarray import NDArray
from .optimizer import get_updater
from .symbol import Symbol

__all__ = ["BatchEndParam", "FeedForward", "load_checkpoint", "load_params", "save_checkpoint"]

BASE_ESTIMATOR = object  # base class of FeedForward
SKLEARN_INSTALLED = importlib.util.find_spec("sklearn") is not None

complete_star_imports("model")
