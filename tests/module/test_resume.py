"""`fit(resume=...)`: what it restores, and when it raises."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.formats import tree_file
from mxnet.formats.checkpoints.state import get_random_states, set_random_states


class Killed(BaseException):
    pass


class NoisyIter(mx.io.DataIter):
    """A custom iterator that shuffles with NumPy and adds random noise."""

    def __init__(self, count=20, size=4):
        super().__init__(size)
        self.rows = np.arange(count * 3, dtype="float32").reshape(count, 3) / count
        self.order = np.arange(count)
        self.provide_data = [mx.io.DataDesc("data", (size, 3))]
        self.provide_label = [mx.io.DataDesc("softmax_label", (size,))]
        self.reset()

    def reset(self):
        np.random.shuffle(self.order)  # noqa: NPY002
        self.at = 0

    def next(self):
        if self.at >= len(self.order):
            raise StopIteration
        rows = self.order[self.at : self.at + self.batch_size]
        self.at += self.batch_size
        noise = np.random.rand(self.batch_size, 3)  # noqa: NPY002
        return mx.io.DataBatch(
            [mx.nd.array(self.rows[rows] + noise)], [mx.nd.array(rows % 4)], pad=0
        )


def net(hidden=4):
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=hidden, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.Dropout(fc, p=0.5), name="softmax")


def train(make_data, make_module, prefix=None, kill_after=None, every=1, optimizer="adam"):
    """Train like a script, optionally killed after some batches; return the parameters."""
    mx.random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    data, mod = make_data(), make_module()
    count = 0

    def die(_):
        nonlocal count
        count += 1
        if count == kill_after:
            raise Killed

    resuming = {} if prefix is None else {"resume": prefix, "resume_every": every}
    try:
        mod.fit(
            data,
            eval_metric="ce",
            kvstore="device",
            optimizer=optimizer,
            optimizer_params={"learning_rate": 0.05},
            initializer=mx.init.Xavier(),
            num_epoch=4,
            batch_end_callback=die,
            **resuming,
        )
    except Killed:
        return None
    return {n: x.asnumpy() for part in mod.get_params() for n, x in part.items()}


def bucketing():
    def sym_gen(length):
        embed = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=9, output_dim=4, name="embed")
        out, _ = mx.rnn.GRUCell(5).unroll(length, embed, merge_outputs=True)
        pred = mx.sym.FullyConnected(mx.sym.Reshape(out, shape=(-1, 5)), num_hidden=9, name="pred")
        label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(pred, label, name="softmax"), ["data"], ["softmax_label"]

    return mx.mod.BucketingModule(sym_gen, 5)


def sentences():
    rng = np.random.default_rng(0)
    lines = [list(rng.integers(1, 9, rng.choice([3, 5]))) for _ in range(40)]
    return mx.rnn.BucketSentenceIter(lines, 4, buckets=[3, 5], invalid_label=0)


def sequential():
    first = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="fc0")
    mod = mx.mod.SequentialModule()
    mod.add(mx.mod.Module(mx.sym.Dropout(first, p=0.2), label_names=[]))
    return mod.add(mx.mod.Module(net()), take_labels=True, auto_wiring=True)


def rolling():
    rng = np.random.default_rng(0)
    return mx.io.NDArrayIter(rng.random((18, 3)), rng.integers(0, 4, 18), 4, shuffle=True,
                             last_batch_handle="roll_over")  # fmt: skip


CASES = {
    "own iterator": (NoisyIter, lambda: mx.mod.Module(net())),
    "roll over": (rolling, lambda: mx.mod.Module(net())),
    "wrapped": (lambda: mx.io.ResizeIter(NoisyIter(), 3), lambda: mx.mod.Module(net())),
    "wrapped and going on": (
        lambda: mx.io.ResizeIter(NoisyIter(), 3, reset_internal=False),
        lambda: mx.mod.Module(net()),
    ),
    "buckets": (sentences, bucketing),
    "sequential": (NoisyIter, sequential),
    "compressed": (
        NoisyIter,
        lambda: mx.mod.Module(
            net(),
            context=[mx.cpu(0), mx.cpu(1)],
            compression_params={"type": "2bit", "threshold": 0.01},
        ),
    ),
    "apart": (NoisyIter, lambda: mx.mod.Module(net(), context=[mx.cpu(0), mx.cpu(1)])),
}


@pytest.mark.parametrize("kill_after", [2, 9])
@pytest.mark.parametrize("case", CASES)
def test_killed_training_of_every_kind_resumes_bit_for_bit(case, kill_after, tmp_path):
    whole = train(*CASES[case])
    assert train(*CASES[case], tmp_path / "r", kill_after) is None
    again = train(*CASES[case], tmp_path / "r")
    # Bit for bit, as `resume` promises: the same kernels run on arrays of the same shapes.
    for name, value in whole.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)


@pytest.mark.parametrize("optimizer", ["sgd", "nadam", "ftml", "signum", "adagrad", "lamb"])
def test_killed_training_resumes_with_every_optimizer(optimizer, tmp_path):
    case = CASES["own iterator"]
    whole = train(*case, optimizer=optimizer)
    assert train(*case, tmp_path / "r", 7, optimizer=optimizer) is None
    again = train(*case, tmp_path / "r", optimizer=optimizer)
    for name, value in whole.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)


def test_resume_with_a_different_network_raises(tmp_path):
    train(NoisyIter, lambda: mx.mod.Module(net()), tmp_path / "r")
    with pytest.raises(MXNetError, match=r"different network: 'arg:fc_bias' is 5 float32 here"):
        train(NoisyIter, lambda: mx.mod.Module(net(5)), tmp_path / "r")


def test_resume_with_a_different_number_of_devices_raises(tmp_path):
    train(NoisyIter, lambda: mx.mod.Module(net()), tmp_path / "r")
    with pytest.raises(MXNetError, match=r"of 1 device\(s\), this module has 2"):
        train(*CASES["apart"], tmp_path / "r")


def test_resume_from_a_damaged_file_raises(tmp_path):
    place = tmp_path / "r-resume.params"
    train(NoisyIter, lambda: mx.mod.Module(net()), tmp_path / "r")
    whole = place.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", whole[:-9]):
        place.write_bytes(damaged)
        with pytest.raises(MXNetError):
            train(NoisyIter, lambda: mx.mod.Module(net()), tmp_path / "r")
    mx.nd.save(str(place), {"fc_weight": mx.nd.ones(2)})
    with pytest.raises(FormatError, match="no description of a tree"):
        train(NoisyIter, lambda: mx.mod.Module(net()), tmp_path / "r")


def test_resume_every_without_a_prefix_raises():
    with pytest.raises(ValueError, match="resume=prefix"):
        mx.mod.Module(net()).fit(NoisyIter(), num_epoch=1, resume_every=3)


def test_resume_file_contains_the_symbol_and_parameters(tmp_path):
    train(NoisyIter, lambda: mx.mod.Module(net()), tmp_path / "r")
    state = tree_file.read(tmp_path / "r-resume.params")
    assert mx.sym.load_json(state["symbol"]).list_outputs() == ["softmax_output"]
    assert (state["epoch"], state["nbatch"]) == (4, 0)
    assert "tree" in mx.nd.load(str(tmp_path / "r-resume.params"))


def test_random_states_are_restored():
    import random

    before = get_random_states()
    first = (random.random(), np.random.rand(), mx.nd.random.uniform().asscalar())  # noqa: NPY002
    set_random_states(before)
    again = (random.random(), np.random.rand(), mx.nd.random.uniform().asscalar())  # noqa: NPY002
    assert first == again
