"""`mx.convert.port`: the file it writes, and its comparison with MXNet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision
from mxnet.interop.port.build import Draft, draft_block, draft_symbol
from mxnet.interop.port.comparison.reference import Reference
from mxnet.interop.port.rows import PORT_ROWS
from mxnet.interop.port.text.file import write_file
from mxnet.interop.port.tree import Const, Infix, Layer
from mxnet.ops import registry

from . import blocks, symbols

CHECKED = [
    "outputs",
    "outputs in training",
    "loss",
    "gradients",
    "running statistics",
    "parameters after 5 steps",
    "torch.compile",
    "torch.export",
]


def text_of(draft: Draft) -> str:
    return write_file(draft.parts, ["No comparison."])


def draft_network(name: str) -> Draft:
    build, shapes = symbols.NETWORKS[name]
    symbol = build()
    return draft_symbol(symbol, symbols.random_parameters(symbol, shapes), shapes, name="Net")


def draft_zoo(name: str, size: int) -> Draft:
    net = vision.get_model(name)
    net.initialize()
    return draft_block(net, [(2, 3, size, size)])


def lint(tmp_path: Path, text: str) -> None:
    """Check a file with ruff's default settings."""
    file = tmp_path / "model.py"
    file.write_text(text, encoding="utf-8")
    for command in (["check"], ["format", "--check", "--diff"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", str(file)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr


# -- the text --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "lines"),
    [("resnet50_v1", 32, 150), ("mobilenetv2_0.25", 64, 150), ("inceptionv3", 299, 260)],
)
def test_zoo_networks_are_short_and_formatted(
    name: str, size: int, lines: int, tmp_path: Path
) -> None:
    text = text_of(draft_zoo(name, size))
    assert len(text.splitlines()) <= lines
    lint(tmp_path, text)


@pytest.mark.parametrize("name", sorted(symbols.NETWORKS))
@pytest.mark.filterwarnings("ignore:NTC layout detected")
def test_code_from_symbols_is_formatted(name: str, tmp_path: Path) -> None:
    lint(tmp_path, text_of(draft_network(name)))


@pytest.mark.parametrize("name", sorted(blocks.BLOCKS))
def test_code_from_blocks_is_formatted(name: str, tmp_path: Path) -> None:
    build, shapes = blocks.BLOCKS[name]
    lint(tmp_path, text_of(draft_block(blocks.initialized(build), shapes)))


def test_block_classes_become_classes_with_parameters() -> None:
    text = text_of(draft_zoo("resnet18_v1", 32))
    assert "def __init__(self, in_channels: int, out_channels: int, stride: int = 1)" in text
    assert "if in_channels != out_channels:" in text
    assert "return F.relu(self.downsample(x) + self.body(x))" in text
    assert "def __init__(self, num_classes: int = 1000) -> None:" in text


def test_equal_blocks_in_a_row_become_a_loop() -> None:
    text = text_of(draft_zoo("densenet121", 224))
    assert "(64 + 32 * i) for i in range(6))" in text


def test_prefixes_of_a_symbol_become_a_tree() -> None:
    draft = draft_network("resnet")
    text = text_of(draft)
    assert "self.stage1 = nn.Sequential(Unit(8, 16), Unit2(16))" in text
    assert "stage1.0.conv1.weight" in draft.parts.layout.sources
    assert "fixed_scale(nn.BatchNorm2d(3, eps=2e-5))" in text


def test_branches_of_a_symbol_become_one_class() -> None:
    text = text_of(draft_network("inception"))
    assert text.count("(Concat):") == 1
    assert "self.mixed_3 = Branches(24, 8)" in text


def test_an_unrolled_cell_is_one_module() -> None:
    text = text_of(draft_network("unrolled_lstm"))
    assert text.count("nn.Linear(6, 32)") == 1
    assert text.count("self.lstm(") == 5


def test_batch_norm_momentum_counts_the_other_way_round() -> None:
    net = nn.BatchNorm(momentum=0.7, in_channels=3)
    net.initialize()
    assert "nn.BatchNorm2d(3, momentum=0.3)" in text_of(draft_block(net, [(2, 3, 4, 4)]))


def test_shared_parameters_are_tied() -> None:
    text = text_of(draft_block(blocks.initialized(blocks.LanguageModel), [(5, 2)]))
    assert "self.decoder.weight = self.embedding.weight" in text


def test_blocks_called_twice_are_one_member() -> None:
    text = text_of(draft_block(blocks.initialized(blocks.Mixed), [(2, 3, 8, 8)]))
    assert text.count("self.shared = ") == 1
    assert text.count("self.shared(") == 2
    assert ".detach()" in text


def test_multipliers_become_parameter_groups() -> None:
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.weight.lr_mult = 5
    text = text_of(draft_block(net, [(2, 3)]))
    assert '"linear.weight": (5.0, 1.0)' in text


def test_parameters_without_gradient_are_frozen() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=4), nn.Dense(2, in_units=3))
    net.initialize()
    net[0].collect_params().setattr("grad_req", "null")
    assert 'for name in ("0.weight", "0.bias"):' in text_of(draft_block(net, [(2, 4)]))


