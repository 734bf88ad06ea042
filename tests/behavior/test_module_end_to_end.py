"""End-to-end training with modules: data, fit, resume, results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx


def lenet(dropout=0.0):
    net = mx.sym.Variable("data")
    net = mx.sym.Convolution(net, kernel=(3, 3), num_filter=16, pad=(1, 1), name="conv1")
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="bn1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    net = mx.sym.Convolution(net, kernel=(3, 3), num_filter=32, name="conv2")
    net = mx.sym.Activation(net, act_type="relu", name="relu2")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=64, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu3")
    if dropout:
        net = mx.sym.Dropout(net, p=dropout)
    net = mx.sym.FullyConnected(net, num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def digits():
    datasets = pytest.importorskip("sklearn.datasets")
    data = datasets.load_digits()
    images = (data.images / 16.0).astype("float32")[:, None]
    order = np.random.default_rng(3).permutation(len(images))
    return images[order], data.target[order].astype("float32")


@pytest.mark.slow
def test_lenet_training_on_digits_reaches_accuracy(tmp_path):
    mx.random.seed(1)
    images, labels = digits()
    train = mx.io.NDArrayIter(images[:1400], labels[:1400], 50, shuffle=True)
    test = mx.io.NDArrayIter(images[1400:], labels[1400:], 50)
    mod = mx.mod.Module(lenet())
    mod.fit(
        train,
        eval_data=test,
        optimizer="sgd",
        optimizer_params={"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-4},
        initializer=mx.init.Xavier(),
        num_epoch=12,
        epoch_end_callback=mx.callback.do_checkpoint(str(tmp_path / "lenet")),
    )
    predicted = mod.predict(test).asnumpy()
    answers = predicted.argmax(axis=1)
    assert len(answers) == len(labels) - 1400  # without the padding
    assert (answers == labels[1400:]).mean() > 0.97

    again = mx.mod.Module.load(str(tmp_path / "lenet"), 12)
    again.bind(test.provide_data, test.provide_label, for_training=False)
    np.testing.assert_allclose(again.predict(test).asnumpy(), predicted, rtol=1e-5, atol=1e-6)


def sentences(count=400):
    """Sentences of a small language: each word is followed by one of two others."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        words = [int(rng.integers(1, 9))]
        for _ in range(int(rng.choice([4, 7, 10])) - 1):
            words.append((words[-1] * 2 + int(rng.integers(0, 2))) % 8 + 1)
        made.append(words)
    return made


def language_model(stack):
    def sym_gen(length):
        data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        embed = mx.sym.Embedding(data, input_dim=9, output_dim=16, name="embed")
        stack.reset()
        outputs, _ = stack.unroll(length, inputs=embed, merge_outputs=True)
        flat = mx.sym.Reshape(outputs, shape=(-1, 32))
        pred = mx.sym.FullyConnected(flat, num_hidden=9, name="pred")
        net = mx.sym.SoftmaxOutput(
            pred, mx.sym.Reshape(label, shape=(-1,)), name="softmax",
            use_ignore=True, ignore_label=0, normalization="valid",
        )  # fmt: skip
        return net, ("data",), ("softmax_label",)

    return sym_gen


def test_bucketing_lstm_training_lowers_perplexity(tmp_path):
    mx.random.seed(2)
    data = mx.rnn.BucketSentenceIter(sentences(), 20, buckets=[4, 7, 10], invalid_label=0)
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(32, prefix="lstm_l0_"))
    mod = mx.mod.BucketingModule(language_model(stack), data.default_bucket_key)
    metric = mx.metric.Perplexity(ignore_label=0)
    seen = []
    mod.fit(
        data,
        eval_metric=metric,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.02, "rescale_grad": 1.0},
        initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
        num_epoch=5,
        batch_end_callback=lambda p: seen.append(p.eval_metric.get()[1]),
        epoch_end_callback=mx.rnn.do_rnn_checkpoint(stack, str(tmp_path / "lm")),
    )
    assert set(mod._buckets) == {4, 7, 10}
    assert seen[0] > 6  # untrained, over 8 words
    assert seen[-1] < 2.6  # two words are possible at each step
    _, args, _ = mx.rnn.load_rnn_checkpoint(stack, str(tmp_path / "lm"), 5)
    np.testing.assert_array_equal(
        args["lstm_l0_i2h_weight"].asnumpy(), mod.get_params()[0]["lstm_l0_i2h_weight"].asnumpy()
    )


@pytest.mark.parametrize("kvstore", ["local", "device"])
def test_training_on_two_contexts_equals_one_context(kvstore):
    def trained(context):
        rng = np.random.default_rng(0)
        data = mx.io.NDArrayIter(rng.random((40, 6)), rng.integers(0, 3, 40), 8)
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=5, name="fc1")
        net = mx.sym.Activation(net, act_type="tanh")
        net = mx.sym.FullyConnected(net, num_hidden=3, name="fc2")
        mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=context)
        mx.random.seed(0)
        mod.fit(
            data,
            kvstore=kvstore,
            initializer=mx.init.Xavier(),
            optimizer_params={"learning_rate": 0.5, "momentum": 0.9},
            num_epoch=3,
        )
        return {name: x.asnumpy() for name, x in mod.get_params()[0].items()}

    one, two = trained(mx.cpu()), trained([mx.cpu(0), mx.cpu(1)])
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-4, atol=1e-6)


class Killed(BaseException):
    pass


