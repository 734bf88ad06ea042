"""ONNX export: cases that MXNet's exporter gets wrong, and the API."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
import pytest

import mxnet as mx
from mxnet.contrib import quantization as quant
from mxnet.error import MXNetError
from mxnet.interop.onnx.builder import UnsupportedExport
from mxnet.interop.onnx.export import build_model
from tests.golden import HERE
from tests.golden.record import onnx_exports
from tests.interop.onnx.running import assert_equal_outputs, run

RNG = np.random.RandomState(0)


def _normal(*shape: int) -> mx.nd.NDArray:
    return mx.nd.array(RNG.standard_normal(shape))


def _ours(symbol: mx.sym.Symbol, arrays: dict[str, mx.nd.NDArray]) -> list[np.ndarray]:
    aux = set(symbol.list_auxiliary_states())
    args = {n: arrays[n] for n in symbol.list_arguments()}
    states = {n: arrays[n] for n in aux}
    executor = symbol.bind(mx.cpu(), args, aux_states=states, grad_req="null")
    return [o.asnumpy() for o in executor.forward(is_train=False)]


def _check(
    symbol: mx.sym.Symbol,
    params: dict[str, mx.nd.NDArray],
    *datas: mx.nd.NDArray,
    labels: dict[str, mx.nd.NDArray] | None = None,
    **options: object,
) -> onnx.ModelProto:
    free = [n for n in symbol.list_inputs() if n not in params and n not in (labels or {})]
    feed = dict(zip(free, datas, strict=True))
    model = build_model(symbol, params, [d.shape for d in datas], **options)
    found = run(model, {n: d.asnumpy() for n, d in feed.items()})
    assert_equal_outputs(found, _ours(symbol, {**params, **feed, **(labels or {})}))
    return model


def test_fix_gamma_exports_gamma_as_one() -> None:
    """With fix_gamma, the default, the value of gamma is not used."""
    symbol = mx.sym.BatchNorm(mx.sym.var("data"), name="bn")
    params = {
        "bn_gamma": mx.nd.ones(3) * 7,
        "bn_beta": _normal(3),
        "bn_moving_mean": _normal(3),
        "bn_moving_var": mx.nd.ones(3) * 2,
    }
    _check(symbol, params, _normal(2, 3, 4, 4))


@pytest.mark.parametrize("kind", ["avg", "max", "sum"])
@pytest.mark.parametrize("with_pad", [True, False])
@pytest.mark.parametrize("dynamic", [None, [(None, 2, None, None)]])
def test_full_pooling_convention_rounds_up(kind: str, with_pad: bool, dynamic: list | None) -> None:
    """Windows at the border divide by their covered size, also with dynamic sizes."""
    symbol = mx.sym.Pooling(
        mx.sym.var("data"),
        kernel=(3, 3),
        stride=(2, 2),
        pad=(1, 1),
        pool_type=kind,
        pooling_convention="full",
        count_include_pad=with_pad,
    )
    _check(symbol, {}, _normal(1, 2, 6, 7), dynamic_shapes=dynamic)


def test_prelu_with_a_slope_for_each_channel() -> None:
    """Slopes broadcast along the channels, not along the last axis."""
    symbol = mx.sym.LeakyReLU(mx.sym.var("data"), act_type="prelu", name="p")
    _check(symbol, {"p_gamma": mx.nd.array([0.1, 0.5, 0.9])}, _normal(2, 3, 4, 4))


def test_loss_layers_are_exported_without_label() -> None:
    """SoftmaxOutput and similar layers become their prediction; the label is not an input."""
    for head in ("SoftmaxOutput", "LogisticRegressionOutput", "LinearRegressionOutput"):
        symbol = getattr(mx.sym, head)(mx.sym.var("data"), name="head")
        shape = (2, 4) if head != "SoftmaxOutput" else (2,)
        labels = {"head_label": mx.nd.zeros(shape)}
        model = _check(symbol, {}, _normal(2, 4), labels=labels)
        assert [i.name for i in model.graph.input] == ["data"]


def test_attributes_missing_from_json_use_defaults() -> None:
    """A dense layer flattens and has a bias by default."""
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5, name="fc")
    assert "flatten" not in symbol.tojson()
    loaded = mx.sym.load_json(symbol.tojson())
    _check(loaded, {"fc_weight": _normal(5, 12), "fc_bias": _normal(5)}, _normal(2, 3, 4))


def test_duplicate_node_names_do_not_clash() -> None:
    """Two nodes with one name, and a node named like a variable."""
    data = mx.sym.var("data")
    one = mx.sym.relu(data, name="same")
    two = mx.sym.tanh(one, name="same")
    _check(mx.sym.broadcast_add(two, one, name="data_out"), {}, _normal(2, 3))


def test_deconvolution_with_adj_or_target_shape() -> None:
    for option in ({"adj": (1, 1), "pad": (1, 1)}, {"target_shape": (9, 9)}):
        symbol = mx.sym.Deconvolution(
            mx.sym.var("data"), kernel=(3, 3), stride=(2, 2), num_filter=4, name="d", **option
        )
        _check(symbol, {"d_weight": _normal(3, 4, 3, 3)}, _normal(1, 3, 5, 5))


def test_upsampling_nearest_and_bilinear() -> None:
    """Repeated pixels, and a bilinear kernel as a parameter."""
    nearest = mx.sym.UpSampling(mx.sym.var("data"), scale=2, sample_type="nearest")
    _check(nearest, {}, _normal(1, 2, 3, 4))
    learned = mx.sym.UpSampling(
        mx.sym.var("data"), scale=2, sample_type="bilinear", num_filter=2, name="up"
    )
    _check(learned, {"up_weight": _normal(2, 1, 4, 4)}, _normal(1, 2, 4, 4))


def test_group_keeps_the_order_of_outputs() -> None:
    """Including repeated outputs and inputs as outputs."""
    data = mx.sym.var("data")
    parts = mx.sym.split(data, num_outputs=2, axis=1, name="parts")
    symbol = mx.sym.Group([parts[1], mx.sym.relu(data), data, parts[0], parts[1]])
    _check(symbol, {}, _normal(2, 4))


def test_parameters_are_inputs_and_initializers() -> None:
    """As MXNet writes them; outputs are named after their nodes."""
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    params = {"fc_weight": _normal(2, 3), "fc_bias": _normal(2), "unused": _normal(1)}
    model = _check(symbol, params, _normal(4, 3))
    assert [i.name for i in model.graph.input] == ["data", "fc_weight", "fc_bias"]
    assert {i.name for i in model.graph.initializer} == {"fc_weight", "fc_bias"}
    assert [o.name for o in model.graph.output] == ["fc"]
    assert model.opset_import[0].version == 13


def test_output_names_types_and_shapes_match_mxnet() -> None:
    recorded = json.loads((HERE / "onnx_exports.json").read_text(encoding="utf-8"))
    models = onnx_exports.cases()
    assert list(recorded) == list(models)
    for key, (symbol, params, shapes) in models.items():
        outputs = build_model(symbol, params, shapes).graph.output
        kinds = [o.type.tensor_type for o in outputs]
        assert [
            [o.name, k.elem_type, [d.dim_value for d in k.shape.dim]]
            for o, k in zip(outputs, kinds, strict=True)
        ] == recorded[key], key


def test_order_of_outputs_in_a_file_matches_mxnet(tmp_path: pathlib.Path) -> None:
    """MXNet sorts outputs by their nodes and omits inputs and duplicates; here these come last."""
    x, y = mx.sym.var("x"), mx.sym.var("y")
    h = mx.sym.exp(x, name="h")
    f, q = mx.sym.sin(h, name="f"), mx.sym.cos(y, name="q")
    s = mx.sym.SliceChannel(x, num_outputs=3, axis=1, name="s")
    recorded = [  # by MXNet 1.9.1
        ([f, h], ["h", "f"]),
        ([q, f], ["q", "f"]),
        ([f, q, h], ["h", "f", "q"]),
        ([s[2], h, s[0]], ["s0", "s2", "h"]),
        ([h, f, h], ["h", "f"]),
        ([x, h], ["h"]),
    ]
    for heads, names in recorded:
        group = mx.sym.Group(heads)
        shapes = [(2, 3)] * len(group.list_inputs())
        path = mx.onnx.export_model(group, {}, shapes, onnx_file_path=tmp_path / "m.onnx")
        found = [o.name for o in onnx.load(path).graph.output]
        assert found[: len(names)] == names and len(found) == len(heads)
    group = mx.sym.Group([f, h])
    path = mx.onnx.export_model(
        group, {}, [(2, 3)], onnx_file_path=tmp_path / "m.onnx", output_order="group"
    )
    assert [o.name for o in onnx.load(path).graph.output] == ["f", "h"]
    with pytest.raises(ValueError, match="output_order"):
        mx.onnx.export_model(group, {}, [(2, 3)], output_order="first")


def test_build_model_keeps_all_outputs_in_group_order() -> None:
    """Converters and backends read outputs by position."""
    x = mx.sym.var("x")
    a = mx.sym.relu(x, name="a")
    c, d = mx.sym.tanh(a, name="c"), mx.sym.exp(x, name="d")
    model = _check(mx.sym.Group([d, c, a, x]), {}, _normal(2, 3))
    assert [o.name for o in model.graph.output][:3] == ["d", "c", "a"]


@pytest.mark.parametrize("slopes", [(4,), (1,)])
@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 4, 3)])
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_prelu_of_any_rank(slopes: tuple, shape: tuple, is_dynamic: bool) -> None:
    """One slope, or one per channel: the only axis of a vector, the second axis of others."""
    gamma = mx.sym.var("p_gamma", shape=slopes)
    symbol = mx.sym.LeakyReLU(mx.sym.var("data"), gamma, act_type="prelu", name="p")
    dynamic = [(None,) * len(shape)] if is_dynamic else None
    _check(symbol, {"p_gamma": _normal(*slopes)}, _normal(*shape), dynamic_shapes=dynamic)


class LanguageModel(mx.gluon.HybridBlock):
    """Embedding, recurrent layers and a decoder; states are inputs, or begin at zero."""

    def __init__(self, layer: type, layers: int) -> None:
        super().__init__(prefix="lm_")
        with self.name_scope():
            self.embedding = mx.gluon.nn.Embedding(11, 5)
            self.rnn = layer(7, layers, input_size=5, dropout=0.2)
            self.decoder = mx.gluon.nn.Dense(11, flatten=False)

    def hybrid_forward(self, F: object, x: object, *states: object) -> object:
        if not states:
            return self.decoder(self.rnn(self.embedding(x)))
        output, states = self.rnn(self.embedding(x), list(states))
        return (self.decoder(output), *states)


@pytest.mark.parametrize("with_states", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("sizes", [None, "names"])
def test_language_models_run_with_different_batch_sizes(
    kind: str, with_states: bool, sizes: str | None, tmp_path: pathlib.Path
) -> None:
    """Batch and time are dynamic in data and states; layers and widths are fixed."""
    net = LanguageModel(getattr(mx.gluon.rnn, kind), layers=2)
    net.initialize()
    net.hybridize()

    def inputs(time: int, batch: int) -> list[mx.nd.NDArray]:
        states = [s + _normal(*s.shape) for s in net.rnn.begin_state(batch)]
        tokens = mx.nd.array(RNG.randint(0, 11, (time, batch)))
        return [tokens, *(states if with_states else [])]

    example = inputs(4, 3)
    net(*example)
    net.export(str(tmp_path / "lm"))
    path, weights = str(tmp_path / "lm-symbol.json"), str(tmp_path / "lm-0000.params")
    shapes = [("time", "batch")] + [(2, "batch", 7)] * (len(example) - 1)
    target = mx.onnx.export_model(
        path,
        weights,
        [x.shape for x in example],
        onnx_file_path=str(tmp_path / "lm.onnx"),
        dynamic=True,
        dynamic_input_shapes=shapes if sizes else None,
        output_order="group",
    )
    names = ["data"] if len(example) == 1 else [f"data{i}" for i in range(len(example))]
    for time, batch in ((4, 3), (6, 5), (1, 1)):
        arrays = inputs(time, batch)
        outputs = net(*arrays)
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        feed = dict(zip(names, (a.asnumpy() for a in arrays), strict=True))
        assert_equal_outputs(run(target, feed), [o.asnumpy() for o in outputs])


def test_zeros_of_dynamic_size_raise() -> None:
    """States of unrolled cells have the batch size, which no node of the graph provides."""
    cell = mx.gluon.rnn.LSTMCell(3, input_size=4)
    outputs, _ = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    params = {n: mx.nd.ones(p.shape) for n, p in cell.collect_params().items()}
    with pytest.raises(UnsupportedExport, match="known only when the model runs"):
        build_model(outputs, params, [(5, 2, 4)], dynamic_shapes=[(None, 2, 4)])


class CenterDecoder(mx.gluon.HybridBlock):
    """Boxes around the maxima of heat maps, as in CenterNet."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.heads = [mx.gluon.nn.Conv2D(n, 1) for n in (3, 2, 2)]
        for head in self.heads:
            self.register_child(head)

    def hybrid_forward(self, F: object, x: object) -> object:
        heat, size, offset = (head(x) for head in self.heads)
        highest = F.Pooling(heat, kernel=(3, 3), pad=(1, 1), pool_type="max")
        heat = F.where(F.broadcast_equal(heat, highest), heat, F.zeros_like(heat) - 100)
        _, _, height, width = heat.shape_array().split(num_outputs=4, axis=0)
        scores, indices = heat.reshape((0, -1)).topk(k=self.count, ret_typ="both")
        indices = F.cast(indices, "int64")
        classes = F.cast(F.broadcast_div(indices, height * width), "float32")
        points = F.broadcast_mod(indices, height * width)
        rows, columns = F.broadcast_div(points, width), F.broadcast_mod(points, width)
        size, offset = (v.transpose((0, 2, 3, 1)).reshape((0, -1, 2)) for v in (size, offset))
        batch = F.arange(256).slice_like(offset, axes=0).expand_dims(-1)
        batch = F.cast(batch.tile(reps=(1, self.count)), "int64")

        def at(values: object, which: object) -> object:
            where = F.concat(batch, points, which, dim=0).reshape((3, -1))
            return F.gather_nd(values, where).reshape((-1, self.count))

        x_axis, y_axis = F.zeros_like(batch), F.ones_like(batch)
        x = F.cast(columns, "float32") + at(offset, x_axis)
        y = F.cast(rows, "float32") + at(offset, y_axis)
        half_w, half_h = at(size, x_axis) / 2, at(size, y_axis) / 2
        corners = (x - half_w, y - half_h, x + half_w, y + half_h)
        return classes, scores, F.stack(*corners, axis=-1) * 4


