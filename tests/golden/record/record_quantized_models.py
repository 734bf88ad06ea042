"""Record networks that MXNet 1.9.1 quantized: their files with fused layers, and their results.

Run inside an MXNet 1.9.1 environment: ``python tests/golden/record/record_quantized_models.py``
"""

import pathlib

import numpy as np

import mxnet as mx
from mxnet.contrib import quantization
from mxnet.gluon import nn

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "quantized_models"


class Net(nn.HybridBlock):
    def __init__(self):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.c1 = nn.Conv2D(8, 3, padding=1, use_bias=False, in_channels=4)
            self.b1 = nn.BatchNorm(in_channels=8)
            self.c2 = nn.Conv2D(8, 3, padding=1, in_channels=8)
            self.b2 = nn.BatchNorm(in_channels=8)
            self.c3 = nn.Conv2D(8, 3, padding=1, groups=8, in_channels=8, use_bias=False)
            self.b3 = nn.BatchNorm(in_channels=8)
            self.pool, self.flat = nn.MaxPool2D(), nn.Flatten()
            self.d1 = nn.Dense(16, in_units=128, activation="relu")
            self.d2 = nn.Dense(5, in_units=16)

    def hybrid_forward(self, F, x):
        x = F.relu(self.b1(self.c1(x)))
        x = F.relu(x + self.b2(self.c2(x)))
        x = F.clip(self.b3(self.c3(x)), 0, 6)
        return self.d2(self.d1(self.flat(self.pool(x))))


def residual_network():
    """A block with an addition whose arrays are both unsigned, and other activations."""

    def conv(x, name, act, **options):
        x = mx.sym.Convolution(
            x, num_filter=8, kernel=(3, 3), pad=(1, 1), name=name, no_bias=True, **options
        )
        x = mx.sym.BatchNorm(x, fix_gamma=False, name=name + "_bn")
        return mx.sym.Activation(x, act_type=act, name=name + "_act") if act else x

    x = conv(mx.sym.var("data"), "first", "relu")
    x = mx.sym.Activation(x + conv(x, "second", None), act_type="relu", name="sum")
    x = conv(conv(x, "third", "sigmoid"), "fourth", None)
    x = mx.sym.LeakyReLU(x, act_type="leaky", slope=0.1, name="leaky")
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="avg", name="pool")
    x = mx.sym.FullyConnected(mx.sym.flatten(x), num_hidden=6, name="dense")
    return mx.sym.FullyConnected(mx.sym.tanh(x), num_hidden=3, no_bias=True, name="last")


def record_residual(found):
    """`quantize_model_mkldnn` of a symbol, with entropy and naive calibration.

    Every other weight is 0: where processors lack VNNI, MXNet's sums of two products overflow.
    """
    symbol, rng = residual_network(), np.random.RandomState(1)
    shapes, _, states = symbol.infer_shape(data=(2, 4, 8, 8))
    args = {
        n: mx.nd.array(rng.uniform(-0.5, 0.5, s))
        for n, s in zip(symbol.list_arguments(), shapes, strict=True)
        if n != "data"
    }
    aux = {
        n: mx.nd.array(rng.uniform(0.5, 1, s))
        for n, s in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    for name, array in args.items():
        if name.endswith("weight"):
            array[:, 1::2] = 0
    data = mx.nd.array(found["data"])
    for name, mode in (("residual", "naive"), ("residual_entropy", "entropy")):
        small, params, others = quantization.quantize_model_mkldnn(
            symbol,
            args,
            aux,
            label_names=None,
            calib_mode=mode,
            calib_data=mx.io.NDArrayIter(data, batch_size=2),
            num_calib_examples=2,
            quantized_dtype="auto",
        )
        found[name] = run(small, params, others, data)
        mx.model.save_checkpoint(str(DATA / name), 0, small, params, others)
    found["residual_float"] = run(symbol, args, aux, data)


def run(symbol, args, aux, data):
    bound = symbol.bind(mx.cpu(), {"data": data, **args}, aux_states=aux, grad_req="null")
    return bound.forward()[0].asnumpy()


def main():
    mx.random.seed(0)
    np.random.seed(0)
    net = Net()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = np.random.RandomState(0).uniform(-1, 1, (2, 4, 8, 8)).astype("float32")
    data = mx.nd.array(x)
    found = {"data": x, "float": net(data).asnumpy()}
    for granularity in ("tensor", "channel"):
        small = quantization.quantize_net_v2(
            net,
            quantize_granularity=f"{granularity}-wise",
            calib_data=mx.io.NDArrayIter(data, batch_size=2),
            data_shapes=[mx.io.DataDesc("data", x.shape)],
            calib_mode="naive",
            num_calib_examples=2,
        )
        found[granularity] = small(data).asnumpy()
        small.export(str(DATA / granularity))
    record_residual(found)
    np.savez_compressed(DATA / "results.npz", **found)


main()
