"""Programs with modules and recurrent cells whose results are recorded from MXNet 1.9.1.

Each takes MXNet as an argument and returns arrays and texts by name, so that the recorder and the
tests run the same thing. Everything begins from fixed numbers: nothing is drawn.
"""

import logging
import re
import warnings

import numpy as np

DATA = np.random.RandomState(0).rand(22, 3).astype("float32")
LABELS = np.arange(22) % 4
TIMES = re.compile(r"(Speed: |Time cost=)[\d.]+|(inf)")


class Lines(logging.Handler):
    """Keeps log lines, without what the clock says."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        """Keep a line."""
        text = f"{record.levelname}:{record.getMessage()}"
        self.lines.append(TIMES.sub(lambda m: (m[1] or "") + "#", text))


class logged:
    """A scope that catches what is logged."""

    def __enter__(self):
        self.handler, root = Lines(), logging.getLogger()
        self.level = root.level
        root.addHandler(self.handler)
        root.setLevel(logging.INFO)
        return self.handler.lines

    def __exit__(self, *exc):
        logging.getLogger().removeHandler(self.handler)
        logging.getLogger().setLevel(self.level)


def ramp(shape, scale=0.1):
    """Return fixed numbers of both signs."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 1.7) * scale).reshape(shape).astype("float32")


def softmax_net(mx, batch_norm=False):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=5, name="fc1")
    if batch_norm:
        net = mx.sym.BatchNorm(net, fix_gamma=False, name="bn")
    net = mx.sym.Activation(net, act_type="tanh", name="act")
    net = mx.sym.FullyConnected(net, num_hidden=4, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def first_values(mx, net, **shapes):
    shapes, _, _ = net.infer_shape(**shapes)
    return {
        name: mx.nd.array(ramp(shape, 0.5))
        for name, shape in zip(net.list_arguments(), shapes)  # noqa: B905 (an old Python records)
        if name not in ("data", "softmax_label") and not name.endswith("gamma")
    }


def params_of(mod):
    return {name: x.asnumpy() for part in mod.get_params() for name, x in part.items()}


def batches(mx, size=8):
    return mx.io.NDArrayIter(DATA, LABELS, batch_size=size)


OPTIMIZERS = {
    "sgd": {"learning_rate": 0.3, "momentum": 0.9, "wd": 0.01},
    "adam": {"learning_rate": 0.02, "wd": 0.01},
    "nag": {"learning_rate": 0.1, "momentum": 0.9, "clip_gradient": 0.2},
    "rmsprop": {"learning_rate": 0.01, "centered": True},
}


def fit(mx, optimizer="sgd", devices=1, kvstore="local", batch_norm=False, **settings):
    net = softmax_net(mx, batch_norm)
    contexts = [mx.cpu(i) for i in range(devices)]
    mod = mx.mod.Module(net, context=contexts if devices > 1 else mx.cpu(), **settings)
    with logged() as lines:
        mod.fit(
            batches(mx),
            eval_data=batches(mx),
            eval_metric=["acc", "ce"],
            validation_metric="ce",
            kvstore=kvstore,
            optimizer=optimizer,
            optimizer_params=OPTIMIZERS[optimizer],
            initializer=mx.init.One(),
            arg_params=first_values(mx, net, data=(8, 3)),
            allow_missing=True,
            num_epoch=3,
            begin_epoch=1,
            batch_end_callback=mx.callback.Speedometer(8, 2),
        )
    found = params_of(mod)
    found["log"] = lines
    found["score"] = np.array(mod.score(batches(mx), "acc")[0][1])
    found["predict"] = mod.predict(batches(mx)).asnumpy()
    return found


def accumulated_gradients(mx):
    net = softmax_net(mx)
    mod = mx.mod.Module(net, fixed_param_names=["fc1_bias"])
    data = batches(mx)
    mod.bind(data.provide_data, data.provide_label, inputs_need_grad=True, grad_req="add")
    mod.init_params(arg_params=first_values(mx, net, data=(8, 3)), aux_params={})
    for batch in data:
        mod.forward_backward(batch)
    group = mod._exec_group
    found = {
        name: grads[0].asnumpy()
        for name, grads in zip(group.param_names, group.grad_arrays)  # noqa: B905
        if grads[0] is not None
    }
    found["names"] = sorted(found)
    found["input"] = mod.get_input_grads()[0].asnumpy()
    return found


def other_batch_sizes(mx):
    net = softmax_net(mx)
    mod = mx.mod.Module(net)
    mod.bind([("data", (8, 3))], [("softmax_label", (8,))])
    mod.init_params(arg_params=first_values(mx, net, data=(8, 3)), aux_params={})
    mod.init_optimizer(optimizer_params={"learning_rate": 0.5})
    for size in (8, 3, 5, 8):
        mod.forward_backward(
            mx.io.DataBatch([mx.nd.array(DATA[:size])], [mx.nd.array(LABELS[:size])])
        )
        mod.update()
    found = params_of(mod)
    found["shapes"] = [str(mod.data_shapes), str(mod.output_shapes)]
    return found


def shared(mx):
    net = softmax_net(mx)
    one, other = mx.mod.Module(net), mx.mod.Module(net)
    one.bind([("data", (8, 3))], [("softmax_label", (8,))])
    one.init_params(arg_params=first_values(mx, net, data=(8, 3)), aux_params={})
    one.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.5})
    other.bind([("data", (4, 3))], [("softmax_label", (4,))], shared_module=one)
    for mod, size in ((one, 8), (other, 4), (one, 8), (other, 4)):
        mod.forward_backward(
            mx.io.DataBatch([mx.nd.array(DATA[:size])], [mx.nd.array(LABELS[:size])])
        )
        mod.update()
    return params_of(other)


