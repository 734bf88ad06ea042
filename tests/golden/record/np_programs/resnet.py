"""A small ResNet with batch normalization, hybridized, trained with momentum."""

from __future__ import annotations

from typing import Any

from . import fill, numbers, values


def make_net(mx: Any) -> Any:
    """Return the network: a stem, two stages of residual blocks, a classifier."""
    npx, nn = mx.npx, mx.gluon.nn

    class Residual(nn.HybridBlock):
        def __init__(
            self, num_channels: int, use_1x1conv: bool = False, strides: int = 1, **kwargs: Any
        ) -> None:
            super().__init__(**kwargs)
            self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
            self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
            if use_1x1conv:
                self.conv3 = nn.Conv2D(num_channels, kernel_size=1, strides=strides)
            else:
                self.conv3 = None
            self.bn1 = nn.BatchNorm()
            self.bn2 = nn.BatchNorm()

        def hybrid_forward(self, F: Any, X: Any) -> Any:
            Y = F.npx.relu(self.bn1(self.conv1(X)))
            Y = self.bn2(self.conv2(Y))
            if self.conv3:
                X = self.conv3(X)
            return F.npx.relu(Y + X)

    def resnet_block(num_channels: int, num_residuals: int, first_block: bool = False) -> Any:
        blk = nn.HybridSequential()
        for i in range(num_residuals):
            if i == 0 and not first_block:
                blk.add(Residual(num_channels, use_1x1conv=True, strides=2))
            else:
                blk.add(Residual(num_channels))
        return blk

    assert npx.is_np_array()
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, kernel_size=3, strides=1, padding=1),
        nn.BatchNorm(),
        nn.Activation("relu"),
        resnet_block(4, 1, first_block=True),
        resnet_block(8, 2),
        nn.GlobalAvgPool2D(),
        nn.Dense(5),
    )
    return net


def train(mx: Any) -> list[list[float]]:
    """Train a few steps; return the losses, and the accuracy and outputs in prediction."""
    np, gluon = mx.np, mx.gluon
    net = make_net(mx)
    net.initialize(init=mx.init.Xavier())
    X = np.array(values((6, 3, 8, 8), 2, 1.0))
    y = np.array([0, 1, 2, 3, 4, 0])
    net(X)
    fill(mx, net)
    net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9})
    history = []
    for _ in range(5):
        with mx.autograd.record():
            y_hat = net(X)
            step = loss(y_hat, y)
        step.backward()
        trainer.step(X.shape[0])
        accuracy = (y_hat.argmax(axis=1).astype(y.dtype) == y).astype(np.float32).mean()
        history.append(numbers(step.mean(), accuracy))
    history.append(numbers(net(X)[:2]))
    return history
