"""Networks of the model zoo, declared once for MXNet and for us; `mx` comes in as an argument."""

from __future__ import annotations

import hashlib

import numpy as np

# one of each family, and the smallest images it reads
SEEN = {
    "alexnet": 64,
    "vgg11": 32,
    "vgg11_bn": 32,
    "resnet18_v1": 32,
    "resnet50_v1": 32,
    "resnet18_v2": 32,
    "resnet50_v2": 32,
    "squeezenet1.0": 224,
    "squeezenet1.1": 224,
    "mobilenet0.25": 32,
    "mobilenetv2_0.25": 32,
    "densenet121": 224,
    "inceptionv3": 299,
}
SLOW = {"densenet121", "inceptionv3"}
# networks whose parameters are recorded one by one, not as a sum
LISTED = ("alexnet", "resnet18_v1", "squeezenet1.1", "mobilenetv2_0.25")


def parameters(net):
    """Return [name, structural name, shape, grad_req] of every parameter, in order."""
    structure = {id(p): key for key, p in net._collect_params_with_prefix().items()}
    return [
        [name, structure[id(p)], [int(n) for n in p.shape], p.grad_req]
        for name, p in net.collect_params().items()
    ]


def summary(mx, name):
    """Return how many parameters a network has and a sum over their names and shapes."""
    net = mx.gluon.model_zoo.vision.get_model(name, prefix="net_")
    rows = parameters(net)
    digest = hashlib.sha1(repr(rows).encode()).hexdigest()
    found = {"count": len(rows), "sha1": digest}
    if name in LISTED:
        found["parameters"] = rows
    return found


def fill(mx, net):
    """Give every parameter values that keep signals about as strong as they came."""
    for i, p in enumerate(net.collect_params().values()):
        random = np.random.RandomState(i)
        values = random.uniform(-1, 1, size=p.shape)
        if p.name.endswith("weight"):
            values *= np.sqrt(6 / max(1, np.prod(p.shape[1:])))
        elif p.name.endswith(("gamma", "running_var")):
            values = 1 + 0.2 * values
        else:
            values *= 0.1
        p.set_data(mx.nd.array(values))


def seen(mx, name, hybridize=False):
    """Return what a network makes of a picture."""
    net = mx.gluon.model_zoo.vision.get_model(name, classes=10)
    net.initialize()
    if hybridize:
        net.hybridize()
    size = SEEN[name]
    picture = mx.nd.array(np.random.RandomState(7).normal(size=(1, 3, size, size)))
    net(picture)
    fill(mx, net)
    return net(picture).asnumpy()
