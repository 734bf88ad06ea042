"""Record a network that MXNet 1.9.1 quantized: its files with fused layers, and its results.

Run inside an MXNet 1.9.1 environment: ``python tests/golden/record_quantized_models.py``
"""

import pathlib

import numpy as np

import mxnet as mx
from mxnet.contrib import quantization
from mxnet.gluon import nn

HERE = pathlib.Path(__file__).parent / "quantized_models"


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
        small.export(str(HERE / granularity))
    np.savez_compressed(HERE / "results.npz", **found)


main()
