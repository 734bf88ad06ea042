"""Linear regression by hand: arrays, gradients and nothing else."""

from __future__ import annotations

from typing import Any

from . import numbers, values


def linreg(np: Any, X: Any, w: Any, b: Any) -> Any:
    """Return the linear model's predictions."""
    return np.dot(X, w) + b


def squared_loss(y_hat: Any, y: Any) -> Any:
    """Return half the squared error of each example."""
    return (y_hat - y.reshape(y_hat.shape)) ** 2 / 2


def sgd(params: Any, lr: float, batch_size: int) -> None:
    """Take a step of minibatch stochastic gradient descent."""
    for param in params:
        param[:] = param - lr * param.grad / batch_size


def train(mx: Any) -> list[list[float]]:
    """Return the loss of every batch, and weights and loss after every epoch."""
    np = mx.np
    true_w, true_b = np.array([2, -3.4]), 4.2
    features = np.array(values((40, 2), 5, 1.5))
    labels = np.dot(features, true_w) + true_b
    labels += np.array(values((40,), 1, 0.01))
    w, b = np.array(values((2, 1), 0, 0.01)), np.zeros(1)
    w.attach_grad()
    b.attach_grad()
    history = []
    for _ in range(3):
        for start in range(0, len(features), 10):
            chosen = np.array([(start + 7 * k) % 40 for k in range(10)])
            X, y = features[chosen], labels[chosen]
            with mx.autograd.record():
                l = squared_loss(linreg(np, X, w, b), y)  # noqa: E741 (as the book has it)
            l.backward()
            sgd([w, b], 0.1, 10)
            history.append(numbers(l.sum()))
        with mx.autograd.predict_mode():
            train_l = squared_loss(linreg(np, features, w, b), labels)
        history.append(numbers(w, b, float(train_l.mean())))
    return history