@pytest.mark.parametrize("sizes", [None, [(None, 4, None, None)]])
def test_center_point_decoder_is_exported(sizes: list | None, tmp_path: pathlib.Path) -> None:
    """Shapes, top-k and multi-axis indices, with fixed and dynamic sizes."""
    net = CenterDecoder(5)
    net.initialize()
    net.hybridize()
    net(_normal(2, 4, 8, 8))
    net.export(str(tmp_path / "net"))
    path, weights = str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params")
    target = mx.onnx.export_model(
        path,
        weights,
        [(2, 4, 8, 8)],
        onnx_file_path=str(tmp_path / "net.onnx"),
        dynamic=sizes is not None,
        dynamic_input_shapes=sizes,
        output_order="group",
    )
    for shape in [(2, 4, 8, 8), (3, 4, 6, 10)][: 2 if sizes else 1]:
        data = _normal(*shape)
        assert_equal_outputs(
            run(target, {"data": data.asnumpy()}), [o.asnumpy() for o in net(data)]
        )


def test_dynamic_batch_size() -> None:
    """One file runs with all batch sizes; the dimension has the requested name."""
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.Flatten())
    net.add(mx.gluon.nn.Dense(3), mx.gluon.nn.LayerNorm())
    net.initialize()
    net(mx.nd.ones((1, 2, 5, 5)))
    symbol = net(mx.sym.var("data"))
    params = {p.name: p.data() for p in net.collect_params().values()}
    model = build_model(symbol, params, [("batch", 2, 5, 5)])
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    for batch in (1, 7):
        data = _normal(batch, 2, 5, 5)
        found = run(model, {"data": data.asnumpy()})
        assert_equal_outputs(found, [net(data).asnumpy()])


