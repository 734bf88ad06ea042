"""Sample rows with unusual input values. Plain Python and NumPy, for both packages."""

from __future__ import annotations

import numpy as np

from tests.grammar.sampling import families, rows_of

LARGEST = 60  # elements of an input
LEFT_OUT = ("creation", "random_pdf", "storage", "quantization")
RANDOM = ("random", "Dropout")


def _with_nan(a):
    made = a.copy()
    made.ravel()[: max(1, a.size // 3)] = np.nan
    return made


def _with_inf(a):
    made = a.copy()
    made.ravel()[::2] = np.inf
    made.ravel()[1::3] = -np.inf
    return made


VARIANTS = {
    "nan": _with_nan,
    "inf": _with_inf,
    "huge": lambda a: (a * np.float32(1e30)).astype(a.dtype),
    "tiny": lambda a: (a * np.float32(1e-38)).astype(a.dtype),
    "half": lambda a: a.astype("float16"),
    "zero": np.zeros_like,
}


def cases():
    """Yield (key, row, arrays): the first small row of every operator, in every variant."""
    for family in families():
        seen = set()
        if family.startswith("numpy_") or family in LEFT_OUT:
            continue
        for row in rows_of(family):
            if row.op in seen or any(word in row.op for word in RANDOM):
                continue
            arrays = row.arrays()
            if any(a.size > LARGEST for a in arrays):
                continue
            seen.add(row.op)
            for name, change in VARIANTS.items():
                odd = [
                    change(a) if a.dtype == np.float32 and (i == 0 or name == "half") else a
                    for i, a in enumerate(arrays)
                ]
                yield f"{row.op}/{name}", row, odd
