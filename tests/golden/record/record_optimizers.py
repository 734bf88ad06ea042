"""Record MXNet 1.9.1's optimizers: 20 steps each, and ``.states`` files as it writes them.

Run inside an MXNet 1.9.1 environment: python tests/golden/record/record_optimizers.py
"""

from __future__ import annotations

import json
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
STEPS = 20
NAMES = {0: "a_weight", 1: "b_bias", 2: "c_gamma"}
SHAPES = [(4, 3), (3,), (5,)]

PLAIN = [
    {},
    {"wd": 0.03},
    {"rescale_grad": 0.25, "wd": 0.03},
    {"clip_gradient": 0.4},
    {"rescale_grad": 3.0, "clip_gradient": 0.4, "wd": 0.03},
    {"schedule": True, "wd": 0.03},
    {"float16": True, "multi_precision": True, "wd": 0.03, "rescale_grad": 0.5},
    {"lr_mult": {"b_bias": 2.0, 0: 0.5}, "wd_mult": {"b_bias": 1.0}, "wd": 0.03},
    {"begin_num_update": 7},
]


def combined(*settings):
    """Return each setting with each of the common ones."""
    return [{**setting, **common} for setting in settings for common in PLAIN]


OPTIMIZERS = {
    "sgd": combined({"learning_rate": 0.1}, {"learning_rate": 0.1, "momentum": 0.9}),
    "ccsgd": combined({"momentum": 0.5}),
    "nag": combined({"learning_rate": 0.1}, {"learning_rate": 0.1, "momentum": 0.9}),
    "signum": combined({}, {"momentum": 0.0}, {"momentum": 0.7, "wd_lh": 0.1}),
    "dcasgd": combined({"learning_rate": 0.1}, {"lamda": 0.1}),
    "test": [{}, {"rescale_grad": 0.5}],
    "adam": combined({"learning_rate": 0.05}, {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}),
    "adamax": combined({"learning_rate": 0.05}, {"beta1": 0.8, "beta2": 0.9}),
    "nadam": combined({"learning_rate": 0.05}, {"beta1": 0.8, "schedule_decay": 0.1}),
    "ftml": combined({"learning_rate": 0.05}, {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3}),
    "adagrad": combined({"learning_rate": 0.1}, {"eps": 1e-2}),
    "adadelta": combined({}, {"rho": 0.7, "epsilon": 1e-3}),
    "rmsprop": combined(
        {"learning_rate": 0.05},
        {"gamma1": 0.7, "epsilon": 1e-2, "clip_weights": 0.8},
        {"learning_rate": 0.05, "centered": True},
        {"centered": True, "gamma1": 0.7, "gamma2": 0.5, "clip_weights": 0.8},
    ),
    "ftrl": combined({}, {"lamda1": 0.1, "beta": 0.5, "learning_rate": 0.5}),
    "lars": combined(
        {"learning_rate": 1.0, "eta": 0.1},
        {"learning_rate": 1.0, "momentum": 0.9, "eta": 0.1, "eps": 0.01},
        {"learning_rate": 1.0, "momentum": 0.9, "momentum_correction": False},
    ),
    "lamb": combined(
        {"learning_rate": 0.05},
        {"bias_correction": False, "epsilon": 1e-3},
        {"lower_bound": 0.5, "upper_bound": 1.0, "beta1": 0.8},
    ),
    "lbsgd": combined(
        {"learning_rate": 0.1},
        {"learning_rate": 0.1, "momentum": 0.9, "batch_scale": 4, "updates_per_epoch": 3},
        {"batch_scale": 3, "warmup_strategy": "power2", "updates_per_epoch": 4},
        {"batch_scale": 2, "warmup_strategy": "sqrt", "updates_per_epoch": 2, "begin_epoch": 1},
        {"warmup_strategy": "lars", "momentum": 0.5, "batch_scale": 2},
    ),
    "groupadagrad": combined({"learning_rate": 0.1}, {"eps": 1e-2}),
}


