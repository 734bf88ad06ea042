"""Common mistakes with every operator, made in each way to call it: for MXNet and our own.

A case is the first small sample row of an operator with one thing wrong: the shape, dtype or number
of its inputs, or an attribute. The error class is recorded, or that no error was raised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.golden.record.sparse_modes import function, listed
from tests.grammar.sampling import families, rows_of

LARGEST = 600  # elements of an input
LEFT_OUT = ("quantization",)
RANDOM = ("dgl",)
INPUTS = {
    "one axis more": lambda arrays: [arrays[0][None], *arrays[1:]],
    "one axis": lambda arrays: [arrays[0].ravel(), *arrays[1:]],
    "another size": lambda arrays: [np.concatenate([arrays[0]] * 2, -1), *arrays[1:]],
    "another size of the last": lambda arrays: [*arrays[:-1], np.concatenate([arrays[-1]] * 2)],
    "integers": lambda arrays: [arrays[0].astype("int32"), *arrays[1:]],
    "float64 in the last": lambda arrays: [*arrays[:-1], arrays[-1].astype("float64")],
    "float16": lambda arrays: [arrays[0].astype("float16"), *arrays[1:]],
    "one input less": lambda arrays: arrays[:-1],
    "one input more": lambda arrays: [*arrays, arrays[-1]],
}
ODD = {"none": None, "list": [1.0, 2.0], "text": "x", "numpy": np.ones(2, "float32"), "number": 3}


@dataclass(frozen=True)
class Mistake:
    """One wrong call."""

    op: str
    what: str
    inputs: list
    attrs: dict


def changed_inputs(arrays):
    """Yield what is wrong, and the inputs."""
    for what, change in INPUTS.items():
        if not arrays or (what != "one axis more" and not all(a.ndim for a in arrays)):
            continue
        if "last" in what and len(arrays) == 1:
            continue
        yield what, change(list(arrays))


def changed_attrs(attrs):
    """Yield what is wrong, and the attributes."""
    yield "unknown attribute", {**attrs, "mood": "good"}
    for name in attrs:
        yield f"{name} is text", {**attrs, name: "nonsense"}
        yield f"{name} is left out", {k: v for k, v in attrs.items() if k != name}
        yield f"{name} is a list of text", {**attrs, name: ["a", "b"]}
        if isinstance(attrs[name], int) and not isinstance(attrs[name], bool):
            yield f"{name} is large", {**attrs, name: 77}
            yield f"{name} is negative", {**attrs, name: -77}


def mistakes_of(row):
    """Yield the mistakes with one row."""
    arrays = row.arrays()
    for what, inputs in changed_inputs(arrays):
        yield Mistake(row.op, what, inputs, row.attrs)
    for what, attrs in changed_attrs(row.attrs):
        yield Mistake(row.op, what, arrays, attrs)
    if arrays:
        for what, odd in ODD.items():
            yield Mistake(row.op, what, [odd, *arrays[1:]], row.attrs)


def mistakes():
    """Return the mistakes by operator."""
    every = {}
    for family in families():
        if family.startswith("numpy_") or family in LEFT_OUT:
            continue
        for row in rows_of(family):
            is_small = all(a.size <= LARGEST for a in row.arrays())
            if row.op not in every and is_small and not any(w in row.op for w in RANDOM):
                every[row.op] = {m.what: m for m in mistakes_of(row)}
    return every


# -- the ways to call ------------------------------------------------------------------------------


def arrays_of(mx, mistake):
    """Convert inputs to arrays. Invalid inputs are not converted."""
    odd = 0 if mistake.what in ODD else None
    return [a if i == odd else mx.nd.array(a, dtype=a.dtype) for i, a in enumerate(mistake.inputs)]


def run_eager(mx, mistake):
    """Call the function."""
    for out in listed(function(mx.nd, mistake.op)(*arrays_of(mx, mistake), **mistake.attrs)):
        out.asnumpy()


def run_recorded(mx, mistake):
    """Call the function with gradients, and run backward."""
    arrays = arrays_of(mx, mistake)
    for array in arrays:
        if hasattr(array, "attach_grad") and np.dtype(array.dtype).kind == "f":
            array.attach_grad()
    with mx.autograd.record():
        outs = listed(function(mx.nd, mistake.op)(*arrays, **mistake.attrs))
    for out in outs:
        out.asnumpy()


def run_hybridized(mx, mistake):
    """Call a hybridized block."""

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, *arrays):
            return function(F, mistake.op)(*arrays, **mistake.attrs)

    net = Net()
    net.hybridize()
    for out in listed(net(*arrays_of(mx, mistake))):
        out.asnumpy()


def symbol_of(mx, mistake):
    """Return the operator of variables, and their names."""
    names = [f"in{i}" for i in range(len(mistake.inputs))]
    variables = [mx.sym.var(n) for n in names]
    return function(mx.sym, mistake.op)(*variables, name="it", **mistake.attrs), names


def run_executor(mx, mistake):
    """Allocate an executor's arrays by shapes and dtypes, and run it."""
    symbol, names = symbol_of(mx, mistake)
    arrays = dict(zip(names, arrays_of(mx, mistake), strict=True))
    exe = symbol.simple_bind(
        mx.cpu(),
        grad_req="null",
        type_dict={n: a.dtype for n, a in arrays.items()},
        **{n: a.shape for n, a in arrays.items()},
    )
    for name, array in arrays.items():
        (exe.arg_dict.get(name) if name in exe.arg_dict else exe.aux_dict[name])[:] = array
    for out in exe.forward():
        out.asnumpy()


def run_module(mx, mistake):
    """Run a Module: the first input is the data, others are parameters."""
    symbol, names = symbol_of(mx, mistake)
    arrays = dict(zip(names, arrays_of(mx, mistake), strict=True))
    first = mx.io.DataDesc("in0", arrays["in0"].shape, arrays["in0"].dtype)
    module = mx.mod.Module(symbol, data_names=["in0"], label_names=None, context=mx.cpu())
    module.bind([first], for_training=False)
    states = symbol.list_auxiliary_states()
    args = {n: a for n, a in arrays.items() if n != "in0" and n not in states}
    module.init_params(arg_params=args, aux_params={n: arrays[n] for n in states if n in arrays})
    module.forward(mx.io.DataBatch([arrays["in0"]], []), is_train=False)
    for out in module.get_outputs():
        out.asnumpy()


MODES = {
    "eager": run_eager,
    "recorded": run_recorded,
    "hybridized": run_hybridized,
    "executor": run_executor,
    "module": run_module,
}


def modes_of(mistake):
    """Return the ways in which a mistake can be made: graphs are made of symbols."""
    if not mistake.inputs:
        return ["eager"]
    return ["eager", "recorded"] if mistake.what in ODD else list(MODES)


def error_of(mx, mode, mistake):
    """Return the class of the error, or None."""
    try:
        MODES[mode](mx, mistake)
        mx.nd.waitall()
    except Exception as error:
        return error
    return None