def run(prefix=None, kill_after=None, every=None, context=None, shuffle=True, epochs=3):
    """Train with all stateful components, optionally killed after some batches."""
    mx.random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    rng = np.random.default_rng(0)
    data = mx.io.NDArrayIter(
        rng.random((44, 1, 8, 8)).astype("f"), rng.integers(0, 10, 44), 8, shuffle=shuffle
    )
    mod = mx.mod.Module(lenet(dropout=0.3), context=context or mx.cpu())
    schedule = mx.lr_scheduler.FactorScheduler(step=4, factor=0.7, base_lr=0.01)
    metric = mx.metric.create(["acc", "ce"])
    count = 0

    def count_and_die(_):
        nonlocal count
        count += 1
        if count == kill_after:
            raise Killed

    try:
        mod.fit(
            data,
            eval_metric=metric,
            optimizer="adam",
            optimizer_params={"lr_scheduler": schedule, "learning_rate": 0.01},
            initializer=mx.init.Xavier(),
            num_epoch=epochs,
            batch_end_callback=count_and_die,
            resume=prefix,
            resume_every=every,
        )
    except Killed:
        return None
    params = {n: x.asnumpy() for part in mod.get_params() for n, x in part.items()}
    return params, metric.get_global()[1], schedule.base_lr


def assert_same(one, other):
    # Bit for bit, as `resume` promises: the same kernels run on arrays of the same shapes.
    for name, value in one[0].items():
        np.testing.assert_array_equal(other[0][name], value, err_msg=name)
    assert one[1:] == other[1:]


@pytest.fixture(scope="module")
def unbroken():
    return run()


@pytest.mark.parametrize("kill_after", [1, 3, 6, 8, 11, 17])
def test_killed_training_resumes_to_the_same_result(kill_after, tmp_path, unbroken):
    assert run(tmp_path / "r", kill_after, every=2) is None
    assert_same(unbroken, run(tmp_path / "r", every=2))


def test_repeatedly_killed_training_resumes_to_the_same_result(tmp_path, unbroken):
    for _ in range(20):
        finished = run(tmp_path / "r", kill_after=4, every=1)
        if finished:
            break
    assert_same(unbroken, finished)


def test_resume_of_a_finished_run_does_not_train(tmp_path, unbroken):
    run(tmp_path / "r")
    again = run(tmp_path / "r", kill_after=1)  # it would die in the first batch
    assert_same((unbroken[0],), (again[0],))


def test_resume_with_more_epochs_equals_uninterrupted_training(tmp_path, unbroken):
    run(tmp_path / "r", epochs=1)
    assert_same(unbroken, run(tmp_path / "r"))


def test_killed_training_on_two_contexts_resumes(tmp_path):
    both = [mx.cpu(0), mx.cpu(1)]
    assert run(tmp_path / "r", 8, every=3, context=both) is None
    assert_same(run(context=both), run(tmp_path / "r", every=3, context=both))


KILLS = """
import os, random, signal, sys, time
sys.path.insert(0, sys.argv[2])
from tests.behavior.test_module_end_to_end import run, np

def begin(prefix):
    child = os.fork()
    if not child:
        params, *_ = run(prefix, every=1, epochs=12)
        np.savez(prefix + "-done.npz", **params)
        os._exit(0)
    return child

def check(prefix):
    with np.load(prefix + "-done.npz") as done:
        for name, value in expected.items():
            np.testing.assert_array_equal(done[name], value, err_msg=name)

moments, kills, runs = random.Random(5), 0, 0
os.waitpid(begin(sys.argv[1] + "/whole"), 0)
with np.load(sys.argv[1] + "/whole-done.npz") as expected:
    expected = dict(expected)
while kills < 20:
    child = begin(f"{sys.argv[1]}/broken{runs}")
    time.sleep(moments.uniform(0.01, 0.5))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        kills += 1
        continue
    assert os.WEXITSTATUS(status) == 0
    check(f"{sys.argv[1]}/broken{runs}")
    runs += 1
os.waitpid(begin(f"{sys.argv[1]}/broken{runs}"), 0)
check(f"{sys.argv[1]}/broken{runs}")
child = begin(sys.argv[1] + "/first")
end = time.monotonic() + 120
while not os.path.exists(sys.argv[1] + "/first-resume.params"):
    assert time.monotonic() < end, "no checkpoint is written"
    time.sleep(0.001)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
assert not os.path.exists(sys.argv[1] + "/first-done.npz")
print("kills", kills, "finished runs", runs + 1)
"""
CONTINUED = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.behavior.test_module_end_to_end import run, np
params, *_ = run(sys.argv[1], every=1, epochs=12)
np.savez(sys.argv[1] + "-done.npz", **params)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_training_resumes_after_kills_at_random_times(tmp_path):
    """Kills within an epoch and within a checkpoint.

    The last run is killed at its first checkpoint and continued by a new interpreter.
    """
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    for program, folder in ((KILLS, tmp_path), (CONTINUED, tmp_path / "first")):
        command = [sys.executable, "-W", "ignore", "-c", program, str(folder), str(root)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        assert program is CONTINUED or "kills 20" in done.stdout
    with (
        np.load(tmp_path / "whole-done.npz") as whole,
        np.load(tmp_path / "first-done.npz") as continued,
    ):
        for name, value in whole.items():
            np.testing.assert_array_equal(continued[name], value, err_msg=name)