@pytest.mark.parametrize("opset", [12, 13, 17, 18, 21])
def test_models_use_the_requested_opset(opset: int) -> None:
    """Axes as attributes or inputs, LayerNormalization if available."""
    x = mx.sym.LayerNorm(mx.sym.var("data"), name="ln")
    x = mx.sym.softmax(mx.sym.sum(mx.sym.expand_dims(x, axis=1), axis=1), axis=0)
    x = mx.sym.max(mx.sym.concat(*mx.sym.split(x, num_outputs=2, axis=1), dim=0), axis=1)
    params = {"ln_gamma": _normal(4), "ln_beta": _normal(4)}
    model = _check(x, params, _normal(3, 4), opset=opset)
    assert model.opset_import[0].version == opset
    kinds = {n.op_type for n in model.graph.node}
    assert ("LayerNormalization" in kinds) == (opset >= 17)


def test_loops_and_branches_are_exported() -> None:
    """foreach, while_loop and cond become Loop and If."""
    step = lambda x, s: (x * 2 + s, x + s)  # noqa: E731
    out, last = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("s"))
    _check(mx.sym.Group([out, last]), {}, _normal(4, 3), _normal(3))
    out, last = mx.sym.contrib.while_loop(
        lambda i: i < 3, lambda i: (i * 10, [i + 1]), [mx.sym.var("i")], max_iterations=5
    )
    _check(mx.sym.Group([out, last[0]]), {}, mx.nd.zeros((1,)))
    x = mx.sym.var("x")
    branch = mx.sym.contrib.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)
    for sign in (1, -1):
        _check(branch, {}, mx.nd.ones((2,)) * sign)