def text_of_block(name: str) -> str:
    build, shapes = blocks.BLOCKS[name]
    return text_of(draft_block(blocks.initialized(build), shapes))


def test_blocks_of_a_list_become_a_list_and_a_loop() -> None:
    text = text_of_block("encoder")
    assert "self.cells = nn.ModuleList(FusedAttention() for _ in range(3))" in text
    assert "        for layer in self.cells:\n            out = layer(out, out1)\n" in text


def test_predictors_side_by_side_become_comprehensions() -> None:
    text = text_of_block("detector")
    assert text.count("for layer, value in zip(self.boxes, features)") == 1
    assert "i : i + 1" in text
    assert "class Predictor" not in text, "a class around one layer"


def test_constants_become_buffers() -> None:
    text = text_of_block("detector")
    assert 'self.register_buffer("anchors"' in text
    assert "requires_grad_(False)" not in text


def test_symbol_blocks_nest_as_symbols_do() -> None:
    assert "self.stage2 = Stage(4, 6)" in text_of_block("detector")


def test_reshaped_parameters_are_ported_as_layer_weights() -> None:
    text = text_of_block("encoder")
    assert "self.linear = nn.Linear(8, 24)" in text
    assert "nn.Parameter" not in text


def test_names_of_a_list_do_not_hide_attributes() -> None:
    text = text_of_block("crossed")
    assert "self.layer1(self.layer0(x)) + x" in text


def test_values_of_the_enclosing_class_become_parameters() -> None:
    text = text_of_block("inception")
    assert "ConvBlock(in_channels, mid_channels2, out_channels // 2)" in text
    assert text.count("def __init__(self, in_channels: int, mid_channels: int, out_channels") == 1


def test_dropout_of_axes_and_states_are_written() -> None:
    text = text_of_block("locked_language_model")
    assert "self.dropout = LockedDropout(0.2)" in text
    assert "return out, state[0], state[1], state2[0], state2[1]" in text


def test_operators_without_a_row_are_named() -> None:
    symbol = mx.sym.linalg.potrf(mx.sym.Variable("data"), name="cholesky")
    with pytest.raises(mx.convert.UnsupportedTorch, match=r"_linalg_potrf \(node 'cholesky'\)"):
        draft_symbol(symbol, {}, {"data": (2, 3, 3)})


# -- the comparison --------------------------------------------------------------------------------


def test_a_network_with_batch_norm_is_compared_in_training(tmp_path: Path) -> None:
    mx.random.seed(0)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=3), nn.BatchNorm(in_channels=4), nn.Activation("relu"))
    net.add(nn.Dropout(0.5), nn.Flatten(), nn.Dense(5, in_units=144))
    net.initialize(mx.init.Xavier())
    report = mx.convert.port(net, tmp_path / "out", [(2, 3, 8, 8)], name="Small")
    assert [row.check for row in report.rows] == CHECKED
    assert report.passed
    assert report.error("gradients") < 1e-8
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["model.py", "model.safetensors", "report.md"]
    assert "| gradients |" in (tmp_path / "out" / "report.md").read_text()
    code = (tmp_path / "out" / "model.py").read_text()
    assert "class Small(nn.Sequential):" in code
    assert "- outputs: " in code
    with pytest.raises(mx.MXNetError, match="is there already"):
        mx.convert.port(net, tmp_path / "out", [(2, 3, 8, 8)])


def test_a_symbol_with_an_output_layer_trains_alike() -> None:
    build, shapes = symbols.NETWORKS["resnet"]
    symbol = build()
    report = mx.convert.port(symbol, None, shapes, symbols.random_parameters(symbol, shapes))
    assert report.passed
    assert report.error("gradients") < 1e-8


