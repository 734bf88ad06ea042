"""BucketingModule, SequentialModule and Python modules."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.error import MXNetError, ShapeError
from tests.closeness import assert_equal_up_to_rounding


def gen(length):
    net = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=10, output_dim=3, name="embed")
    net = mx.sym.FullyConnected(mx.sym.sum(net, axis=1), num_hidden=4, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)


def batch(length, described=True):
    descriptions = {
        "provide_data": [("data", (2, length))],
        "provide_label": [("softmax_label", (2,))],
    }
    return mx.io.DataBatch([mx.nd.ones((2, length))], [mx.nd.array([0, 1])], bucket_key=length,
                           **(descriptions if described else {}))  # fmt: skip


def bucketing(sym_gen=gen):
    mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=8)
    mod.bind([("data", (2, 8))], [("softmax_label", (2,))])
    mod.init_params(mx.init.One())
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1})
    return mod


def live_bytes():
    gc.collect()
    tensors = [t for t in gc.get_objects() if type(t) is torch.Tensor]
    return sum(
        {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values()
    )


def test_buckets_share_memory():
    gc.collect()
    # Tensors of other tests count as well; held here, they count the same each time.
    others = [t for t in gc.get_objects() if type(t) is torch.Tensor]

    def wide(length):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, flatten=False, name="fc")
        return mx.sym.MakeLoss(mx.sym.broadcast_axis(net, axis=0, size=500)), ("data",), ()

    mod = mx.mod.BucketingModule(wide, default_bucket_key=8)
    mod.bind([("data", (1, 8, 3))], None)
    mod.init_params()
    used = []
    for length in (8, 5, 6, 7, 8):
        data = [("data", (1, length, 3))]
        made = mx.io.DataBatch(
            [mx.nd.ones((1, length, 3))], [], bucket_key=length, provide_data=data, provide_label=[]
        )
        mod.forward(made, is_train=False)
        used.append(live_bytes())
    assert used[-1] == used[0]
    assert max(used) == used[0]
    del others


def test_total_exec_bytes_is_size_of_results():
    wide = mx.sym.broadcast_axis(mx.sym.var("data"), axis=0, size=512)
    mod = mx.mod.Module(mx.sym.sum(wide), label_names=[])
    assert mod._total_exec_bytes == 0
    mod.bind([("data", (1, 2048))], for_training=False)
    assert mod._total_exec_bytes == 4


def test_outputs_are_not_overwritten_by_the_next_bucket():
    mod = bucketing()
    mod.forward(batch(4), is_train=False)
    held = mod.get_outputs()[0]
    before = held.asnumpy()
    mod.forward(batch(8), is_train=False)
    np.testing.assert_array_equal(held.asnumpy(), before)


def test_buckets_share_parameters_gradients_and_optimizer():
    mod = bucketing()
    for length in (4, 8, 6):
        mod.forward_backward(batch(length, described=length != 6))
        mod.update()
    modules = list(mod._buckets.values())
    first = modules[0]._exec_group
    for other in modules[1:]:
        group = other._exec_group
        assert group.param_arrays[0][0] is first.param_arrays[0][0]
        assert group.grad_arrays[0][0] is first.grad_arrays[0][0]
        assert other._updater is modules[0]._updater
    assert len(mod.get_params()[0]) == 3


def test_buckets_share_the_input_memory_of_the_largest():
    mod = bucketing()
    mod.forward(batch(4))
    largest = mod._buckets[8]._exec_group.execs[0].arg_dict["data"]
    small = mod._buckets[4]._exec_group.execs[0].arg_dict["data"]
    assert small.shape == (2, 4)
    small[:] = 7
    assert largest.asnumpy().ravel()[:8].tolist() == [7.0] * 8


def test_prepare_binds_a_bucket_without_switching_to_it():
    mod = bucketing()
    mod.prepare(batch(4))
    assert mod._curr_bucket_key == 8
    assert 4 in mod._buckets


def test_parameter_of_only_one_bucket_raises():
    def odd(length):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name=f"fc{length}")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    mod = bucketing(odd)
    with pytest.raises(MXNetError, match=r"no parameter 'fc4_weight'.*Did you mean 'fc8_weight'"):
        mod.forward(batch(4))


def test_parameter_shape_that_differs_between_buckets_raises():
    def odd(length):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    with pytest.raises(ShapeError, match=r"'fc_weight' is \(2, 8\).*but \(2, 4\) here"):
        bucketing(odd).forward(batch(4))


def test_save_and_load_bucketing_checkpoint(tmp_path):
    mod = bucketing()
    mod.forward_backward(batch(4))
    mod.update()
    prefix = str(tmp_path / "b")
    mod.save_checkpoint(prefix, 3)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["b-0003.params", "b-4-symbol.json", "b-8-symbol.json", "b.buckets"]
    again = mx.mod.BucketingModule.load(prefix, 3, gen, default_bucket_key=8)
    again.bind([("data", (2, 8))], [("softmax_label", (2,))], for_training=False)
    again.forward(batch(4), is_train=False)
    mod.forward(batch(4), is_train=False)
    assert_equal_up_to_rounding(again.get_outputs()[0].asnumpy(), mod.get_outputs()[0].asnumpy())


def test_rebinding_buckets_keeps_parameters_and_optimizer():
    mod = bucketing()
    mod.forward_backward(batch(8))
    mod.update()
    before = mod.get_params()[0]["fc_weight"].asnumpy().copy()
    mod.bind([("data", (2, 8))], [("softmax_label", (2,))], force_rebind=True)
    np.testing.assert_array_equal(mod.get_params()[0]["fc_weight"].asnumpy(), before)
    mod.forward_backward(batch(4))
    mod.update()


def test_default_bucket_key_is_required():
    with pytest.raises(AssertionError, match="default_bucket_key"):
        mx.mod.BucketingModule(gen)
    with pytest.raises(TypeError, match="must return"):
        mx.mod.BucketingModule(lambda key: gen(key)[0], default_bucket_key=8)


def row():
    first = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc1")
    last = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc2")
    mod = mx.mod.SequentialModule()
    mod.add(mx.mod.Module(first, label_names=[]))
    return mod.add(mx.mod.Module(mx.sym.SoftmaxOutput(last, name="softmax")), take_labels=True,
                   auto_wiring=True)  # fmt: skip


def test_sequential_module_names_and_shapes():
    mod = row()
    assert (mod.data_names, mod.output_names) == (["data"], ["softmax_output"])
    mod.bind([("data", (2, 3))], [("softmax_label", (2,))])
    assert mod.output_shapes == [("softmax_output", (2, 3))]
    assert mod.data_shapes == [("data", (2, 3))]
    assert mod.label_shapes == [("softmax_label", (2,))]
    mod.init_params()
    assert sorted(mod.get_params()[0]) == ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]
    with pytest.raises(AssertionError, match="inputs_need_grad"):
        mod.get_input_grads()


def test_sequential_module_save_and_load_params(tmp_path):
    mods = [row(), row()]
    for mod in mods:
        mod.bind([("data", (2, 3))], [("softmax_label", (2,))])
        mod.init_params(mx.init.Xavier())
    mods[0].save_params(str(tmp_path / "p"))
    mods[1].load_params(str(tmp_path / "p"))
    outs = [mod.predict(mx.nd.ones((2, 3))).asnumpy() for mod in mods]
    assert_equal_up_to_rounding(*outs)


def test_invalid_sequential_modules_raise():
    with pytest.raises(AssertionError, match='Unknown meta "take_label"'):
        mx.mod.SequentialModule().add(None, take_label=True)
    with pytest.raises(AssertionError, match="empty"):
        mx.mod.SequentialModule().bind([("data", (2, 3))])
    mod = row().add(row()._modules[0], auto_wiring=True)
    mod.bind([("data", (2, 3))], [("softmax_label", (2,))])
    with pytest.raises(AssertionError, match='Duplicated parameter names: name "fc1_weight"'):
        mod.init_params()


def test_python_loss_module_without_grad_func_raises():
    mod = mx.mod.PythonLossModule()
    mod.bind([("data", (2, 3))], [("softmax_label", (2,))])
    mod.init_params()
    mod.forward(mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones(2)]), is_train=True)
    assert mod.get_outputs()[0].shape == (2, 3)
    with pytest.raises(NotImplementedError, match="grad_func"):
        mod.backward()
    with pytest.raises(AssertionError, match="out_grads should be None"):
        mod.backward(1)


def test_custom_python_module():
    class Double(mx.mod.PythonModule):
        def __init__(self):
            super().__init__(["data"], None, ["out"])

        def _compute_output_shapes(self):
            return [("out", self._data_shapes[0][1])]

        def forward(self, data_batch, is_train=None):
            self.out = data_batch.data[0] * 2

        def get_outputs(self, merge_multi_context=True):
            return [self.out]

    mod = Double()
    mod.bind([("data", (2, 3))], for_training=False)
    mod.init_params()
    assert mod.predict(mx.nd.ones((2, 3))).asnumpy().max() == 2
    assert mod.output_shapes == [("out", (2, 3))]
    with pytest.raises(AssertionError, match="data_shapes are of"):
        Double().bind([("dat", (2, 3))])
