"""Deep Q-learning: a network learns to balance a pole on a cart.

    python examples/dqn.py --episodes 400

The environment is the classic cart-pole, written out in NumPy: no package for games is needed.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class CartPole:
    """A pole on a cart that is pushed left (0) or right (1); an episode has at most 200 steps."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random, self.state, self.steps = random, np.zeros(4), 0

    def reset(self) -> np.ndarray:
        """Return position, speed, angle and angular speed of a new start."""
        self.state, self.steps = self.random.uniform(-0.05, 0.05, 4), 0
        return self.state

    def step(self, action: int) -> tuple[np.ndarray, bool, bool]:
        """Advance 0.02 s; return the state, whether the pole fell and whether time is up."""
        _, speed, angle, turn = self.state
        sine, cosine = np.sin(angle), np.cos(angle)
        push = ((10 if action else -10) + 0.05 * turn**2 * sine) / 1.1
        spin = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        change = np.array([speed, push - 0.05 * spin * cosine / 1.1, turn, spin])
        self.state, self.steps = self.state + 0.02 * change, self.steps + 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state, bool(fell), self.steps >= 200


def make_net() -> nn.HybridSequential:
    """Return a network that gives the value of both actions."""
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu", in_units=4))
    net.add(nn.Dense(64, activation="relu", in_units=64), nn.Dense(2, in_units=64))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def copy_parameters(source: gluon.Block, target: gluon.Block) -> None:
    """Give `target` the values of `source`."""
    pairs = zip(source.collect_params().values(), target.collect_params().values(), strict=True)
    for mine, other in pairs:
        other.set_data(mine.data())


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Learn from replayed steps; return the mean length of the first and the best 20 episodes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--discount", type=float, default=0.99)
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    random = np.random.default_rng(0)
    game, memory = CartPole(random), collections.deque(maxlen=20_000)
    net, target_net = make_net(), make_net()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})
    loss_fn, lengths, steps = gluon.loss.HuberLoss(), [], 0
    for episode in range(1, options.episodes + 1):
        state, fell, is_over = game.reset(), False, False
        explore = max(0.02, 1 - episode / 80)
        while not (fell or is_over):
            explores = random.random() < explore
            action = random.integers(2) if explores else net(nd.array([state])).asnumpy().argmax()
            following, fell, is_over = game.step(int(action))
            memory.append((state, action, following, fell))
            state, steps = following, steps + 1
            if steps % 200 == 1:
                copy_parameters(net, target_net)
            if len(memory) < 200:
                continue
            chosen = [memory[i] for i in random.integers(len(memory), size=options.batch_size)]
            columns = (nd.array(np.array(column)) for column in zip(*chosen, strict=True))
            states, actions, followings, ends = columns
            future = (1 - ends) * target_net(followings).max(axis=1)
            with autograd.record():
                values = nd.pick(net(states), actions)
                loss = loss_fn(values, 1 + options.discount * future)
            loss.backward()
            trainer.step(options.batch_size)
        lengths.append(game.steps)
        if episode % 20 == 0:
            print(f"episode {episode}: {np.mean(lengths[-20:]):.0f} steps, mean of the last 20")
    means = np.convolve(lengths, np.ones(20) / 20, mode="valid")
    print(f"from {means[0]:.0f} steps to {means.max():.0f} (200 is perfect)")
    return float(means[0]), float(means.max())


if __name__ == "__main__":
    main()
