"""Record the networks of `model_programs` in an MXNet 1.9.1 environment: run this file."""

import pathlib
import sys

import numpy as np

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path.insert(0, str(HERE))
from model_programs import PROGRAMS, filling  # noqa: E402


def record(name, program):
    """Save the symbol, and the outputs and gradients of one training and one predicting pass."""
    symbol, inputs = program(mx)
    (DATA / "models" / (name + "-symbol.json")).write_text(symbol.tojson())
    # MXNet refuses gradients of indices.
    reqs = {
        n: "null" if name == "unrolled_lstm" and n in inputs else "write"
        for n in symbol.list_arguments()
    }
    executor = symbol.simple_bind(
        mx.cpu(), grad_req=reqs, **{k: v.shape for k, v in inputs.items()}
    )
    for key, array in list(executor.arg_dict.items()) + list(executor.aux_dict.items()):
        array[:] = inputs[key] if key in inputs else filling(key, array.shape)
    stored = {"input:" + k: v for k, v in inputs.items()}
    for i, out in enumerate(executor.forward(is_train=False)):
        stored["predict:%d" % i] = out.asnumpy()
    for i, out in enumerate(executor.forward(is_train=True)):
        stored["train:%d" % i] = out.asnumpy()
    executor.backward([mx.nd.ones(o.shape) for o in executor.outputs])
    for key, grad in executor.grad_dict.items():
        if grad is not None:
            stored["grad:" + key] = grad.asnumpy()
    np.savez_compressed(DATA / "models" / (name + ".npz"), **stored)
    print(name, symbol.list_arguments())


for each in sys.argv[1:] or PROGRAMS:
    record(each, PROGRAMS[each])