def test_gluon_recurrent_layers_are_exported() -> None:
    """Weights that the graph packs are packed at export."""
    for layer in (mx.gluon.rnn.LSTM(3, 2, bidirectional=True), mx.gluon.rnn.GRU(3)):
        layer.initialize()
        layer.hybridize()
        data = _normal(4, 2, 5)
        wanted = layer(data).asnumpy()
        states = [mx.nd.zeros(i["shape"]) for i in layer.state_info(2)]
        out = layer(mx.sym.var("data"), [mx.sym.var(f"s{i}") for i in range(len(states))])
        params = {p.name: p.data() for p in layer.collect_params().values()}
        model = build_model(out[0], params, [data.shape, *(s.shape for s in states)])
        feed = {"data": data.asnumpy(), **{f"s{i}": s.asnumpy() for i, s in enumerate(states)}}
        assert_equal_outputs(run(model, feed), [wanted])


def test_export_accepts_files_and_dicts(tmp_path: pathlib.Path) -> None:
    """Paths, a dict with prefixes and a pair of dicts are equivalent."""
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    args = {"fc_weight": _normal(2, 3), "fc_bias": _normal(2)}
    mx.model.save_checkpoint(str(tmp_path / "m"), 1, symbol, args, {})
    sources = [
        (str(tmp_path / "m-symbol.json"), str(tmp_path / "m-0001.params")),
        (symbol, {f"arg:{k}": v for k, v in args.items()}),
        (symbol, [args, {}]),
    ]
    files = []
    for i, source in enumerate(sources):
        target = str(tmp_path / f"{i}.onnx")
        assert mx.onnx.export_model(*source, [(1, 3)], np.float32, target) == target
        files.append(pathlib.Path(target).read_bytes())
    assert files[0] == files[1] == files[2]


