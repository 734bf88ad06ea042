"""Every operator with sparse inputs, called in each way there is: for real MXNet and our own.

A case is one call: an operator, its attributes, its inputs and their storage types. The cases are
the small sample rows of all operators with one input after the other made sparse, then calls of the
operators that know sparse storage, in all pairs of storage types.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from tests.grammar.sampling import families, rows_of

LARGEST = 40  # elements of an input
LEFT_OUT = ("creation", "random_pdf", "quantization")
RANDOM = ("random", "Dropout", "dgl", "sample_", "_shuffle")
SPARSE = ("csr", "row_sparse")


@dataclass(frozen=True)
class Case:
    """One call."""

    op: str
    arrays: tuple
    stypes: tuple
    attrs: dict
    train: bool = False

    @property
    def key(self):
        """Return text that tells the case from all others."""
        inputs = ", ".join(
            f"{stype}{list(array.shape)}" + ("" if array.dtype == np.float32 else str(array.dtype))
            for array, stype in zip(self.arrays, self.stypes, strict=True)
        )
        attrs = "".join(f", {name}={value!r}" for name, value in sorted(self.attrs.items()))
        return f"{self.op}({inputs}{attrs})"


def thin(array):
    """Return the array with zeros in it, and a second row of nothing else."""
    thinned = array.copy()
    if array.dtype.kind == "f" and array.ndim:
        thinned[1:2] = 0
        thinned.ravel()[::4] = 0
    return thinned


# -- the cases ------------------------------------------------------------------------------------


def storages(arrays):
    """Yield storage types of the inputs in which at least one is sparse."""
    for i, array in enumerate(arrays):
        for stype in SPARSE:
            if array.ndim == 2 or (stype == "row_sparse" and array.ndim):
                yield tuple(stype if i == j else "default" for j in range(len(arrays)))
    if len(arrays) > 1:
        for stype in SPARSE:
            if all(a.ndim == 2 or (stype == "row_sparse" and a.ndim) for a in arrays):
                yield (stype,) * len(arrays)


def sampled():
    """Yield the first small row of every operator with sparse inputs."""
    for family in families():
        if family.startswith("numpy_") or family in LEFT_OUT:
            continue
        seen = set()
        for row in rows_of(family):
            arrays = row.arrays()
            if row.op in seen or any(word in row.op for word in RANDOM) or not arrays:
                continue
            if any(a.size > LARGEST for a in arrays) or "ctx" in row.attrs:
                continue
            seen.add(row.op)
            for stypes in storages(arrays):
                inputs = (
                    thin(a) if s != "default" else a for a, s in zip(arrays, stypes, strict=True)
                )
                yield Case(row.op, tuple(inputs), stypes, row.attrs, row.train)


RAMP = np.array([[0, 1.5, 0], [0, 0, 0], [2.5, 0, -3]], "float32")
OTHER = np.array([[0, 2, 1], [0, 0, 0], [0, 0.5, 4]], "float32")
TALL = np.array([[1, 2], [0, 0], [5, 6]], "float32")
KINDS = ("default", *SPARSE)
UNARY = """
abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 fix floor
gamma gammaln log log10 log1p log2 make_loss negative radians relu rint round rsqrt sigmoid sign sin
sinh sqrt square BlockGrad tan tanh trunc zeros_like ones_like _copy Flatten reciprocal erf softsign
_contrib_round_ste _contrib_sign_ste sum mean norm shape_array transpose _square_sum argmax softmax
""".split()  # noqa: SIM905
BINARY = """
elemwise_add elemwise_sub elemwise_mul elemwise_div broadcast_add broadcast_sub broadcast_mul
broadcast_div broadcast_maximum _equal _greater _maximum _power _scatter_elemwise_div
_identity_with_attr_like_rhs _grad_add add_n Concat _hypot
""".split()  # noqa: SIM905
SCALARS = """
_plus_scalar _minus_scalar _rminus_scalar _mul_scalar _div_scalar _rdiv_scalar _power_scalar
_rpower_scalar _mod_scalar _maximum_scalar _minimum_scalar _equal_scalar _not_equal_scalar
_greater_scalar _lesser_scalar _scatter_plus_scalar _scatter_minus_scalar
""".split()  # noqa: SIM905


def elementwise():
    """Yield operators of one and two arrays of one shape."""
    for name, stype, dtype in itertools.product(UNARY, SPARSE, ("float32", "float64")):
        attrs = {"axis": 1} if name == "_square_sum" else {}
        yield Case(name, (RAMP.astype(dtype),), (stype,), attrs)
    for name, stypes in itertools.product(BINARY, itertools.product(KINDS, KINDS)):
        attrs = {"num_args": 2} if name in ("add_n", "Concat") else {}
        yield Case(name, (RAMP, OTHER), stypes, attrs)
    for name, stype, number in itertools.product(SCALARS, SPARSE, (0.0, 2.0)):
        yield Case(name, (RAMP,), (stype,), {"scalar": number})
    for name, stype in itertools.product(
        ("broadcast_add", "broadcast_mul", "broadcast_div"), SPARSE
    ):
        for small in (OTHER[2:], OTHER[2:].reshape(3, 1)):
            yield Case(name, (RAMP, small), (stype, "default"), {})
            yield Case(name, (small, RAMP), ("default", stype), {})


def selecting():
    """Yield operators that reduce, cut, join and convert."""
    for name, stype in itertools.product(("sum", "mean", "norm", "_square_sum"), SPARSE):
        for axis, keepdims in itertools.product((0, 1, (0, 1)), (False, True)):
            yield Case(name, (RAMP,), (stype,), {"axis": axis, "keepdims": keepdims})
    for stype in SPARSE:
        for limits in ((-1.0, 1.0), (0.0, 2.0), (1.0, 2.0)):
            yield Case("clip", (RAMP,), (stype,), {"a_min": limits[0], "a_max": limits[1]})
        for to in KINDS:
            yield Case("cast_storage", (RAMP,), (stype,), {"stype": to})
        for begin, end in (((1,), (3,)), ((0, 1), (3, 3)), ((-2,), (-1,))):
            yield Case("slice", (RAMP,), (stype,), {"begin": begin, "end": end})
        for dim in (0, 1):
            inputs = (RAMP, OTHER, RAMP), (stype,) * 3
            yield Case("Concat", *inputs, {"num_args": 3, "dim": dim})
        yield Case("add_n", (RAMP, OTHER, RAMP), (stype,) * 3, {"num_args": 3})
        yield Case("add_n", (RAMP, OTHER, RAMP), (stype, "default", stype), {"num_args": 3})
        yield Case("Cast", (RAMP,), (stype,), {"dtype": "float16"})
        for axis, mode in ((0, "clip"), (0, "wrap"), (1, "clip")):
            places = np.array([2, 0, 4], "float32")
            attrs = {"axis": axis, "mode": mode}
            yield Case("take", (RAMP, places), (stype, "default"), attrs)
        for rows in ((0, 2), (1,), (0, 1, 2)):
            places = np.array(rows, "float32")
            yield Case("_sparse_retain", (RAMP, places), (stype, "default"), {})
    for to in SPARSE:
        yield Case("cast_storage", (RAMP,), ("default",), {"stype": to})
    for stypes in itertools.product(KINDS, repeat=3):
        if stypes != ("default",) * 3:
            yield Case("where", (RAMP, OTHER, RAMP.T.copy()), stypes, {})


def products():
    """Yield products, embeddings, dense layers and outputs."""
    for stypes in itertools.product(KINDS, KINDS):
        if stypes == ("default", "default"):
            continue
        for a, b, forward in itertools.product((False, True), (False, True), (None, *KINDS)):
            attrs = {"transpose_a": a, "transpose_b": b}
            attrs.update({} if forward is None else {"forward_stype": forward})
            yield Case("dot", (RAMP, TALL.T.copy() if b else TALL), stypes, attrs)
    yield Case("dot", (RAMP, np.array([1, 2, 3], "float32")), ("csr", "default"), {})
    places, table = (
        np.array([[1, 3], [1, 0]], "float32"),
        np.arange(10, dtype="float32").reshape(5, 2),
    )
    sizes = {"input_dim": 5, "output_dim": 2}
    for name, stype in itertools.product(("Embedding", "_contrib_SparseEmbedding"), KINDS):
        yield Case(name, (places, table), ("default", stype), sizes)
    for stype in KINDS:
        yield Case("Embedding", (places, table), ("default", stype), {**sizes, "sparse_grad": True})
    for stypes in itertools.product(KINDS, KINDS):
        attrs = {"num_hidden": 3, "no_bias": True}
        yield Case("FullyConnected", (RAMP, OTHER), stypes, attrs)
    outputs = ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput")
    for name, stypes in itertools.product(outputs, itertools.product(KINDS, KINDS)):
        yield Case(name, (RAMP, OTHER), stypes, {}, True)


def cases():
    """Return all cases by their keys."""
    every = itertools.chain(sampled(), elementwise(), selecting(), products())
    return {case.key: case for case in every}


# -- the ways to call ------------------------------------------------------------------------------


def function(home, name):
    """Return a function of `mx.nd` or `mx.sym` by its registry name."""
    for prefix in ("contrib", "linalg", "image", "sparse"):
        short = name[len(prefix) + 2 :]
        if name.startswith(f"_{prefix}_") and hasattr(getattr(home, prefix), short):
            return getattr(getattr(home, prefix), short)
    return getattr(home, name, None) or getattr(home._internal, name)


def listed(value):
    """Return outputs as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def inputs_of(mx, case):
    """Return the arrays of a case in their storage types."""
    dense = [mx.nd.array(a, dtype=a.dtype) for a in case.arrays]
    return [a if s == "default" else a.tostype(s) for a, s in zip(dense, case.stypes, strict=True)]


