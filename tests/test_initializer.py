"""Initializers match MXNet 1.9.1: equal values, or equal distribution."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet import initializer as init
from mxnet import registry
from mxnet.initializer import InitDesc
from tests.golden import HERE

GOLDEN = json.loads((HERE / "initializers.json").read_text())
REGISTERED = [
    "bilinear",
    "constant",
    "fusedrnn",
    "lstmbias",
    "msraprelu",
    "normal",
    "one",
    "ones",
    "orthogonal",
    "uniform",
    "xavier",
    "zero",
    "zeros",
]


def make(description):
    return init.create(description[0], **description[1])


def filled(how, name, shape):
    array = mx.nd.array(np.full(shape, 9.0))
    how(name, array)
    return array.asnumpy()


def check_named(how, name, wanted):
    if isinstance(wanted, str):
        with pytest.raises(ValueError, match=wanted):
            filled(how, name, (2,))
    else:
        np.testing.assert_array_equal(filled(how, name, (2,)), wanted)


@pytest.mark.parametrize(("name", "described", "bare"), GOLDEN["names"])
def test_initializers_fill_by_parameter_name(name, described, bare):
    check_named(init.Constant(5), InitDesc(name), described)
    with pytest.warns(DeprecationWarning, match="InitDesc"):
        check_named(init.Constant(5), name, bare)


@pytest.mark.parametrize(("description", "text"), GOLDEN["dumps"])
def test_dumps_matches_mxnet(description, text):
    made = make(description)
    assert made.dumps() == text
    assert init.create(text) == made


@pytest.mark.parametrize(("description", "name", "shape", "values"), GOLDEN["fixed"])
def test_deterministic_initializers_match_mxnet(description, name, shape, values):
    made = filled(make(description), InitDesc(name), shape)
    np.testing.assert_allclose(made, values, rtol=1e-6)


@pytest.mark.parametrize(("description", "shape", "deviation", "largest"), GOLDEN["drawn"])
def test_random_initializers_have_the_distribution_of_mxnet(description, shape, deviation, largest):
    mx.random.seed(3)
    made = filled(make(description), InitDesc("k_weight"), shape)
    assert made.std() == pytest.approx(deviation, rel=0.05)
    assert abs(made.mean()) < deviation / 20
    assert np.abs(made).max() == pytest.approx(largest, rel=0.35)
    mx.random.seed(3)
    np.testing.assert_array_equal(made, filled(make(description), InitDesc("k_weight"), shape))


@pytest.mark.parametrize("shape", [(6, 20), (20, 6), (4, 3, 2, 2)])
def test_orthogonal_initializer_is_orthogonal(shape):
    made = filled(init.Orthogonal(scale=1.0), InitDesc("w_weight"), shape).reshape(shape[0], -1)
    small = made @ made.T if made.shape[0] <= made.shape[1] else made.T @ made
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "directions", "layers", "size", "names", "values"), GOLDEN["fused"]
)
def test_fused_rnn_fills_gate_by_gate(mode, directions, layers, size, names, values):
    seen = []

    class Counting(init.Initializer):
        def __call__(self, desc, arr):
            seen.append(str(desc))
            arr[:] = len(seen)

    counting, array = Counting(), mx.nd.array(np.zeros(size))
    fused = init.FusedRNN(None, 2, layers, mode, directions == 2, 77.0)
    fused._init_weight(InitDesc("p", global_init=counting), array)
    assert seen == names
    assert array.asnumpy().astype(int).tolist() == values


def test_fused_rnn_from_json_and_by_attribute():
    fused = init.create(init.FusedRNN(init.One(), 2, 1, "gru").dumps())
    made = filled(init.Zero(), InitDesc("p", {"__init__": fused.dumps()}), (42,))
    assert made[:30].tolist() == [1.0] * 30
    assert made[30:].tolist() == [0.0] * 12
    with pytest.raises(ValueError, match="do not match an RNN"):
        filled(fused, InitDesc("p_weight"), (41,))


def test_init_attribute_of_a_parameter_overrides_the_initializer():
    for wish in ("one", '["constant", {"value": 1}]', init.One()):
        assert filled(init.Zero(), InitDesc("anything", {"__init__": wish}), (2,)).tolist() == [
            1,
            1,
        ]


def test_all_initializers_are_registered():
    known = registry.get_registry(init.Initializer)
    assert set(REGISTERED) <= set(known)
    assert known["zeros"] is known["zero"] is init.Zero


def test_custom_initializer_by_name():
    @init.register
    class FortyTwo(init.Initializer):
        def _init_weight(self, _, arr):
            arr[:] = 42

    assert filled(init.create("fortytwo"), InitDesc("w_weight"), (1,)).tolist() == [42]


def test_base_initializer_raises_not_implemented_error():
    with pytest.raises(NotImplementedError, match="_init_weight"):
        filled(init.Initializer(), InitDesc("a_weight"), (2,))
    assert filled(init.Initializer(), InitDesc("a_bias"), (2,)).tolist() == [0, 0]


def test_equality_compares_class_and_arguments():
    assert init.Xavier() == init.Xavier()
    assert init.Xavier() != init.Xavier(magnitude=2)
    assert init.Constant(mx.nd.array([1, 2])) == init.Constant([1.0, 2.0])
    assert init.Zero() != init.One()


def test_init_desc_is_a_string_with_attributes():
    desc = InitDesc("fc_weight", {"__init__": "zeros"})
    assert desc == "fc_weight"
    assert desc.global_init is None
    assert pickle.loads(pickle.dumps(desc)).attrs == {"__init__": "zeros"}


def test_mixed_uses_the_first_matching_pattern():
    mixed = init.Mixed(["bias", ".*"], [init.One(), init.Constant(2)])
    assert filled(mixed, InitDesc("a_bias"), (1,)).tolist() == [0]
    assert filled(mixed, InitDesc("a_weight"), (1,)).tolist() == [2]
    with pytest.raises(ValueError, match="did not match any pattern"):
        filled(init.Mixed(["bias"], [init.Zero()]), InitDesc("a_weight"), (1,))
    with pytest.raises(ValueError, match="one initializer per pattern"):
        init.Mixed(["a", "b"], [init.Zero()])


def test_load_uses_stored_arrays_or_the_default(caplog):
    caplog.set_level("INFO")
    load = init.Load({"arg:w": mx.nd.array([7]), "m": mx.nd.array([8])}, "one", verbose=True)
    assert filled(load, "w", (1,)).tolist() == [7]
    assert filled(load, "m", (1,)).tolist() == [8]
    assert filled(load, InitDesc("q_weight"), (1,)).tolist() == [1]
    assert caplog.messages[0] == "Initialized w by loading"
    assert caplog.messages[2] == "Initialized q_weight by default"
    with pytest.raises(ValueError, match=r"Shape mismatch, target \(2,\) vs loaded \(1,\)"):
        filled(load, "w", (2,))
    with pytest.raises(ValueError, match="Cannot Initialize w"):
        filled(init.Load({}), "w", (2,))


def test_verbose_initializer_logs(caplog):
    caplog.set_level("INFO")
    loud = init.Constant(3).set_verbosity(True)
    filled(loud, InitDesc("k_weight"), (4,))
    filled(loud.set_verbosity(True, lambda a: f"{a.size} values"), InitDesc("k_bias"), (4,))
    assert caplog.messages == [
        "Initialized k_weight as weight: 3.0",
        "Initialized k_bias as bias: 4 values",
    ]


@pytest.mark.parametrize(
    ("how", "shape", "message"),
    [
        (lambda: init.Xavier(), (3,), "cannot be applied to vector x_weight"),
        (lambda: init.Xavier(rnd_type="x"), (3, 3), "Unknown random type"),
        (lambda: init.Xavier(factor_type="x"), (3, 3), "Incorrect factor type"),
        (lambda: init.Orthogonal(rand_type="x"), (3, 3), "Unknown random type"),
        (lambda: init.Bilinear(), (3, 3), "4 dimensions"),
        (lambda: init.FusedRNN(None, 2, 1, "gru"), (42,), "model's initializer"),
        (lambda: init.FusedRNN(None, 2, 1, "x"), (42,), "Unknown mode"),
    ],
)
def test_invalid_initializer_arguments_raise(how, shape, message):
    with pytest.raises(ValueError, match=message):
        filled(how(), InitDesc("x_weight"), shape)


def test_constant_arguments_convert_arrays_to_lists():
    assert mx.init.Constant(mx.nd.array([1, 2]))._kwargs == {"value": [1.0, 2.0]}
    assert mx.init.Constant([1, 2])._kwargs == {"value": [1, 2]}
    assert mx.init.Constant(3)._kwargs == {"value": 3}