def test_failed_export_raises_and_leaves_no_file(tmp_path: pathlib.Path) -> None:
    """The error names operator and node, and the file is written atomically."""
    target = tmp_path / "x.onnx"
    symbol = mx.sym.linalg.gelqf(mx.sym.var("data"), name="lq")
    with pytest.raises(UnsupportedExport, match=r"_linalg_gelqf.*'lq'"):
        mx.onnx.export_model(symbol, {}, [(2, 2)], onnx_file_path=target)
    with pytest.raises(MXNetError, match="in_shapes has 2"):
        mx.onnx.export_model(mx.sym.relu(mx.sym.var("data")), {}, [(2,), (3,)], np.float32, target)
    with pytest.raises(MXNetError, match="opset_version=5"):
        mx.onnx.export_model(
            mx.sym.relu(mx.sym.var("data")), {}, [(2,)], onnx_file_path=target, opset_version=5
        )
    assert list(tmp_path.iterdir()) == []


class _Attention(mx.gluon.HybridBlock):
    """A BERT layer as in GluonNLP: positions, masked self-attention, normalization."""

    def __init__(self, heads: int, units: int) -> None:
        super().__init__(prefix="bert_")
        self.heads = heads
        with self.name_scope():
            self.words = mx.gluon.nn.Embedding(20, units)
            self.places = mx.gluon.nn.Embedding(32, units)
            self.project = mx.gluon.nn.Dense(3 * units, flatten=False)
            self.out = mx.gluon.nn.Dense(units, flatten=False)
            self.norm = mx.gluon.nn.LayerNorm()

    def hybrid_forward(self, F, tokens, lengths):
        steps = F.contrib.arange_like(tokens, axis=1)
        x = F.broadcast_add(self.words(tokens), F.expand_dims(self.places(steps), axis=0))
        inner = F.transpose(x, axes=(1, 0, 2))
        qkv = self.project(inner)
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self.heads)
        mask = F.broadcast_lesser(
            F.reshape(steps, shape=(1, -1)), F.reshape(lengths, shape=(-1, 1))
        )
        mask = F.expand_dims(F.repeat(mask, repeats=self.heads, axis=0), axis=1)
        scores = F.broadcast_add(scores, (mask - 1) * 1e4)
        made = F.contrib.interleaved_matmul_selfatt_valatt(
            qkv, F.softmax(scores, axis=-1), heads=self.heads
        )
        return self.norm(self.out(F.transpose(made, axes=(1, 0, 2))) + x)


