"""Record a model that MXNet 1.9.1 exports under NumPy semantics, and its answer: run this file."""

import json
import pathlib

import numpy as onp

from mxnet import gluon, np, npx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "numpy_model"


class Net(gluon.HybridBlock):
    """Layers, and functions of F.np and F.npx between them."""

    def __init__(self):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.conv = gluon.nn.Conv2D(2, 3, activation="relu")
            self.norm = gluon.nn.BatchNorm()
            self.dense = gluon.nn.Dense(4)

    def hybrid_forward(self, F, x):
        """Mix operators of both kinds."""
        x = self.norm(self.conv(x)) * 2 - 1
        y = self.dense(F.np.concatenate([x, F.np.exp(-x)], axis=1))
        top = F.np.max(y, axis=1, keepdims=True)
        left, right = F.np.split(F.npx.softmax(y - top), 2, axis=1)
        return F.np.where(left > right, left, right).sum(), F.np.dot(y, y.T)


npx.set_np()
net = Net()
net.initialize()
net.hybridize()
x = np.array(onp.sin(onp.arange(50)).reshape(2, 1, 5, 5).astype("float32"))
net(x)
for i, p in enumerate(net.collect_params().values()):
    values = onp.cos(onp.arange(p.data().size) + i).reshape(p.shape) * 0.3
    p.set_data(np.array((abs(values) + 0.5 if "var" in p.name else values).astype("float32")))
total, products = net(x)
DATA.mkdir(exist_ok=True)
net.export(str(DATA / "net"))
answer = {"total": float(total), "products": products.asnumpy().round(5).tolist()}
(DATA / "answer.json").write_text(json.dumps(answer))
