"""Softmax regression by hand, and the same by Gluon."""

from __future__ import annotations

from typing import Any

from . import fill, numbers, values


def softmax(np: Any, X: Any) -> Any:
    """Return each row divided by its sum, after the exponential."""
    X_exp = np.exp(X)
    partition = X_exp.sum(1, keepdims=True)
    return X_exp / partition


def cross_entropy(np: Any, y_hat: Any, y: Any) -> Any:
    """Return minus the logarithm of the probability of each label."""
    return -np.log(y_hat[range(len(y_hat)), y])


def accuracy(y_hat: Any, y: Any) -> float:
    """Return how many predictions are right."""
    if len(y_hat.shape) > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(axis=1)
    return float((y_hat.astype(y.dtype) == y).sum())


def by_hand(mx: Any, X: Any, y: Any) -> list[list[float]]:
    """Train weights that are plain arrays."""
    np = mx.np
    W, b = np.array(values((12, 4), 2, 0.1)), np.zeros(4)
    W.attach_grad()
    b.attach_grad()
    history = []
    for _ in range(6):
        with mx.autograd.record():
            y_hat = softmax(np, np.dot(X.reshape((-1, W.shape[0])), W) + b)
            l = cross_entropy(np, y_hat, y)  # noqa: E741 (as the book has it)
        l.backward()
        for param in (W, b):
            param[:] = param - 0.5 * param.grad / len(y)
        history.append(numbers(l.mean(), accuracy(y_hat, y)))
    return history


def by_gluon(mx: Any, X: Any, y: Any) -> list[list[float]]:
    """Train a layer with a loss, a trainer and a metric."""
    np, gluon = mx.np, mx.gluon
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Flatten(), gluon.nn.Dense(4))
    net.initialize(mx.init.Normal(sigma=0.01))
    net(X)
    fill(mx, net, 0.1)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    batches = gluon.data.DataLoader(gluon.data.ArrayDataset(X, y), batch_size=6, shuffle=False)
    history = []
    for _ in range(3):
        for features, labels in batches:
            with mx.autograd.record():
                l = loss(net(features), labels)  # noqa: E741
            l.backward()
            trainer.step(features.shape[0])
            history.append(numbers(l, np.argmax(net(features), axis=1)))
    return history


def train(mx: Any) -> list[list[float]]:
    """Return losses and accuracies of both."""
    X = mx.np.array(values((18, 3, 4), 3, 1.0))
    y = mx.np.array([k * 5 % 4 for k in range(18)], dtype="int32")
    return [*by_hand(mx, X, y), *by_gluon(mx, X, y)]
