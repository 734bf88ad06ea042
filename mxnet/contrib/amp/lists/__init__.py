"""Operators by the precision they want, one module for each 16-bit type."""

from __future__ import annotations

from typing import Any

from .... import dtypes
from . import symbol_bf16, symbol_fp16


def _pick(target_dtype: Any, half: Any, brain: Any) -> Any:
    try:
        name = dtypes.to_name(target_dtype)
    except (TypeError, ValueError, RuntimeError):
        name = None
    if name not in ("float16", "bfloat16"):
        raise AssertionError("not supported type")
    return half if name == "float16" else brain


def list_lp16_ops(target_dtype: Any) -> list[str]:
    """Return the operators that run in 16 bits.

    Parameters
    ----------
    target_dtype
        ``'float16'`` or ``'bfloat16'``.

    >>> "FullyConnected" in mx.contrib.amp.list_lp16_ops("bfloat16")
    True
    """
    return _pick(target_dtype, symbol_fp16.FP16_FUNCS, symbol_bf16.BF16_FUNCS)


def list_fp32_ops(target_dtype: Any) -> list[str]:
    """Return the operators that run in 32 bits.

    Parameters
    ----------
    target_dtype
        ``'float16'`` or ``'bfloat16'``.

    >>> len(mx.contrib.amp.list_fp32_ops("float16")) > 0
    True
    """
    return _pick(target_dtype, symbol_fp16.FP32_FUNCS, symbol_bf16.FP32_FUNCS)


def list_lp16_fp32_ops(target_dtype: Any) -> list[str]:
    """Return the operators that run in either precision.

    Parameters
    ----------
    target_dtype
        ``'float16'`` or ``'bfloat16'``.

    >>> len(mx.contrib.amp.list_lp16_fp32_ops("float16")) > 0
    True
    """
    return _pick(target_dtype, symbol_fp16.FP16_FP32_FUNCS, symbol_bf16.BF16_FP32_FUNCS)


def list_conditional_fp32_ops(target_dtype: Any) -> list[tuple[str, str, list[str]]]:
    """Return (operator, attribute, values) that run in 32 bits.

    Parameters
    ----------
    target_dtype
        ``'float16'`` or ``'bfloat16'``.

    >>> len(mx.contrib.amp.list_conditional_fp32_ops("float16")) > 0
    True
    """
    return _pick(
        target_dtype, symbol_fp16.CONDITIONAL_FP32_FUNCS, symbol_bf16.CONDITIONAL_FP32_FUNCS
    )


def list_widest_type_cast(target_dtype: Any) -> list[str]:
    """Return the operators that run in the widest type of their inputs.

    Parameters
    ----------
    target_dtype
        ``'float16'`` or ``'bfloat16'``.

    >>> len(mx.contrib.amp.list_widest_type_cast("float16")) > 0
    True
    """
    return _pick(target_dtype, symbol_fp16.WIDEST_TYPE_CASTS, symbol_bf16.WIDEST_TYPE_CASTS)


def list_loss_output_functions(target_dtype: Any) -> list[str]:
    """Return the output operators that define their own gradient.

    Parameters
    ----------
    target_dtype
        ``'float16'`` or ``'bfloat16'``.

    >>> len(mx.contrib.amp.list_loss_output_functions("float16")) > 0
    True
    """
    return _pick(target_dtype, symbol_fp16.LOSS_OUTPUT_FUNCTIONS, symbol_bf16.LOSS_OUTPUT_FUNCTIONS)


def list_lp16_use_fp32_params(target_dtype: Any) -> dict[str, list[str]] | None:
    """Return operators in 16 bits with the inputs that stay in 32, None if there are none.

    Parameters
    ----------
    target_dtype
        ``'float16'`` or ``'bfloat16'``.

    >>> mx.contrib.amp.list_lp16_use_fp32_params("float16") is None
    True
    """
    return _pick(target_dtype, None, symbol_bf16.BF16_USE_FP32_PARAMS)
