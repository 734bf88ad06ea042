"""LeNet on handwritten digits with the Symbol and Module APIs: fit, score, checkpoint, predict.

    python examples/lenet_module.py --epochs 10

The data are the 1,797 images of 8x8 pixels that scikit-learn ships.
"""

from __future__ import annotations

import argparse
import logging
import pathlib
import tempfile
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import mxnet as mx


def make_iterators(batch_size: int) -> tuple[mx.io.NDArrayIter, mx.io.NDArrayIter]:
    """Return iterators over training and validation batches."""
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8).astype("float32") / 16
    split = train_test_split(images, labels.astype("float32"), test_size=0.2, random_state=0)
    train_images, test_images, train_labels, test_labels = split
    return (
        mx.io.NDArrayIter(train_images, train_labels, batch_size, shuffle=True),
        mx.io.NDArrayIter(test_images, test_labels, batch_size),
    )


def make_lenet() -> mx.sym.Symbol:
    """Return the network as a graph that ends with its softmax loss."""
    net = mx.sym.var("data")
    for number, channels in enumerate([20, 50], 1):
        net = mx.sym.Convolution(
            net, num_filter=channels, kernel=(3, 3), pad=(1, 1), name=f"conv{number}"
        )
        net = mx.sym.Activation(net, act_type="tanh", name=f"tanh{number}")
        net = mx.sym.Pooling(net, pool_type="max", kernel=(2, 2), stride=(2, 2))
    net = mx.sym.FullyConnected(mx.sym.flatten(net), num_hidden=128, name="fc1")
    net = mx.sym.Activation(net, act_type="tanh")
    net = mx.sym.FullyConnected(net, num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def main(arguments: Sequence[str] | None = None) -> float:
    """Fit a module, load its checkpoint again, and return the accuracy of the loaded one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--picture", help="a file to draw the result to, such as result.png")
    options = parser.parse_args(arguments)

    mx.random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - NDArrayIter shuffles with NumPy's global generator
    train, test = make_iterators(options.batch_size)
    module = mx.mod.Module(make_lenet())
    module.logger = logging.getLogger(__name__)
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(pathlib.Path(folder) / "lenet")
        history = module.fit(
            train,
            eval_data=test,
            initializer=mx.init.Xavier(),
            optimizer_params={"learning_rate": options.learning_rate, "momentum": 0.9},
            batch_end_callback=mx.callback.Speedometer(options.batch_size, frequent=20),
            epoch_end_callback=mx.callback.do_checkpoint(prefix),
            num_epoch=options.epochs,
        )
        if options.picture:
            mx.viz.plot_history(history, options.picture)
        loaded = mx.mod.Module.load(prefix, options.epochs)
    loaded.bind(test.provide_data, test.provide_label, for_training=False)
    accuracy = dict(loaded.score(test, "acc"))["accuracy"]
    print(f"checkpoint of epoch {options.epochs}: accuracy {accuracy:.4f}")
    probabilities = loaded.predict(test)
    print(f"first image: {probabilities[0].argmax(axis=0).asscalar():.0f}, its label:", end=" ")
    print(f"{test.label[0][1][0].asscalar():.0f}")
    return accuracy


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
