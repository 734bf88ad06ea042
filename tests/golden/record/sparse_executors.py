"""Graphs with sparse variables whose results are recorded from MXNet 1.9.1.

Each takes MXNet as an argument, so that the recorder and the tests run the same thing: first the
storage types and values of single graphs, then models trained by Module. Run
``python tests/golden/record/sparse_executors.py`` inside an MXNet 1.9.1 environment to record them.
"""

import json
import pathlib
import sys

import numpy as np

FILE = pathlib.Path(__file__).resolve().parents[1] / "data" / "sparse_executors.json"
FEATURES = 8
RANDOM = np.random.RandomState(0)
MATRIX = (RANDOM.rand(8, FEATURES) * (RANDOM.rand(8, FEATURES) > 0.7)).astype("float32")
LABELS = (RANDOM.rand(8) > 0.5).astype("float32")
PLACES = RANDOM.randint(0, FEATURES - 3, (8, 3)).astype("float32")


def ramp(shape):
    return (np.arange(np.prod(shape)).reshape(shape) / 10.0 + 0.1).astype("float32")


# -- single graphs --------------------------------------------------------------------------------


def graphs(mx):
    """Return symbols with the shapes of their variables."""
    sym = mx.sym
    csr, rows, dense = sym.var("x", stype="csr"), sym.var("w", stype="row_sparse"), sym.var("w")
    more, d = sym.var("v", stype="row_sparse"), sym.var("d")
    matrices = {"x": (8, 8), "w": (8, 2)}

    def embedded(weight, **options):
        return sym.Embedding(d, weight, input_dim=8, output_dim=2, **options)

    return {
        "dot csr rows": (sym.dot(csr, rows), matrices),
        "dot csr dense": (sym.dot(csr, dense), matrices),
        "dot transposed": (sym.dot(csr, dense, transpose_a=True), matrices),
        "dot dense csr": (sym.dot(d, csr), {"d": (2, 8), "x": (8, 8)}),
        "dot of rows times two": (sym.dot(csr, rows * 2), matrices),
        "dot of a sum": (sym.dot(csr, rows + more), {"v": (8, 2), **matrices}),
        "dot of squares": (sym.dot(sym.square(csr), rows), matrices),
        "dot used twice": (sym.dot(csr, rows) + sym.dot(csr, rows), matrices),
        "dot and dense use": (sym.broadcast_add(sym.dot(csr, rows), sym.sum(rows)), matrices),
        "square sums": (
            sym.dot(csr, sym._internal._square_sum(rows, axis=1, keepdims=True)),
            matrices,
        ),
        "embedding": (embedded(dense, sparse_grad=True), {"d": (3,)}),
        "embedding rows": (embedded(rows, sparse_grad=True), {"d": (3,)}),
        "embedding dense gradient": (embedded(rows), {"d": (3,)}),
        "sum of rows": (rows + more, {"w": (4, 2), "v": (4, 2)}),
        "product of rows": (rows * more, {"w": (4, 2), "v": (4, 2)}),
        "rows and dense": (rows * d, {"w": (4, 2), "d": (4, 2)}),
        "relu": (sym.relu(rows), {"w": (4, 2)}),
        "tanh": (sym.tanh(rows), {"w": (4, 2)}),
        "exp": (sym.exp(rows), {"w": (4, 2)}),
        "added number": (csr + 2, {"x": (4, 2)}),
        "cast": (sym.cast_storage(d, stype="row_sparse"), {"d": (4, 2)}),
        "fully connected": (sym.FullyConnected(csr, num_hidden=2, name="fc"), {"x": (3, 4)}),
    }


def run_graph(mx, symbol, shapes):
    """Return storage types and values after one step."""
    reqs = {n: "null" if n == "x" else "write" for n in symbol.list_arguments()}
    if "w" in reqs and "embedding" in symbol.name:
        reqs["d"] = "null"
    exe = symbol.simple_bind(mx.cpu(), grad_req=reqs, **shapes)
    for name, array in exe.arg_dict.items():
        value = MATRIX[: array.shape[0], : array.shape[1]] if name == "x" else ramp(array.shape)
        if name == "d" and len(array.shape) == 1:
            value = PLACES[0]
        made = mx.nd.array(value)
        array[:] = made if array.stype == "default" else made.tostype(array.stype)
    before = [out.stype for out in exe.outputs]
    exe.forward(is_train=True)
    exe.backward([mx.nd.array(np.cos(ramp(out.shape))) for out in exe.outputs])
    return {
        "arguments": {n: a.stype for n, a in exe.arg_dict.items()},
        "outputs": [before, *[described(out) for out in exe.outputs]],
        "gradients": {n: described(g) for n, g in exe.grad_dict.items() if g is not None},
    }


def described(array):
    """Return storage type, places and values."""
    places = []
    if array.stype != "default":
        places = [array.indices.asnumpy().tolist()]
    return [array.stype, places, array.asnumpy().tolist()]


# -- models ---------------------------------------------------------------------------------------


