"""The pipeline of the image record iterators: files, a thread pool, prefetched batches.

Threads decode and augment images directly into the memory of their batch. A few batches are always
prefetched; an error in a thread is raised when its batch is read.
"""

from __future__ import annotations

import collections
import os
import threading
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch

from ..error import FormatError, MXNetError
from ..formats import image_codec
from ..formats.files import MissingFile, local_path
from ..formats.recordio_file import RecordReader, read_index
from ..ndarray import NDArray
from ..recordio import IRHeader, unpack
from ..runtime.array import wrap_plain
from .file_iters import Batch
from .record_augmentation import Changes, DetectionChanges

CHANNELS_TO_FLAG = {1: image_codec.GRAY, 3: image_codec.COLOR, 4: -1}


class Normalization(NamedTuple):
    """``((x - mean) * contrast + illumination) * scale / std``, for each channel."""

    mean: np.ndarray  # per channel or per pixel
    factor: np.ndarray  # scale / std per channel
    contrast: float = 0.0
    illumination: float = 0.0

    def write(
        self, pixels: np.ndarray, out: np.ndarray, flipped: bool, chance: np.random.Generator
    ) -> None:
        """Normalize an image (height, width, channels) into a slice of a batch, channels first."""
        cv2 = image_codec.opencv()
        if flipped:
            pixels = cv2.flip(pixels, 1)
        planes = cv2.split(pixels)
        if out.dtype == np.uint8:  # bytes are not normalized
            np.stack(planes, out=out)
            return
        mean = self.mean if self.mean.ndim == 3 else self.mean[:, None, None]
        mean = mean[:, :, ::-1] if flipped else mean
        if out.dtype == np.int8:
            for plane, m, o in zip(planes, mean, out, strict=True):
                o[:] = np.clip(plane - m, -128, 127)
            return
        contrast = 1 + chance.uniform(-self.contrast, self.contrast) if self.contrast else 1.0
        light = chance.uniform(-self.illumination, self.illumination) if self.illumination else 0.0
        for plane, o in zip(planes, out, strict=True):
            o[:] = plane
        out -= mean
        factor = self.factor
        if light:
            out *= np.float32(contrast)
            out += np.float32(light)
        elif contrast != 1.0:
            factor = (contrast * factor).astype(np.float32)
        if (factor != 1.0).any():
            out *= factor[:, None, None]


class ImageFiller:
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
        """Write the image and its labels into the batch; return its id."""
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
        result = _find_label(self.labels, header, where)
        size = np.size(result)
        if size != width:
            raise MXNetError(
                f"{where[0].upper()}{where[1:]} provides {size}-dimensional label but "
                f"label_width is set to {width}."
            )
        return result


class DetectionFill:
    """Fills one sample of `ImageDetRecordIter`.

    Its label has: channels, height and width of the image in the batch, number of the following
    values, length of the header, length of an object, the rest of the header, the objects.
    """

    FIRST = 4  # number of values before the record's label

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

    def width(self, position: int) -> int:
        """Return the number of values in the label of a record."""
        record, where = self.files.read(position)
        return self._values(unpack(record)[0], where).size

    def __call__(self, sample: Sample, data: np.ndarray, label: np.ndarray) -> int:
        """Write the image and its boxes into the batch; return its id."""
        record, where = self.files.read(sample.place)
        header, content = unpack(record)
        values = self._values(header, where)
        begin, length = int(values[0]), int(values[1])
        chance = np.random.default_rng(sample.seed)
        pixels = decoded(content, self.changes.data_shape[0], where)
        pixels, boxes = self.changes.applied(pixels, values[begin:].reshape(-1, length), chance)
        height, width = pixels.shape[:2]
        if (height, width) != data.shape[1:]:
            data[:] = 0  # background of a smaller image
        self.normalization.write(pixels, data[:, :height, :width], False, chance)
        count = begin + boxes.size
        label[: self.FIRST] = data.shape[0], height, width, count
        label[self.FIRST : self.FIRST + begin] = values[:begin]
        label[self.FIRST + begin : self.FIRST + count] = boxes.reshape(-1)
        return header.id

    def _values(self, header: IRHeader, where: str) -> np.ndarray:
        values = np.atleast_1d(np.asarray(_find_label(self.labels, header, where), np.float32))
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


def _find_label(
    labels: dict[int, np.ndarray] | None, header: IRHeader, where: str
) -> np.ndarray | float:
    """Return the label in the list if there is one, else that of the record."""
    if labels is None:
        return header.label
    if header.id not in labels:
        raise MXNetError(f"fail to find imagelabel for id {header.id}, {where}, in path_imglist.")
    return labels[header.id]


