"""Odd values in the inputs of every operator: not-a-number, infinity, huge, tiny, 16 bits, zeros.

The answers are MXNet 1.9.1's, recorded by `tests.golden.record.record_odd_inputs`. Where we
differ, a row below says why. Memory that is not contiguous never matters.
"""

from __future__ import annotations

import functools

import numpy as np

import mxnet as mx
from mxnet.runtime.array import plain, wrap_plain
from tests.batches import check_each
from tests.golden import HERE
from tests.golden.record import odd_inputs
from tests.grammar.calling import call

GOLDEN = np.load(HERE / "odd_inputs.npz")
TOLERANCE = {"half": 2e-2}
_NAN_LOST = "1.9.1 turns nan into 0 or the lowest number; here it stays visible"
_MIXED = "a group with nan or inf: which of its members become nan is chance"
_INDEX = "what is no index is cast to 64 bits here, to 32 in 1.9.1"
DIFFERENT = {
    "Activation/nan": _NAN_LOST,
    "Pooling/nan": _NAN_LOST,
    "RNN/nan": _NAN_LOST,
    "RNN/inf": _NAN_LOST,
    "SoftmaxOutput/nan": _MIXED,
    "SoftmaxOutput/inf": _MIXED,
    "softmax/inf": _MIXED,
    "log_softmax/inf": _MIXED,
    "_contrib_hawkesll/inf": _MIXED,
    "_linalg_syrk/huge": "sums of inf and -inf in another order",
    "_ravel_multi_index/inf": _INDEX,
    "_ravel_multi_index/huge": _INDEX,
    "_unravel_index/nan": _INDEX,
    "_unravel_index/inf": _INDEX,
    "_unravel_index/huge": _INDEX,
    "_contrib_SyncBatchNorm/huge": "squares overflow in 1.9.1",
    "moments/huge": "the variance is inf here, nan in 1.9.1",
    "norm/inf": "the norm is inf here, nan in 1.9.1",
    "sort/nan": "nan comes last here; 1.9.1 leaves it where it is",
    "argsort/nan": "nan comes last here; 1.9.1 leaves it where it is",
}


@functools.cache
def cases():
    """Return the rows and arrays by operator and kind of value."""
    by_operator = {}
    for key, row, arrays in odd_inputs.cases():
        operator, _, kind = key.rpartition("/")
        by_operator.setdefault(operator, {})[kind] = row, arrays
    return by_operator


def recorded(key):
    """Return MXNet's outputs, or None if it refused."""
    if f"{key}/refused" in GOLDEN:
        return None
    count = 0
    while f"{key}/{count}" in GOLDEN:
        count += 1
    return [GOLDEN[f"{key}/{i}"] for i in range(count)]


def computed(row, arrays):
    inputs = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
    with mx.autograd.record(train_mode=row.train):
        return [out.asnumpy() for out in call(row, inputs)]


def difference(found, wanted, tolerance):
    """Return in a few words how two arrays differ, or ''."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.shape} {found.dtype} for {wanted.shape} {wanted.dtype}"
    if wanted.dtype.kind != "f":
        return "" if np.array_equal(found, wanted) else "other whole numbers"
    finite = np.isfinite(wanted)
    if not np.array_equal(finite, np.isfinite(found)):
        return f"{found.ravel()[:4]} for {wanted.ravel()[:4]}"
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True):
        return "inf and nan are mixed up"
    ours, theirs = found[finite].astype("float64"), wanted[finite].astype("float64")
    limit = tolerance * max(1e-37, np.abs(theirs).max(initial=0))
    return "" if np.abs(ours - theirs).max(initial=0) <= limit else f"{ours[:4]} for {theirs[:4]}"


def answer(key, row, arrays):
    """Return in a few words how our answer differs from MXNet's, or '' also where it refuses."""
    wanted = recorded(key)
    if wanted is None:
        return ""
    tolerance = TOLERANCE.get(key.rpartition("/")[2], 1e-3)
    try:
        found = computed(row, arrays)
    except mx.MXNetError as error:
        return str(error)
    pairs = zip(found, wanted, strict=True)
    return "; ".join(filter(None, (difference(f, w, tolerance) for f, w in pairs)))


def test_odd_values_give_what_mxnet_gives():
    check_each({name: name for name in cases()}, _check_odd_values)


def _check_odd_values(operator):
    said = {
        f"{operator}/{kind}": answer(f"{operator}/{kind}", row, arrays)
        for kind, (row, arrays) in cases()[operator].items()
    }
    wrong = {key: text for key, text in said.items() if text and key not in DIFFERENT}
    assert not wrong, wrong
    agree = [key for key, text in said.items() if not text and key in DIFFERENT]
    assert not agree, "these agree now: remove their rows"


def test_noncontiguous_inputs_give_the_same_results():
    check_each({name: name for name in cases()}, _check_strided)


def _check_strided(operator):
    row, _ = cases()[operator]["nan"]

    def strided(array):
        tensor = plain(array)
        if tensor.dim() == 0:
            return array
        twice = tensor.repeat_interleave(2, dim=-1)
        return wrap_plain(type(array), twice[..., ::2], array._ctx)

    straight = [mx.nd.array(a, dtype=a.dtype) for a in row.arrays()]
    wanted = call(row, straight)
    found = call(row, [strided(mx.nd.array(a, dtype=a.dtype)) for a in row.arrays()])
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-5, atol=1e-6)
