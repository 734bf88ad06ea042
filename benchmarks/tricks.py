"""What each trick for speed gains, on and off: ``python -m benchmarks.tricks``.

Two processes run the same work alternately, one with the trick switched off; the figure is the time
with it divided by the time without, in processor time of one thread. A processor with AVX-512 is
measured twice, the second time confined to AVX2.
"""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from dataclasses import dataclass

import torch

from benchmarks.cases.training import _OPTIMIZER_MX
from benchmarks.rows.models import MX
from benchmarks.side import Failed, Side
from mxnet.graph.optimize import NAMES

ROOT = pathlib.Path(__file__).parent.parent
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
CALM = {"BENCHMARK_CLOCK": "processor", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SECONDS, MIN_ROUNDS, MAX_ROUNDS = 1.0, 3, 60  # of one pair of processes


@dataclass(frozen=True)
class Trick:
    """A way to be faster, and the work that shows it.

    Parameters
    ----------
    name : what is done; the name of a pass, if it is one.
    work : what is measured, in words.
    setup, statement : the same as programs.
    files : where the trick is, below ``mxnet``; their lines are counted.
    test : the test that compares results with and without.
    without : code that switches it off, where no variable does.
    settings : variables that switch it off, where it is not a pass.
    number : how often the statement runs in one measurement.
    """

    name: str
    work: str
    setup: str
    statement: str
    files: tuple[str, ...]
    test: str
    without: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    number: int = 1

    def off(self) -> dict[str, str]:
        """Return the variables that switch the trick off."""
        if self.name not in NAMES:
            return dict(self.settings)
        return {"MXNET_GRAPH_PASSES": ",".join(name for name in NAMES if name != self.name)}

    def lines(self) -> int:
        """Return how many lines its files have."""
        return sum(len((ROOT / "mxnet" / f).read_text().splitlines()) for f in self.files)


_RESNET = MX + "net, x = ready(zoo.resnet18_v1(), 1, 3, 224, 224)"
_MOBILE = MX + "net, x = ready(zoo.mobilenet_v2_1_0(), 1, 3, 224, 224)"
_CHAIN = """
import mxnet as mx
s = mx.sym.var("x")
for _ in range(4):
    s = mx.sym.exp(mx.sym.tanh(s * 0.5))
e = s.bind(mx.cpu(), {"x": mx.nd.ones((5000, 1000))}, grad_req="null")
def run():
    e.forward()[0].wait_to_read()
"""
_ATTENTION = """
import mxnet as mx
q = [mx.nd.random.normal(shape=(heads, length, 64)) for _ in range(3)]
a, b, c = (mx.sym.var(n) for n in "abc")
scores = mx.sym.softmax(mx.sym.batch_dot(a, b, transpose_b=True) * 0.125)
e = mx.sym.batch_dot(scores, c).bind(mx.cpu(), dict(zip("abc", q)), grad_req="null")
def run():
    e.forward()[0].wait_to_read()
"""
_SLICES = """
import mxnet as mx
x, w = mx.sym.var("x"), mx.sym.var("w")
parts = mx.sym.split(x, num_outputs=35, axis=0, squeeze_axis=True)
s = mx.sym.concat(*[mx.sym.FullyConnected(p, w, no_bias=True, num_hidden=512) for p in parts], dim=0)
e = s.bind(mx.cpu(), {"x": mx.nd.ones((35, 4, 256)), "w": mx.nd.ones((512, 256))}, grad_req="null")
def run():
    e.forward()[0].wait_to_read()
"""
_MLP = (
    MX
    + """
net = nn.HybridSequential()
for _ in range(8):
    net.add(nn.Dense(64, activation="relu"), nn.Dropout(0.1))
net, x = ready(net, 16, 64)
"""
)


def _convolutions(channels: int, batch: int, size: int) -> str:
    return f"""{MX}
net = nn.HybridSequential()
for _ in range(8):
    net.add(nn.Conv2D({channels}, 3, padding=1, in_channels={channels}))
net, x = ready(net, {batch}, {channels}, {size}, {size})
"""


def _dense(rows: int) -> str:
    return f"""{MX}
net = nn.HybridSequential()
for _ in range(8):
    net.add(nn.Dense(2048, in_units=2048))
net, x = ready(net, {rows}, 2048)
"""


_STEP = (
    MX
    + """
net = nn.HybridSequential()
net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(10))
step = trained(*ready(net, 64, 784))
for _ in range(5):
    step()
"""
)
_NORMALIZED = (
    MX
    + """
net = nn.HybridSequential()
for _ in range(8):
    net.add(nn.Dense(64), nn.BatchNorm())
step = squared(*ready(net, 16, 64))
for _ in range(5):
    step()
"""
)
_OPTIMIZER = _OPTIMIZER_MX.format(name="adam", options="")
_TRAINED_CHAIN = """
import mxnet as mx
s = mx.sym.var("x")
for _ in range(250):
    s = mx.sym.tanh(s + 1)
e = s.simple_bind(mx.cpu(), x=(8, 8))
head = mx.nd.ones((8, 8))
def step():
    e.forward(is_train=True)
    e.backward(head)
for _ in range(5):
    step()
"""
_MIDDLE = _CHAIN.replace("(5000, 1000)", "(400, 1000)")
_ARITHMETIC = "import mxnet as mx; a = mx.nd.ones((10000, 1000)); b = a + 1"
_SMALL = "import mxnet as mx; a = mx.nd.ones((10, 10)); b = a + 1"
_PREDICT = "predict(net, x)"

_CONVOLUTIONS = ("graph/passes/convolutions.py", "ops/fused/convolution.py")
_PASSES = "tests/graph/test_optimize.py::test_networks_compute_the_same_with_and_without_passes"
_RECURRENT = ("graph/passes/recurrent.py", "ops/fused/recurrent.py")

TRICKS = (
    Trick(
        "freed memory is kept", "sum of two arrays of 10 million", _ARITHMETIC,
        "(a + b).wait_to_read()", ("_process/memory.py",), "tests/_process/test_memory.py::test_import_does_not_change_process_state",
        settings=(("MXNET_KEEP_FREED_MEMORY", "0"),),
    ),
    Trick(
        "call cache", "exp of 100 elements", _SMALL, "mx.nd.exp(a)",
        ("runtime/calls.py",), "tests/grammar/test_equal_paths.py::test_all_call_paths_return_equal_values_and_dtypes",
        without="import mxnet.runtime.calls as c; c._remember = lambda *_: None\n", number=2000,
    ),
    Trick(
        "fused optimizers", "Adam over 160 parameters", _OPTIMIZER, "update(numbers, grads, weights)",
        ("ops/training/fused.py",), "tests/ops/training/test_updates.py::test_update_operators_equal_multi_tensor_rules",
        without="import mxnet.ops.training.fused as f; f.fused_optimizers = None\n", number=20,
    ),
    Trick(
        "captured steps", "forward and backward through 250 small operators", _TRAINED_CHAIN, "step()",
        ("runtime/capture/kernels.py", "runtime/capture/step.py", "runtime/capture/replay.py"),
        "tests/grammar/test_repeated_steps.py::test_captured_steps_equal_first_steps",
        without="from mxnet.runtime.capture.replay import Repetition; Repetition.is_possible = lambda *_: False\n", number=5,
    ),
    Trick("specialize", "ResNet-18 b1", _RESNET, _PREDICT, ("runtime/program.py",), _PASSES),
    Trick("in_place", "12 operators on 400,000 elements", _MIDDLE, "run()", ("runtime/program.py",), _PASSES, number=5),
    Trick("remove_identities", "8 Dense layers of 64 units", _MLP, _PREDICT, ("graph/passes/simplify.py",), _PASSES, number=100),
    Trick("pack_convolutions", "ResNet-18 b1", _RESNET, _PREDICT, _CONVOLUTIONS, _PASSES),
    Trick("fold_batch_norm", "ResNet-18 b1", _RESNET, _PREDICT, _CONVOLUTIONS, _PASSES),
    Trick("fuse_pointwise", "MobileNetV2 b1", _MOBILE, _PREDICT, _CONVOLUTIONS, _PASSES),
    Trick("drop_finite_checks", "MobileNetV2 b1", _MOBILE, _PREDICT, _CONVOLUTIONS, _PASSES),
    Trick(
        "oneDNN graph", "MobileNetV2 b1", _MOBILE + "\nnet.hybridize(backend=engine); predict(net, x)", _PREDICT,
        ("runtime/onednn_graph.py",), "tests/runtime/test_onednn_graph.py::test_onednn_graph_uses_updated_parameters",
        without="engine = None\n",
    ),
    Trick("packed weights of dense layers", "8 of 2048 x 2048, 16 rows", _dense(rows=16), _PREDICT, ("ops/fused/dense.py",),
        "tests/ops/fused/test_prepared_dense.py::test_prepacked_dense_equals_plain_dense",
        without="import mxnet.ops.fused.dense as d; d.MIN_WEIGHT = 1 << 60\n", number=3),
    Trick("of them: no packing below 4 rows", "the same, 2 rows", _dense(rows=2), _PREDICT, ("ops/fused/dense.py",),
        "tests/ops/fused/test_prepared_dense.py::test_weights_are_prepacked_for_few_batch_sizes_above_one",
        without="import mxnet.ops.fused.dense as d; d.MIN_ROWS = 1\n", number=5),
    Trick("no packing of small convolutions", "8 of 16 channels, 16 x 16", _convolutions(channels=16, batch=1, size=16), _PREDICT,
        _CONVOLUTIONS, "tests/ops/fused/test_convolution.py::test_convolution_with_all_fused_steps",
        without="import mxnet.ops.fused.convolution as c; c.MIN_MULTIPLICATIONS = 0\n", number=20),
    Trick("channels_last", "training step of ResNet-18 b4", MX + "step = trained(*ready(zoo.resnet18_v1(), 4, 3, 112, 112))", "step()",
        _CONVOLUTIONS, "tests/ops/fused/test_convolution.py::test_channels_last_convolution_equals_plain_convolution"),
    Trick("of them: large weights stay", "training step of 8 convolutions, 256 channels, 8 x 8",
        _convolutions(channels=256, batch=2, size=8) + "step = squared(net, x)", "step()",
        ("ops/fused/convolution.py",), "tests/ops/fused/test_channels_last.py::test_channels_last_format_of_data_is_kept",
        without="import mxnet.ops.fused.convolution as c; c.MIN_RATIO = c.MIN_RATIO_OF_LAST = 0\n", number=1),
    Trick("of them: few windows are multiplied", "training step of 8 convolutions, 512 channels, 2 x 2",
        _convolutions(channels=512, batch=8, size=2) + "step = squared(net, x)", "step()",
        ("ops/fused/convolution.py",), "tests/ops/fused/test_channels_last.py::test_convolution_with_few_windows_runs_as_matmul",
        without="import mxnet.ops.fused.convolution as c; c.MAX_ROWS = 0\n"),
    Trick("fuse_attention", "12 heads of 512 x 512", "heads, length = 12, 512\n" + _ATTENTION, "run()",
        ("graph/passes/composites.py", "ops/fused/attention.py"), "tests/ops/fused/test_attention.py::test_batch_dot_attention_is_fused", number=3),
    Trick("of it: not below 32 x 32", "64 heads of 16 x 16", "heads, length = 64, 16\n" + _ATTENTION, "run()",
        ("graph/passes/composites.py",), "tests/ops/fused/test_attention.py::test_short_sequences_are_not_fused",
        without="import mxnet.graph.passes.composites as c; c.MIN_SCORES = 0\n", number=50),
    Trick("unpack_rnn", "prediction of an LSTM layer, 5 steps of 512 units",
        MX + "net, x = ready(rnn.LSTM(512), 5, 1, 512)", _PREDICT, _RECURRENT, "tests/ops/fused/test_recurrent.py::test_recurrent_steps_with_separate_weights_equal_rnn"),
    Trick("fuse_recurrent", "training step of an LSTM cell, 35 steps of 200 units", MX + "step = squared(*ready(Unrolled(), 35, 32, 200))", "step()",
        _RECURRENT, "tests/graph/test_fuse_recurrent.py::test_fused_cells_equal_unfused_results_and_gradients"),
    Trick("batch_projections", "35 products of slices by one weight", _SLICES, "run()", ("graph/passes/recurrent.py",),
        "tests/graph/test_optimize.py::test_input_projections_of_unrolled_cells_are_batched", number=20),
    Trick("fuse_likelihood", "training step of an MLP, hybridized", _STEP, "step()",
        ("graph/passes/composites.py", "ops/fused/log_likelihood.py"), "tests/ops/fused/test_log_likelihood.py::test_softmax_cross_entropy_loss_is_fused_in_training", number=50),
    Trick("join_statistics", "training step of 8 x (Dense, BatchNorm)", _NORMALIZED, "step()",
        ("graph/passes/statistics.py", "ops/fused/batch_norm.py"), "tests/ops/fused/test_batch_norm.py::test_joint_statistics_updates_equal_separate_updates", number=20),
    Trick("block_pointwise", "12 operators on 5 million elements", _CHAIN, "run()", ("graph/passes/segments.py",),
        "tests/runtime/test_pointwise_blocks.py::test_chain_with_two_inputs"),
)  # fmt: skip


def measure(trick: Trick, instructions: dict[str, str]) -> tuple[float, float]:
    """Return the best seconds with and without a trick."""
    on = ("engine = 'onednn_graph'\n" + trick.setup, trick.statement)
    off = (trick.without + trick.setup if trick.without else on[0], trick.statement)
    shared = {**CALM, **instructions}
    sides = (
        (Side(sys.executable, ROOT, shared), on),
        (Side(sys.executable, ROOT, {**shared, **trick.off()}), off),
    )
    best = [float("inf")] * 2
    try:
        for side, program in sides:
            side.send(trick.name, program, 1)
        for side, _ in sides:
            side.receive()
        end, rounds = time.monotonic() + SECONDS, 0
        while rounds < MIN_ROUNDS or (time.monotonic() < end and rounds < MAX_ROUNDS):
            for i, (side, program) in enumerate(sides):
                best[i] = min(best[i], side.measure(trick.name, program, trick.number))
            rounds += 1
    finally:
        for side, _ in sides:
            side.close()
    return best[0], best[1]


def columns() -> dict[str, dict[str, str]]:
    """Return the sets of instructions to measure, with the variables that confine to them."""
    native = torch.backends.cpu.get_cpu_capability()
    return {"AVX2": AVX2, "AVX-512": {}} if native == "AVX512" else {native: {}}


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--pairs", type=int, default=1, help="of processes; the median is shown")
    parser.add_argument("--instructions", default="", help="AVX2 or AVX-512 alone")
    chosen = parser.parse_args()
    sets = {k: v for k, v in columns().items() if chosen.instructions in ("", k)}
    heads = ["trick", "work", *sets, "lines", "test"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    start = time.monotonic()
    for trick in TRICKS:
        if chosen.only not in trick.name:
            continue
        cells = []
        for instructions in sets.values():
            try:
                found = [measure(trick, instructions) for _ in range(chosen.pairs)]
                on, off = sorted(found, key=lambda pair: pair[0] / pair[1])[len(found) // 2]
                cells.append(f"{on / off:.2f} ({off * 1e3:.4g} → {on * 1e3:.4g} ms)")
            except Failed as error:
                cells.append(f"failed: {error}")
        row = [trick.name, trick.work, *cells, str(trick.lines()), f"`{trick.test}`"]
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"\n{time.monotonic() - start:.0f} s on {os.cpu_count()} cores", file=sys.stderr)


if __name__ == "__main__":
    main()
