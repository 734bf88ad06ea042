"""A variational autoencoder that learns to draw digits.

    python examples/vae.py --epochs 50

The data are the 1,797 images of 8x8 pixels that scikit-learn ships; drawings are shown as text.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class VAE(gluon.HybridBlock):
    """Encodes an image as a normal distribution, samples from it and decodes the sample."""

    def __init__(self, latent: int, hidden: int = 256) -> None:
        super().__init__()
        with self.name_scope():
            self.encoder = nn.HybridSequential()
            self.encoder.add(nn.Dense(hidden, activation="relu"), nn.Dense(2 * latent))
            self.decoder = nn.HybridSequential()
            self.decoder.add(nn.Dense(hidden, activation="relu"), nn.Dense(64))

    def hybrid_forward(self, F, images):
        """Return the negative evidence lower bound of each image."""
        mean, log_variance = F.split(self.encoder(images), num_outputs=2, axis=1)
        noise = F.random.normal_like(mean)
        logits = self.decoder(mean + F.exp(0.5 * log_variance) * noise)
        reconstruction = F.relu(logits) - logits * images + F.log1p(F.exp(-F.abs(logits)))
        divergence = 0.5 * (mean**2 + F.exp(log_variance) - 1 - log_variance)
        return reconstruction.sum(axis=1) + divergence.sum(axis=1)


def draw(images: np.ndarray) -> str:
    """Return a row of 8x8 images with values in [0, 1] as text."""
    rows = images.reshape(-1, 8, 8).transpose(1, 0, 2)
    shades = " .:-=+*#%@"
    return "\n".join(
        "   ".join("".join(shades[int(value * 9.99)] * 2 for value in part) for part in row)
        for row in rows
    )


def save_picture(images: np.ndarray, path: str) -> None:
    """Write the images side by side to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.7), layout="constrained")
    for axes, image in zip(figure.subplots(1, len(images)), images, strict=True):
        axes.imshow(image.reshape(8, 8), cmap="gray_r")
        axes.axis("off")
    figure.savefig(path, dpi=80)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train, show new digits, and return the loss per image of the first and last epochs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--latent", type=int, default=8, help="size of the latent code")
    parser.add_argument("--picture", help="a file to draw the result to, such as result.png")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    images = load_digits(return_X_y=True)[0].astype("float32") / 16
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(images), options.batch_size, True)
    net = VAE(options.latent)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})
    losses = []
    for epoch in range(1, options.epochs + 1):
        mean_loss = mx.metric.Loss()
        for batch in loader:
            with autograd.record():
                loss = net(batch)
            loss.backward()
            trainer.step(len(batch))
            mean_loss.update(None, loss)
        losses.append(mean_loss.get()[1])
        print(f"epoch {epoch}: loss {losses[-1]:.2f} per image")
    codes = nd.random.normal(shape=(6, options.latent))
    print("drawn from random codes:")
    drawings = nd.sigmoid(net.decoder(codes)).asnumpy()
    print(draw(drawings))
    if options.picture:
        save_picture(drawings, options.picture)
    return losses[0], losses[-1]


if __name__ == "__main__":
    main()