def test_attention_with_dynamic_batch_and_length() -> None:
    net = _Attention(2, 8)
    net.initialize(mx.init.Normal(0.5))
    net.hybridize()

    def data(batch: int, length: int) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
        tokens = mx.nd.array(RNG.randint(0, 20, (batch, length)))
        return tokens, mx.nd.array(RNG.randint(1, length + 1, (batch,)))

    net(*data(2, 5))
    symbol = net(mx.sym.var("tokens"), mx.sym.var("lengths"))
    params = {p.name: p.data() for p in net.collect_params().values()}
    dynamic = [("batch", "length"), ("batch",)]
    model = build_model(symbol, params, [(2, 5), (2,)], dynamic_shapes=dynamic)
    for sizes in ((2, 5), (3, 7), (1, 1)):
        tokens, lengths = data(*sizes)
        feed = {"tokens": tokens.asnumpy(), "lengths": lengths.asnumpy()}
        assert_equal_outputs(run(model, feed), [net(tokens, lengths).asnumpy()])


@pytest.mark.parametrize("codes", [(0, -3, -2), (-4, -1, 2, -2), (0, 0, -4, 2, -1), (-3, -1)])
def test_reshape_codes_with_dynamic_sizes(codes: tuple[int, ...]) -> None:
    """Copied, merged and split sizes are computed at run time."""
    symbol = mx.sym.reshape(mx.sym.var("data"), shape=codes)
    model = build_model(symbol, {}, [(None, None, 6)])
    for shape in ((4, 3, 6), (2, 5, 6)):
        data = _normal(*shape)
        wanted = mx.nd.reshape(data, shape=codes).asnumpy()
        assert_equal_outputs(run(model, {"data": data.asnumpy()}), [wanted])


