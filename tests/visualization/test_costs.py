"""`print_summary` and `print_costs`."""

from __future__ import annotations

import json

import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.gluon import nn
from mxnet.visualization import costs
from tests.golden import HERE
from tests.golden.record.summary_programs import PROGRAMS, answer

RECORDED = HERE / "summaries.json"
s = mx.sym


@pytest.mark.parametrize("name", PROGRAMS)
def test_print_summary_matches_mxnet(name):
    assert answer(mx, name) == json.loads(RECORDED.read_text(encoding="utf-8"))[name]


def total(symbol, capsys, **shapes):
    mx.viz.print_summary(symbol, shape=shapes)
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("Total"))
    return int(line.split()[-1])


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda x: s.Deconvolution(x, kernel=(3, 3), num_filter=4), (1, 2, 5, 5)),
        (lambda x: s.LayerNorm(x), (2, 7)),
        (lambda x: s.FullyConnected(x, num_hidden=4), (2, 3, 5)),
        (lambda x: s.RNN(x, mode="lstm", state_size=3, num_layers=2), (5, 2, 4)),
        (lambda x: s.LeakyReLU(x, act_type="prelu"), (2, 6)),
    ],
)
def test_print_summary_counts_all_parameters(make, shape, capsys):
    symbol = make(s.Variable("data"))
    learned = symbol.simple_bind(mx.cpu(), data=shape).arg_dict
    ends = ("weight", "bias", "gamma", "beta", "parameters")
    assert total(symbol, capsys, data=shape) == sum(
        a.size for n, a in learned.items() if n.endswith(ends)
    )


def test_print_summary_does_not_count_labels_and_states(capsys):
    net = s.LinearRegressionOutput(s.Variable("data"), s.Variable("label"))
    assert total(net, capsys, data=(2, 3)) == 0


def test_invalid_arguments_of_print_summary_raise():
    with pytest.raises(TypeError, match="must be Symbol"):
        mx.viz.print_summary(3)
    fc = s.FullyConnected(s.Variable("data"), num_hidden=2)
    with pytest.raises(ValueError, match="Input shape is incomplete"):
        mx.viz.print_summary(fc, shape={})
    with pytest.raises(MXNetError, match="zz not found"):
        mx.viz.print_summary(fc, shape={"zz": (1,)})


def net():
    made = nn.HybridSequential(prefix="net_")
    with made.name_scope():
        made.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Dense(2))
    made.initialize()
    return made


def printed(capsys, *arguments, **options):
    mx.viz.print_costs(*arguments, **options)
    return capsys.readouterr().out


def test_print_costs_of_hybridized_blocks_is_equal(capsys):
    x = mx.nd.ones((1, 3, 8, 8))
    block = net()
    plain = printed(capsys, block, x)
    block.hybridize()
    block(x)
    assert printed(capsys, block, x) == plain
    total = plain.splitlines()[-1].split()
    parameters = 4 * 27 + 4 + 8 + 2 * 256 + 2
    products = 4 * 64 * 27 + 2 * 256
    assert total == ["total", f"{parameters:,}", f"{products:,}", f"{4 * (256 * 2 + 2):,}"]


def test_print_costs_of_symbols(capsys):
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    assert "fc     FullyConnected  3x2" in printed(capsys, symbol, shape={"data": (3, 4)})


def test_print_costs_of_untraceable_blocks_raises():
    class Plain(mx.gluon.Block):
        def forward(self, x):
            return 3

    with pytest.raises(TypeError, match="must be a HybridBlock"):
        mx.viz.print_costs(Plain(), mx.nd.ones((1,)))


def test_print_summary_collects_layers_once(monkeypatch):
    """So that it takes linear time."""
    net = mx.sym.var("x")
    for _ in range(5):
        net = mx.sym.relu(net)
    collections = []
    add_layer = costs._add_layer

    def spy(table, node, known, count, shown):
        collections.append(shown)
        add_layer(table, node, known, count, shown)

    monkeypatch.setattr(costs, "_add_layer", spy)
    mx.viz.print_summary(net, shape={"x": (1, 2)})
    assert len(collections) == 6 and len({id(layers) for layers in collections}) == 1
