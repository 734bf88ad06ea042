"""`ImageRecordIter` and its variants: batches of images decoded by several threads."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ..dtypes import to_name
from ..error import MXNetError
from ..formats import params_file
from ..formats.files import local_path
from ..formats.recordio_file import read_list
from ..ops.attributes import Count, DType, Floats, Shape
from ..random import host_rng
from .file_iters import Device, file_iter
from .image_batches import (
    CHANNELS_TO_FLAG,
    DetectionFill,
    ImageBatches,
    ImageFiller,
    Normalization,
    Places,
    RecordFiles,
)
from .record_augmentation import Changes, DetectionChanges

logger = logging.getLogger("mxnet.io")
PIXEL_TYPES = {torch.float32: np.float32, torch.uint8: np.uint8, torch.int8: np.int8}


def _image_record(
    *,
    path_imglist: str = "",
    path_imgrec: str = "",
    path_imgidx: str = "",
    aug_seq: str = "aug_default",
    label_width: int = 1,
    data_shape: Shape,
    preprocess_threads: int = 4,
    verbose: bool = True,
    num_parts: int = 1,
    part_index: int = 0,
    device_id: int = 0,
    shuffle_chunk_size: Count = 0,
    shuffle_chunk_seed: int = 0,
    seed_aug: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    batch_size: Count,
    round_batch: bool = True,
    prefetch_buffer: Count = 4,
    ctx: Device = "gpu",
    dtype: DType | None = None,
    resize: int = -1,
    rand_crop: bool = False,
    random_resized_crop: bool = False,
    max_rotate_angle: int = 0,
    max_aspect_ratio: float = 0.0,
    min_aspect_ratio: float | None = None,
    max_shear_ratio: float = 0.0,
    max_crop_size: int = -1,
    min_crop_size: int = -1,
    max_random_scale: float = 1.0,
    min_random_scale: float = 1.0,
    max_random_area: float = 1.0,
    min_random_area: float = 1.0,
    max_img_size: float = 1e10,
    min_img_size: float = 0.0,
    brightness: float = 0.0,
    contrast: float = 0.0,
    saturation: float = 0.0,
    pca_noise: float = 0.0,
    random_h: int = 0,
    random_s: int = 0,
    random_l: int = 0,
    rotate: int = -1,
    fill_value: int = 255,
    inter_method: int = 1,
    pad: int = 0,
    mirror: bool = False,
    rand_mirror: bool = False,
    mean_img: str = "",
    mean_r: float = 0.0,
    mean_g: float = 0.0,
    mean_b: float = 0.0,
    mean_a: float = 0.0,
    std_r: float = 1.0,
    std_g: float = 1.0,
    std_b: float = 1.0,
    std_a: float = 1.0,
    scale: float = 1.0,
    max_random_contrast: float = 0.0,
    max_random_illumination: float = 0.0,
) -> ImageBatches:
    """Iterate over the images of a record file: ``(batch, channels, height, width)``.

    Parameters
    ----------
    path_imglist : str
        List file whose labels replace those in the records.
    path_imgrec : str
        Record file of `im2rec`, or a folder of record files.
    path_imgidx : str
        Index of the record file; with it parts have equal numbers of records, and shuffling starts
        immediately.
    aug_seq
        Accepted for compatibility; only the default.
    label_width : int
        Number of labels of an image.
    data_shape : (channels, height, width)
        Channels, height and width of the images in a batch.
    preprocess_threads, prefetch_buffer : int
        Number of decoding threads, and of batches to prefetch.
    verbose
        Whether to log opened files.
    num_parts, part_index : int
        Index of the part to read, and number of parts the data is split into.
    device_id
        Accepted for compatibility; has no effect.
    shuffle_chunk_size
        Accepted for compatibility: all records are shuffled.
    shuffle_chunk_seed
        Accepted for compatibility; has no effect.
    seed_aug : int, optional
        Seed of the augmentation; by default from `mx.random.seed`.
    shuffle, seed : bool, int
        Whether to shuffle in each epoch, and the seed of the orders.
    batch_size : int
        Number of images in a batch.
    round_batch : bool
        Whether to fill the last batch from the next epoch, which then starts after these; otherwise
        with zeros.
    ctx
        Accepted for compatibility; batches are on the CPU.
    dtype : {'float32', 'uint8', 'int8'}
        Data type of the images; uint8 is not normalized, for int8 only the mean is subtracted.
    resize : int
        Resize the shorter edge to this length first.
    rand_crop : bool
        Whether to crop at a random position instead of the center.
    random_resized_crop, max_random_area, min_random_area : bool, float, float
        Crop a random fraction of the area and resize it.
    max_rotate_angle, max_shear_ratio, rotate, fill_value : int, int, float, int
        Rotation by a random or fixed angle in degrees, shear, and color of empty corners.
    max_aspect_ratio, min_aspect_ratio : float
        Largest change of the aspect ratio; or, with both, its range.
    max_crop_size, min_crop_size : int
        Crop a square of random size and resize it.
    max_random_scale, min_random_scale, max_img_size, min_img_size : float
        Range of a random scale, and limits of the resulting size.
    brightness, contrast, saturation, pca_noise, random_h, random_s, random_l : float or int
        Largest change of the colors.
    inter_method : int
        0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 9 by the sizes, 10 at random.
    pad : int
        Width of a border.
    mirror, rand_mirror : bool
        Mirror all images, or each with probability 1/2.
    mean_img : str
        File of the mean image; computed and saved if missing.
    mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a, scale : float
        ``(x - mean) * scale / std``.
    max_random_contrast, max_random_illumination : float
        Range of a random factor and a random offset, applied after subtracting the mean.

    Notes
    -----
    `shuffle_chunk_size`, `shuffle_chunk_seed`, `device_id` and `ctx` have no effect: all records
    are shuffled, and batches are on the CPU.

    >>> image = np.zeros((8, 8, 3), "uint8")
    >>> with mx.recordio.MXRecordIO("a.rec", "w") as file:
    ...     file.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, 1.0, 0, 0), image))
    >>> batch = next(mx.io.ImageRecordIter(path_imgrec="a.rec", data_shape=(3, 8, 8), batch_size=1))
    >>> batch.data[0].shape, batch.label[0].asnumpy()
    ((1, 3, 8, 8), array([1.], dtype=float32))
    """
    options = locals()
    _check("ImageRecordIter", data_shape, batch_size, path_imgrec, aug_seq, "aug_default")
    changes = Changes(**{name: options[name] for name in Changes._fields})
    pixel_type = _pixel_type("ImageRecordIter", dtype)
    files = RecordFiles(path_imgrec, path_imgidx)
    means, deviations = _colors(options, data_shape[0])
    labels = _labels(path_imglist)

    def batches(normalization: Normalization, **other: Any) -> ImageBatches:
        fill = ImageFiller(files, changes, normalization, labels, mirror, rand_mirror)
        settings = {
            "batch_size": batch_size,
            "data": (data_shape, np.dtype(pixel_type)),
            "label": (label_width, 0.0, label_width == 1),
            "threads": preprocess_threads,
            "ahead": prefetch_buffer,
            "round_batch": round_batch,
            "seed": _seed(seed_aug),
        }
        positions = Places(files.part(part_index, num_parts), shuffle, seed)
        return ImageBatches(positions, fill, **{**settings, **other})

    if mean_img:
        plain = Normalization(np.zeros(data_shape[0], np.float32), np.ones(data_shape[0]))
        raw = functools.partial(
            batches, plain, data=(data_shape, np.dtype(np.float32)), round_batch=False
        )
        means = _mean_image(mean_img, data_shape, raw)
    if verbose:
        logger.info("ImageRecordIter: %s, %d threads for decoding", path_imgrec, preprocess_threads)
    factor = (scale / deviations).astype(np.float32)
    return batches(Normalization(means, factor, max_random_contrast, max_random_illumination))


def _image_detection_record(
    *,
    path_imglist: str = "",
    path_imgrec: str = "./data/imgrec.rec",
    aug_seq: str = "det_aug_default",
    label_width: int = -1,
    data_shape: Shape,
    preprocess_threads: int = 4,
    verbose: bool = True,
    num_parts: int = 1,
    part_index: int = 0,
    shuffle_chunk_size: Count = 0,
    shuffle_chunk_seed: int = 0,
    label_pad_width: int = 0,
    label_pad_value: float = -1.0,
    shuffle: bool = False,
    seed: int = 0,
    batch_size: Count,
    round_batch: bool = True,
    prefetch_buffer: Count = 4,
    ctx: Device = "gpu",
    dtype: DType | None = None,
    resize: int = -1,
    rand_crop_prob: float = 0.0,
    min_crop_scales: Floats = (0.0,),
    max_crop_scales: Floats = (1.0,),
    min_crop_aspect_ratios: Floats = (1.0,),
    max_crop_aspect_ratios: Floats = (1.0,),
    min_crop_overlaps: Floats = (0.0,),
    max_crop_overlaps: Floats = (1.0,),
    min_crop_sample_coverages: Floats = (0.0,),
    max_crop_sample_coverages: Floats = (1.0,),
    min_crop_object_coverages: Floats = (0.0,),
    max_crop_object_coverages: Floats = (1.0,),
    num_crop_sampler: int = 1,
    crop_emit_mode: Literal["center", "overlap"] = "center",
    emit_overlap_thresh: float = 0.3,
    max_crop_trials: Shape = (25,),
    rand_pad_prob: float = 0.0,
    max_pad_scale: float = 1.0,
    max_random_hue: int = 0,
    random_hue_prob: float = 0.0,
    max_random_saturation: int = 0,
    random_saturation_prob: float = 0.0,
    max_random_illumination: int = 0,
    random_illumination_prob: float = 0.0,
    max_random_contrast: float = 0.0,
    random_contrast_prob: float = 0.0,
    rand_mirror_prob: float = 0.0,
    fill_value: int = 127,
    inter_method: int = 1,
    resize_mode: Literal["fit", "force", "shrink"] = "force",
    mean_img: str = "",
    mean_r: float = 0.0,
    mean_g: float = 0.0,
    mean_b: float = 0.0,
    mean_a: float = 0.0,
    std_r: float = 0.0,
    std_g: float = 0.0,
    std_b: float = 0.0,
    std_a: float = 0.0,
    scale: float = 1.0,
) -> ImageBatches:
    """Iterate over images with bounding boxes.

    A label has: channels, height and width of the image in the batch, number of the following
    values, length of the header, length of an object, the rest of the header, the objects, and
    ``label_pad_value`` as padding.

    Parameters
    ----------
    path_imglist
        List file whose labels replace those in the records.
    path_imgrec : str
        Record file of `im2rec --pack-label`.
    aug_seq
        Accepted for compatibility; only the default.
    label_width : int
        Number of values in each label, or -1 if it differs.
    data_shape
        Channels, height and width of the images in a batch.
    preprocess_threads
        Number of decoding threads.
    verbose
        Whether to log opened files.
    num_parts
        Number of parts the samples are split into.
    part_index
        Index of the part to read.
    shuffle_chunk_size
        Accepted for compatibility: all records are shuffled.
    shuffle_chunk_seed
        Accepted for compatibility; has no effect.
    label_pad_width : int
        Number of values in a label; by default that of the longest.
    label_pad_value
        Value of the padding of labels.
    shuffle
        Whether to shuffle in each epoch.
    seed
        Seed of the orders.
    batch_size
        Number of images in a batch.
    round_batch
        Whether to fill the last batch from the beginning of the file, where the next epoch
        continues.
    prefetch_buffer
        Number of batches to prefetch.
    ctx
        Accepted for compatibility; batches are on the CPU.
    dtype
        Data type of the images; float32 by default.
    resize
        Resize the shorter edge to this length first.
    rand_crop_prob, rand_pad_prob, rand_mirror_prob : float
        Probability of cropping, padding and mirroring.
    min_crop_scales, max_crop_scales, min_crop_aspect_ratios, max_crop_aspect_ratios : tuple
        Scale and aspect ratio of crops; one value, or one for each of ``num_crop_sampler``
        samplers.
    min_crop_overlaps
        Minimum intersection over union of a crop and some object.
    max_crop_overlaps
        Maximum intersection over union of a crop and some object.
    min_crop_sample_coverages
        Minimum fraction of a crop covered by some object.
    max_crop_sample_coverages
        Maximum fraction of a crop covered by some object.
    min_crop_object_coverages
        Minimum fraction of some object inside a crop.
    max_crop_object_coverages
        Maximum fraction of some object inside a crop.
    num_crop_sampler
        Number of crop samplers, one of which is selected.
    crop_emit_mode, emit_overlap_thresh : {'center', 'overlap'}, float
        Whether to drop objects whose center is outside, or that overlap too little.
    max_crop_trials
        Number of attempts of each sampler.
    max_pad_scale
        Maximum size of the padded image, relative to the image.
    max_random_hue
        Largest change of the hue.
    random_hue_prob
        Probability of changing the hue.
    max_random_saturation
        Largest change of the saturation.
    random_saturation_prob
        Probability of changing the saturation.
    max_random_illumination
        Largest change of the brightness.
    random_illumination_prob
        Probability of changing the brightness.
    max_random_contrast
        Largest change of the contrast.
    random_contrast_prob
        Probability of changing the contrast.
    fill_value
        Color of the padding.
    inter_method
        0 nearest, 1 bilinear, 2 bicubic, 3 area, 4 Lanczos, 9 by the sizes, 10 at random.
    resize_mode : {'force', 'shrink', 'fit'}
        ``'force'`` resizes to ``data_shape``; the others keep the aspect ratio, and ``'shrink'``
        never enlarges.
    mean_img
        File of the mean image; computed and saved if missing.
    mean_r
        Mean of the red channel, in ``(x - mean) * scale / std``.
    mean_g
        Mean of the green channel.
    mean_b
        Mean of the blue channel.
    mean_a
        Mean of the fourth channel.
    std_r
        Standard deviation of the red channel.
    std_g
        Standard deviation of the green channel.
    std_b
        Standard deviation of the blue channel.
    std_a
        Standard deviation of the fourth channel.
    scale
        Factor of the normalized image.

    Notes
    -----
    See `ImageRecordIter` for other parameters.

    >>> label = [2, 5, 0, 0.1, 0.1, 0.9, 0.9]  # header and object lengths, then class and corners
    >>> image = np.zeros((8, 8, 3), "uint8")
    >>> with mx.recordio.MXRecordIO("a.rec", "w") as file:
    ...     file.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, label, 0, 0), image))
    >>> found = mx.io.ImageDetRecordIter(path_imgrec="a.rec", data_shape=(3, 8, 8), batch_size=1)
    >>> next(found).label[0].shape
    (1, 11)
    """
    options = locals()
    title = "ImageDetRecordIter"
    _check(title, data_shape, batch_size, path_imgrec, aug_seq, "det_aug_default")
    _pixel_type(title, dtype, torch.float32)
    changes = DetectionChanges(**{name: options[name] for name in DetectionChanges._fields})
    files = RecordFiles(path_imgrec)
    means, deviations = _colors(options, data_shape[0])
    if mean_img:
        means = _read_mean(local_path(mean_img), data_shape)
    normalization = Normalization(means, (scale / deviations).astype(np.float32))
    fill = DetectionFill(files, changes, normalization, _labels(path_imglist), label_width)
    widest = max(map(fill.width, files.part(part_index, num_parts)), default=0)
    if 0 < label_pad_width < widest:
        raise MXNetError(
            f"{title}: label_pad_width: {label_pad_width} smaller than estimated width: {widest}"
        )
    width = DetectionFill.FIRST + max(widest, label_pad_width)
    if verbose:
        logger.info("%s: %s, label width %d", title, path_imgrec, width)
    return ImageBatches(
        Places(files.part(part_index, num_parts), shuffle, seed),
        fill,
        batch_size=batch_size,
        data=(data_shape, np.dtype(np.float32)),
        label=(width, label_pad_value, False),
        threads=preprocess_threads,
        ahead=prefetch_buffer,
        round_batch=round_batch,
        seed=_seed(None),
    )


def _check(
    title: str, data_shape: Shape, batch_size: int, path: str, aug_seq: str, expected: str
) -> None:
    if len(data_shape) != 3 or min(data_shape) < 1 or data_shape[0] not in CHANNELS_TO_FLAG:
        raise MXNetError(
            f"{title}: value {list(data_shape)} for Parameter data_shape: expected (channels, "
            "height, width) with 1, 3 or 4 channels."
        )
    if batch_size < 1:
        raise MXNetError(f"{title}: batch_size must be at least 1, got {batch_size}.")
    if not path:
        raise MXNetError(f"{title}: must specify image_rec: path_imgrec is missing.")
    if aug_seq != expected:
        raise MXNetError(f"{title}: aug_seq {aug_seq!r} is unknown; only {expected!r}.")


def _pixel_type(title: str, dtype: torch.dtype | None, *allowed: torch.dtype) -> Any:
    dtype = dtype or torch.float32
    if dtype not in (allowed or PIXEL_TYPES):
        kinds = ", ".join(map(to_name, allowed or PIXEL_TYPES))
        raise MXNetError(f"unknown dtype for {title}: {to_name(dtype)}; it is one of {kinds}.")
    return PIXEL_TYPES[dtype]


def _colors(options: dict[str, Any], channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each channel; a deviation of 0 means none."""
    means = [options[f"mean_{c}"] for c in "rgba"[:channels]]
    deviations = [options[f"std_{c}"] or 1.0 for c in "rgba"[:channels]]
    return np.array(means, np.float32), np.array(deviations, np.float32)


