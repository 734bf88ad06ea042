"""Record MXNet 1.9.1's initializers. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_initializers.py
"""

from __future__ import annotations

import json
import pathlib
import warnings

import numpy as np

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
CONSTANT = '["constant", {"value": 5}]'
NAMES = [
    "fc_weight",
    "fc_bias",
    "bn_gamma",
    "bn_beta",
    "bn_moving_mean",
    "bn_moving_var",
    "bn_moving_inv_var",
    "bn_moving_avg",
    "bn_running_mean",
    "stn_loc_weight",
    "q_min",
    "q_max",
    "b_bias_quantize",
    "x",
    "rnn_parameters",
]
DESCRIBED = [
    ["zero", {}],
    ["zeros", {}],
    ["one", {}],
    ["constant", {"value": 3.5}],
    ["uniform", {}],
    ["normal", {"sigma": 0.5}],
    ["orthogonal", {}],
    ["xavier", {}],
    ["xavier", {"rnd_type": "gaussian", "factor_type": "in", "magnitude": 2}],
    ["msraprelu", {}],
    ["bilinear", {}],
    ["lstmbias", {}],
]
# description, name, shape
FIXED = [
    [["bilinear", {}], "up_weight", (1, 1, 4, 4)],
    [["bilinear", {}], "up_weight", (2, 1, 3, 5)],
    [["bilinear", {}], "up_weight", (1, 2, 2, 4)],
    [["lstmbias", {"forget_bias": 2.0}], "l_weight", (8,)],
    [["constant", {"value": [1, 2, 3]}], "c_weight", (2, 3)],
]
DRAWN = [
    [["uniform", {"scale": 0.3}], (64, 32, 3, 3)],
    [["normal", {"sigma": 0.2}], (64, 32, 3, 3)],
    [["xavier", {}], (64, 32, 3, 3)],
    [["xavier", {"rnd_type": "gaussian", "factor_type": "in", "magnitude": 2}], (64, 32, 3, 3)],
    [["xavier", {"factor_type": "out", "magnitude": 1}], (100, 80)],
    [["msraprelu", {}], (64, 32, 3, 3)],
    [["msraprelu", {"factor_type": "in", "slope": 0.1}], (200, 100)],
    [["orthogonal", {}], (64, 32, 3, 3)],
    [["orthogonal", {"scale": 2.0, "rand_type": "normal"}], (200, 40)],
]
# mode, directions, layers
FUSED = [["lstm", 1, 2], ["lstm", 2, 2], ["gru", 2, 1], ["rnn_tanh", 1, 1], ["rnn_relu", 2, 3]]
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class Counting(mx.init.Initializer):
    """Fills each array with how many it has seen, and remembers their names."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __call__(self, desc, arr):
        self.names.append(str(desc))
        arr[:] = len(self.names)


def make(description):
    """Return the initializer of a [name, arguments]."""
    return mx.init.create(description[0], **description[1])


def filled(init, name, shape):
    """Return what an initializer does to an array, or the error."""
    array = mx.nd.full(shape, 9.0)
    try:
        init(name, array)
    except ValueError as error:
        return str(error)
    return array.asnumpy().tolist()


def by_name():
    """Return [name, described: first value or error, bare string: the same]."""
    rows = []
    for name in NAMES:
        both = [
            filled(mx.init.create(CONSTANT), kind, (2,)) for kind in (mx.init.InitDesc(name), name)
        ]
        rows.append([name] + [v if isinstance(v, list) else v.partition(".")[0] for v in both])
    return rows


def drawn():
    """Return [description, shape, standard deviation, largest absolute value]."""
    rows = []
    mx.random.seed(1)
    for description, shape in DRAWN:
        values = np.array(filled(make(description), mx.init.InitDesc("k_weight"), shape))
        rows.append([description, shape, float(values.std()), float(np.abs(values).max())])
    return rows


def fused():
    """Return [mode, directions, layers, size, names, values]."""
    rows = []
    for mode, directions, layers in FUSED:
        hidden, width = 2, 3
        size = sum(
            directions * GATES[mode] * hidden * (w + hidden + 2)
            for w in [width] + [directions * hidden] * (layers - 1)
        )
        counting, array = Counting(), mx.nd.zeros(size)
        init = mx.init.FusedRNN(None, hidden, layers, mode, directions == 2, 77.0)
        init._init_weight(mx.init.InitDesc("p", global_init=counting), array)
        values = array.asnumpy().astype(int).tolist()
        rows.append([mode, directions, layers, size, counting.names, values])
    return rows


def main():
    """Write everything as one JSON file."""
    warnings.simplefilter("ignore")
    found = {
        "names": by_name(),
        "dumps": [[d, make(d).dumps()] for d in DESCRIBED],
        "fixed": [[*row, filled(make(row[0]), mx.init.InitDesc(row[1]), row[2])] for row in FIXED],
        "drawn": drawn(),
        "fused": fused(),
    }
    parts = ",\n".join(f'"{key}": {json.dumps(rows)}' for key, rows in found.items())
    (DATA / "initializers.json").write_text("{\n" + parts + "\n}\n")


if __name__ == "__main__":
    main()
