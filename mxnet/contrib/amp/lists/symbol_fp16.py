"""Operators by precision when the 16-bit type is float16."""

from . import precision as _precision

FP16_FUNCS = _precision.names_by_precision("float16", "half")
FP32_FUNCS = _precision.names_by_precision("float16", "full")
FP16_FP32_FUNCS = _precision.names_by_precision("float16", "any", "own")
WIDEST_TYPE_CASTS = _precision.names_by_precision("float16", "widest")
CONDITIONAL_FP32_FUNCS = _precision.conditional_rows()
LOSS_OUTPUT_FUNCTIONS = _precision.loss_outputs()
