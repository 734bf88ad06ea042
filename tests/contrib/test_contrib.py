"""The small modules of `mx.contrib`: namespaces, old autograd, DataLoaderIter, TensorBoard."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import autograd


def test_contrib_namespaces_alias_nd_and_sym():
    assert mx.contrib.nd is mx.contrib.ndarray
    assert mx.contrib.nd.box_iou is mx.nd.contrib.box_iou
    assert mx.contrib.sym.box_iou is mx.sym.contrib.box_iou
    assert "ROIAlign" in dir(mx.contrib.sym)
    with pytest.raises(AttributeError):
        _ = mx.contrib.nd.no_such_operator
    with pytest.raises(AttributeError):
        _ = mx.contrib.no_such_module
    assert mx.contrib.svrg_optimization.svrg_module.SVRGModule


class TestAutograd:
    def test_train_section_sets_training_and_recording(self):
        def state():
            return mx.autograd.is_training(), mx.autograd.is_recording()

        with autograd.train_section():
            assert state() == (True, True)
            with autograd.test_section():
                assert state() == (False, False)
            assert state() == (True, True)
        assert state() == (False, False)
        assert autograd.set_is_training(True) is False
        assert state() == (True, True)
        assert autograd.set_is_training(False) is True

    def test_backward_and_compute_gradient(self):
        x, grad = mx.nd.array([1.0, 2.0]), mx.nd.zeros((2,))
        autograd.mark_variables([x], [grad])
        with autograd.train_section():
            y = x * 2
        autograd.compute_gradient([y])
        assert grad.asnumpy().tolist() == [2, 2]
        with autograd.train_section():
            y = x * 3
        autograd.backward([y], [mx.nd.array([1.0, 2.0])])
        assert grad.asnumpy().tolist() == [3, 6]
        with pytest.raises(AssertionError, match="list or tuple of NDArrays"):
            autograd.backward(y)

    @pytest.mark.parametrize(("argnum", "wanted"), [(None, [5, 2]), (1, [2]), ([0, 1], [5, 2])])
    def test_grad_and_loss(self, argnum, wanted):
        function = autograd.grad_and_loss(lambda x, y: x * y, argnum)
        grads, loss = function(mx.nd.array([2.0]), mx.nd.array([5.0]))
        assert [g.asscalar() for g in grads] == wanted
        assert loss.asscalar() == 10

    def test_grad_sums_over_several_outputs(self):
        (grad,) = autograd.grad(lambda x: [x * x, x])(mx.nd.array([3.0]))
        assert grad.asscalar() == 7
        with pytest.raises(AssertionError, match="should NDArray"):
            autograd.grad(lambda x: x)(3)


class TestDataLoaderIter:
    def loader(self, **options):
        data, label = mx.nd.arange(28).reshape((7, 4)), mx.nd.arange(7)
        pairs = mx.gluon.data.ArrayDataset(data, label)
        return mx.gluon.data.DataLoader(pairs, batch_size=3, **options)

    def test_dataloader_iter_pads_the_last_batch(self):
        it = mx.contrib.io.DataLoaderIter(self.loader())
        assert it.provide_data == [("data", (3, 4))]
        assert it.provide_label == [("softmax_label", (3,))]
        for _ in range(2):
            batches = list(it)
            assert [batch.pad for batch in batches] == [0, 0, 2]
            assert batches[-1].data[0].asnumpy()[:, 0].tolist() == [24, 0, 0]
            assert batches[-1].label[0].asnumpy().tolist() == [6, 0, 0]
            it.reset()

    def test_dataloader_iter_names_and_dtype(self):
        it = mx.contrib.io.DataLoaderIter(self.loader(), "x", "y", "float64")
        assert (it.provide_data[0].name, it.provide_label[0].name) == ("x", "y")
        assert it.next().data[0].dtype == np.float64
        assert it.getindex() is None

    def test_dataloader_iter_getdata_before_next_raises(self):
        with pytest.raises(ValueError, match="no batch"):
            mx.contrib.io.DataLoaderIter(self.loader()).getdata()

    def test_dataloader_iter_trains_a_module(self):
        net = mx.sym.SoftmaxOutput(
            mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=7), name="softmax"
        )
        it = mx.contrib.io.DataLoaderIter(self.loader(last_batch="discard"))
        module = mx.mod.Module(net)
        module.fit(it, num_epoch=1)
        assert module.get_outputs()[0].shape == (3, 7)


class TestTensorBoard:
    def param(self, metric):
        return mx.model.BatchEndParam(epoch=3, nbatch=1, eval_metric=metric, locals=None)

    def test_log_metrics_callback_writes_scalars(self, monkeypatch):
        written = []

        class Writer:
            def __init__(self, folder):
                self.folder = folder

            def add_scalar(self, tag, value, global_step):
                written.append((self.folder, tag, value, global_step))

        module = types.ModuleType("torch.utils.tensorboard")
        module.SummaryWriter = Writer
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
        callback = mx.contrib.tensorboard.LogMetricsCallback("logs", prefix="train")
        metric = mx.metric.Loss()
        metric.update(None, [mx.nd.array([2.0])])
        callback(self.param(metric))
        callback(self.param(None))
        assert written == [("logs", "train-loss", 2.0, 3)]

    def test_missing_tensorboard_package_raises(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
        with pytest.raises(mx.MXNetError, match="pip install tensorboard"):
            mx.contrib.tensorboard.LogMetricsCallback("logs")
