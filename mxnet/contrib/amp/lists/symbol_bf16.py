"""Operators by precision when the 16-bit type is bfloat16."""

from . import precision as _precision

BF16_FUNCS = _precision.names_by_precision("bfloat16", "half")
FP32_FUNCS = _precision.names_by_precision("bfloat16", "full")
BF16_FP32_FUNCS = _precision.names_by_precision("bfloat16", "any", "own")
WIDEST_TYPE_CASTS = _precision.names_by_precision("bfloat16", "widest")
CONDITIONAL_FP32_FUNCS = _precision.conditional_rows()
LOSS_OUTPUT_FUNCTIONS = _precision.loss_outputs()
# Parameters of BatchNorm stay in 32 bits while its data is in 16.
BF16_USE_FP32_PARAMS = _precision.full_precision_parameters(BF16_FP32_FUNCS)
