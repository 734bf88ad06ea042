"""`print_summary` prints what MXNet prints, and counts parameters that MXNet overlooked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mxnet as mx
from mxnet.error import MXNetError
from tests.golden.summary_programs import PROGRAMS, answer

RECORDED = Path(__file__).parent.parent / "golden" / "summaries.json"
s = mx.sym


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_as_by_mxnet(name):
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
def test_all_learned_inputs_are_counted(make, shape, capsys):
    symbol = make(s.Variable("data"))
    learned = symbol.simple_bind(mx.cpu(), data=shape).arg_dict
    ends = ("weight", "bias", "gamma", "beta", "parameters")
    assert total(symbol, capsys, data=shape) == sum(
        a.size for n, a in learned.items() if n.endswith(ends)
    )


def test_labels_and_states_are_not_counted(capsys):
    net = s.LinearRegressionOutput(s.Variable("data"), s.Variable("label"))
    assert total(net, capsys, data=(2, 3)) == 0


def test_mistakes_are_told():
    with pytest.raises(TypeError, match="must be Symbol"):
        mx.viz.print_summary(3)
    fc = s.FullyConnected(s.Variable("data"), num_hidden=2)
    with pytest.raises(ValueError, match="Input shape is incomplete"):
        mx.viz.print_summary(fc, shape={})
    with pytest.raises(MXNetError, match="zz not found"):
        mx.viz.print_summary(fc, shape={"zz": (1,)})
