"""`ImageIter`: batches of augmented images from a record file, a list file or a list."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np

from .. import ndarray as nd
from .. import recordio
from ..error import MXNetError, ShapeError
from ..formats.files import existing_file
from ..formats.image_codec import BadImage
from ..formats.recordio_file import read_list
from ..io.batches import DataBatch, DataIter
from ..ndarray import NDArray
from . import chance
from .augmenters import Augmenter, CreateAugmenter
from .geometry import imdecode

logger = logging.getLogger("mxnet.image")
LABEL_TYPES = ("int32", "float32", "int64", "float64")
LAST_BATCH = ("pad", "discard", "roll_over")


class ImageIter(DataIter):
    """Iterates over batches of augmented images.

    Parameters
    ----------
    batch_size : int
        Number of images in a batch.
    data_shape : tuple of int
        (channels, height, width) of the images in a batch.
    label_width : int
        Number of labels of an image.
    path_imgrec, path_imgidx : str
        A record file and its index, which is required to shuffle or read a part.
    path_imglist, path_root : str
        A list file (`.lst`), and the folder that its paths are relative to.
    shuffle : bool
        Whether to shuffle in each epoch.
    part_index, num_parts : int
        Index of the part to read, and number of parts the data is split into.
    aug_list : list of Augmenter
        Augmenters; by default those of `CreateAugmenter` with the other keywords.
    imglist : list
        [label or labels, path] of each image, instead of a list file.
    data_name, label_name : str
        Name of the data.
    dtype : str
        The data type of the labels in lists.
    last_batch_handle : {'pad', 'discard', 'roll_over'}
        What to do with an incomplete last batch: fill it from the start, drop it, or use its images
        in the next epoch.

    >>> import cv2
    >>> cv2.imwrite("a.png", np.zeros((8, 8, 3), "uint8"))
    True
    >>> images = mx.image.ImageIter(1, (3, 4, 4), imglist=[[7, "a.png"]], path_root=".")
    >>> batch = next(images)
    >>> batch.data[0].shape, batch.label[0].asnumpy()
    ((1, 3, 4, 4), array([7.], dtype=float32))
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
        label_width: int = 1,
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: list[Augmenter] | None = None,
        imglist: list | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise AssertionError("ImageIter needs path_imgrec, path_imglist or imglist.")
        if dtype not in LABEL_TYPES:
            raise AssertionError(f"{dtype} label not supported: use one of {LABEL_TYPES}")
        if last_batch_handle not in LAST_BATCH:
            raise ValueError(
                f"last_batch_handle must be one of {LAST_BATCH}, not {last_batch_handle!r}"
            )
        self.batch_size = batch_size
        self.path_root = path_root
        self.shuffle = shuffle
        self.label_width = label_width
        self.last_batch_handle = last_batch_handle
        self._log_threads()
        self._open_records(path_imgrec, path_imgidx)
        self._read_lists(path_imglist, imglist, dtype)
        self.check_data_shape(data_shape)
        self.data_shape = tuple(data_shape)
        self.provide_data = [(data_name, (batch_size, *self.data_shape))]
        labels = (batch_size, label_width) if label_width > 1 else (batch_size,)
        self.provide_label = [(label_name, labels)]
        self._choose_part(part_index, num_parts)
        self.auglist = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.cur = 0
        self.num_image = None if self.seq is None else len(self.seq)
        self._left_over: list[tuple[NDArray, Any]] = []
        self._exhausted = False
        self.reset()

    # -- sources -------------------------------------------------------------

    @staticmethod
    def _log_threads() -> None:
        count = os.environ.get("MXNET_CPU_WORKER_NTHREADS", "1")
        logger.info("Using %s threads for decoding...", count)
        logger.info(
            "Set enviroment variable MXNET_CPU_WORKER_NTHREADS to a larger number to use more "
            "threads."
        )

    def _open_records(self, path: str | None, index: str | None) -> None:
        self.imgrec: Any = None
        self.imgidx: list | None = None
        if not path:
            return
        logger.info("%s: loading recordio %s...", type(self).__name__, path)
        if index:
            self.imgrec = recordio.MXIndexedRecordIO(index, path, "r")
            self.imgidx = list(self.imgrec.keys)
        else:
            self.imgrec = recordio.MXRecordIO(path, "r")

    def _read_lists(self, path: str | None, rows: list | None, dtype: str) -> None:
        self.imglist: dict[Any, tuple[NDArray, str]] | None = None
        keys: list = []
        if path:
            logger.info("%s: loading image list %s...", type(self).__name__, path)
            lines = read_list(path)
            self.imglist = {x.index: (nd.array(x.labels, dtype=dtype), x.path) for x in lines}
            keys = [x.index for x in lines]
        elif isinstance(rows, list):
            logger.info("%s: loading image list...", type(self).__name__)
            self.imglist = {}
            for number, (*label, name) in enumerate(rows, 1):
                labels = label  # labels as numbers, or as one array or list
                if len(label) == 1 and not isinstance(label[0], int | float | np.number):
                    labels = label[0]
                self.imglist[str(number)] = (nd.array(labels, dtype=dtype), name)
            keys = list(self.imglist)
        if self.imgrec is None:
            self.seq = keys
        elif self.imgidx is not None:
            listed = [key for key in self.imgidx if key in (self.imglist or ())]
            self.seq = listed or self.imgidx  # the list provides labels, but not the order
        else:
            self.seq = None

    def _choose_part(self, part_index: int, num_parts: int) -> None:
        if (self.shuffle or num_parts > 1) and not (self.imgidx or self.imgrec is None):
            raise AssertionError("To shuffle or to read a part of a record file, give path_imgidx.")
        if not 0 <= part_index < num_parts:
            raise AssertionError(f"part_index {part_index} is not one of {num_parts} parts")
        if num_parts > 1:
            assert self.seq is not None
            size = len(self.seq) // num_parts
            self.seq = self.seq[part_index * size : (part_index + 1) * size]

    # -- epochs -----------------------------------------------------------------------------------

    def reset(self) -> None:
        """Start a new epoch; with 'roll_over', the rest of the last one comes first."""
        if self.last_batch_handle != "roll_over":
            self._left_over = []
        self._rewind()

    def hard_reset(self) -> None:
        """Start a new epoch and drop the rest of the last one."""
        self._left_over = []
        self._rewind()

    def _rewind(self) -> None:
        if self.seq is not None and self.shuffle:
            self.seq = [self.seq[n] for n in chance.order(len(self.seq))]
        self._to_start()
        self._exhausted = False

    def _to_start(self) -> None:
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur = 0

    def _end_epoch(self) -> StopIteration:
        """Rewind at the end of an epoch, except with 'discard', which requires reset()."""
        if self.last_batch_handle != "discard":
            self._to_start()
        return StopIteration()

    def next_sample(self) -> tuple[Any, bytes]:
        """Return the label and the compressed bytes of the next image."""
        if self._exhausted:
            raise StopIteration
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                raise self._end_epoch()
            header, content = recordio.unpack(record)
            return header.label, content
        if self.cur >= len(self.seq):
            raise self._end_epoch()
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            assert self.imglist is not None
            label, name = self.imglist[key]
            return label, self.read_image(name)
        header, content = recordio.unpack(self.imgrec.read_idx(key))
        return (header.label if self.imglist is None else self.imglist[key][0]), content

    def _sample(self) -> tuple[NDArray, Any]:
        label, content = self.next_sample()
        image = self._decoded(content)
        with chance.one_image():
            image = self.augmentation_transform(image)
        return self.postprocess_data(image), label

    def _decoded(self, content: bytes) -> NDArray:
        try:
            image = self.imdecode(content)
            self.check_valid_image([image])
        except BadImage as error:
            raise BadImage(f"Broken image {self._place()}: {error}") from error
        return image

    def _place(self) -> str:
        if self.seq is None:
            return f"in {self.imgrec.uri!r}, the record before byte {self.imgrec._at}"
        key = self.seq[self.cur - 1]
        if self.imgrec is not None:
            return f"{key!r} of {self.imgrec.uri!r}"
        assert self.imglist is not None
        return f"filename: {self.imglist[key][1]}"

    def _samples(self, count: int) -> list[tuple[NDArray, Any]]:
        results: list[tuple[NDArray, Any]] = []
        while len(results) < count:
            try:
                results.append(self._sample())
            except StopIteration:
                break
        return results

    def next(self) -> DataBatch:
        """Return the next batch; ``pad`` is the number of extra images at its end or start."""
        if self._exhausted:
            raise StopIteration
        before, self._left_over = self._left_over, []
        result = before + self._samples(self.batch_size - len(before))
        pad = self.batch_size - len(before) if before else 0
        if len(result) < self.batch_size:
            if not result or self.last_batch_handle == "discard":
                self._exhausted = self.last_batch_handle == "discard"
                raise StopIteration
            if self.last_batch_handle == "roll_over":
                self._left_over = result
                raise StopIteration
            pad = self.batch_size - len(result)
            result = self._fill_batch(result)
        return self._batch(result, pad)

    def _fill_batch(self, samples: list[tuple[NDArray, Any]]) -> list[tuple[NDArray, Any]]:
        """Fill the last batch with images from the start, repeatedly if necessary.

        Their order is that of this epoch, as in MXNet: only `reset` shuffles.
        """
        while len(samples) < self.batch_size:
            self._to_start()
            samples = samples + self._samples(self.batch_size - len(samples))
        self._exhausted = True
        return samples

    def _batch(self, samples: list[tuple[NDArray, Any]], pad: int) -> DataBatch:
        data = nd.zeros(self.provide_data[0][1])
        for number, (image, _) in enumerate(samples):
            if image.shape != self.data_shape:
                raise ShapeError(
                    f"The augmenters returned an image of {image.shape}, and data_shape is "
                    f"{self.data_shape}."
                )
            data[number] = image.astype("float32")
        return DataBatch([data], [self._labels([label for _, label in samples])], pad=pad)

    def _labels(self, labels: list[Any]) -> NDArray:
        shape = self.provide_label[0][1]
        rows = np.zeros((self.batch_size, self.label_width), np.float32)
        for number, label in enumerate(labels):
            values = label.asnumpy() if isinstance(label, NDArray) else np.asarray(label)
            if values.size not in (1, self.label_width):
                raise ShapeError(
                    f"An image has {values.size} labels, and label_width is {self.label_width}."
                )
            rows[number] = values.reshape(-1)
        return nd.array(rows.reshape(shape))

    # -- methods for subclasses to override
    # ---------------------------------------------------------

    def check_data_shape(self, data_shape: tuple[int, ...]) -> None:
        """Raise unless a shape is (3, height, width)."""
        if len(data_shape) != 3:
            raise ValueError("data_shape should have length 3, with dimensions CxHxW")
        if data_shape[0] != 3:
            raise ValueError("This iterator expects inputs to have 3 channels.")

    def check_valid_image(self, data: list[NDArray]) -> None:
        """Raise for an empty image."""
        if len(data[0].shape) == 0:
            raise MXNetError("Data shape is wrong")

    def imdecode(self, s: bytes) -> NDArray:
        """Return the decoded image."""
        return imdecode(s)

    def read_image(self, fname: str | os.PathLike[str]) -> bytes:
        """Return the bytes of an image file."""
        return existing_file(Path(self.path_root or "", fname)).read_bytes()

    def augmentation_transform(self, data: NDArray) -> NDArray:
        """Return the image after all augmenters."""
        for augmenter in self.auglist:
            data = augmenter(data)
        return data

    def postprocess_data(self, datum: NDArray) -> NDArray:
        """Return the image with its channels first."""
        return datum.transpose((2, 0, 1))