def sequential(mx):
    first = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc1")
    first = mx.sym.Activation(first, act_type="tanh", name="act")
    last = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc2")

    def gradient(scores, labels):
        p = mx.nd.softmax(scores)
        return p - mx.nd.one_hot(labels, 4)

    mod = mx.mod.SequentialModule()
    mod.add(mx.mod.Module(first, label_names=[]))
    mod.add(mx.mod.Module(last, label_names=[]), auto_wiring=True)
    mod.add(mx.mod.PythonLossModule(grad_func=gradient), take_labels=True, auto_wiring=True)
    values = {
        **first_values(mx, first, data=(8, 3)),
        **first_values(mx, last, data=(8, 4)),
    }
    with logged() as lines:
        mod.fit(
            batches(mx),
            arg_params=values,
            aux_params={},
            num_epoch=2,
            optimizer_params={"learning_rate": 0.5},
        )
    return {**params_of(mod), "log": lines}


def bucketing(mx):
    def sym_gen(length):
        net = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=10, output_dim=3, name="embed")
        net = mx.sym.FullyConnected(mx.sym.sum(net, axis=1), num_hidden=4, name="fc")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=8)
    mod.bind([("data", (2, 8))], [("softmax_label", (2,))])
    mod.init_params(arg_params=first_values(mx, sym_gen(8)[0], data=(2, 8)), aux_params={})
    mod.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.05})
    metric = mx.metric.create("ce")
    for length in (8, 4, 6, 4, 8):
        words = mx.nd.array(np.arange(2 * length).reshape(2, length) % 10)
        batch = mx.io.DataBatch(
            [words],
            [mx.nd.array([0, 1])],
            bucket_key=length,
            provide_data=[("data", (2, length))],
            provide_label=[("softmax_label", (2,))],
        )
        mod.forward_backward(batch)
        mod.update()
        mod.update_metric(metric, batch.label)
    return {**params_of(mod), "metric": np.array(metric.get()[1])}


def feed_forward(mx):
    net = softmax_net(mx)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mx.model.FeedForward(
            net,
            num_epoch=2,
            epoch_size=2,
            learning_rate=0.3,
            numpy_batch_size=8,
            arg_params=first_values(mx, net, data=(8, 3)),
            aux_params={},
        )
        with logged() as lines:
            model.fit(batches(mx), eval_data=batches(mx), batch_end_callback=log_batch)
    found = {name: x.asnumpy() for name, x in model.arg_params.items()}
    found["log"] = lines
    found["predict"] = model.predict(DATA)
    found["score"] = np.array(model.score(batches(mx)))
    return found


def log_batch(param):
    logging.info("%d %d %s", param.epoch, param.nbatch, param.eval_metric.get_name_value()[0][0])


# -- recurrent cells ---------------------------------------------------------------------------


def cells(mx):
    rnn = mx.rnn
    row = rnn.SequentialRNNCell()
    row.add(rnn.LSTMCell(4, prefix="a_"))
    row.add(rnn.ResidualCell(rnn.GRUCell(4, prefix="b_")))
    row.add(rnn.BidirectionalCell(rnn.RNNCell(3, prefix="l_"), rnn.LSTMCell(2, prefix="r_")))
    return {
        "rnn": rnn.RNNCell(4),
        "relu": rnn.RNNCell(4, activation="relu", prefix="relu_"),
        "lstm": rnn.LSTMCell(4, forget_bias=2.0),
        "gru": rnn.GRUCell(4),
        "bidirectional": rnn.BidirectionalCell(
            rnn.LSTMCell(4, prefix="l_"), rnn.GRUCell(4, prefix="r_")
        ),
        "residual": rnn.ResidualCell(rnn.RNNCell(5)),
        "zoneout": rnn.ZoneoutCell(rnn.LSTMCell(4), 0.3, 0.2),
        "dropout": rnn.DropoutCell(0.5),
        "row": row,
        "fused_lstm": rnn.FusedRNNCell(4, num_layers=2, bidirectional=True, get_next_state=True),
        "fused_gru": rnn.FusedRNNCell(4, mode="gru", prefix="g_"),
        "fused_relu": rnn.FusedRNNCell(4, num_layers=2, mode="rnn_relu", get_next_state=True),
        "unfused": rnn.FusedRNNCell(4, num_layers=2, bidirectional=True, dropout=0.2).unfuse(),
    }


