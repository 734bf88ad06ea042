"""A generative adversarial network that learns a ring of eight Gaussians.

    python examples/gan.py --iterations 4000

The generator never sees the data: it learns from the discriminator only. The plot in the terminal
shows generated points; the result is the fraction of them that lie close to one of the modes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

ANGLES = np.arange(8) * np.pi / 4
MODES = 2 * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


def sample_ring(random: np.random.Generator, count: int) -> nd.NDArray:
    """Return points of the true distribution, shape (count, 2)."""
    centers = MODES[random.integers(8, size=count)]
    return nd.array(centers + 0.1 * random.standard_normal((count, 2)))


def make_mlp(outputs: int) -> nn.HybridSequential:
    """Return a network with two hidden layers."""
    net = nn.HybridSequential()
    net.add(nn.Dense(128), nn.LeakyReLU(0.2), nn.Dense(128), nn.LeakyReLU(0.2), nn.Dense(outputs))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def plot(points: np.ndarray, size: int = 21) -> str:
    """Return a density plot of points in [-3, 3]² as text."""
    counts, _, _ = np.histogram2d(*points.T, bins=size, range=[[-3, 3], [-3, 3]])
    shades = np.array(list(" .:*#"))
    return "\n".join("".join(shades[np.minimum(row, 4).astype(int)]) for row in counts.T[::-1])


def save_picture(points: np.ndarray, path: str) -> None:
    """Draw generated points and the modes of the data to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.scatter(*points.T, s=4, label="generated")
    axes.scatter(*MODES.T, s=60, marker="x", color="tab:red", label="modes of the data")
    axes.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    axes.legend()
    figure.savefig(path, dpi=80)


def main(arguments: Sequence[str] | None = None) -> tuple[float, int]:
    """Train both networks; return the fraction of good points and the number of modes found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=3000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--latent", type=int, default=16, help="size of the generator's input")
    parser.add_argument("--picture", help="a file to draw the result to, such as result.png")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    random = np.random.default_rng(0)
    generator, discriminator = make_mlp(2), make_mlp(1)
    settings = {"learning_rate": 1e-3, "beta1": 0.5}
    generator_trainer = gluon.Trainer(generator.collect_params(), "adam", settings)
    discriminator_trainer = gluon.Trainer(discriminator.collect_params(), "adam", settings)
    loss_fn = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    real, fake = nd.ones(options.batch_size), nd.zeros(options.batch_size)
    for iteration in range(1, options.iterations + 1):
        points = generator(nd.random.normal(shape=(options.batch_size, options.latent)))
        with autograd.record():
            loss_d = loss_fn(discriminator(sample_ring(random, options.batch_size)), real)
            loss_d = loss_d + loss_fn(discriminator(points.detach()), fake)
        loss_d.backward()
        discriminator_trainer.step(options.batch_size)

        noise = nd.random.normal(shape=(options.batch_size, options.latent))
        with autograd.record():
            loss_g = loss_fn(discriminator(generator(noise)), real)
        loss_g.backward()
        generator_trainer.step(options.batch_size)
        if iteration % 500 == 0:
            losses = f"{loss_d.mean().asscalar():.3f}, generator {loss_g.mean().asscalar():.3f}"
            print(f"iteration {iteration}: loss of discriminator {losses}")

    points = generator(nd.random.normal(shape=(1000, options.latent))).asnumpy()
    distances = np.linalg.norm(points[:, None] - MODES, axis=2)
    close = distances.min(axis=1) < 0.5
    result = len(set(distances.argmin(axis=1)[close]))
    print(plot(points))
    if options.picture:
        save_picture(points, options.picture)
    print(f"{close.mean():.0%} of the points lie at one of {result} modes (of 8)")
    return float(close.mean()), result


if __name__ == "__main__":
    main()
