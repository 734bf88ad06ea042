"""Record what MXNet 1.9.1's optimizer update operators do. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_updates.py

Each case is one call: what went in, what came out, and the inputs afterwards (states change in
place). Everything is stored, so the test needs no table of its own.
"""

from __future__ import annotations

import itertools
import json
import pathlib

import numpy as np

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
SHAPE = (2, 5)
SCALES = {"rescale_grad": (1.0, 0.5), "clip_gradient": (-1.0, 0.0, 0.4)}
GRADIENT = dict({"wd": (0.0, 0.1)}, **SCALES)
SMALL = {"wd": (0.1,), "rescale_grad": (0.5,), "clip_gradient": (-1.0, 0.4)}
BETAS = {"beta1": (0.8,), "beta2": (0.95,), "epsilon": (1e-3,)}
BOUNDS = {"lower_bound": (-1.0, 3.0), "upper_bound": (-1.0, 1.5)}

# (operator, roles of the inputs, attributes: each takes every value in turn)
# Roles: w weight, g gradient, s any state, p a state that is never negative, m 32-bit weight,
# h one state a row, n a norm, r the rescale factor as an array.
SINGLE = [
    ("sgd_update", "wg", dict(GRADIENT, lr=(0.1,))),
    ("sgd_mom_update", "wgs", dict(GRADIENT, lr=(0.1,), momentum=(0.0, 0.9))),
    ("mp_sgd_update", "wgm", dict(GRADIENT, lr=(0.1,))),
    ("mp_sgd_mom_update", "wgsm", dict(GRADIENT, lr=(0.1,), momentum=(0.0, 0.9))),
    ("nag_mom_update", "wgs", dict(GRADIENT, lr=(0.1,), momentum=(0.0, 0.9))),
    ("mp_nag_mom_update", "wgsm", dict(GRADIENT, lr=(0.1,), momentum=(0.0, 0.9))),
    ("signsgd_update", "wg", dict(GRADIENT, lr=(0.1,))),
    (
        "signum_update",
        "wgs",
        dict(GRADIENT, lr=(0.1,), momentum=(0.0, 0.9), wd_lh=(0.0, 0.2)),
    ),
    ("adam_update", "wgsp", dict(GRADIENT, **BETAS, lr=(0.1,))),
    (
        "ftml_update",
        "wgpps",
        {
            "lr": (0.1,),
            "wd": (0.0, 0.1),
            "rescale_grad": (1.0, 0.5),
            "clip_grad": (-1.0, 0.0, 0.4),
            "t": (1, 7),
            "epsilon": (1e-3,),
        },
    ),
    (
        "ftrl_update",
        "wgsp",
        dict(GRADIENT, lr=(0.1,), lamda1=(0.01, 0.5), beta=(1.0, 0.5)),
    ),
    (
        "rmsprop_update",
        "wgp",
        dict(
            GRADIENT,
            lr=(0.1,),
            gamma1=(0.9,),
            epsilon=(1e-3,),
            clip_weights=(-1.0, 0.0, 0.5),
        ),
    ),
    (
        "rmspropalex_update",
        "wgpqs",
        dict(
            GRADIENT,
            lr=(0.1,),
            gamma1=(0.9,),
            gamma2=(0.7,),
            epsilon=(1e-3,),
            clip_weights=(-1.0, 0.0, 0.5),
        ),
    ),
    (
        "lamb_update_phase1",
        "wgsp",
        dict(GRADIENT, **BETAS, t=(1, 5), bias_correction=(True, False)),
    ),
    (
        "mp_lamb_update_phase1",
        "wgspm",
        dict(GRADIENT, **BETAS, t=(1, 5), bias_correction=(True, False)),
    ),
    ("lamb_update_phase2", "wgnn", dict(BOUNDS, lr=(0.1,))),
    ("mp_lamb_update_phase2", "wgnnm", dict(BOUNDS, lr=(0.1,))),
    ("lamb_update_phase2", "wgzn", {"lr": (0.1,), "lower_bound": (-1.0, 3.0)}),
    ("lamb_update_phase2", "wgnz", {"lr": (0.1,), "lower_bound": (-1.0, 3.0)}),
    (
        "_adamw_update",
        "wgspr",
        dict(
            BETAS,
            lr=(0.1,),
            eta=(1.0, 0.5),
            wd=(0.0, 0.1),
            clip_gradient=(-1.0, 0.0, 0.4),
        ),
    ),
    (
        "_mp_adamw_update",
        "wgspmr",
        dict(
            BETAS,
            lr=(0.1,),
            eta=(1.0, 0.5),
            wd=(0.0, 0.1),
            clip_gradient=(-1.0, 0.0, 0.4),
        ),
    ),
    ("_adamw_update", "wgspz", dict(BETAS, lr=(0.1,), eta=(1.0,), wd=(0.1,))),
    ("_adamw_update", "wgspi", dict(BETAS, lr=(0.1,), eta=(1.0,), wd=(0.1,))),
    (
        "_sparse_adagrad_update",
        "wgp",
        dict(GRADIENT, lr=(0.1,), wd=(0.0,), epsilon=(1e-3,)),
    ),
    (
        "_contrib_group_adagrad_update",
        "wgh",
        {
            "lr": (0.1,),
            "rescale_grad": (1.0, 0.5),
            "clip_gradient": (-1.0, 0.0, 0.4),
            "epsilon": (1e-3,),
        },
    ),
]
# The same, several weights at once; per-weight attributes are tuples. Trailing roles come once.
MULTI = [
    (
        "multi_sgd_update",
        "wg",
        "",
        SCALES,
    ),
    (
        "multi_sgd_mom_update",
        "wgs",
        "",
        dict(SCALES, momentum=(0.0, 0.9)),
    ),
    (
        "multi_mp_sgd_update",
        "wgm",
        "",
        SCALES,
    ),
    (
        "multi_mp_sgd_mom_update",
        "wgsm",
        "",
        dict(SCALES, momentum=(0.0, 0.9)),
    ),
    (
        "preloaded_multi_sgd_update",
        "wg",
        "ld",
        SCALES,
    ),
    (
        "preloaded_multi_sgd_mom_update",
        "wgs",
        "ld",
        {
            "rescale_grad": (0.5,),
            "clip_gradient": (-1.0, 0.0, 0.4),
            "momentum": (0.0, 0.9),
        },
    ),
    (
        "preloaded_multi_mp_sgd_update",
        "wgm",
        "ld",
        SCALES,
    ),
    (
        "preloaded_multi_mp_sgd_mom_update",
        "wgsm",
        "ld",
        {
            "rescale_grad": (0.5,),
            "clip_gradient": (-1.0, 0.0, 0.4),
            "momentum": (0.0, 0.9),
        },
    ),
    ("_multi_adamw_update", "wgsp", "r", dict(BETAS, clip_gradient=(-1.0, 0.0, 0.4))),
    (
        "_multi_mp_adamw_update",
        "wgspm",
        "r",
        dict(BETAS, clip_gradient=(-1.0, 0.0, 0.4)),
    ),
    (
        "_multi_lamb_update",
        "wgsp",
        "",
        dict(
            BETAS,
            **BOUNDS,
            rescale_grad=(0.5,),
            bias_correction=(True, False),
            clip_gradient=(-1.0, 0.0, 0.4),
        ),
    ),
    (
        "_multi_mp_lamb_update",
        "wgspm",
        "",
        dict(BETAS, **BOUNDS, rescale_grad=(0.5,), clip_gradient=(-1.0, 0.4)),
    ),
]


