"""Short programs that use MXNet as packages written for it do, and programs with the packages.

Each function takes the module `mxnet` and returns arrays. `SEAMS` need nothing else; `PACKAGES`
need the package that they are named after (``pip install --no-deps gluoncv==0.10.5.post0`` and so
on).
"""

import tempfile

import numpy as np


def values(seed, *shape):
    """Return input values between 0 and 1."""
    return np.random.RandomState(seed).rand(*shape).astype("float32")


def fill(mx, net):
    """Give each parameter values that depend on its place only."""
    for seed, (name, parameter) in enumerate(net.collect_params().items()):
        rng, shape = np.random.RandomState(seed), parameter.shape
        if name.endswith(("gamma", "running_var", "moving_var")):
            host = rng.uniform(0.5, 1.5, shape)
        else:
            width = max(1, int(np.prod(shape[1:])))
            host = rng.standard_normal(shape) * (1 / np.sqrt(width) if len(shape) > 1 else 0.1)
        if parameter.grad_req != "null" or "running" in name or "moving" in name:
            parameter.set_data(mx.nd.array(host.astype("float32")))


def train(mx, net, loss, steps=3, optimizer="sgd", **options):
    """Return the losses of some steps."""
    options.setdefault("learning_rate", 0.05)
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, options, kvstore=None)
    losses = []
    for _ in range(steps):
        with mx.autograd.record():
            value = loss()
        value.backward()
        trainer.step(1)
        losses.append(value.mean())
    return losses


# -- seams ------------------------------------------------------------------------------------