def unrolled(mx, name, merge, layout="NTC"):
    """Return names, values and gradients of a cell over three steps."""
    cell = cells(mx)[name]
    with mx.name.NameManager(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs, states = cell.unroll(
            3, inputs=mx.sym.Variable("data"), layout=layout, merge_outputs=merge
        )
    heads = [outputs] if isinstance(outputs, mx.sym.Symbol) else list(outputs)
    for state in states:
        heads += state if isinstance(state, list) else [state]
    names = [head.list_outputs()[0] for head in heads]
    heads = [head for i, head in enumerate(heads) if names[i] not in names[:i]]
    group = mx.sym.Group(heads)
    shape = (2, 3, 5) if layout == "NTC" else (3, 2, 5)
    exe = group.simple_bind(mx.cpu(), data=shape)
    for array_name, array in exe.arg_dict.items():
        array[:] = ramp(array.shape, 1.0 if array_name == "data" else 0.5)
    found = {"names": [*group.list_arguments(), *group.list_outputs()]}
    found["inits"] = sorted(
        f"{key} {attrs['__init__']}" for key, attrs in group.attr_dict().items()
        if "__init__" in attrs
    )  # fmt: skip
    training = name not in ("zoneout", "dropout", "unfused")  # they would draw
    for i, out in enumerate(exe.forward(is_train=training)):
        found[f"out{i}"] = out.asnumpy()
    if training:
        exe.backward([mx.nd.array(ramp(out.shape, 1.0)) for out in exe.outputs])
        found.update((f"grad_{key}", grad.asnumpy()) for key, grad in exe.grad_dict.items())
    return found


def packed(mx, name):
    """Return what becomes of a cell's parameters when they are unpacked and packed."""
    cell = cells(mx)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs, _ = cell.unroll(3, inputs=mx.sym.Variable("data"), merge_outputs=True)
    shapes, _, _ = outputs.infer_shape(data=(2, 3, 5))
    args = {
        key: mx.nd.array(ramp(shape))
        for key, shape in zip(outputs.list_arguments(), shapes)  # noqa: B905
        if key != "data"
    }
    parts = cell.unpack_weights(args)
    found = {f"part_{key}": x.asnumpy() for key, x in parts.items()}
    found["same"] = [
        str(
            all(
                (args[k].asnumpy() == x.asnumpy()).all()
                for k, x in cell.pack_weights(parts).items()
            )
        )
    ]
    return found


PROGRAMS = {
    **{f"fit_{name}": (fit, {"optimizer": name}) for name in OPTIMIZERS},
    "fit_two_local": (fit, {"devices": 2}),
    "fit_two_device": (fit, {"devices": 2, "kvstore": "device", "optimizer": "adam"}),
    "fit_two_apart": (fit, {"devices": 2, "kvstore": None}),
    "fit_two_unequal": (fit, {"devices": 2, "work_load_list": [1, 3]}),
    "fit_batch_norm": (fit, {"batch_norm": True}),
    "fit_two_batch_norm": (fit, {"devices": 2, "batch_norm": True}),
    "fit_fixed": (fit, {"fixed_param_names": ["fc1_weight", "fc1_bias"]}),
    "accumulated_gradients": (accumulated_gradients, {}),
    "other_batch_sizes": (other_batch_sizes, {}),
    "shared": (shared, {}),
    "sequential": (sequential, {}),
    "bucketing": (bucketing, {}),
    "feed_forward": (feed_forward, {}),
    **{
        f"cell_{name}_{merge}": (unrolled, {"name": name, "merge": merge})
        for name in ("rnn", "relu", "lstm", "gru", "bidirectional", "residual", "zoneout",
                     "dropout", "row", "fused_lstm", "fused_gru", "fused_relu", "unfused")
        for merge in (True, False)
    },
    **{
        f"cell_{name}_time": (unrolled, {"name": name, "merge": None, "layout": "TNC"})
        for name in ("lstm", "bidirectional", "residual", "fused_lstm", "fused_gru")
    },
    **{
        f"packed_{name}": (packed, {"name": name})
        for name in ("rnn", "lstm", "gru", "bidirectional", "residual", "row", "fused_lstm",
                     "fused_gru", "fused_relu", "unfused")
    },
}  # fmt: skip
