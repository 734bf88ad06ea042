"""Image record iterators: batches of MXNet, order, parts, errors."""

from __future__ import annotations

import gc
import json
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from tests.golden import HERE as GOLDEN
from tests.golden.record import image_iter_settings as settings

pytest.importorskip("cv2")
IMAGES, BOXES = GOLDEN / "records" / "images.rec", GOLDEN / "records" / "boxes.rec"
FACTS = json.loads((GOLDEN / "image_iters.json").read_text())
ARRAYS = np.load(GOLDEN / "image_iters.npz")
# OpenCV versions round these differently.
WITHIN = {"bicubic": 1, "automatic": 1, "automatic up": 1, "rotate": 2, "quarter": 1, "scaled": 1}
WITHIN |= {"scaled up": 1, "aspect": 1, "largest": 1, "smallest": 1}


def make(**other):
    given = {"path_imgrec": IMAGES, "data_shape": (3, 8, 8), "batch_size": 7, "verbose": False}
    return mx.io.ImageRecordIter(**{**given, **other})


def labels(iterator):
    return [(b.label[0].asnumpy().tolist(), b.pad) for b in iterator]


def flat(iterator):
    return [x for values, pad in labels(iterator) for x in values[: len(values) - pad]]


def pixels(**other):
    return make(**other).next().data[0].asnumpy()


def check(name, batches, within):
    assert [[b.label[0].asnumpy().tolist(), b.pad] for b in batches] == [
        [label, pad] for label, pad, _ in FACTS[name]
    ]
    assert str(np.dtype(batches[0].data[0].dtype)) == FACTS[name][0][2]
    found = np.concatenate([b.data[0].asnumpy() for b in batches])
    far = np.abs(found.astype(np.float64) - ARRAYS[name].astype(np.float64)).max()
    assert far <= within


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", settings.RECORD)
def test_image_record_batches_match_mxnet(name, threads):
    iterator = make(preprocess_threads=threads, **settings.RECORD[name])
    check(name, list(iterator), WITHIN.get(name, 1e-4))


@pytest.mark.parametrize("name", settings.DETECTION)
def test_detection_batches_match_mxnet(name):
    given = {"path_imgrec": BOXES, "data_shape": (3, 8, 8), "batch_size": 7, "verbose": False}
    iterator = mx.io.ImageDetRecordIter(**{**given, **settings.DETECTION[name]})
    check("detection " + name, list(iterator), 1e-4)


def test_last_batch_is_padded_from_the_next_epoch():
    iterator = make(batch_size=3)
    assert labels(iterator) == [([0, 1, 2], 0), ([3, 4, 5], 0), ([6, 0, 1], 2)]
    iterator.reset()
    assert labels(iterator) == [([2, 3, 4], 0), ([5, 6, 0], 1)]
    iterator.reset()
    assert labels(iterator) == [([1, 2, 3], 0), ([4, 5, 6], 0)]
    iterator.reset()
    assert labels(iterator)[0] == ([0, 1, 2], 0)


def test_reset_within_an_epoch_starts_at_the_beginning():
    iterator = make(batch_size=2)
    for _ in range(2):
        iterator.next()
    iterator.reset()
    assert labels(iterator)[:2] == [([0, 1], 0), ([2, 3], 0)]


def test_last_batch_is_zero_padded_without_round_batch():
    iterator = make(batch_size=3, round_batch=False)
    for _ in range(2):
        assert labels(iterator) == [([0, 1, 2], 0), ([3, 4, 5], 0), ([6, 0, 0], 2)]
        iterator.reset()
    assert labels(make(batch_size=10, round_batch=False)) == [([0, 1, 2, 3, 4, 5, 6, 0, 0, 0], 3)]


def test_batch_larger_than_the_file_repeats_images():
    assert labels(make(batch_size=16))[0] == ([*range(7), *range(7), 0, 1], 9)


