"""Operators by the precision they want, one module for each 16-bit type."""

from . import symbol_bf16, symbol_fp16
