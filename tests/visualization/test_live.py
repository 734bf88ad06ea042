import sys

import numpy as np
import pytest

import mxnet as mx

pytest.importorskip("matplotlib")


def test_live_plot_is_written_after_each_epoch(tmp_path):
    path = tmp_path / "curves.svg"
    sizes = []
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2))
    data = mx.io.NDArrayIter(np.ones((8, 3)), {net.list_arguments()[-1]: np.zeros(8)}, 4)
    module = mx.mod.Module(net, label_names=[net.list_arguments()[-1]])

    class Size(mx.tracking.Logger):
        def log(self, row):
            sizes.append(path.stat().st_size)

    module.fit(data, num_epoch=2, loggers=[mx.viz.live(path), Size()], progress=False)
    assert len(sizes) == 2
    assert path.read_text().count("<svg") == 1


def test_live_plot_without_path_outside_notebooks_raises(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with pytest.raises(ValueError, match="elsewhere pass a path"):
        mx.viz.live()