def _labels(path: str) -> dict[int, np.ndarray] | None:
    if not path:
        return None
    return {line.index: np.array(line.labels, np.float32) for line in read_list(path)}


def _seed(seed: int | None) -> int:
    return int(host_rng().integers(2**32)) if seed is None else seed % 2**64


def _mean_image(place: str, shape: Shape, batches: Callable[[], ImageBatches]) -> np.ndarray:
    """Return the mean image from its file, which is created if missing."""
    path = local_path(place)
    if path.exists():
        return _read_mean(path, shape)
    logger.info("Computing the mean image, to be kept in %s", path)
    source, total, count = batches(), np.zeros(shape), 0
    while (batch := source.next_batch()) is not None:
        real = batch.data.handle[: source.batch_size - batch.pad]
        total += real.sum(0, dtype=torch.float64).numpy()
        count += len(real)
    source.close()
    mean = torch.from_numpy((total / max(1, count)).astype(np.float32))
    params_file.write(path, {"mean_img": mean})
    return mean.numpy()


def _read_mean(path: Path, shape: Shape) -> np.ndarray:
    result = params_file.read(path)
    mean = result.get("mean_img") if isinstance(result, dict) else None
    if not isinstance(mean, torch.Tensor) or tuple(mean.shape) != tuple(shape):
        size = None if mean is None else tuple(getattr(mean, "shape", ()))
        raise MXNetError(f"{path} should hold 'mean_img' of shape {tuple(shape)}, found {size}.")
    return mean.to(torch.float32).numpy()


