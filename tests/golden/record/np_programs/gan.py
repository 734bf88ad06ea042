"""A generative adversarial net that learns a two-dimensional Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as onp

from . import fill, numbers, values


def make_nets(mx: Any) -> tuple[Any, Any]:
    """Return the generator and the discriminator."""
    nn = mx.gluon.nn
    net_G = nn.Sequential()
    net_G.add(nn.Dense(2))
    net_D = nn.Sequential()
    net_D.add(nn.Dense(5, activation="tanh"), nn.Dense(3, activation="tanh"), nn.Dense(1))
    return net_G, net_D


def update_D(mx: Any, X: Any, Z: Any, net_D: Any, net_G: Any, loss: Any, trainer_D: Any) -> Any:
    """Update the discriminator."""
    np = mx.np
    batch_size = X.shape[0]
    ones = np.ones((batch_size,), ctx=X.ctx)
    zeros = np.zeros((batch_size,), ctx=X.ctx)
    with mx.autograd.record():
        real_Y = net_D(X)
        fake_X = net_G(Z)
        fake_Y = net_D(fake_X.detach())
        loss_D = (loss(real_Y, ones) + loss(fake_Y, zeros)) / 2
    loss_D.backward()
    trainer_D.step(batch_size)
    return loss_D.sum()


def update_G(mx: Any, Z: Any, net_D: Any, net_G: Any, loss: Any, trainer_G: Any) -> Any:
    """Update the generator."""
    np = mx.np
    batch_size = Z.shape[0]
    ones = np.ones((batch_size,), ctx=Z.ctx)
    with mx.autograd.record():
        fake_X = net_G(Z)
        fake_Y = net_D(fake_X)
        loss_G = loss(fake_Y, ones)
    loss_G.backward()
    trainer_G.step(batch_size)
    return loss_G.sum()


def train(mx: Any) -> list[list[float]]:
    """Train both nets by turns; return their losses, and points of the generator at the end."""
    np, gluon = mx.np, mx.gluon
    X = np.array(values((32, 2), 3, 2.0))
    A = np.array([[1, 2], [-0.1, 0.5]])
    b = np.array([1, 2])
    data = np.dot(X, A) + b
    net_G, net_D = make_nets(mx)
    loss = gluon.loss.SigmoidBCELoss()
    for net in (net_D, net_G):
        net.initialize(init=mx.init.Normal(0.02), force_reinit=True)
        net(X)
        fill(mx, net)
    trainer_D = gluon.Trainer(net_D.collect_params(), "adam", {"learning_rate": 0.05})
    trainer_G = gluon.Trainer(net_G.collect_params(), "adam", {"learning_rate": 0.02})
    history = []
    for epoch in range(4):
        for start in range(0, 32, 8):
            batch = data[start : start + 8]
            Z = np.array(onp.roll(values((8, 2), 11, 1.5), epoch, axis=0))
            losses = (
                update_D(mx, batch, Z, net_D, net_G, loss, trainer_D),
                update_G(mx, Z, net_D, net_G, loss, trainer_G),
            )
            history.append(numbers(*losses))
    fake = net_G(np.array(values((4, 2), 1)))
    history.append(numbers(fake, fake.mean(axis=0), fake.std(axis=0)))
    return history