def anchor_targets(mx):
    """Anchors in constants, cut to the feature map, matched with boxes (detectors of GluonCV)."""

    class Targets(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            grid = np.stack(np.meshgrid(np.arange(6), np.arange(6)), axis=-1)[None] * 8.0
            boxes = np.concatenate([grid - 6, grid + 6], axis=-1).astype("float32")
            with self.name_scope():
                self.anchors = self.params.get_constant("anchors", boxes.transpose(0, 3, 1, 2))

        def hybrid_forward(self, F, features, boxes, labels, anchors):
            cut = F.slice_like(anchors, features * 0, axes=(2, 3)).transpose((0, 2, 3, 1))
            cut = F.reshape(cut, (1, -1, 4))
            ious = F.contrib.box_iou(cut, boxes, format="corner")
            ious = F.squeeze(ious, axis=0).transpose((1, 0, 2))
            matches, _ = F.contrib.bipartite_matching(ious, threshold=1e-12, is_ascend=False)
            best = F.argmax(ious, axis=-1)
            chosen = F.where(F.max(ious, axis=-1) > 0.3, best, matches)
            labels = F.repeat(F.expand_dims(labels, 1), repeats=16, axis=1)
            names = F.pick(labels, F.maximum(chosen, 0), axis=-1) * (chosen >= 0)
            kept = F.contrib.box_nms(
                F.concat(F.expand_dims(chosen, 2), F.max(ious, axis=2, keepdims=True), cut, dim=2),
                overlap_thresh=0.45, topk=10, id_index=0, score_index=1, coord_start=2,
            )  # fmt: skip
            return matches, chosen, F.sum(names), kept.slice_axis(axis=1, begin=0, end=4)

    net = Targets()
    net.initialize()
    net.hybridize()
    boxes = mx.nd.array([[[4, 4, 20, 20], [2, 14, 14, 30]]])
    return list(net(mx.nd.zeros((1, 2, 4, 4)), boxes, mx.nd.array([[1, 2]])))


def transformer_step(mx):
    """Interleaved attention, `arange_like` masks, GELU and a registered optimizer (GluonNLP)."""

    class Cell(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.embed = mx.gluon.nn.Embedding(10, 8)
                self.project = mx.gluon.nn.Dense(24, flatten=False, in_units=8)
                self.grow = mx.gluon.nn.Dense(16, flatten=False, in_units=8)
                self.shrink = mx.gluon.nn.Dense(10, flatten=False, in_units=16)
                self.norm = mx.gluon.nn.LayerNorm(in_channels=8)

        def hybrid_forward(self, F, tokens, lengths):
            x = self.embed(tokens).transpose((1, 0, 2))
            steps = F.contrib.arange_like(tokens, axis=1)
            ones = F.ones_like(steps)
            mask = F.broadcast_lesser(F.reshape(steps, (1, -1)), F.reshape(lengths, (-1, 1)))
            mask = F.broadcast_mul(F.expand_dims(mask, 1), F.broadcast_axes(
                F.reshape(ones, (1, -1, 1)), axis=0, size=1))  # fmt: skip
            mask = F.repeat(mask, repeats=2, axis=0)
            qkv = self.project(x)
            scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2)
            scores = F.where(mask, scores, -1e18 * F.ones_like(scores))
            read = F.contrib.interleaved_matmul_selfatt_valatt(qkv, F.softmax(scores), heads=2)
            x = self.norm(x + F.SequenceMask(read, lengths, use_sequence_length=True))
            return self.shrink(F.LeakyReLU(self.grow(x), act_type="gelu")).transpose((1, 0, 2))

    net = Cell()
    net.initialize()
    fill(mx, net)
    net.hybridize()
    tokens, lengths = mx.nd.array([[1, 2, 3, 4], [5, 6, 0, 0]]), mx.nd.array([4, 2])
    first = net(tokens, lengths)
    loss = mx.gluon.loss.SoftmaxCELoss()
    weight = mx.nd.expand_dims(mx.nd.array([[1, 1, 1, 1], [1, 1, 0, 0]]), -1)
    losses = train(mx, net, lambda: loss(net(tokens, lengths), tokens, weight), 3, "adam")
    return [first, *losses]


def translation_loss(mx):
    """A loss for its value only, trained by the output layer in it (Sockeye 2)."""
    net = mx.gluon.nn.Dense(5, flatten=False, in_units=3)
    net.initialize()
    fill(mx, net)
    x, labels = mx.nd.array(values(0, 2, 3, 3)), mx.nd.array([[1, 2, 0], [3, 0, 0]])

    def loss():
        out = mx.nd.SoftmaxOutput(
            net(x), labels, ignore_label=0, use_ignore=True, normalization="valid",
            smooth_alpha=0.1, grad_scale=1.0, preserve_shape=True,
        )  # fmt: skip
        picked = mx.nd.log(mx.nd.pick(mx.nd.BlockGrad(out), labels, axis=-1)) * (labels != 0)
        return -mx.nd.sum(picked)

    return [*train(mx, net, loss, 3, "adam"), net.weight.data()]


def face_embedding(mx):
    """A checkpoint, cut at an inner output, bound as a Module for one batch (InsightFace)."""
    data = mx.sym.var("data")
    x = mx.sym.Convolution((data - 127.5) * 0.0078125, num_filter=4, kernel=(3, 3), name="conv0")
    x = mx.sym.BatchNorm(x, fix_gamma=False, name="bn0")
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=6, name="pre_fc1")
    net = mx.sym.SoftmaxOutput(mx.sym.BatchNorm(x, fix_gamma=True, name="fc1"), name="softmax")
    shapes, _, states = net.infer_shape(data=(1, 3, 8, 8))
    arrays = {}
    for seed, (name, shape) in enumerate(zip(net.list_arguments(), shapes, strict=True)):
        arrays[name] = mx.nd.array(values(seed, *shape) - 0.5)
    states = dict(zip(net.list_auxiliary_states(), states, strict=True))
    moving = {name: mx.nd.array(values(9, *shape) + 0.5) for name, shape in states.items()}
    with tempfile.TemporaryDirectory() as folder:
        arrays.pop("data")
        arrays.pop("softmax_label")
        mx.model.save_checkpoint(folder + "/face", 0, net, arrays, moving)
        symbol, arguments, auxiliary = mx.model.load_checkpoint(folder + "/face", 0)
    module = mx.mod.Module(symbol.get_internals()["fc1_output"], context=mx.cpu(), label_names=None)
    module.bind(data_shapes=[("data", (1, 3, 8, 8))], for_training=False)
    module.set_params(arguments, auxiliary)
    batch = mx.io.DataBatch(data=(mx.nd.array(values(7, 1, 3, 8, 8) * 255),))
    module.forward(batch, is_train=False)
    found = module.get_outputs()[0]
    return [found, mx.nd.L2Normalization(found, mode="instance")]