def linear(mx):
    """The linear classifier of MXNet's sparse examples."""
    sym = mx.sym
    data = sym.var("data", stype="csr")
    weight = sym.var("weight", shape=(FEATURES, 2), stype="row_sparse")
    scores = sym.broadcast_add(sym.dot(data, weight), sym.var("bias", shape=(2,)))
    return sym.SoftmaxOutput(scores, sym.var("softmax_label"), multi_output=True, name="out")


def factorization(mx):
    """The factorization machine of MXNet's sparse examples."""
    sym = mx.sym
    data = sym.var("data", stype="csr")
    v = sym.var("v", shape=(FEATURES, 2), stype="row_sparse")
    w = sym.var("w1_weight", shape=(FEATURES, 1), stype="row_sparse")
    first = sym.broadcast_add(sym.dot(data, w), sym.var("bias", shape=(1,)))
    squares = sym._internal._square_sum(data=v, axis=1, keepdims=True)
    apart = sym.dot(sym.square(data=data), squares)
    together = 0.5 * sym.square(data=sym.dot(data, v))
    total = sym.sum(data=sym.Concat(first, together, dim=1), axis=1, keepdims=True)
    model = sym.elemwise_add(total, 0.5 * sym.negative(apart))
    return sym.LogisticRegressionOutput(data=model, label=sym.var("softmax_label"))


def embedding(mx):
    """Sums of embedded words."""
    sym = mx.sym
    weight = sym.var("w", stype="row_sparse")
    found = sym.Embedding(
        sym.var("data"), weight, input_dim=FEATURES, output_dim=2, sparse_grad=True
    )
    return sym.SoftmaxOutput(sym.sum(found, axis=1), sym.var("softmax_label"), name="out")


MODELS = {"linear": linear, "factorization": factorization, "embedding": embedding}
OPTIMIZERS = {
    "sgd": {"learning_rate": 0.5, "wd": 0.1},
    "momentum": {"learning_rate": 0.5, "momentum": 0.9},
    "adam": {"learning_rate": 0.1},
    "adagrad": {"learning_rate": 0.1},
    "ftrl": {"learning_rate": 0.1},
}
STORES = {"updater": False, "store": True}


def train(mx, model, optimizer, on_store):
    """Train two epochs as the examples do; return parameters, their storage types, outputs."""
    symbol = MODELS[model](mx)
    is_text = model == "embedding"
    data = mx.nd.array(PLACES) if is_text else mx.nd.array(MATRIX).tostype("csr")
    module = mx.mod.Module(symbol, context=mx.cpu())
    module.bind([("data", (4, *data.shape[1:]))], [("softmax_label", (4,))])
    names = [n for n in symbol.list_arguments() if n not in ("data", "softmax_label")]
    shapes = symbol.infer_shape(data=(4, *data.shape[1:]))[0]
    shapes = dict(zip(symbol.list_arguments(), shapes, strict=True))
    module.init_params(arg_params={n: mx.nd.array(ramp(shapes[n])) for n in names})
    module.init_optimizer(
        kvstore=mx.kv.create("local") if on_store else None,
        optimizer="sgd" if optimizer == "momentum" else optimizer,
        optimizer_params=dict(OPTIMIZERS[optimizer]),
    )
    sparse = [n for n in names if n != "bias"]

    def rows(batch):
        first = batch.data[0]
        places = first.indices if first.stype == "csr" else first.reshape((-1,))
        return dict.fromkeys(sparse, places)

    for start in (0, 4, 0, 4):
        part = slice(start, start + 4)
        batch = mx.io.DataBatch([data[part]], [mx.nd.array(LABELS[part])], pad=0)
        module.prepare(batch, sparse_row_id_fn=rows)
        module.forward_backward(batch)
        module.update()
    exe = module._exec_group.execs[0]
    module.prepare(None, lambda batch: dict.fromkeys(sparse, mx.nd.arange(FEATURES)))
    params, _ = module.get_params()
    return {
        "bound": {n: a.stype for n, a in exe.arg_dict.items()},
        "gradients": {n: g.stype for n, g in exe.grad_dict.items() if g is not None},
        "parameters": {n: [a.stype, a.asnumpy().tolist()] for n, a in params.items()},
        "outputs": module.get_outputs()[0].asnumpy().tolist(),
    }


def trainings():
    """Return what `train` is recorded for."""
    return {
        f"{model} {optimizer} {store}": (model, optimizer, on_store)
        for model in MODELS
        for optimizer in OPTIMIZERS
        for store, on_store in STORES.items()
    }


def main():
    """Record everything."""
    import mxnet as mx

    found = {
        "graphs": {n: run_graph(mx, *g) for n, g in graphs(mx).items()},
        "trainings": {n: train(mx, *options) for n, options in trainings().items()},
    }
    text = json.dumps(rounded(found), sort_keys=True)
    FILE.write_text(text.replace('"}, "', '"},\n"') + "\n")
    print(len(found["graphs"]), len(found["trainings"]), FILE.stat().st_size)


def rounded(value):
    """Return nested lists and dicts with few digits."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float("%.6g" % value) if isinstance(value, float) else value


if __name__ == "__main__":
    sys.exit(main())
