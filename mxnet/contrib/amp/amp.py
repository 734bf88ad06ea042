"""Automatic mixed precision: 16-bit types where fast, float32 where necessary.

float16 needs a GPU; bfloat16 works on a CPU too.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from ... import dtypes
from ... import optimizer as opt
from ...gluon.trainer import Trainer
from ...ops import registry
from ...ops.declare import Op
from .casts import WIDEST, MixedPrecision
from .convert import (
    convert_bucketing_module,
    convert_hybrid_block,
    convert_model,
    convert_symbol,
)
from .lists import (
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
)
from .lists.precision import EXCLUDED_PREFIXES
from .loss_scaler import LossScaler

__all__ = [
    "convert_bucketing_module",
    "convert_hybrid_block",
    "convert_model",
    "convert_symbol",
    "init",
    "init_trainer",
    "list_conditional_fp32_ops",
    "list_fp32_ops",
    "list_loss_output_functions",
    "list_lp16_fp32_ops",
    "list_lp16_ops",
    "list_lp16_use_fp32_params",
    "list_widest_type_cast",
    "scale_loss",
    "unscale",
]

_amp_initialized = False
_loss_scaler: LossScaler | None = None


def init(
    target_dtype: Any = "float16",
    target_precision_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None,
    fp32_ops: Sequence[str] | None = None,
) -> None:
    """Enable mixed precision for the whole process: operators cast their inputs.

    Call it before creating networks. On a CPU, float16 arrays are not cast to float32.

    Parameters
    ----------
    target_dtype : "float16" or "bfloat16"
        ``'float16'`` or ``'bfloat16'``.
    target_precision_ops
        Names of additional operators to run in `target_dtype`.
    conditional_fp32_ops
        Operator, attribute and values to run in float32.
    fp32_ops
        Names of additional operators to run in float32.

    >>> mx.contrib.amp.init("bfloat16")  # doctest: +SKIP
    """
    global _amp_initialized
    target = target_dtype if isinstance(target_dtype, str) else dtypes.to_name(target_dtype)
    if target not in ("float16", "bfloat16"):
        raise AssertionError("AMP currently supports only float16 or bfloat16 as a target_dtype")
    if _amp_initialized:
        return
    _amp_initialized = True
    logging.getLogger().info("Using AMP")
    mixed_precision(target, target_precision_ops, conditional_fp32_ops, fp32_ops).__enter__()


def mixed_precision(
    target: str,
    target_precision_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None,
    fp32_ops: Sequence[str] | None = None,
) -> MixedPrecision:
    """Return the scope in which operators cast their inputs; `init` enters it for good."""
    types = {"half": target, "full": "float32", "widest": WIDEST}
    kinds = {op: types.get(op.facts.precision_for(target)) for op in _legacy_operators()}
    kinds |= {registry.get(name): "float32" for name in fp32_ops or ()}
    kinds |= {registry.get(name): target for name in target_precision_ops or ()}
    conditional: dict[Op, list] = {}
    for name, key, values in (*list_conditional_fp32_ops(target), *(conditional_fp32_ops or ())):
        conditional.setdefault(registry.get(name), []).append((key, tuple(values)))
    precisions = {op: kind for op, kind in kinds.items() if kind is not None}
    return MixedPrecision(target, precisions, conditional, _current_scale)


def _legacy_operators() -> list[Op]:
    """Return all operators except those of `mx.np`, which are excluded, as in MXNet."""
    return [op for op in registry.operators() if not op.name.startswith(EXCLUDED_PREFIXES)]


def _current_scale() -> float | None:
    return None if _loss_scaler is None else _loss_scaler.loss_scale


def _check_trainer(optimizer_or_trainer: Any) -> Trainer:
    if isinstance(optimizer_or_trainer, Trainer):
        return optimizer_or_trainer
    if isinstance(optimizer_or_trainer, opt.Optimizer):
        raise TypeError("AMP is currently only compatible with Gluon Trainer")
    raise TypeError(
        "optimizer_or_trainer should be a Gluon Trainer or an optimizer, instead is "
        f"{type(optimizer_or_trainer)}"
    )


def init_trainer(optimizer_or_trainer: Trainer) -> None:
    """Make a Trainer skip steps with overflowing gradients and adapt the loss scale.

    Parameters
    ----------
    optimizer_or_trainer
        The trainer.

    >>> mx.contrib.amp.init_trainer(trainer)  # doctest: +SKIP
    """
    global _loss_scaler
    if not _amp_initialized:
        raise AssertionError("AMP not initialized, did you forget to call amp.init()?")
    trainer: Any = _check_trainer(optimizer_or_trainer)
    scaler = _loss_scaler = LossScaler()
    trainer._amp_loss_scaler = scaler
    trainer._amp_original_scale = trainer._scale
    update = trainer._update

    def careful_update(ignore_stale_grad: bool = False) -> None:
        if trainer._kvstore is not None and trainer._update_on_kvstore:
            raise ValueError(
                "AMP checks gradients before updates, but here the kvstore updates the weights: "
                "create the Trainer with update_on_kvstore=False."
            )
        if not scaler.has_overflow(trainer._params):
            update(ignore_stale_grad)

    trainer._update = careful_update


@contextlib.contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Trainer) -> Iterator[Any]:
    """Yield the loss, or the list of losses, multiplied by the current scale, for `backward`.

    The Trainer divides the gradients by it again.

    Parameters
    ----------
    loss
        The loss, or a list of losses.
    optimizer_or_trainer
        The trainer.

    >>> with mx.contrib.amp.scale_loss(loss, trainer) as scaled:  # doctest: +SKIP
    ...     scaled.backward()
    """
    trainer: Any = _check_trainer(optimizer_or_trainer)
    if not hasattr(trainer, "_amp_loss_scaler"):
        raise AssertionError(
            "Loss scaler is not initialized, did you forget to call amp.init_trainer()?"
        )
    scale = trainer._amp_loss_scaler.loss_scale
    trainer._scale = trainer._amp_original_scale / scale
    yield [each * scale for each in loss] if isinstance(loss, list | tuple) else loss * scale


def unscale(optimizer_or_trainer: Trainer) -> None:
    """Divide the gradients by the loss scale, to inspect them before the step.

    Parameters
    ----------
    optimizer_or_trainer
        The trainer.

    >>> mx.contrib.amp.unscale(trainer)  # doctest: +SKIP
    """
    trainer: Any = _check_trainer(optimizer_or_trainer)
    for param in trainer._params:
        if param.grad_req != "null":
            for grad in param.list_grad():
                grad[:] = grad * trainer._scale
    trainer._scale = getattr(trainer, "_amp_original_scale", trainer._scale)
