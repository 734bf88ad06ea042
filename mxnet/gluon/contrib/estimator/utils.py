"""Checks of the metrics that an Estimator and its handlers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....metric import Accuracy, CompositeEvalMetric, EvalMetric
from ...loss import SoftmaxCrossEntropyLoss


def _check_metrics(metrics: Any) -> Sequence[EvalMetric]:
    if isinstance(metrics, CompositeEvalMetric):
        return [single for part in metrics.metrics for single in _check_metrics(part)]
    if isinstance(metrics, EvalMetric):
        return [metrics]
    metrics = metrics or []
    if isinstance(metrics, str) or not all(isinstance(each, EvalMetric) for each in metrics):
        raise ValueError(
            "metrics must be a Metric or a list of Metric, refer to mxnet.metric.EvalMetric: "
            f"{metrics}"
        )
    return metrics


def _check_handler_metric_ref(handler: Any, known_metrics: Sequence[EvalMetric]) -> None:
    """Raise unless the metrics in a handler's attributes are the estimator's."""
    for name in dir(handler):
        if "metric" not in name:
            continue
        held = getattr(handler, name)
        for each in held if isinstance(held, list) else [held]:
            if isinstance(each, EvalMetric):
                _check_metric_known(handler, each, known_metrics)


def _check_metric_known(
    handler: Any, metric: EvalMetric, known_metrics: Sequence[EvalMetric]
) -> None:
    if not any(metric is known for known in known_metrics):
        raise ValueError(
            f"Event handler {type(handler).__name__} refers to a metric instance {metric} outside "
            "of the known training and validation metrics. Please use the metrics from "
            "estimator.train_metrics and estimator.val_metrics instead."
        )


def _suggest_metric_for_loss(loss: Any) -> EvalMetric | None:
    return Accuracy() if isinstance(loss, SoftmaxCrossEntropyLoss) else None


def _named_results(metrics: Sequence[EvalMetric]) -> dict[str, float]:
    results = {}
    for name, value in (pair for metric in metrics for pair in metric.get_name_value()):
        for long, short in (("training ", "train_"), ("validation ", "val_")):
            if name.startswith(long):
                name = short + name.removeprefix(long)
        results[name] = value
    return results