def test_detections_are_compared_as_sets() -> None:
    build, shapes = symbols.NETWORKS["ssd"]
    symbol = build()
    report = mx.convert.port(symbol, None, shapes, symbols.random_parameters(symbol, shapes))
    assert report.passed
    assert any("sets of rows" in note for note in report.notes)


@pytest.mark.parametrize("name", ["crossed", "detector", "inception", "locked_language_model"])
def test_blocks_compute_the_same(name: str) -> None:
    build, shapes = blocks.BLOCKS[name]
    assert mx.convert.port(blocks.initialized(build), None, shapes).passed


def test_suppressions_are_compared_before_and_behind() -> None:
    build, shapes = blocks.BLOCKS["detector"]
    report = mx.convert.port(blocks.initialized(build), None, shapes)
    assert [row.check for row in report.rows][:2] == ["inputs of suppression", "outputs"]
    assert report.rows[0].values == 7


def test_wrong_boxes_before_a_suppression_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    softmax = registry.get("softmax")
    correct = PORT_ROWS[softmax]

    def wrong(w: Any, call: Any, *inputs: Any) -> Any:
        return w.add(Infix("*", correct(w, call, *inputs), Const(1.001)))

    monkeypatch.setitem(PORT_ROWS, softmax, wrong)
    build, shapes = blocks.BLOCKS["detector"]
    with pytest.raises(mx.convert.ConversionError, match="inputs of suppression differ"):
        mx.convert.port(blocks.initialized(build), None, shapes)


def test_lengths_and_indices_are_in_range() -> None:
    """Random numbers as lengths would mask everything, and compare nothing."""
    build, shapes = blocks.BLOCKS["encoder"]
    draft = draft_block(blocks.initialized(build), shapes)
    reference = Reference(draft.model)
    assert sorted(reference.ranges.values()) == [(0, 12), (1, 7)]
    training = reference.train()
    assert all(np.abs(g).max() > 0 for n, g in training.gradients.items() if "key" not in n)
    assert mx.convert.port(blocks.initialized(build), None, shapes).passed


def test_constant_outputs_are_reported() -> None:
    net = nn.HybridLambda(lambda F, x: F.broadcast_mul(x, F.zeros_like(x)))
    report = mx.convert.port(net, None, [(2, 3)])
    assert any("same number everywhere" in note for note in report.notes)


def test_recurrent_layers_and_tied_weights_train_alike() -> None:
    build, shapes = blocks.BLOCKS["language_model"]
    report = mx.convert.port(blocks.initialized(build), None, shapes)
    assert report.passed


def test_a_wrong_layer_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_norm = registry.get("BatchNorm")
    correct = PORT_ROWS[batch_norm]

    def wrong(w: Any, call: Any, *inputs: Any) -> Any:
        value = correct(w, call, *inputs)
        layer = w.members["1"]
        args = (layer.args[0], *(a for a in layer.args[1:] if a.name != "eps"))
        w.members["1"] = Layer(layer.cls, args, layer.tensors, layer.wrapper, layer.node)
        return value

    monkeypatch.setitem(PORT_ROWS, batch_norm, wrong)
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3), nn.BatchNorm(epsilon=0.1, in_channels=4))
    net.initialize(mx.init.Normal(1))
    with pytest.raises(mx.convert.ConversionError, match="first layer that differs is 1 "):
        mx.convert.port(net, tmp_path / "out", [(2, 3)])
    assert not (tmp_path / "out").exists()


def test_custom_operators_become_skeletons(tmp_path: Path) -> None:
    class Square(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0] ** 2)

    @mx.operator.register("port_square")
    class SquareProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Square()

    symbol = mx.sym.Custom(mx.sym.Variable("data"), op_type="port_square")
    symbol = mx.sym.FullyConnected(symbol, num_hidden=2, name="fc")
    params = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
    report = mx.convert.port(symbol, tmp_path, {"data": (2, 3)}, params)
    text = (tmp_path / "model.py").read_text()
    assert "PortSquareFunction.apply(" in text
    assert "SquareProp" in text
    assert not report.rows
    assert "must be written by hand" in report.notes[0]


def test_to_torch_refuses_training_mode() -> None:
    net = nn.Dense(2, in_units=3)
    net.initialize()
    module = mx.convert.to_torch(net)
    assert module.eval() is module
    with pytest.raises(mx.convert.UnsupportedTorch, match="mx port"):
        module.train()