def test_block_without_parameters_is_exported_from_its_files(tmp_path: pathlib.Path) -> None:
    """Its parameter file holds no arrays at all."""
    block = mx.gluon.nn.HybridLambda("relu")
    block.hybridize()
    block(mx.nd.ones((2, 3)))
    prefix = str(tmp_path / "net")
    block.export(prefix)
    target, files = f"{prefix}.onnx", (f"{prefix}-symbol.json", f"{prefix}-0000.params")
    mx.onnx.export_model(*files, [(2, 3)], np.float32, target)
    data = RNG.standard_normal((2, 3)).astype(np.float32)
    assert_equal_outputs(run(target, {"data": data}), [np.maximum(data, 0)])


@pytest.mark.parametrize(
    ("layer", "sizes"),
    [
        (mx.gluon.nn.Activation("relu"), ["data_0", "data_1", "data_2", "data_3"]),
        (mx.gluon.nn.Conv2D(2, 3, in_channels=3), ["data_0", 3, "data_2", "data_3"]),
        (mx.gluon.nn.Dense(2, in_units=192), ["data_0", 3, 8, 8]),
    ],
    ids=["all", "all but channels", "first"],
)
def test_dynamic_export_frees_only_sizes_the_weights_do_not_fix(
    layer: mx.gluon.Block, sizes: list, tmp_path: pathlib.Path
) -> None:
    """MXNet makes all sizes dynamic, including those that the weights fix."""
    layer.initialize()
    target = str(tmp_path / "net.onnx")
    params = {n: p.data() for n, p in layer.collect_params().items()}
    symbol = layer(mx.sym.var("data"))
    mx.onnx.export_model(symbol, params, [(1, 3, 8, 8)], np.float32, target, dynamic=True)
    shape = onnx.load(target).graph.input[0].type.tensor_type.shape
    assert [d.dim_param or d.dim_value for d in shape.dim] == sizes


def test_exporter_module_paths_of_older_versions() -> None:
    """`MXNetGraph` makes a graph that `GraphProto` reads."""
    from mxnet.contrib.onnx.mx2onnx.export_model import export_model
    from mxnet.contrib.onnx.mx2onnx.export_onnx import MXNetGraph
    from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto, convert_map

    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    params = {"arg:fc_weight": mx.nd.ones((2, 3)), "arg:fc_bias": mx.nd.zeros(2)}
    made = MXNetGraph().create_onnx_graph_proto(net, params, in_shape=[(1, 3)], in_type=1)
    _, arg_params, aux_params = GraphProto().from_onnx(made, opset_version=13)
    assert (sorted(arg_params), aux_params) == (["fc_bias", "fc_weight"], {})
    assert sorted(MXNetGraph.convert_weights_to_numpy(params)) == ["fc_bias", "fc_weight"]
    assert export_model is mx.onnx.export_model
    assert "Conv" in convert_map


