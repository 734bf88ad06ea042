"""NumPy's comparisons: of two arrays, or of an array and a number; the answers are bool."""

from __future__ import annotations

import torch

from .families import comparison, floats, scalar_comparison, shown

LEFT, RIGHT = "[0, 1, 2]", "[0, 2, 1]"
# name, kernel, sign, answers to two arrays, answers to an array and 1
COMPARISONS = (
    ("equal", torch.eq, "==", "[ True, False, False]", "[False,  True, False]"),
    ("not_equal", torch.ne, "!=", "[False,  True,  True]", "[ True, False,  True]"),
    ("greater", torch.gt, ">", "[False, False,  True]", "[False, False,  True]"),
    ("greater_equal", torch.ge, ">=", "[ True, False,  True]", "[False,  True,  True]"),
    ("less", torch.lt, "<", "[False,  True, False]", "[ True, False, False]"),
    ("less_equal", torch.le, "<=", "[ True,  True, False]", "[ True,  True, False]"),
)

for _short, _kernel, _sign, _both, _one in COMPARISONS:
    _name = f"_npi_{_short}"
    comparison(
        _name,
        _kernel,
        doc=f"True where ``lhs {_sign} rhs``.",
        example=shown(_name, f"{floats(LEFT)}, {floats(RIGHT)}", _both, "bool"),
    )
    scalar_comparison(
        f"{_name}_scalar",
        _kernel,
        doc=f"True where ``data {_sign} number``; without ``is_int`` integers meet it as floats.",
        example=shown(f"{_name}_scalar", f"{floats(LEFT)}, scalar=1", _one, "bool"),
    )
