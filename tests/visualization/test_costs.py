"""`print_costs` counts what layers cost, of symbols and of blocks, hybridized or not."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.gluon import nn


def net():
    made = nn.HybridSequential(prefix="net_")
    with made.name_scope():
        made.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Dense(2))
    made.initialize()
    return made


def printed(capsys, *arguments, **options):
    mx.viz.print_costs(*arguments, **options)
    return capsys.readouterr().out


def test_hybridized_blocks_cost_the_same(capsys):
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


def test_symbols(capsys):
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    assert "fc     FullyConnected  3x2" in printed(capsys, symbol, shape={"data": (3, 4)})


def test_blocks_that_cannot_be_traced():
    class Plain(mx.gluon.Block):
        def forward(self, x):
            return 3

    with pytest.raises(TypeError, match="must be a HybridBlock"):
        mx.viz.print_costs(Plain(), mx.nd.ones((1,)))