def forecast(mx):
    """A likelihood of Student's t on an unrolled cell, exported and imported (GluonTS)."""

    class Likelihood(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.cell = mx.gluon.rnn.HybridSequentialRNNCell()
                self.cell.add(mx.gluon.rnn.LSTMCell(4, input_size=1))
                self.heads = mx.gluon.nn.Dense(3, flatten=False, in_units=4)

        def hybrid_forward(self, F, x):
            scale = F.mean(F.abs(x), axis=1, keepdims=True) + 1e-3
            scaled = F.broadcast_div(x, scale)
            inputs = F.expand_dims(scaled.slice_axis(axis=1, begin=0, end=-1), axis=-1)
            out, _ = self.cell.unroll(length=5, inputs=inputs, layout="NTC", merge_outputs=True)
            mean, width, freedom = F.split(
                self.heads(out), num_outputs=3, axis=-1, squeeze_axis=True
            )
            width, nu = F.Activation(width, act_type="softrelu"), 2 + F.relu(freedom)
            z = F.broadcast_div(scaled.slice_axis(axis=1, begin=1, end=None) - mean, width)
            half = (nu + 1.0) / 2.0
            return -(F.gammaln(half) - F.gammaln(nu / 2) - 0.5 * F.log(np.pi * nu) - F.log(width)
                     - half * F.log1p(F.square(z) / nu))  # fmt: skip

    net = Likelihood()
    net.initialize()
    fill(mx, net)
    net.hybridize()
    x = mx.nd.array(values(3, 2, 6) + 1)
    losses = train(mx, net, lambda: net(x).sum(), 3, "adam")
    with tempfile.TemporaryDirectory() as folder:
        net.export(folder + "/net")
        again = mx.gluon.SymbolBlock.imports(
            folder + "/net-symbol.json", ["data"], folder + "/net-0000.params"
        )
    return [*losses, net(x), again(x)]


SEAMS = {f.__name__: f for f in (
    anchor_targets, transformer_step, translation_loss, face_embedding, forecast,
)}  # fmt: skip


# -- packages ---------------------------------------------------------------------------------


def gluoncv(mx):
    """A detector, a classifier in training, and a pose network."""
    from gluoncv import model_zoo

    made = []
    settings = {"pretrained_base": False}
    for name, size, options in (
        ("cifar_resnet20_v1", 32, {}),
        ("ssd_512_mobilenet1.0_custom", 128, {"classes": ["a", "b"], **settings}),
        ("simple_pose_resnet18_v1b", 64, settings),
    ):
        net = model_zoo.get_model(name, pretrained=False, **options)
        net.initialize()
        x = mx.nd.array(values(0, 1, 3, size, size))
        net(x)
        fill(mx, net)
        out = net(x)
        made += [o.abs().mean() for o in out] if isinstance(out, tuple) else [out.abs().mean()]
        with tempfile.TemporaryDirectory() as folder:
            net.save_parameters(folder + "/net.params")
            net.load_parameters(folder + "/net.params")
        if not isinstance(out, tuple):
            made += train(mx, net, lambda net=net, x=x: (net(x) ** 2).mean(), 1)
    return made


def gluonnlp(mx):
    """A small BERT: outputs, and training by its own optimizer."""
    import gluonnlp as nlp

    encoder = nlp.model.BERTEncoder(
        num_layers=2, units=16, hidden_size=32, max_length=12, num_heads=4, dropout=0.0
    )
    net = nlp.model.BERTModel(
        encoder=encoder, vocab_size=20, token_type_vocab_size=2, units=16, embed_size=16,
        use_pooler=True, use_decoder=True, use_classifier=True,
    )  # fmt: skip
    net.initialize()
    tokens, lengths = mx.nd.array([[1, 2, 3, 4], [3, 4, 0, 0]]), mx.nd.array([4, 2])
    places = mx.nd.array([[1, 2], [0, 1]])
    arguments = tokens, mx.nd.zeros((2, 4)), lengths, places
    net(*arguments)
    fill(mx, net)
    net.hybridize()
    outputs = list(net(*arguments))
    measure = mx.gluon.loss.SoftmaxCELoss()

    def loss():
        _, _, following, words = net(*arguments)
        first = measure(following, mx.nd.array([0, 1])).mean()
        return first + measure(words.reshape((-1, 20)), mx.nd.array([1, 2, 3, 4])).mean()

    return outputs + train(mx, net, loss, 3, "bertadam", learning_rate=0.01)


def insightface(mx):
    """The recognition of a face by a network in a file."""
    from insightface.model_zoo import face_recognition

    net = mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.var("data")), num_hidden=8, name="fc1")
    weights = {"fc1_weight": values(1, 8, 3 * 112 * 112) * 0.01, "fc1_bias": values(2, 8)}
    with tempfile.TemporaryDirectory() as folder:
        arrays = {k: mx.nd.array(v) for k, v in weights.items()}
        mx.model.save_checkpoint(folder + "/face", 0, net, arrays, {})
        recognition = face_recognition.FaceRecognition("", False, folder + "/face-0000.params")
        recognition.prepare(-1)
    image = (values(5, 112, 112, 3) * 255).astype("uint8")
    return [mx.nd.array(recognition.get_embedding(image))]


