"""Matrix factorization: ratings as products of user and item embeddings, trained with Adam."""

from __future__ import annotations

from typing import Any

import numpy as onp

from . import fill, numbers, values

USERS, ITEMS, FACTORS = 12, 9, 4


def make_net(mx: Any) -> Any:
    """Return the model: biased dot products of embeddings."""
    np, nn = mx.np, mx.gluon.nn

    class MF(nn.Block):
        def __init__(self, num_factors: int, num_users: int, num_items: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.P = nn.Embedding(input_dim=num_users, output_dim=num_factors)
            self.Q = nn.Embedding(input_dim=num_items, output_dim=num_factors)
            self.user_bias = nn.Embedding(num_users, 1)
            self.item_bias = nn.Embedding(num_items, 1)

        def forward(self, user_id: Any, item_id: Any) -> Any:
            P_u = self.P(user_id)
            Q_i = self.Q(item_id)
            b_u = self.user_bias(user_id)
            b_i = self.item_bias(item_id)
            outputs = (P_u * Q_i).sum(axis=1) + np.squeeze(b_u) + np.squeeze(b_i)
            return outputs.flatten()

    return MF(FACTORS, USERS, ITEMS)


def train(mx: Any) -> list[list[float]]:
    """Train on all ratings in batches; return the loss of each step and the test error."""
    np, autograd, gluon = mx.np, mx.autograd, mx.gluon
    users, items = onp.meshgrid(onp.arange(USERS), onp.arange(ITEMS), indexing="ij")
    users, items = users.ravel(), items.ravel()
    ratings = onp.round(3 + 4 * values((USERS * ITEMS,), 5)).clip(1, 5)
    data = gluon.data.ArrayDataset(
        users.astype("int32"), items.astype("int32"), ratings.astype("float32")
    )
    loader = gluon.data.DataLoader(data, batch_size=27, shuffle=False, last_batch="rollover")
    net = make_net(mx)
    net.initialize(mx.init.Normal(0.01))
    net(np.array([0, 1], dtype="int32"), np.array([0, 1], dtype="int32"))
    fill(mx, net)
    loss = gluon.loss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05, "wd": 1e-5})
    history = []
    for _ in range(3):
        for user, item, rating in loader:
            with autograd.record():
                prediction = net(user, item)
                step = loss(prediction, rating)
            step.backward()
            trainer.step(user.shape[0])
            history.append(numbers(step.mean()))
        everyone = net(np.array(users, dtype="int32"), np.array(items, dtype="int32"))
        error = np.sqrt(np.square(everyone - np.array(ratings)).mean())
        history.append(numbers(error, np.argmax(everyone), np.sort(everyone)[:3]))
    return history
