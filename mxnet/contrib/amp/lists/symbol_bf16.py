"""Operators by the precision they want when the other one is bfloat16."""

from . import precision as _precision

BF16_FUNCS = _precision.spellings(_precision.BFLOAT16)
LOSS_OUTPUT_FUNCTIONS = _precision.LOSS_OUTPUTS.split()
CONDITIONAL_FP32_FUNCS = list(_precision.CONDITIONAL)
_either = _precision.spellings(_precision.EITHER_BFLOAT16)
_widest = _precision.spellings(*_precision.WIDEST.values())
WIDEST_TYPE_CASTS = [name for name in _widest if name not in _either]
_rest = _precision.others(
    BF16_FUNCS, WIDEST_TYPE_CASTS, _either, [row[0] for row in CONDITIONAL_FP32_FUNCS]
)
BF16_FP32_FUNCS = [*_either, *(name for name in _rest if _precision.is_neutral(name))]
FP32_FUNCS = [name for name in _rest if not _precision.is_neutral(name)]
# What BatchNorm takes beside the data stays in 32 bits.
BF16_USE_FP32_PARAMS = {
    name: list(_precision.BATCH_NORM_PARAMETERS) for name in ("BatchNorm", "BatchNormWithReLU")
}