def floating(case):
    """Return the positions of inputs that can have gradients."""
    return [i for i, a in enumerate(case.arrays) if a.dtype.kind == "f"]


def run_eager(mx, case):
    """Call the function."""
    with mx.autograd.train_mode() if case.train else mx.autograd.predict_mode():
        return listed(function(mx.nd, case.op)(*inputs_of(mx, case), **case.attrs)), []


def differentiate(mx, case, call, stype=None):
    """Return outputs and gradients of a recorded call."""
    arrays = inputs_of(mx, case)
    for i in floating(case):
        arrays[i].attach_grad(stype=stype if arrays[i].stype == "default" else None)
    with mx.autograd.record(train_mode=case.train):
        outs = listed(call(*arrays))
    described = [describe(out) for out in outs]
    mx.autograd.backward(outs, train_mode=case.train)
    return described, [arrays[i].grad for i in floating(case)]


def run_recorded(mx, case):
    """Call the function and run backward; gradients have their arrays' storage types."""
    return differentiate(mx, case, lambda *a: function(mx.nd, case.op)(*a, **case.attrs))


def run_rows(mx, case):
    """Run backward into row_sparse gradients of the dense inputs."""
    call = function(mx.nd, case.op)
    return differentiate(mx, case, lambda *a: call(*a, **case.attrs), "row_sparse")


