"""NumPy's keywords of universal functions: refused unless they are at their defaults."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet import np

# What MXNet 1.9.1 raises: NotImplementedError for what NumPy knows, TypeError for anything else.
REFUSED = [
    ({"where": False}, NotImplementedError),
    ({"subok": False}, NotImplementedError),
    ({"subok": "no"}, TypeError),
    ({"dtype": "int8"}, NotImplementedError),
    ({"dtype": int}, TypeError),
    ({"dtype": "abc"}, TypeError),
    ({"casting": "safe"}, NotImplementedError),
    ({"casting": "fast"}, TypeError),
    ({"order": "C"}, NotImplementedError),
    ({"order": "other"}, NotImplementedError),
    ({"order": 3}, TypeError),
    ({"signature": "dd"}, TypeError),
    ({"anything": 1}, TypeError),
]
UNARY = ["exp", "abs", "fabs", "round", "around", "nan_to_num"]
CALLS = {
    **{name: (mx.nd.ones((2, 2)),) for name in UNARY},
    "invert": (mx.nd.ones((2, 2), dtype="int32"),),
    "bitwise_not": (mx.nd.ones((2, 2), dtype="int32"),),
    "add": (mx.nd.ones((2, 2)), mx.nd.ones((2, 2))),
    "matmul": (mx.nd.ones((2, 2)), mx.nd.ones((2, 2))),
}


@pytest.mark.parametrize("name", CALLS)
def test_keywords_of_universal_functions(name):
    arrays = [x.as_np_ndarray() for x in CALLS[name]]
    function = getattr(np, name)
    plain = function(*arrays).asnumpy()
    defaults = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
    assert (function(*arrays, **defaults).asnumpy() == plain).all()
    for keywords, error in REFUSED:
        with pytest.raises(error):
            function(*arrays, **keywords)


def test_multinomial_knows_no_other_keywords():
    with pytest.raises(TypeError, match="dtype"):
        np.random.multinomial(3, [0.5, 0.5], dtype="int32")