def test_parts_split_by_bytes_or_by_index():
    size = IMAGES.stat().st_size
    lines = IMAGES.with_suffix(".idx").read_text().splitlines()
    at = [int(line.split("\t")[1]) for line in lines]
    by_bytes = [flat(make(batch_size=1, num_parts=3, part_index=n)) for n in range(3)]
    step = -(-size // 3) + 3 & ~3
    assert by_bytes == [[n for n in range(7) if at[n] // step == part] for part in range(3)]
    index = IMAGES.with_suffix(".idx")
    by_index = [
        flat(make(batch_size=1, num_parts=3, part_index=n, path_imgidx=index)) for n in range(3)
    ]
    assert by_index == [[0, 1, 2], [3, 4, 5], [6]]
    with pytest.raises(MXNetError, match="part_index 3"):
        make(num_parts=3, part_index=3)


def test_files_of_a_folder_are_concatenated(tmp_path):
    for name in ("b", "a"):
        with mx.recordio.MXRecordIO(tmp_path / f"{name}.rec", "w") as file:
            source = mx.recordio.MXRecordIO(IMAGES, "r")
            for _ in range(3 if name == "a" else 2):
                file.write(source.read())
    assert flat(make(path_imgrec=tmp_path, batch_size=1)) == [0, 1, 2, 0, 1]
    parts = [
        flat(make(path_imgrec=tmp_path, batch_size=1, num_parts=2, part_index=n)) for n in (0, 1)
    ]
    assert sum(parts, []) == [0, 1, 2, 0, 1]  # noqa: RUF017 (two short lists)


@pytest.mark.parametrize("index", [{}, {"path_imgidx": IMAGES.with_suffix(".idx")}])
def test_shuffling_varies_per_epoch_and_is_reproducible_with_a_seed(index):
    epochs = []
    iterator = make(shuffle=True, seed=3, **index)
    for _ in range(3):
        epochs.append(flat(iterator))
        assert sorted(epochs[-1]) == list(range(7))
        iterator.reset()
    assert len({tuple(e) for e in epochs}) == 3
    assert flat(make(shuffle=True, seed=3, **index)) == epochs[0]
    assert flat(make(shuffle=True, seed=4, **index)) != epochs[0]


def test_shuffled_epochs_are_complete_across_a_shared_batch():
    iterator = make(batch_size=3, shuffle=True)
    first = [values for values, _ in labels(iterator)]
    iterator.reset()
    second = [values for values, _ in labels(iterator)]
    assert sorted(first[0] + first[1] + first[2][:1]) == list(range(7))
    assert sorted(first[2][1:] + second[0] + second[1][:2]) == list(range(7))


RANDOM = {
    "rand_crop": True, "rand_mirror": True, "max_rotate_angle": 20, "max_shear_ratio": 0.1,
    "brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "pca_noise": 0.1, "random_h": 9,
    "random_s": 9, "random_l": 9, "max_random_contrast": 0.1, "max_random_illumination": 3,
    "inter_method": 10,
}  # fmt: skip


@pytest.mark.parametrize("extra", [{}, {"random_resized_crop": True, "min_random_area": 0.2}])
def test_augmentation_depends_on_the_seed_but_not_on_threads(extra):
    given = {**RANDOM, **extra}
    one = pixels(seed_aug=5, preprocess_threads=1, **given)
    # Bit for bit: each image is processed by a single thread.
    assert np.array_equal(one, pixels(seed_aug=5, preprocess_threads=3, **given))
    assert not np.array_equal(one, pixels(seed_aug=6, **given))
    mx.random.seed(1)
    first = pixels(**given)
    mx.random.seed(1)
    assert np.array_equal(first, pixels(**given))


def test_random_augmentation_differs_between_epochs():
    iterator = make(seed_aug=5, rand_crop=True)
    first = iterator.next().data[0].asnumpy()
    iterator.reset()
    assert not np.array_equal(first, iterator.next().data[0].asnumpy())


@pytest.mark.parametrize(
    ("setting", "low", "high"),
    [
        ({"brightness": 0.4}, (96, 60, 24), (224, 140, 56)),
        ({"contrast": 0.4}, (132, 96, 20), (188, 104, 60)),
        ({"saturation": 0.4}, (132, 96, 20), (188, 104, 60)),
        ({"random_h": 20}, (144, 40, 40), (160, 160, 40)),
        ({"random_s": 50}, (142, 100, 22), (178, 100, 58)),
        ({"max_random_contrast": 0.3}, (112, 70, 28), (208, 130, 52)),
        ({"max_random_illumination": 30}, (130, 70, 10), (190, 130, 70)),
        ({"max_random_illumination": 30, "mean_r": 10, "scale": 0.5}, (60, 35, 5), (90, 65, 35)),
    ],
)
def test_color_augmentation_stays_within_the_bounds_of_mxnet(tmp_path, setting, low, high):
    color = np.full((20, 20, 3), (40, 100, 160), np.uint8)  # blue first
    packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0.0, 0, 0), color, 3, ".png")
    with mx.recordio.MXRecordIO(tmp_path / "a.rec", "w") as file:
        for _ in range(400):
            file.write(packed)
    found = make(
        path_imgrec=tmp_path / "a.rec", data_shape=(3, 2, 2), batch_size=400, seed_aug=1, **setting
    ).next().data[0].asnumpy()[:, :, 0, 0]  # fmt: skip
    assert np.abs(found.min(0) - low).max() <= 3
    assert np.abs(found.max(0) - high).max() <= 3


def test_labels_from_an_lst_file(tmp_path):
    path = tmp_path / "a.lst"
    path.write_text("".join(f"{10 * n}\t{100 + n}\t{200 + n}\t{n}.png\n" for n in range(7)))
    found = make(path_imglist=path, label_width=2).next().label[0].asnumpy()
    assert found.tolist() == [[100 + n, 200 + n] for n in range(7)]
    path.write_text("0\t5\tx.png\n")
    with pytest.raises(MXNetError, match="fail to find imagelabel for id 10"):
        make(path_imglist=path)


def test_batch_index_contains_record_ids():
    assert make().next().index.tolist() == [10 * n for n in range(7)]


def test_mean_image_is_computed_and_subtracted(tmp_path):
    path = tmp_path / "mean.bin"
    plain = pixels()
    found = pixels(mean_img=path)
    mean = mx.nd.load(str(path))["mean_img"].asnumpy()
    assert np.allclose(mean, plain.mean(0), atol=1e-3)
    assert np.allclose(found, plain - mean, atol=1e-3)
    flipped = pixels(mean_img=path, mirror=True, scale=0.5)
    assert np.allclose(flipped, (plain - mean)[:, :, :, ::-1] * 0.5, atol=1e-3)
    with pytest.raises(MXNetError, match="should hold 'mean_img' of shape"):
        make(mean_img=path, data_shape=(3, 9, 9))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"path_imgrec": "/nowhere.rec"}, "No such file"),
        ({"path_imgrec": ""}, "must specify image_rec"),
        ({"data_shape": (8, 8)}, "data_shape"),
        ({"data_shape": (4, 8, 8)}, "expected 4 channels, got 3"),
        ({"batch_size": 0}, "batch_size"),
        ({"dtype": "float16"}, "unknown dtype"),
        ({"label_width": 2}, "1-dimensional label but label_width is set to 2"),
        ({"aug_seq": "other"}, "aug_seq 'other'"),
        ({"inter_method": 7, "resize": 12}, "inter_method"),
        ({"max_crop_size": 99, "min_crop_size": 99}, "do not match an image"),
    ],
)
def test_invalid_settings_raise(other, said):
    with pytest.raises(MXNetError, match=said):
        make(**other)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff\xd8\xff\xe0 no picture"])
