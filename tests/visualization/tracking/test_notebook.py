"""Output of an executed notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parents[3]
CELLS = [
    """
import logging.handlers
import mxnet as mx
import numpy as np
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(4, in_units=3), mx.gluon.nn.Dense(2, in_units=4))
net.initialize()
net
""",
    "mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')",
    "mx.gluon.Trainer(net.collect_params(), 'adam')",
    "mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((8, 3))), 4)",
    """
data = mx.io.NDArrayIter(np.ones((8, 3)), np.zeros(8), 4)
symbol = mx.sym.SoftmaxOutput(net(mx.sym.var('data')), name='softmax')
history = mx.mod.Module(symbol).fit(data, num_epoch=2)
history
""",
    "for batch in mx.progress([1, 2, 3], 'work'): pass",
    "mx.viz.plot_history(history)",
    "mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))",
    "_ = mx.mod.Module(symbol).fit(data, num_epoch=3, loggers=mx.viz.live(), progress=False)",
]


@pytest.fixture(scope="module")
def outputs():
    """Return the outputs of each cell."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    options = {"timeout": 120, "allow_errors": True, "kernel_name": "python3"}
    resources = {"metadata": {"path": str(ROOT)}}
    nbclient.NotebookClient(notebook, **options, resources=resources).execute()
    return [cell.outputs for cell in notebook.cells]


def shown(cell, kind):
    """Return what the last output of a cell is in a format."""
    assert "data" in cell[-1], cell
    return cell[-1]["data"].get(kind, "")


def test_notebook_shows_blocks_symbols_trainers_and_loaders(outputs):
    block, symbol, trainer, loader = outputs[:4]
    assert "26 parameters" in shown(block, "text/html")
    assert "FullyConnected" in shown(symbol, "image/svg+xml")
    assert "<td>Adam</td>" in shown(trainer, "text/html")
    assert "ArrayDataset of 8 samples" in shown(loader, "text/html")


def test_notebook_training_shows_bars_summary_and_table(outputs):
    fit = outputs[4]
    assert "<th>train_accuracy</th>" in shown(fit, "text/html")
    texts = [part["text"] for part in fit if part["output_type"] == "stream"]
    assert any(re.search(r"Trained 2 epochs in .*train_accuracy=", text) for text in texts)
    bars = [part["data"]["text/plain"] for part in fit if "data" in part]
    assert any("Epoch[0]" in bar for bar in [*bars, *texts])
    assert not any("\x1b" in text for text in texts)


def test_notebook_loop_shows_a_bar(outputs):
    said = [part.get("text", "") + str(part.get("data", "")) for part in outputs[5]]
    assert any("work: " in text for text in said)


def test_notebook_shows_curves(outputs):
    assert shown(outputs[6], "image/png")


def test_notebook_error_shows_only_the_cell(outputs):
    error = outputs[7][-1]
    assert error["ename"] == "ShapeError"
    text = "\n".join(error["traceback"])
    assert "Cell" in text and "mxnet/" not in text
    assert len(text.splitlines()) <= 15


def test_live_plot_replaces_one_image(outputs):
    plots = [part for part in outputs[-1] if "image/png" in part.get("data", {})]
    assert len(plots) == 1
    assert "display_id" in plots[0].get("transient", {"display_id": ""})
