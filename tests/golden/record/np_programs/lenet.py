"""LeNet, eagerly and hybridized, with momentum and weight decay."""

from __future__ import annotations

from typing import Any

from . import fill, numbers, values


def make_net(nn: Any) -> Any:
    """Return LeNet for small pictures."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(channels=4, kernel_size=5, padding=2, activation="sigmoid"),
        nn.AvgPool2D(pool_size=2, strides=2),
        nn.Conv2D(channels=6, kernel_size=3, activation="tanh"),
        nn.MaxPool2D(pool_size=2, strides=2),
        nn.Dense(12, activation="relu"),
        nn.Dense(5),
    )
    return net


def run(mx: Any, hybridize: bool) -> list[list[float]]:
    """Return the loss and the accuracy of every step."""
    np, gluon = mx.np, mx.gluon
    X = np.array(values((8, 1, 12, 12), 4, 1.0))
    y = np.array([k * 3 % 5 for k in range(8)])
    net = make_net(gluon.nn)
    net.initialize(init=mx.init.Xavier())
    net(X)
    fill(mx, net)
    if hybridize:
        net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    settings = {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-3}
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings)
    history = []
    for _ in range(5):
        with mx.autograd.record():
            y_hat = net(X)
            l = loss(y_hat, y)  # noqa: E741 (as the book has it)
        l.backward()
        trainer.step(X.shape[0])
        right = (y_hat.argmax(axis=1).astype("float32") == y).sum()
        history.append(numbers(l.mean(), right))
    history.append(numbers(net[0].weight.grad().sum(), net[-1].bias.data()))
    return history


def train(mx: Any) -> list[list[float]]:
    """Return what eager training gave, then what hybridized training gave."""
    return [*run(mx, False), *run(mx, True)]