def test_broken_image_raises_when_its_batch_is_requested(tmp_path, content):
    good = mx.recordio.MXRecordIO(IMAGES, "r").read()
    with mx.recordio.MXRecordIO(tmp_path / "a.rec", "w") as file:
        for number in range(6):
            bad = mx.recordio.pack(mx.recordio.IRHeader(0, 1.0, 0, 0), content)
            file.write(bad if number == 4 else good)
    iterator = make(path_imgrec=tmp_path / "a.rec", batch_size=2)
    iterator.next()
    iterator.next()
    with pytest.raises(FormatError, match=r"the record at byte \d+ of .*a\.rec"):
        iterator.next()


def test_damaged_record_file_raises_with_the_position(tmp_path):
    raw = bytearray(IMAGES.read_bytes())
    at = int(IMAGES.with_suffix(".idx").read_text().split("\n")[3].split("\t")[1])
    raw[at] ^= 1
    path = tmp_path / "a.rec"
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=f"a.rec: at byte {at} expected the magic"):
        list(make(path_imgrec=path, batch_size=1))


def test_random_detection_augmentation_keeps_boxes_in_the_image():
    iterator = mx.io.ImageDetRecordIter(
        path_imgrec=BOXES, data_shape=(3, 30, 30), batch_size=7, verbose=False,
        rand_crop_prob=1, min_crop_scales=(0.3, 0.5), max_crop_scales=(0.9, 1.0),
        min_crop_aspect_ratios=0.5, max_crop_aspect_ratios=2.0, min_crop_object_coverages=0.3,
        num_crop_sampler=2, rand_pad_prob=0.5, max_pad_scale=3, rand_mirror_prob=0.5,
        max_random_hue=9, random_hue_prob=0.5, max_random_contrast=0.2, random_contrast_prob=0.5,
    )  # fmt: skip
    seen = set()
    for _ in range(5):
        for row in iterator.next().label[0].asnumpy():
            count = int(row[3])
            assert row[:3].tolist() == [3, 30, 30]
            boxes = row[8 : 4 + count].reshape(-1, 5)
            assert 1 <= len(boxes) <= 3
            assert (boxes[:, 1:] >= -1e-6).all() and (boxes[:, 1:] <= 1 + 1e-6).all()
            assert (row[4 + count :] == -1).all()
            seen.add(tuple(boxes[0]))
        iterator.reset()
    assert len(seen) > 7


