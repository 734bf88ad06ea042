"""Record MXNet 1.9.1's results for unusual inputs. Run inside an MXNet 1.9.1 environment:

python -m tests.golden.record.record_odd_inputs

A case that MXNet refuses is recorded as an empty answer.
"""

from __future__ import annotations

import pathlib

import numpy as np

import mxnet as mx
from tests.golden.record.odd_inputs import cases
from tests.golden.record.record_rows import function

PLACE = pathlib.Path(__file__).resolve().parents[1] / "data" / "odd_inputs.npz"


def main():
    """Write one compressed file."""
    found = {}
    for key, row, arrays in cases():
        try:
            inputs = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
            with mx.autograd.record(train_mode=row.train):
                out = function(row.op)(*inputs, **row.attrs)
            outs = out if isinstance(out, (list, tuple)) else [out]
            for i, value in enumerate([o.asnumpy() for o in outs]):
                found["%s/%d" % (key, i)] = value
        except Exception:
            found["%s/refused" % key] = np.zeros(0)
    np.savez_compressed(PLACE, **found)
    print(len(found))


if __name__ == "__main__":
    main()
