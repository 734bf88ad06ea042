"""Symbols that are exported to ONNX by the recorder and by the tests."""

from __future__ import annotations

import mxnet as mx


def _rnn(x, mode, size):
    states = [mx.sym.var("state")] + [mx.sym.var("cell")] * (mode == "lstm")
    options = {"state_size": 2, "num_layers": 1, "mode": mode, "state_outputs": True}
    symbol = mx.sym.RNN(x, mx.sym.var("p"), *states, name="rnn", **options)
    return symbol, {"p": mx.nd.ones((size,))}, [(2, 4, 4)] + [(1, 4, 2)] * len(states)


def cases():
    """Return the symbol, the parameters and the shapes of inputs of each case, by name."""
    s, x = mx.sym, mx.sym.var("x")
    relu, exp = s.relu(x, name="a"), s.exp(x, name="d")
    tanh = s.tanh(s.sigmoid(relu, name="b"), name="c")
    parts = s.split(x, num_outputs=2, axis=1, name="s")
    dense = s.FullyConnected(x, num_hidden=2, name="fc")
    weights = {"fc_weight": mx.nd.ones((2, 4)), "fc_bias": mx.nd.zeros(2)}
    plain = {
        "relu": relu,
        "group": s.Group([relu, tanh, exp]),
        "split": parts,
        "second part": parts[1],
        "part and other": s.Group([parts[0], relu]),
        "one part": s.split(x, num_outputs=1, axis=1, name="s"),
        "squeezed parts": s.split(x, num_outputs=4, axis=1, squeeze_axis=True, name="s"),
        "topk both": s.topk(x, k=2, ret_typ="both", name="t"),
        "topk value": s.topk(x, k=2, ret_typ="value", name="t"),
        "topk indices": s.topk(x, k=2, ret_typ="indices", name="t"),
        "argmax": s.argmax(x, axis=1, name="am"),
        "reshape": s.reshape(x, shape=(4, 2), name="r"),
        "clip": s.clip(x, a_min=0, a_max=1, name="cl"),
        "slice_axis": s.slice_axis(x, axis=1, begin=0, end=2, name="sl"),
        "Dropout": s.Dropout(x, name="dr"),
        "identity": s.identity(x, name="id"),
        "norm": s.norm(x, name="n"),
        "underscore": s.relu(x, name="_a"),
        "ends in output": s.relu(x, name="a_output"),
        "shape_array": s.shape_array(x, name="sh"),
    }
    rows = {key: (symbol, {}, [(2, 4)]) for key, symbol in plain.items()}
    rows["dense"] = (dense, weights, [(2, 4)])
    rows["dense and relu"] = (s.Group([dense, relu]), weights, [(2, 4)])
    rows["box_nms"] = (s.contrib.box_nms(x, name="nms"), {}, [(1, 4, 6)])
    rows["lstm"], rows["gru"] = _rnn(x, "lstm", 64), _rnn(x, "gru", 48)
    norm = {f"bn_{n}": mx.nd.ones(3) for n in ("gamma", "beta", "moving_mean", "moving_var")}
    rows["BatchNorm"] = (s.BatchNorm(mx.sym.var("x"), name="bn"), norm, [(2, 3, 4, 4)])
    return rows
