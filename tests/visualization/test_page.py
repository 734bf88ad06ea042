"""The HTML page of a model: its data, and its display in a browser."""

from __future__ import annotations

import json
import re
import time

import pytest

import mxnet as mx
from mxnet.visualization.page import find_blocks, page_data, page_text
from mxnext_cli import main
from tests.visualization import chromium

s = mx.sym


def network():
    x = s.var("data")
    for stage in ("stage1", "stage2"):
        y = s.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name=f"{stage}_conv")
        y = s.Activation(s.BatchNorm(y, name=f"{stage}_bn"), act_type="relu", name=f"{stage}_relu")
        x = s.Concat(x, y, name=f"{stage}_concat")
    x = s.FullyConnected(s.Flatten(x, name="flat"), num_hidden=3, name="<b>fc</b>")
    return s.SoftmaxOutput(x, name="softmax")


@pytest.fixture
def model(tmp_path):
    """A checkpoint on disk, with a name that looks like markup."""
    module = mx.mod.Module(network())
    module.bind([("data", (1, 2, 8, 8))], [("softmax_label", (1,))])
    module.init_params(mx.init.Xavier())
    module.save_checkpoint(str(tmp_path / "net"), 1)
    return tmp_path / "net"


def embedded(text: str) -> dict:
    return json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S)[1])


def test_page_data_of_a_network():
    params = {"stage1_conv_weight": mx.nd.ones((4, 2, 3, 3))}
    data = page_data(network(), {}, params, "net")
    names = [n["name"] for n in data["nodes"]]
    assert names[:2] == ["data", "stage1_conv"]
    conv = data["nodes"][1]
    assert conv["detail"] == "3x3, 4"
    assert conv["inputs"] == [[0, 0]]
    weight = conv["weights"][0]
    assert sum(weight["histogram"]) == 72
    assert "mean 1" in weight["statistics"]
    assert [b["name"] for b in data["blocks"]] == ["stage1", "stage2"]
    assert data["blocks"][0]["nodes"] == [1, 2, 3, 4]


def test_page_data_includes_shapes_and_costs_for_given_shapes():
    data = page_data(network(), {"data": (1, 2, 8, 8)}, {}, "net")
    conv = data["nodes"][1]
    assert conv["outputs"] == ["1×4×8×8"]
    assert conv["costs"]["multiply-adds"] == f"{4 * 8 * 8 * 2 * 9:,}"
    assert "multiply-adds" in data["facts"]


def test_page_data_counts_non_finite_values():
    params = {"stage1_conv_bias": mx.nd.array([1, float("nan"), float("inf"), 2])}
    data = page_data(network(), {}, params, "net")
    (bias,) = [w for w in data["nodes"][1]["weights"] if w["name"].endswith("bias")]
    assert bias["statistics"].endswith("2 not finite")


def test_find_blocks_detects_nesting():
    names = ["n_a_x_fwd", "n_a_x_act", "n_a_y_fwd", "n_b_fwd", "n_c_fwd"]
    blocks, block_of = find_blocks(names)
    assert [(b["name"], b["parent"], b["nodes"]) for b in blocks] == [
        ("a", None, [0, 1, 2]),
        ("x", 0, [0, 1]),
    ]
    assert block_of == [1, 1, 0, None, None]


def test_page_data_lists_outputs_as_nodes():
    """Each output refers to its node, also if a node has several."""
    parts = s.split(s.var("data"), num_outputs=2, axis=1, name="parts")
    data = page_data(s.Group([parts[1], parts[0] * 2]), {"data": (1, 4)}, {}, "net")
    outputs = [n for n in data["nodes"] if n["kind"] == "output"]
    assert [(n["name"], n["inputs"], n["outputs"]) for n in outputs] == [
        ("parts_output1", [[1, 1]], ["1×2"]),
        (outputs[1]["name"], [[2, 0]], ["1×2"]),
    ]


