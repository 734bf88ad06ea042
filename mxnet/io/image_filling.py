"""From a record to its place in the batch: labels, decoding, changes, normalization."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..error import MXNetError
from ..formats import image_codec
from ..recordio import IRHeader, unpack
from .detection_changes import DetectionChanges
from .image_batches import RecordFiles, Sample
from .image_changes import Changes

CHANNELS_TO_FLAG = {1: image_codec.GRAY, 3: image_codec.COLOR, 4: -1}


class Normalization(NamedTuple):
    """``((x - mean) * contrast + illumination) * scale / std``, for each channel."""

    mean: np.ndarray  # of each channel, or of each pixel
    factor: np.ndarray  # scale / std of each channel
    contrast: float = 0.0
    illumination: float = 0.0

    def write(
        self, pixels: np.ndarray, out: np.ndarray, flipped: bool, chance: np.random.Generator
    ) -> None:
        """Put the image (height, width, channels) into its part of a batch, channels first."""
        cv2 = image_codec.opencv()
        if flipped:
            pixels = cv2.flip(pixels, 1)
        planes = cv2.split(pixels)
        if out.dtype == np.uint8:  # bytes stay as they are
            np.stack(planes, out=out)
            return
        mean = self.mean[:, :, ::-1] if flipped and self.mean.ndim == 3 else self.mean
        if out.dtype == np.int8:
            for plane, m, o in zip(planes, mean, out, strict=True):
                o[:] = np.clip(plane - m, -128, 127)
            return
        contrast = 1 + chance.uniform(-self.contrast, self.contrast) if self.contrast else 1.0
        light = chance.uniform(-self.illumination, self.illumination) if self.illumination else 0.0
        for plane, m, f, o in zip(planes, mean, self.factor, out, strict=True):
            np.subtract(plane, m, out=o, dtype=np.float32)
            if light:
                o *= np.float32(contrast)
                o += np.float32(light)
                o *= f
            elif contrast != 1.0 or f != 1.0:
                o *= np.float32(contrast * f)


class PictureFill:
    """Fills one sample of `ImageRecordIter`."""

    def __init__(
        self,
        files: RecordFiles,
        changes: Changes,
        normalization: Normalization,
        labels: dict[int, np.ndarray] | None,
        mirror: bool,
        rand_mirror: bool,
    ) -> None:
        self.files = files
        self.changes = changes
        self.normalization = normalization
        self.labels = labels
        self.mirror = mirror
        self.rand_mirror = rand_mirror

    def __call__(self, sample: Sample, data: np.ndarray, label: np.ndarray) -> int:
        """Put the image and its labels in their places; return its id."""
        record, where = self.files.read(sample.place)
        header, content = unpack(record)
        label[:] = self._label(header, len(label), where)
        chance = np.random.default_rng(sample.seed)
        pixels = decoded(content, self.changes.data_shape[0], where)
        pixels = self.changes.applied(pixels, chance)
        flipped = self.mirror or (self.rand_mirror and chance.random() < 0.5)
        self.normalization.write(pixels, data, flipped, chance)
        return header.id

    def _label(self, header: IRHeader, width: int, where: str) -> np.ndarray | float:
        found = _listed(self.labels, header, where)
        size = np.size(found)
        if size != width:
            raise MXNetError(
                f"{where[0].upper()}{where[1:]} provides {size}-dimensional label but "
                f"label_width is set to {width}."
            )
        return found


class DetectionFill:
    """Fills one sample of `ImageDetRecordIter`.

    Its label is: channels, height and width of the image in the batch, number of values, and
    these: length of the header, length of an object, the rest of the header, the objects.
    """

    FIRST = 4  # values before the label of the record

    def __init__(
        self,
        files: RecordFiles,
        changes: DetectionChanges,
        normalization: Normalization,
        labels: dict[int, np.ndarray] | None,
        label_width: int,
    ) -> None:
        self.files = files
        self.changes = changes
        self.normalization = normalization
        self.labels = labels
        self.label_width = label_width

    def width(self, place: int) -> int:
        """Return the number of values in the label of a record."""
        record, where = self.files.read(place)
        return self._values(unpack(record)[0], where).size

    def __call__(self, sample: Sample, data: np.ndarray, label: np.ndarray) -> int:
        """Put the image and its boxes in their places; return its id."""
        record, where = self.files.read(sample.place)
        header, content = unpack(record)
        values = self._values(header, where)
        begin, length = int(values[0]), int(values[1])
        chance = np.random.default_rng(sample.seed)
        pixels = decoded(content, self.changes.data_shape[0], where)
        pixels, boxes = self.changes.applied(pixels, values[begin:].reshape(-1, length), chance)
        height, width = pixels.shape[:2]
        if (height, width) != data.shape[1:]:
            data[:] = 0  # the ground around a smaller image
        self.normalization.write(pixels, data[:, :height, :width], False, chance)
        count = begin + boxes.size
        label[: self.FIRST] = data.shape[0], height, width, count
        label[self.FIRST : self.FIRST + begin] = values[:begin]
        label[self.FIRST + begin : self.FIRST + count] = boxes.reshape(-1)
        return header.id

    def _values(self, header: IRHeader, where: str) -> np.ndarray:
        values = np.atleast_1d(np.asarray(_listed(self.labels, header, where), np.float32))
        if 0 < self.label_width != values.size:
            raise MXNetError(
                f"{where[0].upper()}{where[1:]} provides {values.size}-dimensional label but "
                f"label_width is set to {self.label_width}."
            )
        if values.size < 7:
            raise MXNetError(f"Not enough label packed in img_list or rec file: {where}.")
        begin, length = int(values[0]), int(values[1])
        if begin < 2 or length < 5 or begin > values.size or (values.size - begin) % length:
            raise MXNetError(
                f"{where[0].upper()}{where[1:]} has a label of {values.size} values that is not a "
                f"header of {begin} and objects of {length}."
            )
        return values


def _listed(
    labels: dict[int, np.ndarray] | None, header: IRHeader, where: str
) -> np.ndarray | float:
    """Return the label of the list, if there is one, else that of the record."""
    if labels is None:
        return header.label
    if header.id not in labels:
        raise MXNetError(f"fail to find imagelabel for id {header.id}, {where}, in path_imglist.")
    return labels[header.id]


def decoded(content: bytes, channels: int, where: str) -> np.ndarray:
    """Return the pixels, with so many channels."""
    pixels = image_codec.decode(content, CHANNELS_TO_FLAG[channels], source=where)
    if pixels.shape[2] != channels:
        raise MXNetError(
            f"Invalid image, {where}: expected {channels} channels, got {pixels.shape[2]}."
        )
    return pixels
