"""Typical programs with arrays and autograd."""

import mxnet as mx
from mxnet import autograd, nd

x = nd.array([[1, 2], [3, 4]], ctx=mx.cpu(), dtype="float32")
w = nd.random.normal(shape=(2, 3))
w.attach_grad()
with autograd.record():
    y = nd.dot(x, w).tanh()
    loss = (y**2).mean()
loss.backward()
w -= 0.1 * w.grad
print(w.shape, y.argmax(axis=1).asnumpy(), x[0, 1].asscalar(), float(loss.asnumpy()[0]))
parts = nd.split(nd.concat(x, x, dim=1), num_outputs=2, axis=1)
print(parts[0] > 2, x.reshape((4,)).sum(), nd.stack(x, x, axis=0), x.T, x.astype("int32"))
print(nd.FullyConnected(x, nd.ones((5, 2)), nd.zeros((5,)), num_hidden=5))
