"""Model parallelism with `group2ctx`: the layers of one network on two devices.

    python examples/model_parallel.py
    python examples/model_parallel.py --devices gpu gpu

Each group of layers gets a device; what passes between groups is copied. On one machine without
GPUs two CPU contexts take their places, and the result is compared with that of one device.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits

import mxnet as mx


def make_mlp() -> mx.sym.Symbol:
    """Return a network whose lower half is in group "first" and upper half in "second"."""
    with mx.AttrScope(ctx_group="first"):
        net = mx.sym.var("data")
        net = mx.sym.FullyConnected(net, num_hidden=128, name="fc1")
        net = mx.sym.Activation(net, act_type="relu", name="relu1")
    with mx.AttrScope(ctx_group="second"):
        net = mx.sym.FullyConnected(net, num_hidden=10, name="fc2")
        return mx.sym.SoftmaxOutput(net, name="softmax")


def train(groups: dict[str, mx.Context], epochs: int, batch_size: int) -> np.ndarray:
    """Train with the groups on these devices; return the probabilities of all images."""
    images, labels = load_digits(return_X_y=True)
    images, labels = images.astype("float32") / 16, labels.astype("float32")
    mx.random.seed(0)
    home = groups["first"]
    executor = make_mlp().simple_bind(home, data=(batch_size, 64), group2ctx=groups)
    for name in ("fc1_weight", "fc2_weight"):
        weight = executor.arg_dict[name]
        print(f"  {name} on {weight.context}")
        weight[:] = mx.nd.random.normal(scale=0.1, shape=weight.shape, ctx=weight.context)
    optimizer = mx.optimizer.SGD(learning_rate=0.2, momentum=0.9, rescale_grad=1 / batch_size)
    updater = mx.optimizer.get_updater(optimizer)
    weights = [name for name in executor.arg_dict if name.startswith("fc")]
    starts = range(0, len(images) - batch_size + 1, batch_size)
    for epoch in range(1, epochs + 1):
        right = 0
        for start in starts:
            part = slice(start, start + batch_size)
            executor.forward(is_train=True, data=images[part], softmax_label=labels[part])
            executor.backward()
            right += int((executor.outputs[0].asnumpy().argmax(axis=1) == labels[part]).sum())
            for index, name in enumerate(weights):
                updater(index, executor.grad_dict[name], executor.arg_dict[name])
        print(f"  epoch {epoch}: training accuracy {right / (len(starts) * batch_size):.3f}")
    batches = (images[start : start + batch_size] for start in starts)
    return np.concatenate([executor.forward(data=batch)[0].asnumpy() for batch in batches])


def main(arguments: Sequence[str] | None = None) -> float:
    """Train on one device and on two; return the largest difference of the predictions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--devices", nargs=2, choices=("cpu", "gpu"), default=("cpu", "cpu"))
    options = parser.parse_args(arguments)

    first, second = (mx.Context(kind, number) for number, kind in enumerate(options.devices))
    print("one device")
    alone = train({"first": first, "second": first}, options.epochs, options.batch_size)
    print("two devices")
    together = train({"first": first, "second": second}, options.epochs, options.batch_size)
    difference = float(abs(alone - together).max())
    print(f"largest difference of the predictions: {difference:.1e}")
    return difference


if __name__ == "__main__":
    main()