def data(name):
    """Return the weights at the start and all gradients, as float32 that float16 holds, too."""
    random = np.random.RandomState(sum(map(ord, name)))
    shapes = [(4, 3), (2, 5), (5, 1)] if name == "groupadagrad" else SHAPES
    rounded = [random.normal(size=s).astype("float16").astype("float32") for s in shapes]
    grads = [
        [random.normal(scale=0.7, size=s).astype("float16").astype("float32") for s in shapes]
        for _ in range(STEPS)
    ]
    return rounded, grads


def supported(name, setting):
    """Return whether MXNet can do it.

    GroupAdaGrad has no decay. With a scheduler, LBSGD's first parameter lags one update behind
    the others, by accident.
    """
    without = {"groupadagrad": "wd", "lbsgd": "schedule"}
    return without.get(name) not in setting


def make(mx, name, setting):
    """Make an optimizer from a row of the table."""
    kwargs = dict(setting)
    kwargs.pop("float16", None)
    multipliers = kwargs.pop("lr_mult", {}), kwargs.pop("wd_mult", {})
    if kwargs.pop("schedule", False):
        lr = kwargs.get("learning_rate", 0.02)
        kwargs["learning_rate"] = lr
        kwargs["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(step=5, factor=0.5, base_lr=lr)
    made = mx.optimizer.create(name, param_idx2name=NAMES, **kwargs)
    if multipliers[0]:
        made.set_lr_mult(multipliers[0])
        made.set_wd_mult(multipliers[1])
    return made


def run(mx, name, setting, in_lists=True):
    """Take all steps and return (updater, weights after steps 1, 5 and 20)."""
    updater = mx.optimizer.get_updater(make(mx, name, setting))
    start, grads = data(name)
    dtype = "float16" if setting.get("float16") else "float32"
    weights = [mx.nd.array(w, dtype=dtype) for w in start]
    seen = []
    for number, step in enumerate(grads, 1):
        slopes = [mx.nd.array(g, dtype=dtype) for g in step]
        if in_lists:
            updater(list(NAMES), slopes, weights)
        else:
            for i in NAMES:
                updater(i, slopes[i], weights[i])
        if number in (1, 5, STEPS):
            seen.append([w.asnumpy().copy() for w in weights])
    return updater, seen


def flat_states(updater):
    """Return the arrays of all states, in order, as one vector."""

    def walk(state):
        if isinstance(state, tuple | list):
            for part in state:
                yield from walk(part)
        elif state is not None:
            yield state.asnumpy().astype("float32").ravel()

    parts = [p for i in sorted(updater.states) for p in walk(updater.states[i])]
    return np.concatenate(parts) if parts else np.zeros(0, "float32")


def rows():
    """Return every (name, setting) of the table."""
    return [(n, s) for n, settings in OPTIMIZERS.items() for s in settings if supported(n, s)]


def main():
    """Write optimizers.npz and the .states files."""
    import mxnet as mx

    arrays = {}
    for number, (name, setting) in enumerate(rows()):
        updater, seen = run(mx, name, setting)
        weights = [w.astype("float32").ravel() for step in seen for w in step]
        arrays[f"{number}_weights"] = np.concatenate(weights)
        arrays[f"{number}_states"] = flat_states(updater)
    arrays["rows"] = np.array([json.dumps([n, sorted(map(str, s.items()))]) for n, s in rows()])
    np.savez_compressed(DATA / "optimizers.npz", **arrays)
    folder = DATA / "states"
    folder.mkdir(exist_ok=True)
    for name, setting in (
        ("sgd", {"learning_rate": 0.1, "momentum": 0.9}),
        ("adam", {"learning_rate": 0.05, "schedule": True}),
        ("sgd", {"momentum": 0.9, "float16": True, "multi_precision": True}),
    ):
        updater, _ = run(mx, name, setting)
        kind = f"{name}{'-float16' if setting.get('float16') else ''}"
        (folder / f"{kind}.states").write_bytes(updater.get_states(False))
        (folder / f"{kind}-optimizer.states").write_bytes(updater.get_states(True))
        np.save(folder / f"{kind}.npy", flat_states(updater))
    print(len(rows()), "runs")


if __name__ == "__main__":
    main()
