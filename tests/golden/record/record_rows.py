"""Record the results of the sample rows. Run inside an MXNet 1.9.1 environment:

python -m tests.golden.record.record_rows [family ...]
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np

import mxnet as mx
from tests.grammar.sampling import families, rows_of

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


def function(name):
    """Return the eager function of a registry name."""
    for prefix, home in (
        ("_contrib_", mx.nd.contrib),
        ("_linalg_", mx.nd.linalg),
        ("_image_", mx.nd.image),
        ("_sparse_", mx.nd.sparse),
    ):
        if name.startswith(prefix) and hasattr(home, name[len(prefix) :]):
            return getattr(home, name[len(prefix) :])
    if hasattr(mx.nd, name):
        return getattr(mx.nd, name)
    return getattr(mx.nd._internal, name)


def numpy_function(name):
    """Return the eager function of a registry name that takes NumPy-like arrays."""
    from mxnet.ndarray import numpy, numpy_extension

    for prefix, home in (
        ("_npi_", numpy._internal),
        ("_npx_", numpy_extension),
        ("_np_", numpy._op),
    ):
        if name.startswith(prefix):
            return getattr(home, name[len(prefix) :])
    raise ValueError("%s is not an operator on NumPy-like arrays" % name)


def answer(row, is_numpy):
    """Return {part: array} for one row."""
    find, array = (numpy_function, mx.np.array) if is_numpy else (function, mx.nd.array)
    arrays = [array(a, dtype=a.dtype) for a in row.arrays()]
    found = {}
    has_grad = row.grad and not row.derived
    wanted = [i for i, a in enumerate(arrays) if has_grad and "float" in str(a.dtype)]
    for i in wanted:
        arrays[i].attach_grad()
    with mx.autograd.record(train_mode=row.train):
        out = find(row.op)(*arrays, **row.attrs)
        outs = out if isinstance(out, (list, tuple)) else [out]
    for i, o in enumerate(outs):
        found["out%d" % i] = o.asnumpy()
    if has_grad:
        heads = [array(row.head_gradient(i, o.shape), dtype=o.dtype) for i, o in enumerate(outs)]
        mx.autograd.backward(outs, heads, train_mode=row.train)
        for i in wanted:
            found["grad%d" % i] = arrays[i].grad.asnumpy()
    return found


def main(chosen):
    """Write one compressed file a family."""
    for family in chosen or families():
        stored = {}
        is_numpy = family.startswith("numpy_")
        mx.npx.set_np(is_numpy, is_numpy)
        for row in rows_of(family):
            try:
                for part, value in answer(row, is_numpy).items():
                    stored["%s/%s" % (row.key, part)] = value
            except Exception as error:
                print("%s %s: %s" % (row.key, row.attrs, str(error).strip()[-300:]))
        np.savez_compressed(DATA / (family + ".npz"), **stored)
        print(family, len(rows_of(family)), "rows")


if __name__ == "__main__":
    main(sys.argv[1:])
