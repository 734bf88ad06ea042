"""Programs that seed NumPy and Python, as people wrote them: each returns numbers of its run.

They run in MXNet 1.9.1 (see ``record_seeded_programs.py``) and in the tests.
"""

from __future__ import annotations

import random
import zlib

import numpy as np

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def run(mx, name):
    """Return the numbers of a program, as lists."""
    np.random.seed(7)
    random.seed(7)
    return [np.asarray(x, "float64").ravel().tolist() for x in PROGRAMS[name](mx)]


def filler(mx):
    """Return an initializer that takes its numbers from NumPy, by the name of the parameter."""

    class ByName(mx.init.Initializer):
        def _init_weight(self, name, arr):
            rng = np.random.RandomState(zlib.crc32(str(name).encode()))
            arr[:] = rng.uniform(-0.3, 0.3, arr.shape)

    return ByName()


@program
def sentences_in_buckets(mx):
    """The LSTM of the bucketing example: order of batches, perplexity of each epoch."""
    rng = np.random.RandomState(3)
    words = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "fast", "home"]
    lines = [[words[i] for i in rng.randint(0, 10, rng.randint(2, 9))] for _ in range(60)]
    coded, vocab = mx.rnn.encode_sentences(lines, invalid_label=0, start_label=1)
    data = mx.rnn.BucketSentenceIter(coded, 4, buckets=[4, 8], invalid_label=0)
    stack = mx.rnn.SequentialRNNCell()
    for i in range(2):
        stack.add(mx.rnn.LSTMCell(num_hidden=6, prefix="lstm_l%d_" % i))

    def sym_gen(seq_len):
        label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
        embed = mx.sym.Embedding(
            mx.sym.Variable("data"), input_dim=len(vocab) + 1, output_dim=5, name="embed"
        )
        stack.reset()
        outputs, _ = stack.unroll(seq_len, inputs=embed, merge_outputs=True)
        pred = mx.sym.Reshape(outputs, shape=(-1, 6))
        pred = mx.sym.FullyConnected(pred, num_hidden=len(vocab) + 1, name="pred")
        return mx.sym.SoftmaxOutput(pred, label, name="softmax"), ("data",), ("softmax_label",)

    model = mx.mod.BucketingModule(sym_gen, default_bucket_key=data.default_bucket_key)
    model.bind(data.provide_data, data.provide_label)
    model.init_params(filler(mx))
    model.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.5})
    metric = mx.metric.Perplexity(0)
    numbers = []
    for _ in range(2):
        data.reset()
        metric.reset()
        for batch in data:
            model.forward_backward(batch)
            model.update_metric(metric, batch.label)
            model.update()
            numbers.append([batch.bucket_key, *batch.data[0].asnumpy()[:, 0]])
        numbers.append([metric.get()[1]])
    return numbers


@program
def arrays_to_feed_forward(mx):
    """`FeedForward.create` with arrays: those of the evaluation are shuffled and roll over."""
    rng = np.random.RandomState(0)
    x, y = rng.rand(50, 6), rng.randint(0, 3, 50)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), name="fc1", num_hidden=8)
    net = mx.sym.Activation(net, act_type="sigmoid")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")
    seen = []
    model = mx.model.FeedForward.create(
        net,
        X=x,
        y=y,
        eval_data=(x[:14], y[:14]),
        num_epoch=3,
        learning_rate=0.5,
        numpy_batch_size=4,
        initializer=filler(mx),
        batch_end_callback=lambda p: seen.append([p.eval_metric.get()[1]]),
        eval_end_callback=lambda p: seen.append([p.eval_metric.get()[1], p.nbatch]),
    )
    return [*seen, model.predict(x[:3]), [np.random.randint(1000)]]


@program
def shuffled_loader(mx):
    """A Gluon loop over a shuffled loader, with a line of text for each step."""
    rng = np.random.RandomState(0)
    x = rng.rand(40, 5).astype("float32")
    dataset = mx.gluon.data.ArrayDataset(x, x[:, :3].argmax(1).astype("int32"))
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(8, activation="tanh"), mx.gluon.nn.Dense(3))
    net.initialize(filler(mx))
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = mx.gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    numbers = []
    for _ in range(2):
        for data, label in mx.gluon.data.DataLoader(dataset, 8, shuffle=True):
            with mx.autograd.record():
                value = loss(net(data), label)
            value.backward()
            trainer.step(8)
            line = "loss %.6f" % value.mean().asnumpy()
            numbers.append([float(line.split()[1]), *label.asnumpy()])
    return numbers


