"""Shape operators on scalars and empty arrays."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.error import ShapeError
from mxnet.util import use_np
from tests.batches import check_each


class Call(gluon.HybridBlock):
    """Calls a function of the namespace of arrays, or of that of symbols."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x):
        return self.function(F.np, x)


def run(function, x, hybridize):
    """Return the outputs and the gradient of the sum of all."""
    net = Call(function)
    if hybridize:
        net.hybridize()
    x.attach_grad()
    with autograd.record():
        outputs = net(x)
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    autograd.backward(outputs)
    return outputs, x.grad


# Input shape, function, shapes of the outputs.
SHAPES = {
    "squeeze 0": ((), lambda np, x: np.squeeze(x, 0), [()]),
    "squeeze -1": ((), lambda np, x: np.squeeze(x, -1), [()]),
    "split": ((0, 2), lambda np, x: np.split(x, [1]), [(0, 2)] * 2),
    "split in three": ((0, 2), lambda np, x: np.split(x, [1, 2]), [(0, 2)] * 3),
    "array_split": ((0, 2), lambda np, x: np.array_split(x, [1]), [(0, 2)] * 2),
    "vsplit": ((0, 2), lambda np, x: np.vsplit(x, [1]), [(0, 2)] * 2),
    "hsplit": ((2, 0), lambda np, x: np.hsplit(x, [1, 2]), [(2, 0)] * 3),
    "dsplit": ((2, 2, 0), lambda np, x: np.dsplit(x, [1]), [(2, 2, 0)] * 2),
    "broadcast": ((2,), lambda np, x: np.broadcast_to(x, (3, -2)), [(3, 2)]),
    "broadcast itself": ((2,), lambda np, x: np.broadcast_to(x, -2), [(2,)]),
    "broadcast one": ((1, 2), lambda np, x: np.broadcast_to(x, (2, -2)), [(2, 2)]),
    "broadcast more": ((1, 2), lambda np, x: np.broadcast_to(x, (2, 3, -2)), [(2, 3, 2)]),
    "broadcast none": ((1, 2), lambda np, x: np.broadcast_to(x, (-2, -2)), [(1, 2)]),
}


@use_np
@pytest.mark.parametrize("hybridize", [False, True])
def test_output_shapes_of_scalars_and_empty_arrays(hybridize: bool) -> None:
    def check(case: tuple) -> None:
        shape, function, expected = case
        outputs, gradient = run(function, mx.np.ones(shape), hybridize)
        assert [y.shape for y in outputs] == expected
        assert gradient.sum().item() == sum(y.size for y in outputs)

    check_each(SHAPES, check)


@use_np
def test_broadcast_to_with_misplaced_minus_2_raises() -> None:
    for shape, target in (((2,), (-2, 3, 2)), ((1, 2), (-2,))):
        with pytest.raises(ShapeError, match="not broadcastable"):
            mx.np.broadcast_to(mx.np.ones(shape), target)