@pytest.mark.parametrize("name", ["{layout}", "{script}", "{model}", "\\1", "{title}"])
def test_names_that_look_like_template_slots_are_kept(name):
    text = page_text(s.relu(s.var("x"), name=name), title=name)
    assert embedded(text)["nodes"][1]["name"] == name
    assert text.count("function layeredLayout") == text.count("function showDetails") == 1
    assert f"<title>{name}</title>" in text


UNKNOWN = {
    "nodes": [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "label", "inputs": []},
        {"op": "WarpCTC", "name": "ctc", "attr": {"label_length": "4"},
         "inputs": [[0, 0], [1, 0]]},
        {"op": "Activation", "name": "act", "attr": {"act_type": "relu"}, "inputs": [[2, 1]]},
    ],
    "arg_nodes": [0, 1],
    "heads": [[3, 0]],
}  # fmt: skip


def test_unknown_operators_are_drawn_in_gray(tmp_path, capsys, monkeypatch):
    """Commands can draw and describe a model with unknown operators, but running it raises."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "speech-symbol.json").write_text(json.dumps(UNKNOWN))
    assert main(["view", "speech", "--shape", "data=2,3"]) == 0
    assert "gray: WarpCTC" in capsys.readouterr().out
    rows = embedded((tmp_path / "speech.html").read_text(encoding="utf-8"))["nodes"]
    (ctc,) = [r for r in rows if r["operator"] == "WarpCTC"]
    assert ctc["attributes"] == {"label_length": "4"}
    assert ctc["detail"] == "not known here"
    (act,) = [r for r in rows if r["name"] == "act"]
    assert ctc["color"] != act["color"]
    assert act["inputs"] == [[rows.index(ctc), 1]]
    assert main(["info", "speech-symbol.json"]) == 1
    said = capsys.readouterr().out
    assert "1 WarpCTC, 1 Activation" in said
    assert "problem: operator WarpCTC is not registered here" in said
    with pytest.raises(mx.MXNetError, match="WarpCTC"):
        mx.sym.load("speech-symbol.json")
    assert main(["summary", "speech", "--shape", "data=2,3"]) == 1


def interleaved():
    """Two blocks that read each other, and a third that reads itself through them."""
    x = s.var("data")
    a = s.relu(x, name="a_first")
    b = s.sigmoid(a, name="b_first")
    a = s.tanh(b, name="a_second")
    b = s.exp(x, name="b_second")
    return s.Group([s.relu(a + b, name="a_third"), s.relu(s.relu(b, name="c_x"), name="c_y")])


def test_names_are_escaped_in_html():
    text = page_text(s.relu(s.var("x"), name="</script><script>alert(1)</script>"), title="<i>&")
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert "<title>&lt;i&gt;&amp;</title>" in text
    assert embedded(text)["nodes"][1]["name"] == "</script><script>alert(1)</script>"


def test_page_loads_no_external_resources():
    text = page_text(network())
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)\s*=\s*["']|@import|fetch\(|XMLHttpRequest""", text)


def test_render_html_of_a_non_symbol_raises(tmp_path):
    with pytest.raises(TypeError, match="must be a Symbol"):
        mx.viz.render_html(3, tmp_path / "x.html")


def test_view_command_writes_the_page(model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["view", "net", "--shape", "1,2,8,8"]) == 0
    assert "net.html" in capsys.readouterr().out
    data = embedded((tmp_path / "net.html").read_text(encoding="utf-8"))
    assert data["title"] == "net · net-0001.params"
    assert main(["view", "net", "--output", "absent/x.html"]) == 1
    assert "no folder absent" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(chromium.PROGRAM is None, reason="Chromium is not installed")
