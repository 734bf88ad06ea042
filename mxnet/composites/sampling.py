"""Sampled classes of candidate sampling."""

from __future__ import annotations

import math
from typing import Any

from .namespace import OperatorNamespace
from .random import uniform


def rand_zipfian(
    F: OperatorNamespace, true_classes: Any, num_sampled: int, range_max: int, ctx: Any = None
) -> tuple[Any, Any, Any]:
    """Draw class numbers from a log-uniform (Zipfian) distribution over [0, range_max).

    Returns the samples, and how often the true and the sampled classes are expected among them.

    >>> sampled, _, _ = mx.nd.contrib.rand_zipfian(mx.nd.array([3]), 4, 5)
    >>> sampled.shape
    (4,)
    """
    log_range = math.log(range_max + 1)
    drawn = uniform(F, 0, log_range, (num_sampled,), "float64", ctx)
    sampled = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes: Any) -> Any:
        known = classes.astype("float64")
        if ctx is not None:
            known = known.as_in_context(ctx)
        return ((known + 2.0) / (known + 1.0)).log() / log_range * num_sampled

    return sampled, expected(true_classes), expected(sampled)