def pool_threads():
    return [t for t in threading.enumerate() if t.name.startswith("mxnet-images")]


def test_decoding_threads_end_with_the_iterator():
    iterator = make(batch_size=1, preprocess_threads=3)
    iterator.next()
    assert pool_threads()
    del iterator
    gc.collect()
    end = time.monotonic() + 10
    while pool_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert not pool_threads()


def test_program_exits_while_batches_are_being_decoded():
    program = (
        "import mxnet as mx; it = mx.io.ImageRecordIter("
        f"path_imgrec={str(IMAGES)!r}, data_shape=(3, 400, 400), batch_size=64, resize=1500, "
        "preprocess_threads=2, prefetch_buffer=50); it.next(); print('done')"
    )
    root = pathlib.Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=root
    )
    assert done.stdout == "done\n"
    assert done.returncode == 0, done.stderr


def test_iterator_variants_and_data_names():
    for name, dtype in [
        ("ImageRecordIter_v1", "float32"),
        ("ImageRecordUInt8Iter", "uint8"),
        ("ImageRecordUInt8Iter_v1", "uint8"),
        ("ImageRecordInt8Iter", "int8"),
    ]:
        iterator = getattr(mx.io, name)(path_imgrec=IMAGES, data_shape=(3, 8, 8), batch_size=7)
        assert np.dtype(iterator.next().data[0].dtype) == dtype
    iterator = make(data_name="x", label_name="y")
    assert iterator.provide_data == [("x", (7, 3, 8, 8))]
    assert iterator.provide_label == [("y", (7,))]
    assert mx.io.io.ImageRecordIter is mx.io.ImageRecordIter


def ramp(folder, height, width, step=1):
    """Write a record of one image whose rows count upwards; return its path."""
    rows = (np.arange(height) * step).astype(np.uint8)[:, None, None]
    header = mx.recordio.IRHeader(0, 0.0, 0, 0)
    pixels = np.broadcast_to(rows, (height, width, 3)).copy()
    with mx.recordio.MXRecordIO(folder / "ramp.rec", "w") as file:
        file.write(mx.recordio.pack_img(header, pixels, 3, ".png"))
    return folder / "ramp.rec"


def middle(path, **other):
    found = pixels(path_imgrec=path, batch_size=1, **other)[0, 0]
    return found[:, found.shape[1] // 2].astype(int).tolist()


def test_enlarged_sizes_are_truncated_in_float32_like_in_mxnet(tmp_path):
    # 26 / 22 * 22 is below 26 in float32, so the picture becomes 26 x 25.
    path = ramp(tmp_path, 22, 22, step=10)
    found = middle(path, data_shape=(3, 20, 26))
    wanted = [10 * ((2 + row + 0.5) * 22 / 25 - 0.5) for row in range(20)]
    assert np.abs(np.array(found) - wanted).max() <= 1


@pytest.mark.parametrize("scale", [0.29, 0.57])
def test_scaled_sizes_are_truncated_in_float32_like_in_mxnet(tmp_path, scale):
    # 100 * 0.29 is below 29 in double precision; 28 rows would have to be enlarged again.
    size = round(100 * scale)
    given = {"data_shape": (3, size, size), "max_random_scale": scale, "min_random_scale": scale}
    found = middle(ramp(tmp_path, 100, 100), **given)
    assert np.abs(np.array(found) - np.arange(size) / scale).max() <= 1