def run_hybridized(mx, case):
    """Call a hybridized block, and run backward."""

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, *arrays):
            return function(F, case.op)(*arrays, **case.attrs)

    net = Net()
    net.hybridize()
    return differentiate(mx, case, net)


def symbol_of(mx, case):
    """Return the operator as a symbol of variables with storage types, and their names."""
    names = [f"in{i}" for i in range(len(case.arrays))]
    variables = [mx.sym.var(n, stype=s) for n, s in zip(names, case.stypes, strict=True)]
    return function(mx.sym, case.op)(*variables, name="it", **case.attrs), names


def heads_of(mx, outs):
    """Return gradients to start from, none equal to another."""
    ramps = [np.cos(np.arange(np.prod(out.shape))).reshape(out.shape) for out in outs]
    return [mx.nd.array(r, dtype=out.dtype) for r, out in zip(ramps, outs, strict=True)]


def step(mx, case, exe, names):
    """Return outputs and gradients of an executor."""
    outs = exe.forward(is_train=True)
    described = [describe(out) for out in outs]
    exe.backward(heads_of(mx, outs))
    return described, [
        exe.grad_dict[names[i]] for i in floating(case) if exe.grad_dict.get(names[i]) is not None
    ]


def run_executor(mx, case):
    """Allocate an executor's arrays and copy values into them."""
    symbol, names = symbol_of(mx, case)
    arrays = dict(zip(names, inputs_of(mx, case), strict=True))
    requests = {
        n: "write" if arrays[n].dtype in (np.float16, np.float32, np.float64) else "null"
        for n in symbol.list_arguments()
    }
    exe = symbol.simple_bind(
        mx.cpu(),
        grad_req=requests,
        type_dict={n: a.dtype for n, a in arrays.items()},
        **{n: a.shape for n, a in arrays.items()},
    )
    for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
        array[:] = arrays[name]
    return step(mx, case, exe, names)