def gluonts(mx):
    """Logarithms of likelihoods."""
    try:
        from gluonts.mx import distribution
    except ImportError:
        from gluonts import distribution
    x = mx.nd.array([0.7])
    parameters = {"StudentT": (0.0, 1.0, 3.0), "Gaussian": (0.0, 1.0), "Laplace": (0.0, 1.0)}
    return [
        getattr(distribution, name)(*(mx.nd.array([v]) for v in given)).log_prob(x)
        for name, given in parameters.items()
    ]


def tensorly(mx):
    """A decomposition on the backend of `mx.np`."""
    import tensorly as tl
    from tensorly.decomposition import tucker

    tl.set_backend("mxnet")
    try:
        x = tl.tensor(np.arange(24.0).reshape(2, 3, 4))
        core, factors = tucker(x, rank=[2, 2, 2], n_iter_max=10)
        return [tl.unfold(x, 1), tl.norm(tl.tucker_to_tensor((core, factors)), 2)]
    finally:
        mx.npx.reset_np()


def sockeye(mx):
    """A small transformer: outputs and training by its cross entropy."""
    from sockeye import data_io, encoder, loss, model, transformer

    layers = transformer.TransformerConfig(
        model_size=8, attention_heads=2, feed_forward_num_hidden=16, act_type="relu", num_layers=1,
        dropout_attention=0.0, dropout_act=0.0, dropout_prepost=0.0,
        positional_embedding_type="fixed", preprocess_sequence="n", postprocess_sequence="dr",
        max_seq_len_source=10, max_seq_len_target=10,
    )  # fmt: skip
    embedding = encoder.EmbeddingConfig(vocab_size=20, num_embed=8, dropout=0.0)
    data = data_io.DataConfig(
        data_statistics=None, max_seq_len_source=10, max_seq_len_target=10, num_source_factors=1,
        num_target_factors=1,
    )  # fmt: skip
    net = model.SockeyeModel(
        model.ModelConfig(
            config_data=data,
            vocab_source_size=20,
            vocab_target_size=20,
            config_embed_source=embedding,
            config_embed_target=embedding,
            config_encoder=layers,
            config_decoder=layers,
        )
    )
    net.initialize()
    source = mx.nd.array([[[4], [5], [6], [7]], [[5], [6], [7], [0]]])
    target = mx.nd.array([[[2], [4], [5], [6]], [[2], [5], [6], [3]]])
    labels = mx.nd.array([[4, 5, 6, 3], [5, 6, 3, 0]])
    arguments = source, mx.nd.array([4, 3]), target, mx.nd.array([4, 4])
    net(*arguments)
    fill(mx, net)
    first = net(*arguments)["logits"]
    measure = loss.CrossEntropyLoss(label_smoothing=0.1, output_name="logits", label_name="labels")
    losses = train(
        mx, net, lambda: measure(net(*arguments), {"labels": labels})[0], 3, "adam",
        learning_rate=0.01,
    )  # fmt: skip
    return [first, *losses]


PACKAGES = {f.__name__: f for f in (gluoncv, gluonnlp, gluonts, insightface, sockeye, tensorly)}
