"""A factorization machine on sparse data: learn which features matter together.

    python examples/factorization_machine.py --epochs 20

Each sample has a few active features out of thousands, as in the logs of a shop. Data are CSR
matrices, gradients are row_sparse, and lazy updates touch the rows of active features only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.ndarray import sparse


def make_data(samples: int, users: int, items: int) -> tuple[sparse.CSRNDArray, np.ndarray]:
    """Return one-hot users and items in a row each, and whether the user likes the item.

    A user likes the items of similar taste: a product that no linear model can express.
    """
    random = np.random.default_rng(0)
    taste_of_user = random.standard_normal((users, 2))
    taste_of_item = random.standard_normal((items, 2))
    user, item = random.integers(users, size=samples), random.integers(items, size=samples)
    likes = (taste_of_user[user] * taste_of_item[item]).sum(axis=1) > 0
    columns = np.stack([user, users + item], axis=1).ravel()
    values, starts = np.ones(2 * samples, dtype="float32"), np.arange(samples + 1) * 2
    rows = sparse.csr_matrix((values, columns, starts), shape=(samples, users + items))
    return rows, likes.astype("float32")


class FactorizationMachine(gluon.Block):
    """Score = bias + x·w + ½|x·v|²: all pairs of features in linear time.

    Features are 0 or 1, so the linear weight corrects for the pair of a feature with itself.
    Without factors it is a linear model.
    """

    def __init__(self, features: int, factors: int) -> None:
        super().__init__()
        init = mx.init.Normal(0.1)
        row_sparse = {"stype": "row_sparse", "grad_stype": "row_sparse"}
        with self.name_scope():
            self.bias = self.params.get("bias", shape=(1,), init="zeros")
            self.linear = self.params.get("linear", shape=(features, 1), init="zeros", **row_sparse)
            if factors:
                shape = (features, factors)
                self.factors = self.params.get("factors", shape=shape, init=init, **row_sparse)
            else:
                self.factors = None

    def forward(self, rows: sparse.CSRNDArray) -> nd.NDArray:
        """Return a logit for each row."""
        active = rows.indices
        linear = sparse.dot(rows, self.linear.row_sparse_data(active))
        score = self.bias.data() + linear.reshape((-1,))
        if self.factors is None:
            return score
        pairs = sparse.dot(rows, self.factors.row_sparse_data(active)) ** 2
        return score + 0.5 * pairs.sum(axis=1)


def accuracy(net: gluon.Block, rows: sparse.CSRNDArray, likes: np.ndarray) -> float:
    """Return the fraction of right predictions."""
    return float(((net(rows).asnumpy() > 0) == likes).mean())


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train a linear model and a factorization machine; return the accuracies of both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--items", type=int, default=500)
    options = parser.parse_args(arguments)

    rows, likes = make_data(25_000, options.users, options.items)
    size, result = options.batch_size, 0.0
    loss_fn = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    results = []
    for factors in (0, 8):
        mx.random.seed(0)
        net = FactorizationMachine(rows.shape[1], factors)
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
        print(f"{factors} factors" if factors else "linear model")
        for epoch in range(1, options.epochs + 1):
            for start in range(0, 20_000 - size + 1, size):
                batch, labels = rows[start : start + size], nd.array(likes[start : start + size])
                with autograd.record():
                    loss = loss_fn(net(batch), labels)
                loss.backward()
                trainer.step(size)
            result = accuracy(net, rows[20_000:], likes[20_000:])
            print(f"  epoch {epoch}: accuracy on new pairs {result:.3f}")
        results.append(result)
    return results[0], results[1]


if __name__ == "__main__":
    main()
