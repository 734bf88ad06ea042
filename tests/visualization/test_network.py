"""Drawings of networks, with and without Graphviz."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import mxnet as mx
from mxnet.visualization.drawing import diagram, layered

graphviz = pytest.importorskip("graphviz")
s = mx.sym


def residual():
    x = s.Variable("data")
    for i in range(3):
        y = s.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name=f"conv{i}")
        y = s.Activation(s.BatchNorm(y, name=f"bn{i}"), act_type="relu", name=f"relu{i}")
        x = s.Concat(x, y, name=f"cat{i}")
    return s.SoftmaxOutput(s.Flatten(x, name="flat"), name="softmax")


def test_plot_network_returns_a_labeled_digraph():
    drawing = mx.viz.plot_network(residual(), title="net", shape={"data": (1, 4, 8, 8)})
    assert isinstance(drawing, graphviz.Digraph)
    assert drawing.name == "net" and drawing.format == "pdf"
    assert "Convolution\n3x3, 4" in drawing.source
    assert 'label="4x8x8"' in drawing.source
    assert "conv0_weight" not in drawing.source


def test_hide_weights_false_shows_weights():
    source = mx.viz.plot_network(residual(), hide_weights=False).source
    assert "conv0_weight" in source and "bn0_moving_mean" in source


def test_plot_network_dtypes_and_node_attrs():
    net = s.relu(s.Variable("data"))
    drawing = mx.viz.plot_network(
        net, dtype={"data": "float64"}, node_attrs={"shape": "oval", "fixedsize": "false"}
    )
    assert "(float64)" in drawing.source
    assert "shape=box" not in drawing.source and "fixedsize=false" in drawing.source


def test_nodes_with_duplicate_names_are_distinguished():
    net = s.elemwise_add(s.Variable("x"), s.Variable("x"))
    assert [b.key for b in diagram(net).boxes if b.is_input] == ["x", "x (2)"]


def test_without_graphviz_an_svg_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    drawing = mx.viz.plot_network(residual(), title="net")
    with pytest.warns(UserWarning, match="dot of Graphviz is not installed"):
        path = drawing.render(directory=tmp_path)
    assert path.endswith(".svg")
    assert ET.parse(path).getroot().tag.endswith("svg")
    assert drawing.pipe(format="svg").startswith(b"<svg")
    assert "image/svg+xml" in drawing._repr_mimebundle_()
    with pytest.raises(graphviz.ExecutableNotFound):
        drawing.pipe(format="png")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_with_graphviz_the_requested_format_is_written(tmp_path):
    assert mx.viz.plot_network(residual()).render(directory=tmp_path).endswith(".pdf")


def test_render_svg(tmp_path):
    path = mx.viz.render_svg(residual(), tmp_path / "net.svg", shape={"data": (1, 4, 8, 8)})
    root = ET.parse(path).getroot()
    words = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("Convolution") == 3 and "softmax_label" in words and "4x8x8" in words


def test_layout_has_no_overlaps_or_upward_edges():
    shown = diagram(residual(), hide_weights=False)
    widths = {b.key: 100.0 for b in shown.boxes}
    layout = layered(shown, widths)
    rows = {}
    for key, layer in layout.layer.items():
        rows.setdefault(layer, []).append(layout.x[key])
    for row in rows.values():
        row.sort()
        assert all(b - a >= 100 for a, b in pairwise(row))
    assert all(layout.layer[a.source] < layout.layer[a.target] for a in shown.arrows)


def test_plot_network_of_a_non_symbol_raises():
    with pytest.raises(TypeError, match="must be a Symbol"):
        mx.viz.plot_network(3)


def test_duplicate_names_warn():
    net = mx.sym.relu(mx.sym.relu(mx.sym.Variable("data"), name="twice"), name="twice")
    with pytest.warns(UserWarning, match=r"multiple variables with the same name.*: twice$"):
        mx.viz.plot_network(net)