def _name_iterator(make: Callable, name: str, first: str = "", **fixed: Any) -> Callable:
    @functools.wraps(make)
    def source(**given: Any) -> ImageBatches:
        return make(**{**given, **fixed})

    source.__name__ = source.__qualname__ = name
    if first:
        source.__doc__ = f"{first}\n\n{(make.__doc__ or '').partition(chr(10))[2]}"
    return file_iter(source)


_OLD = "Iterate over the images of a record file; an old name of `ImageRecordIter`"
ImageRecordIter = _name_iterator(_image_record, "ImageRecordIter")
ImageRecordIter_v1 = _name_iterator(_image_record, "ImageRecordIter_v1", f"{_OLD}.")
ImageRecordUInt8Iter = _name_iterator(
    _image_record, "ImageRecordUInt8Iter", f"{_OLD} for bytes.", dtype=torch.uint8
)
ImageRecordUInt8Iter_v1 = _name_iterator(
    _image_record, "ImageRecordUInt8Iter_v1", f"{_OLD} for bytes.", dtype=torch.uint8
)
ImageRecordInt8Iter = _name_iterator(
    _image_record, "ImageRecordInt8Iter", f"{_OLD} for signed bytes.", dtype=torch.int8
)
ImageDetRecordIter = _name_iterator(_image_detection_record, "ImageDetRecordIter")