REFUSED = {
    "CTCLoss": (lambda a, b: mx.sym.CTCLoss(a, b), "loss of training"),
    "_contrib_DeformablePSROIPooling": (
        lambda a, b: mx.sym.contrib.DeformablePSROIPooling(
            a, b, spatial_scale=1, output_dim=2, group_size=2, pooled_size=2, no_trans=True
        ),
        "has no ONNX form",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_operators_raise_with_the_reason(name):
    build, why = REFUSED[name]
    with pytest.raises(NotImplementedError, match=f"operator {name} .*{why}"):
        build_model(build(mx.sym.var("a"), mx.sym.var("b")), {}, [(4, 2, 5), (2, 3)])


def test_correlation_with_dynamic_image_size_raises():
    flow = mx.sym.Correlation(mx.sym.var("a"), mx.sym.var("b"), pad_size=1)
    shapes = {"a": (1, 2, 4, 4), "b": (1, 2, 4, 4)}
    build_model(flow, {}, shapes)
    with pytest.raises(NotImplementedError, match="height and width"):
        build_model(flow, {}, shapes, dynamic_shapes=dict.fromkeys("ab", (1, 2, None, None)))


# -- quantized networks become QDQ files ----------------------------------------------------


def network():
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="first")
    x = mx.sym.clip(x, a_min=0, a_max=6, name="relu6")
    y = mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, num_group=2, name="second")
    x = mx.sym.relu(mx.sym.elemwise_add(x, y, name="add"))
    z = mx.sym.Convolution(x, kernel=(1, 1), num_filter=2, no_bias=True, name="third")
    x = mx.sym.concat(x, z, dim=1)
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), name="pool")
    x = mx.sym.Pooling(x, global_pool=True, kernel=(1, 1), pool_type="avg", name="mean")
    return mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=3, name="last")


def _remove_parameters_from_inputs(file):
    """Make parameters constants, as `mx.convert` does; MXNet's exporter lists them as inputs."""
    model = onnx.load(file)
    known = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    onnx.save(model, file)


def quantized_files(tmp_path, granularity, mode="naive"):
    mx.random.seed(0)
    net = mx.gluon.SymbolBlock(network(), mx.sym.var("data"))
    net.initialize(mx.init.Normal(0.5))
    data = mx.nd.array(np.random.RandomState(0).uniform(-1, 1, (2, 3, 8, 8)))
    wanted = net(data).asnumpy()
    small = quant.quantize_net_v2(
        net, calib_mode=mode, calib_data=[data], quantize_granularity=granularity
    )
    found = small(data).asnumpy()
    small.export(str(tmp_path / "small"))
    files = [str(tmp_path / f) for f in ("small-symbol.json", "small-0000.params", "small.onnx")]
    mx.onnx.export_model(files[0], files[1], [(2, 3, 8, 8)], np.float32, files[2])
    _remove_parameters_from_inputs(files[2])
    return files[2], data.asnumpy(), found, wanted


@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
def test_quantized_network_runs_in_onnxruntime(tmp_path, granularity):
    file, data, found, wanted = quantized_files(tmp_path, granularity)
    onnx.checker.check_model(onnx.load(file), full_check=True)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (there,) = session.run(None, {"data": data})
    np.testing.assert_allclose(there, found, atol=0.05 * abs(wanted).max())
    np.testing.assert_allclose(there, wanted, atol=0.08 * abs(wanted).max())


def test_quantized_weights_are_int8_with_a_scale_for_each_filter(tmp_path):
    file, *_ = quantized_files(tmp_path, "channel-wise")
    model = onnx.load(file)
    arrays = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    pairs = [n for n in model.graph.node if n.op_type == "DequantizeLinear"]
    scales = {n.input[0]: arrays[n.input[1]].shape for n in pairs if n.input[0] in arrays}
    assert scales["first_weight_quantize"] == (4,) and scales["last_weight_quantize"] == (3,)
    assert arrays["first_weight_quantize"].dtype == np.int8
    assert not [n for n in model.graph.node if n.op_type == "Abs"]  # ranges are constants


def test_onnxruntime_fuses_quantized_layers_to_integer_operators(tmp_path):
    file, *_ = quantized_files(tmp_path, "channel-wise")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    kinds = [n.op_type for n in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert kinds.count("QLinearConv") == 3 and "Conv" not in kinds
