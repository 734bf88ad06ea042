"""Operators by the precision they want when the other one is float16."""

from . import precision as _precision

FP16_FUNCS = _precision.spellings(_precision.FLOAT16)
FP32_FUNCS = _precision.spellings(*_precision.FULL.values())
WIDEST_TYPE_CASTS = _precision.spellings(*_precision.WIDEST.values())
LOSS_OUTPUT_FUNCTIONS = _precision.LOSS_OUTPUTS.split()
CONDITIONAL_FP32_FUNCS = list(_precision.CONDITIONAL)
FP16_FP32_FUNCS = _precision.others(
    FP16_FUNCS, FP32_FUNCS, WIDEST_TYPE_CASTS, [row[0] for row in CONDITIONAL_FP32_FUNCS]
)