def decoded(content: bytes, channels: int, where: str) -> np.ndarray:
    """Decode an image with the given number of channels."""
    pixels = image_codec.decode(content, CHANNELS_TO_FLAG[channels], source=where)
    if pixels.shape[2] != channels:
        raise MXNetError(
            f"Invalid image, {where}: expected {channels} channels, got {pixels.shape[2]}."
        )
    return pixels


CHUNKS_PER_THREAD = 4  # jobs per thread for each batch


class RecordFiles:
    """One record file, or all files of a folder, as one sequence of records."""

    def __init__(self, source: str, index: str = "") -> None:
        path = local_path(source)
        paths = sorted(p for p in path.iterdir() if p.suffix == ".rec") if path.is_dir() else [path]
        if not paths:
            raise MissingFile(f"Cannot find any .rec file in {str(path)!r}.")
        if index and len(paths) > 1:
            raise MXNetError("path_imgidx goes with one record file, not with a folder of them.")
        self.readers = [RecordReader(p) for p in paths]
        self.begins = [0]
        for reader in self.readers:
            self.begins.append(self.begins[-1] + reader.size)
        self.index: Sequence[int] | None = None
        if index:
            self.index = array("q", sorted({offset for _, offset in read_index(index)}))

    def read(self, position: int) -> tuple[bytes, str]:
        """Return the record at a position, and a description of the position for error messages."""
        number = bisect_right(self.begins, position) - 1
        reader, at = (
            self.readers[min(number, len(self.readers) - 1)],
            position - self.begins[number],
        )
        record, _ = reader.read(at)
        where = f"the record at byte {at} of {reader.name}"
        if record is None:
            raise FormatError(f"{reader.name}: at byte {at} expected a record, found the end.")
        return record, where

    def part(self, number: int, count: int) -> Iterator[int]:
        """Yield the positions of the records of one part.

        With an index, parts have equal numbers of records; otherwise of bytes.
        """
        if not 0 <= number < count:
            raise MXNetError(f"part_index {number} is not one of num_parts {count}.")
        if self.index is not None:
            size = -(-len(self.index) // count)
            yield from self.index[number * size : (number + 1) * size]
            return
        size = -(-self.begins[-1] // count)
        size += -size % 4
        for begin, reader in zip(self.begins, self.readers, strict=False):
            low, high = number * size - begin, (number + 1) * size - begin
            yield from (begin + at for at in reader.heads(max(0, low), high))


class Places:
    """The positions of the records in each epoch; collected in the first epoch."""

    def __init__(self, source: Iterator[int], shuffle: bool, seed: int) -> None:
        self.known = array("q")
        self.source: Iterator[int] | None = source
        self.chance = np.random.default_rng(seed % 2**64) if shuffle else None
        self.order: np.ndarray | None = None
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Shuffle the order if requested."""
        if self.chance is None:
            return
        while self._find_more():
            pass
        self.order = self.chance.permutation(len(self.known))

    def at(self, number: int) -> int | None:
        """Return the position of the n-th record of the epoch, or None after the last."""
        while number >= len(self.known):
            if not self._find_more():
                return None
        return self.known[number if self.order is None else self.order[number]]

    def _find_more(self) -> bool:
        position = None if self.source is None else next(self.source, None)
        if position is None:
            self.source = None
            return False
        self.known.append(position)
        return True


class Sample(NamedTuple):
    """A record for a batch, and the seed of its augmentation."""

    place: int
    seed: tuple[int, int, int]


Fill = Callable[[Sample, np.ndarray, np.ndarray], int]  # fills data and label; returns the id


class Pending(NamedTuple):
    """A batch in progress."""

    data: np.ndarray
    label: np.ndarray
    index: np.ndarray  # pyright: ignore[reportIncompatibleMethodOverride]  # tuple's method is not needed
    pad: int
    work: list[Future]


class ImageBatches:
    """Yields batches of images in order, with prefetching.

    ``data`` is the shape and type of an image; ``label`` is the number of labels per image, the
    value of missing labels, and whether a batch of labels is a vector.
    """

    def __init__(
        self,
        places: Places,
        fill: Fill,
        *,
        batch_size: int,
        data: tuple[tuple[int, ...], np.dtype],
        label: tuple[int, float, bool],
        threads: int,
        ahead: int,
        round_batch: bool,
        seed: int,
    ) -> None:
        self.places = places
        self.fill = fill
        self.batch_size = batch_size
        self.data_shape, self.dtype = data
        self.label_width, self.label_filling, self.flat_labels = label
        self.threads = max(1, threads)
        self.ahead = max(1, ahead)
        self.round_batch = round_batch
        self.seed = seed
        self.epoch = 0
        self.taken = 0  # number of records of this epoch assigned to batches
        self.over = False  # whether all batches of this epoch are started
        self.went_round = False  # whether the last batch was filled from the next epoch
        self.finished = False  # whether the end of the epoch was returned
        self.waiting: collections.deque[Pending] = collections.deque()
        self.pool: ThreadPoolExecutor | None = None
        self.process = 0
        self.stop = threading.Event()

    def reset(self) -> None:
        """Start a new epoch; after a complete one, continue after its last batch."""
        self._drop_waiting()
        if not (self.finished and self.over and self.went_round):
            self._begin_epoch()
        self.over = self.finished = self.went_round = False

    def next_batch(self) -> Batch | None:
        """Return the next batch, or None at the end of the epoch."""
        self._start_more()
        if not self.waiting:
            self.finished = True
            return None
        pending = self.waiting.popleft()
        self._start_more()
        for work in pending.work:
            work.result()
        self.finished = self.over and not self.waiting
        label = pending.label.reshape(-1) if self.flat_labels else pending.label
        data, label = (wrap_plain(NDArray, torch.from_numpy(x)) for x in (pending.data, label))
        return Batch(data, label, pending.pad, pending.index)

    def close(self) -> None:
        """Release the threads."""
        self._drop_waiting()
        self.stop.set()
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
            self.pool = None

    # -- assignment of records to batches --------------------------------------------------------

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self.taken = 0
        self.places.begin_epoch()

    def _next_samples(self) -> tuple[list[Sample], int]:
        result = self._some(self.batch_size)
        missing = self.batch_size - len(result)
        if not missing:
            return result, 0
        self.over = True
        if result and self.round_batch:
            self.went_round = True
            while len(result) < self.batch_size:
                self._begin_epoch()
                result += self._some(self.batch_size - len(result))
        return result, missing

    def _some(self, count: int) -> list[Sample]:
        results: list[Sample] = []
        while len(results) < count:
            position = self.places.at(self.taken)
            if position is None:
                break
            results.append(Sample(position, (self.seed, self.epoch, self.taken)))
            self.taken += 1
        return results

    # -- work -------------------------------------------------------------------------------------

    def _start_more(self) -> None:
        while len(self.waiting) < self.ahead and not self.over:
            samples, pad = self._next_samples()
            if samples:
                self.waiting.append(self._start(samples, pad))

    def _start(self, samples: list[Sample], pad: int) -> Pending:
        whole = len(samples) == self.batch_size
        data = (np.empty if whole else np.zeros)((self.batch_size, *self.data_shape), self.dtype)
        label = np.full((self.batch_size, self.label_width), self.label_filling, np.float32)
        index = np.zeros(self.batch_size, np.uint64)
        size = max(1, len(samples) // (self.threads * CHUNKS_PER_THREAD))
        job = _Job(self.fill, samples, data, label, index, self.stop)
        pool = self._pool()
        work = [
            pool.submit(job.run, begin, min(begin + size, len(samples)))
            for begin in range(0, len(samples), size)
        ]
        return Pending(data, label, index, pad, work)

    def _pool(self) -> ThreadPoolExecutor:
        if self.pool is None or self.process != os.getpid():  # threads do not survive a fork
            self.process = os.getpid()
            self.pool = ThreadPoolExecutor(self.threads, "mxnet-images")
            weakref.finalize(self, _close_pool, self.pool, self.stop, self.process)
        return self.pool

    def _drop_waiting(self) -> None:
        for pending in self.waiting:
            for work in pending.work:
                work.cancel()
        self.waiting.clear()


class _Job:
    """A batch for the threads, without a reference to the iterator, which may be deleted."""

    def __init__(
        self,
        fill: Fill,
        samples: list[Sample],
        data: np.ndarray,
        label: np.ndarray,
        index: np.ndarray,
        stop: threading.Event,
    ) -> None:
        self.fill, self.samples = fill, samples
        self.data, self.label, self.index = data, label, index
        self.stop = stop

    def run(self, begin: int, end: int) -> None:
        for number in range(begin, end):
            # Cancel waiting jobs at exit.
            if self.stop.is_set() or not threading.main_thread().is_alive():
                return
            sample = self.samples[number]
            self.index[number] = self.fill(sample, self.data[number], self.label[number])


def _close_pool(pool: ThreadPoolExecutor, stop: threading.Event, process: int) -> None:
    if process == os.getpid():
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