def function(name):
    """Return the eager function of a registry name."""
    for prefix, home in (("_contrib_", mx.nd.contrib), ("_sparse_", mx.nd.sparse)):
        if name.startswith(prefix):
            return getattr(home, name[len(prefix) :])
    return getattr(mx.nd, name, None) or getattr(mx.nd._internal, name)


def array(role, rng, dtype, weight=None, shape=SHAPE):
    """Return an input that fits its role."""
    wide = "float32" if dtype == "float16" else dtype
    if role in "wg":
        made = rng.standard_normal(shape)
        if role == "g":
            made.flat[::4] = 0
        return made.astype(dtype)
    if role == "m":
        return weight.astype(wide) + np.float32(1e-4)
    if role == "s":
        return (rng.standard_normal(shape) * 0.3).astype(wide)
    if role == "p":
        return rng.uniform(0.5, 1.5, shape).astype(wide)
    if role == "q":
        return rng.uniform(-0.2, 0.2, shape).astype(wide)
    if role == "h":
        return rng.uniform(0.5, 1.5, (shape[0], 1)).astype(wide)
    constants = {
        "n": rng.uniform(0.5, 4.0, (1,)),
        "z": [0.0],
        "r": [0.5],
        "i": [np.inf],
    }
    return np.array(constants[role], wide)