def run_bound(mx, case):
    """Bind sparse arrays and dense gradients."""
    symbol, names = symbol_of(mx, case)
    arrays = dict(zip(names, inputs_of(mx, case), strict=True))
    args = {n: arrays[n] for n in symbol.list_arguments()}
    states = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    grads = {
        names[i]: mx.nd.zeros(case.arrays[i].shape, dtype=case.arrays[i].dtype)
        for i in floating(case)
        if names[i] in args
    }
    exe = symbol.bind(
        mx.cpu(), args, grads, {n: "write" if n in grads else "null" for n in args}, states
    )
    return step(mx, case, exe, names)


def run_module(mx, case):
    """Train a Module one step: the first input is the data, others are parameters."""
    symbol, names = symbol_of(mx, case)
    arrays = dict(zip(names, inputs_of(mx, case), strict=True))
    first = mx.io.DataDesc("in0", arrays["in0"].shape, arrays["in0"].dtype)
    module = mx.mod.Module(symbol, data_names=["in0"], label_names=None, context=mx.cpu())
    module.bind([first], inputs_need_grad=True)
    states = symbol.list_auxiliary_states()
    args = {n: a for n, a in arrays.items() if n != "in0" and n not in states}
    module.init_params(arg_params=args, aux_params={n: arrays[n] for n in states})
    module.forward(mx.io.DataBatch([arrays["in0"]], []), is_train=True)
    outs = module.get_outputs()
    described = [describe(out) for out in outs]
    module.backward(heads_of(mx, outs))
    exe = module._exec_group.execs[0]
    return described, [
        exe.grad_dict[names[i]] for i in floating(case) if exe.grad_dict.get(names[i]) is not None
    ]


MODES = {
    "eager": run_eager,
    "recorded": run_recorded,
    "rows": run_rows,
    "hybridized": run_hybridized,
    "executor": run_executor,
    "bound": run_bound,
    "module": run_module,
}


def describe(array):
    """Return storage type, dtype, shape, values and the places of what is stored, as text."""
    if isinstance(array, str):
        return array
    parts = [array.stype, np.dtype(array.dtype).name, "x".join(map(str, array.shape))]
    host = array.asnumpy().astype("float64").ravel()
    parts.append(" ".join(f"{v:.6g}" for v in host))
    if array.stype == "row_sparse":
        parts.append(" ".join(str(int(i)) for i in array.indices.asnumpy()))
    elif array.stype == "csr":
        ends = array.indptr.asnumpy()
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        columns = array.indices.asnumpy()[: ends[-1]]  # what lies behind is left over
        parts.append(" ".join(map(str, sorted((rows * array.shape[1] + columns).tolist()))))
    return "|".join(parts)


def answer(mx, mode, case):
    """Return what one way to call gives: outputs and gradients, or the class of the error."""
    try:
        outs, grads = MODES[mode](mx, case)
        described = [[describe(out) for out in outs], [describe(grad) for grad in grads]]
        mx.nd.waitall()
        return described
    except Exception as error:
        return type(error).__name__