@program
def tied_language_model(mx):
    """The word language model: weights shared by embedding and output, gradients clipped."""
    rng = np.random.RandomState(1)
    tokens = mx.nd.array(rng.randint(0, 9, 120), dtype="int32").reshape((4, 30)).T
    net = mx.gluon.nn.Sequential(prefix="lm_")
    with net.name_scope():
        encoder = mx.gluon.nn.Embedding(9, 6)
        layer = mx.gluon.rnn.LSTM(6, 2, input_size=6)
        decoder = mx.gluon.nn.Dense(9, in_units=6, params=encoder.params)
        net.add(encoder, layer, decoder)
    net.initialize(filler(mx))
    params = net.collect_params()
    trainer = mx.gluon.Trainer(params, "sgd", {"learning_rate": 1.0})
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    hidden = layer.begin_state(func=mx.nd.zeros, batch_size=4)
    numbers = []
    for at in range(0, 25, 5):
        data, target = tokens[at : at + 5], tokens[at + 1 : at + 6].reshape((-1,))
        hidden = [h.detach() for h in hidden]
        with mx.autograd.record():
            output, hidden = layer(encoder(data), hidden)
            value = loss(decoder(output.reshape((-1, 6))), target)
            value.backward()
        grads = [p.grad() for p in params.values()]
        numbers.append([mx.gluon.utils.clip_global_norm(grads, 0.3)])
        trainer.step(20)
        numbers.append(value.asnumpy())
    return numbers


@program
def gram_matrices(mx):
    """The neural style example: gradients of an executor go into its picture."""
    rng = np.random.RandomState(0)
    layer = mx.sym.Convolution(
        mx.sym.Variable("data"), num_filter=4, kernel=(3, 3), pad=(1, 1), name="conv1_1"
    )
    flat = mx.sym.Reshape(mx.sym.Activation(layer, act_type="relu"), target_shape=(4, 80))
    gram = mx.sym.FullyConnected(flat, flat, no_bias=True, num_hidden=4)
    loss = mx.sym.sum(mx.sym.square(mx.sym.Variable("target") - gram))
    shapes, _, _ = loss.infer_shape(data=(1, 3, 8, 10), target=(4, 4))
    names = loss.list_arguments()
    args = {n: mx.nd.array(rng.randn(*s) * 0.3) for n, s in sorted(zip(names, shapes, strict=True))}
    grad = mx.nd.zeros((1, 3, 8, 10))
    executor = loss.bind(mx.cpu(), args=args, args_grad={"data": grad}, grad_req={"data": "write"})
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.9)
    optimizer = mx.optimizer.NAG(learning_rate=1e-3, momentum=0.9, lr_scheduler=schedule)
    state = optimizer.create_state(0, args["data"])
    numbers = []
    for _ in range(4):
        executor.forward(is_train=True)
        executor.backward([mx.nd.ones((1,)) / 80])
        norm = mx.nd.norm(grad).asscalar()
        grad[:] *= 1 / norm
        optimizer.update(0, args["data"], grad, state)
        numbers.append([norm, executor.outputs[0].asnumpy().sum()])
    return numbers


@program
def seeded_augmenters(mx):
    """Random crops, flips and colors of `mx.image` under the seeds."""
    rng = np.random.RandomState(0)
    picture = mx.nd.array(rng.randint(0, 255, (30, 40, 3)), dtype="uint8")
    steps = mx.image.CreateAugmenter(
        (3, 20, 20), rand_crop=True, rand_mirror=True, brightness=0.2, contrast=0.2, pca_noise=0.1
    )
    numbers = []
    for _ in range(4):
        changed = picture
        for step in steps:
            changed = step(changed)
        numbers.append(changed[0, :2].asnumpy())
    return numbers