def run(name, arrays, attrs):
    """Return the outputs, and the inputs after the call."""
    inputs = [mx.nd.array(a, dtype=a.dtype) for a in arrays]
    if "adagrad" in name:  # dense gradients are not taken; rows that are all there mean the same
        inputs[1] = inputs[1].tostype("row_sparse")
    if name == "_sparse_adagrad_update":
        inputs[0], inputs[2] = (inputs[i].tostype("row_sparse") for i in (0, 2))
    given = {}
    if "update" in name and "phase1" not in name:  # the way of use: in place
        count = attrs.get("num_weights") or attrs.get("num_tensors") or 1
        given["out"] = [inputs[i * (len(inputs) // count)] for i in range(count)]
    out = function(name)(*inputs, **attrs, **given)
    outs = out if isinstance(out, list) else [out]
    return [o.asnumpy() for o in outs], [i.asnumpy() for i in inputs]


def combinations(grid):
    """Return every choice of attributes."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def single_cases():
    """Yield (operator, inputs, attributes)."""
    for name, roles, grid in SINGLE:
        kinds = ["float16"] if "m" in roles else ["float32"]
        for dtype in kinds:
            for attrs in combinations(grid):
                rng = np.random.RandomState(7)
                weight = array("w", rng, dtype)
                rest = [array(role, rng, dtype, weight) for role in roles[1:]]
                if name.endswith("lamb_update_phase2") and "m" in roles:
                    rest[0] = rest[0].astype("float32")
                yield name, [weight, *rest], attrs


def multi_cases():
    """Yield (operator, inputs, attributes) for operators that take many weights."""
    for name, roles, trailing, grid in MULTI:
        dtype = "float16" if "m" in roles else "float32"
        for attrs in combinations(grid):
            rng = np.random.RandomState(9)
            inputs = []
            for shape in ((3, 2), (4,)):
                weight = array("w", rng, dtype, shape=shape)
                inputs.append(weight)
                inputs += [array(role, rng, dtype, weight, shape) for role in roles[1:]]
            rates, decays = (0.1, 0.3), (0.0, 0.2)
            numbers = {
                "l": np.array(rates, "float32"),
                "d": np.array(decays, "float32"),
            }
            for role in trailing:
                inputs.append(numbers.get(role, np.array([0.5], "float32")))
            attrs = dict(attrs)
            if "lamb" in name:
                attrs.update(learning_rates=rates, wds=decays, step_count=(1, 3), num_tensors=2)
            else:
                attrs["num_weights"] = 2
                if "adamw" in name:
                    attrs["etas"] = (1.0, 0.5)
                if not trailing or trailing == "r":
                    attrs.update(lrs=rates, wds=decays)
            yield name, inputs, attrs


def lars_cases():
    """Yield calls of multi_lars, zero norms included."""
    for rescale in (1.0, 0.5):
        inputs = [[0.1, 0.2, 0.3, 0.4], [4.0, 0.0, 9.0, 1.0], [1.0, 2.0, 0.0, 4.0]]
        inputs = [np.array(v, "float32") for v in [*inputs, [0.0, 0.1, 0.1, 0.2]]]
        yield "multi_lars", inputs, {"eta": 0.01, "eps": 1e-3, "rescale_grad": rescale}


def main():
    """Write the file; arrays that several cases share are stored once."""
    stored, known, cases = {}, {}, []

    def keep(array):
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in known:
            known[key] = f"a{len(known)}"
            stored[known[key]] = array
        return known[key]

    for name, arrays, attrs in [*single_cases(), *multi_cases(), *lars_cases()]:
        outs, after = run(name, arrays, attrs)
        cases.append([name, attrs] + [[keep(a) for a in part] for part in (arrays, outs, after)])
    stored["cases"] = np.array(json.dumps(cases))
    np.savez_compressed(DATA / "updates.npz", **stored)
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
