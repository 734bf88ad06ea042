import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

net = nn.HybridSequential()
with net.name_scope():
    net.add(nn.Conv2D(channels=20, kernel_size=5, activation="relu"))
    net.add(nn.MaxPool2D(pool_size=2, strides=2))
    net.add(nn.Flatten())
    net.add(nn.Dense(10))
net.initialize(mx.init.Xavier(), ctx=mx.cpu())
net.hybridize()
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
x = nd.random.uniform(shape=(4, 1, 28, 28))
y = nd.array([1, 2, 3, 4])
with autograd.record():
    out = net(x)
    loss = loss_fn(out, y)
loss.backward()
trainer.step(4)
print(loss.mean().asscalar(), (x + 1).sum().asnumpy(), nd.dot(y, y), -x, x[0:2].shape)
z = nd.relu(x) * 2 + nd.softmax(x, axis=-1)
a = mx.sym.Variable("data")
fc = mx.sym.FullyConnected(a, num_hidden=10, name="fc")
s = mx.sym.SoftmaxOutput(mx.sym.Activation(fc, act_type="relu"), name="softmax")
mod = mx.mod.Module(s, context=mx.cpu())
it = mx.io.NDArrayIter(x.asnumpy(), y.asnumpy(), 2)
mod.fit(it, num_epoch=1, optimizer_params={"learning_rate": 0.1})
print(mod.score(it, "acc"), s.list_arguments(), (fc + fc).infer_shape(data=(1, 2)))
for batch in it:
    mod.forward(batch)
    print(mod.get_outputs()[0].asnumpy())
