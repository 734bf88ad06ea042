"""Operators of your own: forward and backward in Python, used by NDArray, Symbol and Gluon.

    python examples/custom_operator.py

The operator is a quantile ("pinball") loss. A network trained with it predicts a range that holds
80 % of noisy measurements instead of their mean only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class PinballLoss(mx.operator.CustomOp):
    """Costs `q` per unit above the prediction and `1 - q` per unit below it."""

    def __init__(self, quantiles: list[float]) -> None:
        super().__init__()
        self.quantiles = nd.array([quantiles])

    def forward(self, is_train, req, in_data, out_data, aux):
        """Compute the loss of each prediction."""
        error = in_data[1].expand_dims(1) - in_data[0]
        loss = nd.maximum(self.quantiles * error, (self.quantiles - 1) * error)
        self.assign(out_data[0], req[0], loss)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        """Pass the slope on to the predictions; targets need no gradient."""
        is_above = in_data[1].expand_dims(1) > in_data[0]
        self.assign(in_grad[0], req[0], out_grad[0] * (1 - is_above - self.quantiles))
        self.assign(in_grad[1], req[1], 0)


@mx.operator.register("pinball_loss")
class PinballLossProp(mx.operator.CustomOpProp):
    """Describes the operator: names, shapes, and how to make it from string attributes."""

    def __init__(self, quantiles: str) -> None:
        super().__init__(need_top_grad=True)
        self.quantiles = [float(part) for part in quantiles.split()]

    def list_arguments(self):
        """Name the inputs."""
        return ["prediction", "target"]

    def infer_shape(self, in_shape):
        """Return shapes of inputs, outputs and auxiliary states."""
        predictions = in_shape[0]
        return [predictions, predictions[:1]], [predictions], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        """Make the object that computes."""
        return PinballLoss(self.quantiles)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train on noisy measurements; return the fraction of new ones in the predicted range."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=1000)
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, 4000).astype("float32")
    y = (np.sin(4 * x) + (0.2 + 0.4 * np.abs(x)) * random.standard_normal(4000)).astype("float32")
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="tanh"), nn.Dense(64, activation="tanh"), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 5e-3})
    for iteration in range(1, options.iterations + 1):
        chosen = random.integers(3000, size=128)
        inputs, targets = nd.array(x[chosen, None]), nd.array(y[chosen])
        with autograd.record():
            loss = nd.Custom(net(inputs), targets, op_type="pinball_loss", quantiles="0.1 0.5 0.9")
        loss.backward()
        trainer.step(len(chosen))
        if iteration % 200 == 0:
            print(f"iteration {iteration}: loss {loss.mean().asscalar():.4f}")
    low, _, high = net(nd.array(x[3000:, None])).asnumpy().T
    inside = float(((low <= y[3000:]) & (y[3000:] <= high)).mean())
    for point in (-1.0, -0.5, 0.0, 0.5, 1.0):
        low, middle, high = net(nd.array([[point]]))[0].asnumpy()
        print(f"x = {point:4.1f}: {middle:5.2f}, 80 % between {low:5.2f} and {high:5.2f}")
    print(f"{inside:.1%} of new measurements lie in the range (80 % expected)")
    return inside


if __name__ == "__main__":
    main()