def test_page_is_interactive_in_a_browser(model, tmp_path, monkeypatch):
    """Click, double-click, search, zoom and fold, without console errors."""
    monkeypatch.chdir(tmp_path)
    assert main(["view", str(model), "--shape", "1,2,8,8", "-o", "net.html"]) == 0
    with chromium.Browser(tmp_path / "profile") as page:
        page.open((tmp_path / "net.html").as_uri())
        shown = "document.querySelectorAll('.box').length"
        details = "document.getElementById('details').innerText"
        assert page.run(shown) == 14

        page.click("[data-key=n1]")
        said = page.run(details)
        assert "stage1_conv" in said
        assert "kernel" in said and "(3, 3)" in said
        assert "1×4×8×8" in said
        assert page.run("document.querySelectorAll('.histogram').length") == 2
        page.screenshot(tmp_path / "chosen.png")

        page.click("[data-key=n1]", count=2)  # folds the block of the layer
        assert page.run(shown) == 11
        assert "4 layers" in page.run(details)
        page.click("[data-key='b0.1']", count=2)
        assert page.run(shown) == 14

        page.click("#search")
        page.type("stage2 conv\n")
        assert page.run("document.querySelectorAll('.box.match').length") == 1
        assert "stage2_conv" in page.run(details)
        page.click("#fold")
        assert page.run(shown) == 8
        page.click("#unfold")
        assert page.run(shown) == 14

        before = page.run("view.scale")
        page.mouse("mouseWheel", 600, 400, deltaX=0, deltaY=-300)
        assert page.run("view.scale") > before
        page.click("#fit")
        page.run("window.dispatchEvent(new KeyboardEvent('keydown', {key: '-'}))")
        assert page.run("view.scale") != before
        assert "<b>fc</b>" in page.run("document.body.textContent")
        assert page.complaints == []
    assert (tmp_path / "chosen.png").stat().st_size > 10_000


OVERLAPS = """(() => {
  const rects = [...document.querySelectorAll('.edge-label')].map((t) => t.getBoundingClientRect());
  return rects.flatMap((a, i) => rects.slice(i + 1).filter((b) =>
    a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)).length;
})()"""
UPWARD = """drawn.edges.filter((e) =>
  drawn.layout.y.get(e.source) >= drawn.layout.y.get(e.target)).length"""


@pytest.mark.slow
@pytest.mark.skipif(chromium.PROGRAM is None, reason="Chromium is not installed")
def test_page_layout_folding_export_and_phone_width(tmp_path):
    """No backward edges, no overlapping labels, saved drawings, and phone width."""
    wide = s.Group([s.relu(s.var("data"), name=f"branch{i}") for i in range(12)])
    pages = {"folded": interleaved(), "wide": wide, "{layout}": s.relu(s.var("x"), name="{layout}")}
    for name, symbol in pages.items():
        shape = {symbol.list_arguments()[0]: (1, 256, 14, 14)}
        mx.viz.render_html(symbol, tmp_path / f"{name}.html", shape=shape)
    with chromium.Browser(tmp_path / "profile") as page:
        page.open((tmp_path / "folded.html").as_uri())
        for button in ("#fold", "#unfold", "#fold"):
            page.click(button)
            assert page.run(UPWARD) == 0
        assert "3 of 3" in page.run("document.getElementById('boxes').textContent")
        page.screenshot(tmp_path / "folded.png")
        assert page.run("svgText()").count("<rect") > 4
        page.run("window.picture = 0; drawPng((blob) => { window.picture = blob.size; })")
        deadline = time.monotonic() + 30
        while not page.run("window.picture"):
            assert time.monotonic() < deadline
        assert page.run("window.picture") > 2000

        page.open((tmp_path / "wide.html").as_uri())
        assert page.run(OVERLAPS) == 0
        page.screenshot(tmp_path / "wide.png")

        page.open((tmp_path / "{layout}.html").as_uri())
        assert page.run("document.querySelectorAll('.box').length") == 3

        page.call("Emulation.setDeviceMetricsOverride", width=390, height=780, deviceScaleFactor=2,
                  mobile=True)  # fmt: skip
        page.open((tmp_path / "folded.html").as_uri())
        assert page.run("document.documentElement.scrollWidth") <= 390
        graph = "document.getElementById('graph').getBoundingClientRect()"
        assert page.run(f"{graph}.width") == 390 and page.run(f"{graph}.height") > 250
        page.click(".box")
        assert page.run("document.getElementById('details').getBoundingClientRect().bottom") <= 781
        page.screenshot(tmp_path / "phone.png")
        assert page.complaints == []
