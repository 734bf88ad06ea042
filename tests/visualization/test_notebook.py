"""HTML and SVG reprs in notebooks."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import mxnet as mx
from mxnet.gluon import nn


def net():
    made = nn.HybridSequential()
    made.add(nn.Dense(4, in_units=3), nn.HybridSequential())
    made[1].add(nn.Dense(2, in_units=4))
    made.initialize()
    return made


def test_symbols_have_an_svg_repr():
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="<fc>")
    root = ET.fromstring(symbol._repr_svg_())
    words = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "FullyConnected" in words


def test_large_symbols_have_no_svg_repr():
    symbol = mx.sym.var("x")
    for _ in range(200):
        symbol = symbol + 1
    assert symbol._repr_svg_() is None


def test_block_html_repr_is_a_tree_with_parameter_counts():
    text = net()._repr_html_()
    ET.fromstring(text)
    assert text.count("<details") == 2
    assert "26 parameters" in text
    assert "Dense(3 -&gt; 4, linear)" in text


def test_block_html_repr_with_unknown_shapes():
    block = nn.Dense(3)
    assert "parameters" not in block._repr_html_()


def test_hybridized_block_html_repr_is_equal():
    block = net()
    plain = block._repr_html_()
    block.hybridize()
    assert block._repr_html_() == plain


def test_trainer_html_repr():
    schedule = mx.lr_scheduler.FactorScheduler(10)
    trainer = mx.gluon.Trainer(
        net().collect_params(), "adam", {"learning_rate": 0.25, "lr_scheduler": schedule}
    )
    text = trainer._repr_html_()
    for part in ("Adam", "0.25", "FactorScheduler", "4 trained, 0 fixed", "cpu(0)"):
        assert part in text


def test_dataloader_html_repr():
    loader = mx.gluon.data.DataLoader(mx.gluon.data.SimpleDataset(list(range(10))), batch_size=4)
    text = loader._repr_html_()
    assert "SimpleDataset of 10 samples" in text
    assert "<th>batches</th><td>3</td>" in text
