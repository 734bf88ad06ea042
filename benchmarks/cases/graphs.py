"""Building, inferring, saving, loading, binding and running symbols."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

_RESNET = """
import mxnet as mx

def unit(data, width, stride, match, name):
    bn1 = mx.sym.BatchNorm(data, fix_gamma=False, eps=2e-5, name=name + "_bn1")
    act1 = mx.sym.Activation(bn1, act_type="relu", name=name + "_relu1")
    conv1 = mx.sym.Convolution(act1, num_filter=width // 4, kernel=(1, 1), no_bias=True, name=name + "_conv1")
    bn2 = mx.sym.BatchNorm(conv1, fix_gamma=False, eps=2e-5, name=name + "_bn2")
    act2 = mx.sym.Activation(bn2, act_type="relu", name=name + "_relu2")
    conv2 = mx.sym.Convolution(act2, num_filter=width // 4, kernel=(3, 3), stride=stride, pad=(1, 1),
                               no_bias=True, name=name + "_conv2")
    bn3 = mx.sym.BatchNorm(conv2, fix_gamma=False, eps=2e-5, name=name + "_bn3")
    act3 = mx.sym.Activation(bn3, act_type="relu", name=name + "_relu3")
    conv3 = mx.sym.Convolution(act3, num_filter=width, kernel=(1, 1), no_bias=True, name=name + "_conv3")
    short = data if match else mx.sym.Convolution(act1, num_filter=width, kernel=(1, 1), stride=stride,
                                                  no_bias=True, name=name + "_sc")
    return conv3 + short

def resnet(units):
    body = mx.sym.Convolution(mx.sym.Variable("data"), num_filter=64, kernel=(7, 7), stride=(2, 2),
                              pad=(3, 3), no_bias=True, name="conv0")
    body = mx.sym.BatchNorm(body, fix_gamma=False, name="bn0")
    body = mx.sym.Activation(body, act_type="relu", name="relu0")
    body = mx.sym.Pooling(body, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    for i, (count, width) in enumerate(zip(units, (256, 512, 1024, 2048))):
        body = unit(body, width, (1, 1) if i == 0 else (2, 2), False, "stage%d_unit1" % i)
        for j in range(count - 1):
            body = unit(body, width, (1, 1), True, "stage%d_unit%d" % (i, j + 2))
    body = mx.sym.Activation(mx.sym.BatchNorm(body, name="bn1"), act_type="relu", name="relu1")
    body = mx.sym.Pooling(body, global_pool=True, kernel=(7, 7), pool_type="avg")
    body = mx.sym.FullyConnected(mx.sym.Flatten(body), num_hidden=1000, name="fc1")
    return mx.sym.SoftmaxOutput(body, name="softmax")

net = resnet((3, 8, 36, 3))
text = net.tojson()
shapes = {"data": (1, 3, 224, 224)}
"""
_CHAIN = """
import mxnet as mx
def chain(n):
    x = mx.sym.Variable("x")
    for _ in range(n):
        x = x + 1
    return x
short, long = chain(1000), chain(10000)
args = {"x": mx.nd.ones((2,))}
"""
_LENET_MX = """
import mxnet as mx
from mxnet import nd
data = mx.sym.Variable("data")
net = mx.sym.Convolution(data, kernel=(5, 5), num_filter=20)
net = mx.sym.Pooling(mx.sym.Activation(net, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
net = mx.sym.Convolution(net, kernel=(5, 5), num_filter=50)
net = mx.sym.Pooling(mx.sym.Activation(net, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=500)
net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=10)
net = mx.sym.SoftmaxOutput(net, name="softmax")
exe = net.simple_bind(mx.cpu(), data=(64, 1, 28, 28))
for name, array in exe.arg_dict.items():
    array[:] = nd.random.uniform(-0.1, 0.1, array.shape)
exe.arg_dict["softmax_label"][:] = 3
def step():
    exe.forward(is_train=True)
    exe.backward()
    for name, array in exe.arg_dict.items():
        if name not in ("data", "softmax_label"):
            nd.sgd_update(array, exe.grad_dict[name], lr=0.01, out=array)
    nd.waitall()
"""
_LENET_TORCH = """
import torch
from torch import nn
net = nn.Sequential(
    nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10))
loss, optimizer = nn.CrossEntropyLoss(reduction="sum"), torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.rand(64, 1, 28, 28), torch.full((64,), 3)
def step():
    optimizer.zero_grad()
    loss(net(x), y).backward()
    optimizer.step()
"""

CASES = [
    Case("LeNet step, bound", (_LENET_MX, "step()"), (_LENET_TORCH, "step()"), 10, "torch 1.05"),
    Case("ResNet-152 compose", (_RESNET, "resnet((3, 8, 36, 3))"), None, 3, "mxnet 1"),
    Case("ResNet-152 infer_shape", (_RESNET, "net.infer_shape(**shapes)"), None, 10, "mxnet 3"),
    Case("ResNet-152 tojson", (_RESNET, "net.tojson()"), None, 5, "mxnet 1"),
    Case("ResNet-152 load_json", (_RESNET, "mx.sym.load_json(text)"), None, 5, "mxnet 1"),
    Case(
        "ResNet-152 simple_bind",
        (_RESNET, "net.simple_bind(mx.cpu(), grad_req='null', **shapes)"),
        None,
        1,
        "mxnet 1",
    ),
    Case(
        "chain of 1,000, bind and run",
        (_CHAIN, "short.bind(mx.cpu(), args).forward()"),
        None,
        3,
        "mxnet 1",
    ),
    Case(
        "chain of 10,000, bind and run",
        (_CHAIN, "long.bind(mx.cpu(), args).forward()"),
        None,
        1,
        "12 x 1,000",
    ),
]
