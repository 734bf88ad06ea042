"""`ImageDetIter`: batches of images with boxes; MXNet's module of all detection code.

The label of an image in a file is: length of the header (including these two), length of an object,
the rest of the header, then the objects: class, left, top, right, bottom and optional values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..error import MXNetError, ShapeError
from ..formats.image_codec import opencv
from ..ndarray import NDArray
from . import chance
from .augmenters import (  # MXNet exports the wrapped augmenters too
    DEVIATION,
    MEAN,
    Augmenter,  # noqa: F401
    CastAug,  # noqa: F401
    ColorJitterAug,  # noqa: F401
    ColorNormalizeAug,  # noqa: F401
    ForceResizeAug,  # noqa: F401
    HueJitterAug,  # noqa: F401
    LightingAug,  # noqa: F401
    RandomGrayAug,  # noqa: F401
    RandomOrderAug,  # noqa: F401
    ResizeAug,  # noqa: F401
)
from .detection_augmenters import (
    CreateDetAugmenter,
    CreateMultiRandCropAugmenter,
    DetAugmenter,
    DetBorrowAug,
    DetHorizontalFlipAug,
    DetRandomCropAug,
    DetRandomPadAug,
    DetRandomSelectAug,
)
from .iterator import ImageIter, logger

__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
    "ImageDetIter",
]


class BadLabel(MXNetError, ValueError):
    """Raised if the label of an image is not a valid detection label."""


class ImageDetIter(ImageIter):
    """Yields batches of augmented images and their boxes; rows without an object are -1.

    Parameters are those of `ImageIter`, and of `CreateDetAugmenter` without ``aug_list``.
    `label_shape` is (maximum number of objects, length of an object), found by reading all labels
    once.

    Parameters
    ----------
    batch_size
        Number of images in a batch.
    data_shape
        Channels, height and width of the result.
    path_imgrec
        A record file.
    path_imglist
        A list file (`.lst`).
    path_root
        Folder that the paths are relative to.
    path_imgidx
        Index of the record file; required to shuffle or read a part.
    shuffle
        Whether to shuffle in each epoch.
    part_index
        Index of the part to read.
    num_parts
        Number of parts the images are split into.
    aug_list
        The augmenters; by default selected by `kwargs`.
    imglist
        Labels and path of each image, instead of a list file.
    data_name
        Name of the data.
    label_name
        Name of the labels.
    last_batch_handle
        What to do with an incomplete last batch: ``'pad'``, ``'discard'`` or
        ``'roll_over'``.

    >>> import cv2
    >>> cv2.imwrite("a.png", np.zeros((8, 8, 3), "uint8"))
    True
    >>> label = [2, 5, 0, 0.1, 0.1, 0.9, 0.9]  # header and object lengths, then class and corners
    >>> images = mx.image.ImageDetIter(1, (3, 4, 4), imglist=[[*label, "a.png"]], path_root=".")
    >>> next(images).label[0].shape
    (1, 1, 5)
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: list[DetAugmenter] | None = None,
        imglist: list | None = None,
        data_name: str = "data",
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            batch_size=batch_size,
            data_shape=data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=[],
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
        )
        self.auglist = CreateDetAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [(label_name, (batch_size, *self.label_shape))]

    def _estimate_label_shape(self) -> tuple[int, int]:
        """Read all labels; return the maximum number of objects and the length of an object."""
        most, length = 0, 0
        self.reset()
        try:
            while True:
                label, _ = self.next_sample()
                objects = self._parse_label(label)
                most, length = max(most, len(objects)), max(length, objects.shape[1])
        except StopIteration:
            self.reset()
        return most, length

    def _parse_label(self, label: Any) -> np.ndarray:
        """Return the objects of a label as rows, without objects of zero size."""
        values = label.asnumpy() if isinstance(label, NDArray) else np.asarray(label)
        raw = values.reshape(-1)
        if raw.size < 7:
            raise BadLabel(
                f"Label shape is invalid: {values.shape}. For detection it must have: length of "
                "the header, length of an object (5 or more), then the objects."
            )
        header, length = int(raw[0]), int(raw[1])
        if header < 2 or length < 5 or (raw.size - header) % length:
            raise BadLabel(
                f"Label shape {values.shape} inconsistent with annotation width {length} "
                f"and header width {header}."
            )
        objects = raw[header:].reshape(-1, length)
        objects = objects[(objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])]
        if not len(objects):
            raise BadLabel("Encounter sample with no valid label.")
        return objects

    def _sample(self) -> tuple[NDArray, np.ndarray]:
        """Return the next preprocessed image with at least one object, and its objects."""
        while True:
            label, content = self.next_sample()
            image = self._decoded(content)
            try:
                with chance.one_image():
                    image, objects = self.augmentation_transform(image, self._parse_label(label))
                self._check_valid_label(objects)
            except BadLabel as error:
                logger.warning("Skipped an image, %s: %s", self._place(), error)
                continue
            return self.postprocess_data(image), objects

    def _check_valid_label(self, label: np.ndarray) -> None:
        if label.ndim != 2 or label.shape[1] < 5:
            raise BadLabel(f"Label with shape (1+, 5+) required, {label.shape} received.")
        real = (label[:, 0] >= 0) & (label[:, 3] > label[:, 1]) & (label[:, 4] > label[:, 2])
        if not real.any():
            raise BadLabel("Invalid label occurs: no object of a class from 0 on.")

    def _labels(self, labels: list[np.ndarray]) -> NDArray:
        rows = np.full((self.batch_size, *self.label_shape), -1, np.float32)
        for number, objects in enumerate(labels):
            if objects.shape[1] != self.label_shape[1]:
                raise ShapeError(
                    f"Objects have {objects.shape[1]} numbers in one image and "
                    f"{self.label_shape[1]} in others."
                )
            few = objects[: self.label_shape[0]]
            rows[number, : len(few)] = few
        return nd.array(rows)

    def augmentation_transform(  # type: ignore[override] (boxes go along)
        self, data: NDArray, label: np.ndarray
    ) -> tuple[NDArray, np.ndarray]:
        """Return the image and its objects after all augmenters."""
        for augmenter in self.auglist:
            data, label = augmenter(data, label)
        return data, label

    def reshape(
        self,
        data_shape: tuple[int, int, int] | None = None,
        label_shape: tuple[int, int] | None = None,
    ) -> None:
        """Change the shape of the images, or the maximum number of objects."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *data_shape))]
            self.data_shape = tuple(data_shape)
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.provide_label = [(self.provide_label[0][0], (self.batch_size, *label_shape))]
            self.label_shape = tuple(label_shape)

    def check_label_shape(self, label_shape: tuple[int, ...]) -> None:
        """Raise if the labels do not fit into a shape."""
        if len(label_shape) != 2:
            raise ValueError("label_shape should have length 2")
        if label_shape[0] < self.label_shape[0]:
            raise ValueError(
                f"Attempts to reduce label count from {self.label_shape[0]} to {label_shape[0]}, "
                "not allowed."
            )
        if label_shape[1] != self.label_shape[1]:
            raise ValueError(
                f"label_shape object width inconsistent: {self.label_shape[1]} vs {label_shape[1]}."
            )

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Set the label shapes of both iterators to the larger one; return the other iterator."""
        if not isinstance(it, ImageDetIter):
            raise AssertionError("Synchronize with invalid iterator.")
        if self.label_shape[1] != it.label_shape[1]:
            raise AssertionError(
                f"object width mismatch: objects have {self.label_shape[1]} numbers here, and "
                f"{it.label_shape[1]} in the other iterator."
            )
        most = max(self.label_shape[0], it.label_shape[0])
        if most > self.label_shape[0]:
            self.reshape(None, (most, self.label_shape[1]))
        if most > it.label_shape[0]:
            it.reshape(None, (most, it.label_shape[1]))
        if verbose:
            logger.info("Resized label_shape to %s.", self.label_shape)
        return it

    def draw_next(
        self,
        color: tuple[int, int, int] | None = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        waitKey: int | None = None,
        window_name: str = "draw_next",
        id2labels: dict | None = None,
    ) -> Iterator[np.ndarray]:
        """Yield the next images as pixels (blue first) with their boxes drawn.

        Normalization by ``mean`` and ``std`` (True: ImageNet's) is reverted. With ``waitKey`` each
        image is shown in a window for that many milliseconds.
        """
        cv2 = opencv()
        mean = np.array(MEAN) if mean is True else mean
        std = np.array(DEVIATION) if std is True else std
        while True:
            try:
                image, objects = self._sample()
            except StopIteration:
                return
            pixels = image.asnumpy().transpose((1, 2, 0)).astype(np.float32)
            pixels = pixels * std if std is not None else pixels
            pixels = pixels + mean if mean is not None else pixels
            pixels = np.clip(pixels, 0, 255) if clip else pixels
            drawn = np.ascontiguousarray(pixels[:, :, ::-1].astype(np.uint8))
            for row in objects[objects[:, 0] >= 0]:
                self._draw(drawn, row, color, thickness, id2labels)
            if waitKey is not None:
                cv2.imshow(window_name, drawn)
                cv2.waitKey(waitKey)
            yield drawn

    @staticmethod
    def _draw(
        pixels: np.ndarray, row: np.ndarray, color: Any, thickness: int, names: dict | None
    ) -> None:
        cv2 = opencv()
        height, width = pixels.shape[:2]
        left, top, right, bottom = (row[1:5] * (width, height, width, height)).astype(int).tolist()
        red, green, blue = color or [chance.whole(0, 255) for _ in range(3)]
        cv2.rectangle(pixels, (left, top), (right, bottom), (blue, green, red), thickness)
        if names and int(row[0]) in names:
            position = (left + 5, top + 20)
            text = str(names[int(row[0])])
            cv2.putText(pixels, text, position, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (blue, green, red))
