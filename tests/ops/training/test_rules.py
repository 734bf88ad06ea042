"""One rule, many forms: lists, single operators, mixed precision and many weights agree."""

from __future__ import annotations

import pytest
import torch

from mxnet.ops import registry
from mxnet.ops.training import adam, adaptive, large_batch, sgd
from mxnet.ops.training.rules import CHUNK, TensorList

# operator, rule, numbers
SINGLE = [
    ("sgd_update", sgd.sgd, {"lr": 0.1, "wd": 0.01, "clip_gradient": 0.5}),
    ("sgd_mom_update", sgd.sgd_mom, {"lr": 0.1, "momentum": 0.9, "wd": 0.01, "rescale_grad": 0.5}),
    ("nag_mom_update", sgd.nag_mom, {"lr": 0.1, "momentum": 0.9, "wd": 0.01}),
    ("signsgd_update", sgd.signsgd, {"lr": 0.1, "wd": 0.01}),
    ("signum_update", sgd.signum, {"lr": 0.1, "momentum": 0.9, "wd_lh": 0.01}),
    ("adam_update", adam.adam, {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5}),
    ("ftml_update", adam.ftml, {"lr": 0.1, "t": 3, "clip_grad": 0.5}),
    ("rmsprop_update", adaptive.rmsprop, {"lr": 0.1, "clip_weights": 0.7}),
    ("rmspropalex_update", adaptive.rmspropalex, {"lr": 0.1, "wd": 0.01}),
    ("ftrl_update", adaptive.ftrl, {"lr": 0.1, "lamda1": 0.3}),
    ("_sparse_adagrad_update", adaptive.adagrad, {"lr": 0.1, "clip_gradient": 0.5}),
]


def _arrays(rule, count):
    """Return weights, gradients and states of a rule; states are not negative."""
    torch.manual_seed(0)
    signed = [[torch.randn(3, 4) for _ in range(count)] for _ in range(2)]
    starts = (1.0, 0.0, 0.0)  # a mean square is larger than the square of the mean
    return signed + [
        [torch.rand(3, 4) + start for _ in range(count)]
        for start, _ in zip(starts, rule.states, strict=False)
    ]


@pytest.mark.parametrize(("name", "rule", "numbers"), SINGLE, ids=lambda v: str(v)[:24])
def test_operators_and_lists_agree(name, rule, numbers):
    count = CHUNK + 3
    lists, apart = _arrays(rule, count), _arrays(rule, count)
    rule(*lists, **numbers)
    for i in range(count):
        weight, grad, *states = (items[i] for items in apart)
        new = registry.get(name)(weight, grad, *states, **numbers)
        torch.testing.assert_close(lists[0][i], new)
        for changed, state in zip(lists[2:], states, strict=True):
            torch.testing.assert_close(changed[i], state)


MIXED = [
    ("mp_sgd_update", sgd.sgd, {"lr": 0.1, "wd": 0.01}),
    ("mp_sgd_mom_update", sgd.sgd_mom, {"lr": 0.1, "momentum": 0.9}),
    ("mp_nag_mom_update", sgd.nag_mom, {"lr": 0.1, "momentum": 0.9}),
]


@pytest.mark.parametrize(("name", "rule", "numbers"), MIXED, ids=lambda v: str(v)[:24])
def test_mixed_precision_steps_on_the_copy(name, rule, numbers):
    weights, grads, *states = _arrays(rule, 1)
    wide, half = weights[0].clone(), weights[0].half()
    gradient = grads[0].half()
    own = [s[0].clone() for s in states]
    rule(weights, [gradient.float()], *states, **numbers)
    new = registry.get(name)(half, gradient, *own, wide, **numbers)
    torch.testing.assert_close(wide, weights[0])
    assert torch.equal(new, wide.half())


def test_many_weights_of_different_rates_step_apart():
    (first, second), grads, moms = _arrays(sgd.sgd_mom, 2)
    single = registry.get("sgd_mom_update")
    expected = [
        single(first, grads[0], moms[0].clone(), lr=0.1, wd=0.0, momentum=0.9),
        single(second, grads[1], moms[1].clone(), lr=0.2, wd=0.5, momentum=0.9),
    ]
    arrays = [first, grads[0], moms[0], second, grads[1], moms[1]]
    rates = {"lrs": (0.1, 0.2), "wds": (0.0, 0.5), "momentum": 0.9, "num_weights": 2}
    torch.testing.assert_close(
        list(registry.get("multi_sgd_mom_update")(*arrays, **rates)), expected
    )


def test_lamb_is_its_two_phases():
    weights, grads, means, variances = _arrays(large_batch.lamb, 1)
    states = means[0].clone(), variances[0].clone()
    step = {"t": 2, "wd": 0.1}
    direction = registry.get("lamb_update_phase1")(weights[0], grads[0], *states, **step)
    norms = weights[0].norm().reshape(1), direction.norm().reshape(1)
    expected = registry.get("lamb_update_phase2")(weights[0], direction, *norms, lr=0.1)
    large_batch.lamb(weights, grads, means, variances, lr=0.1, **step)
    torch.testing.assert_close(weights[0], expected)


def test_lists_have_the_methods_of_tensors():
    tensors = TensorList([torch.tensor([1.0, -4.0]), torch.tensor([9.0])])
    assert [t.tolist() for t in tensors.abs().sqrt_()] == [[1, 2], [3]]
    assert [t.tolist() for t in tensors.clamp(-2, 2)] == [[1, -2], [2]]
    with pytest.raises(AttributeError, match="no method 'cumsum'"):
        tensors.cumsum(0)
