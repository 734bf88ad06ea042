"""Networks saved by MXNet 1.9.1 load, and give the recorded outputs and gradients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mxnet as mx
from tests.golden import HERE
from tests.golden.record.model_programs import PROGRAMS, filling


def _close(given, wanted, what=""):
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5 * scale, err_msg=what)


def _stored(name):
    with np.load(HERE / "models" / f"{name}.npz") as file:
        return dict(file)


def _executor(symbol, stored):
    inputs = {k[6:]: v for k, v in stored.items() if k.startswith("input:")}
    reqs = {n: "write" if f"grad:{n}" in stored else "null" for n in symbol.list_arguments()}
    shapes = {k: v.shape for k, v in inputs.items()}
    executor = symbol.simple_bind(mx.cpu(), grad_req=reqs, **shapes)
    for key, array in [*executor.arg_dict.items(), *executor.aux_dict.items()]:
        array[:] = inputs[key] if key in inputs else filling(key, array.shape)
    return executor


@pytest.mark.parametrize("name", PROGRAMS)
def test_outputs_and_gradients_of_saved_networks_match_mxnet(name):
    """In prediction and training."""
    stored = _stored(name)
    symbol = mx.sym.load(str(HERE / "models" / f"{name}-symbol.json"))
    executor = _executor(symbol, stored)
    for i, out in enumerate(executor.forward(is_train=False)):
        _close(out.asnumpy(), stored[f"predict:{i}"])
    for i, out in enumerate(executor.forward(is_train=True)):
        _close(out.asnumpy(), stored[f"train:{i}"])
    executor.backward([mx.nd.ones(o.shape) for o in executor.outputs])
    for key, grad in executor.grad_dict.items():
        if grad is not None:
            _close(grad.asnumpy(), stored[f"grad:{key}"], key)


@pytest.mark.parametrize("name", PROGRAMS)
def test_graph_built_by_the_program_equals_the_saved_one(name):
    """Compare names, attributes and connections."""
    with mx.name.NameManager(), warnings.catch_warnings():
        symbol, _ = PROGRAMS[name](mx)
    saved = mx.sym.load(str(HERE / "models" / f"{name}-symbol.json"))
    assert symbol.list_arguments() == saved.list_arguments()
    assert symbol.list_auxiliary_states() == saved.list_auxiliary_states()
    assert symbol.list_outputs() == saved.list_outputs()
    assert symbol.tojson() == saved.tojson()
