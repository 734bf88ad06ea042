"""A tiny single-shot detector: anchors, targets, training, and decoded detections."""

from __future__ import annotations

from typing import Any

from . import fill, numbers, values

SIZES = [[0.2, 0.272], [0.37, 0.447]]
RATIOS = [[1, 2, 0.5]] * 2
ANCHORS = len(SIZES[0]) + len(RATIOS[0]) - 1
CLASSES = 1


def make_net(mx: Any) -> Any:
    """Return the detector: two scales, each with class and offset predictors."""
    np, npx, nn = mx.np, mx.npx, mx.gluon.nn

    def down_sample_blk(num_channels: int) -> Any:
        blk = nn.Sequential()
        blk.add(
            nn.Conv2D(num_channels, kernel_size=3, padding=1),
            nn.BatchNorm(in_channels=num_channels),
            nn.Activation("relu"),
            nn.MaxPool2D(2),
        )
        return blk

    def flatten_pred(pred: Any) -> Any:
        return npx.batch_flatten(pred.transpose(0, 2, 3, 1))

    def concat_preds(preds: list) -> Any:
        return np.concatenate([flatten_pred(p) for p in preds], axis=1)

    class TinySSD(nn.Block):
        def __init__(self, num_classes: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.num_classes = num_classes
            for i in range(2):
                setattr(self, f"blk_{i}", down_sample_blk(4 * (i + 1)))
                channels = ANCHORS * (num_classes + 1)
                setattr(self, f"cls_{i}", nn.Conv2D(channels, kernel_size=3, padding=1))
                setattr(self, f"bbox_{i}", nn.Conv2D(ANCHORS * 4, kernel_size=3, padding=1))

        def forward(self, X: Any) -> tuple:
            anchors, cls_preds, bbox_preds = [], [], []
            for i in range(2):
                X = getattr(self, f"blk_{i}")(X)
                anchors.append(npx.multibox_prior(X, sizes=SIZES[i], ratios=RATIOS[i]))
                cls_preds.append(getattr(self, f"cls_{i}")(X))
                bbox_preds.append(getattr(self, f"bbox_{i}")(X))
            cls = concat_preds(cls_preds)
            cls = cls.reshape(cls.shape[0], -1, self.num_classes + 1)
            return np.concatenate(anchors, axis=1), cls, concat_preds(bbox_preds)

    return TinySSD(num_classes=CLASSES)


def train(mx: Any) -> list[list[float]]:
    """Train a few steps; return losses and errors, then the boxes that are detected."""
    np, npx, gluon = mx.np, mx.npx, mx.gluon
    net = make_net(mx)
    net.initialize(init=mx.init.Xavier())
    X = np.array(values((2, 3, 16, 16), 4, 1.0))
    Y = np.array([[[0, 0.1, 0.08, 0.52, 0.92]], [[0, 0.55, 0.2, 0.9, 0.88]]])
    net(X)
    fill(mx, net, 0.1)
    cls_loss = gluon.loss.SoftmaxCrossEntropyLoss()
    bbox_loss = gluon.loss.L1Loss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2, "wd": 5e-4})
    history = []
    for _ in range(5):
        with mx.autograd.record():
            anchors, cls_preds, bbox_preds = net(X)
            targets = npx.multibox_target(anchors, Y, cls_preds.transpose(0, 2, 1))
            bbox_labels, bbox_masks, cls_labels = targets
            cls = cls_loss(cls_preds, cls_labels)
            bbox = bbox_loss(bbox_preds * bbox_masks, bbox_labels * bbox_masks)
            step = cls + bbox
        step.backward()
        trainer.step(X.shape[0])
        right = (cls_preds.argmax(axis=-1).astype(cls_labels.dtype) == cls_labels).sum()
        offset = np.abs((bbox_labels - bbox_preds) * bbox_masks).sum()
        history.append(numbers(step.mean(), right, offset, cls_labels.sum(), bbox_masks.sum()))
    anchors, cls_preds, bbox_preds = net(X)
    probabilities = npx.softmax(cls_preds).transpose(0, 2, 1)
    output = npx.multibox_detection(probabilities, bbox_preds, anchors)
    history.append(numbers(anchors[0, :4], output[:, :5]))
    return history
