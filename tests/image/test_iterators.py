"""`ImageIter` and `ImageDetIter`: batches, epochs, lists and errors match MXNet."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.recordio import IRHeader, MXRecordIO, pack_img
from tests.golden import HERE as GOLDEN
from tests.golden.record import image_cases

pytest.importorskip("cv2")
FILES = GOLDEN / "records"
FACTS = json.loads((GOLDEN / "image_iters.json").read_text())
ARRAYS = np.load(GOLDEN / "image_iters.npz")


@pytest.fixture
def folder(tmp_path):
    image_cases.write_folder(tmp_path)
    return tmp_path


def make(**other):
    given = {"batch_size": 3, "data_shape": (3, 8, 8), "path_imgrec": FILES / "images.rec"}
    return mx.image.ImageIter(**{**given, **other})


def labels(iterator):
    return [(b.label[0].asnumpy().tolist(), b.pad) for b in iterator]


@pytest.mark.parametrize("last", ["pad", "discard", "roll_over"])
@pytest.mark.parametrize(("kind", "name"), [("ImageIter", "images"), ("ImageDetIter", "boxes")])
def test_three_epochs_match_mxnet(kind, name, last):
    iterator = getattr(mx.image, kind)(
        3, (3, 8, 8), path_imgrec=FILES / f"{name}.rec", last_batch_handle=last
    )
    batches = []
    for _ in range(3):
        batches += list(iterator)
        iterator.reset()
    wanted = FACTS[f"{kind} {last}"]
    assert [b.pad for b in batches] == [pad for _, pad, _ in wanted]
    for batch, (label, _, _) in zip(batches, wanted, strict=True):
        assert np.allclose(batch.label[0].asnumpy(), label, atol=1e-6)
    found = np.concatenate([b.data[0].asnumpy() for b in batches])
    assert np.abs(found - ARRAYS[f"{kind} {last}"]).max() <= 1  # OpenCV's bicubic, by version


def test_hard_reset_drops_leftover_samples():
    iterator = make(last_batch_handle="roll_over")
    assert len(list(iterator)) == 2
    iterator.hard_reset()
    assert iterator.next().label[0].asnumpy().tolist() == [0, 1, 2]


def test_parts_and_shuffling_require_an_index():
    index = FILES / "images.idx"
    assert make(path_imgidx=index, num_parts=3, part_index=1).seq == [2, 3]
    for wrong in ({"shuffle": True}, {"num_parts": 2}):
        with pytest.raises(AssertionError, match="path_imgidx"):
            make(**wrong)
    mx.random.seed(4)
    iterator = make(path_imgidx=index, shuffle=True, batch_size=7)
    first, second = (labels(iterator), iterator.reset(), labels(iterator))[::2]
    assert first != second
    assert sorted(first[0][0]) == sorted(second[0][0]) == list(range(7))
    mx.random.seed(4)
    assert labels(make(path_imgidx=index, shuffle=True, batch_size=7)) == first


def test_labels_from_lst_files_and_lists(folder):
    path = folder / "a.lst"
    path.write_text("4\t1\t2.5\tcat/b.png\n9\t3\t4\troot.jpg\n")
    given = {"path_imgrec": None, "path_root": folder, "batch_size": 2}
    found = make(path_imglist=path, label_width=2, **given)
    assert found.seq == [4, 9]
    assert labels(found) == [([[1, 2.5], [3, 4]], 0)]
    found = make(imglist=[[7, "cat/b.png"], [[8], "root.jpg"]], **given)
    assert labels(found) == [([7, 8], 0)]
    found = make(imglist=[[7, 9, "cat/b.png"], ([8, 1], "root.jpg")], label_width=2, **given)
    assert labels(found) == [([[7, 9], [8, 1]], 0)]
    with pytest.raises(MXNetError, match="2 labels, and label_width is 1"):
        make(path_imglist=path, **given).next()


def test_broken_images_raise_with_their_name(folder):
    (folder / "bad.png").write_bytes(b"no picture")
    given = {"path_imgrec": None, "path_root": folder, "batch_size": 1}
    with pytest.raises(MXNetError, match=r"Broken image filename: bad\.png"):
        make(imglist=[[0, "bad.png"]], **given).next()
    with pytest.raises(FileNotFoundError, match=r"none\.png"):
        make(imglist=[[0, "none.png"]], **given).next()


@pytest.mark.parametrize(
    ("other", "error", "said"),
    [
        ({"path_imgrec": None}, AssertionError, "ImageIter needs path_imgrec"),
        ({"data_shape": (8, 8)}, ValueError, "length 3"),
        ({"data_shape": (1, 8, 8)}, ValueError, "3 channels"),
        ({"dtype": "uint8"}, AssertionError, "uint8 label not supported"),
        ({"last_batch_handle": "x"}, ValueError, "last_batch_handle"),
    ],
)
def test_invalid_settings_raise(other, error, said):
    with pytest.raises(error, match=said):
        make(**other)


def test_custom_augmenters_and_overridden_hooks():
    class Inverted(mx.image.ImageIter):
        def augmentation_transform(self, data):
            return 255 - super().augmentation_transform(data).astype("float32")

    given = {"batch_size": 1, "data_shape": (3, 8, 8), "path_imgrec": FILES / "images.rec"}
    augmenters = [mx.image.ForceResizeAug((8, 8))]
    plain = mx.image.ImageIter(aug_list=augmenters, **given).next().data[0]
    inverted = Inverted(aug_list=augmenters, **given).next().data[0]
    assert ((plain + inverted).asnumpy() == 255).all()
    with pytest.raises(MXNetError, match="data_shape is"):
        mx.image.ImageIter(aug_list=[], **given).next()


# -- detection ------------------------------------------------------------------------------------


def detection(tmp_path, *rows, **other):
    path = tmp_path / "d.rec"
    image = image_cases.pixels(12, 10)
    with MXRecordIO(path, "w") as file:
        for row in rows:
            file.write(pack_img(IRHeader(0, row, 0, 0), image, 3, ".png"))
    return mx.image.ImageDetIter(1, (3, 8, 8), path_imgrec=path, **other)


BOX = [0, 0.1, 0.1, 0.5, 0.5]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ([2, 5], "Label shape is invalid"),
        ([2, 5, 0, 0.1, 0.1, 0.5], "Label shape is invalid"),
        ([1, 5, *BOX], "inconsistent with annotation width 5"),
        ([2, 5, 0, 0.5, 0.1, 0.1, 0.5], "no valid label"),
        (3.0, "Label shape is invalid"),
    ],
)
def test_malformed_detection_labels_raise(tmp_path, label, said):
    with pytest.raises(MXNetError, match=said):
        detection(tmp_path, label)


def test_objects_without_class_or_extent_are_skipped(tmp_path):
    iterator = detection(tmp_path, [2, 5, *BOX, 1, 0.5, 0.5, 0.2, 0.2], [2, 5, -1, *BOX[1:]])
    assert iterator.label_shape == (1, 5)
    assert len(list(iterator)) == 1


def test_sync_label_shape_uses_the_larger_shape(tmp_path):
    iterator = detection(tmp_path, [2, 5, *BOX])
    other = mx.image.ImageDetIter(1, (3, 8, 8), path_imgrec=FILES / "boxes.rec")
    assert iterator.sync_label_shape(other) is other
    assert iterator.label_shape == other.label_shape == (3, 5)
    assert iterator.provide_label == [("label", (1, 3, 5))]
    assert iterator.next().label[0].asnumpy()[0, 1].tolist() == [-1] * 5
    with pytest.raises(ValueError, match="reduce label count from 3 to 1"):
        iterator.reshape(label_shape=(1, 5))
    with pytest.raises(ValueError, match="object width inconsistent: 5 vs 6"):
        iterator.reshape(label_shape=(3, 6))
    with pytest.raises(ValueError, match="length 2"):
        iterator.check_label_shape((3,))


def test_random_detection_augmentation_keeps_boxes_inside(tmp_path):
    mx.random.seed(2)
    iterator = mx.image.ImageDetIter(
        7, (3, 16, 16), path_imgrec=FILES / "boxes.rec", rand_crop=0.7, rand_pad=0.7,
        rand_mirror=True, rand_gray=0.3, brightness=0.1, hue=0.1, pca_noise=0.1,
    )  # fmt: skip
    for _ in range(4):
        rows = iterator.next().label[0].asnumpy()
        real = rows[rows[:, :, 0] >= 0]
        assert ((real[:, 1:] >= 0) & (real[:, 1:] <= 1)).all()
        assert (rows[:, 0, 0] >= 0).all()
        iterator.reset()


def test_draw_next_draws_boxes():
    iterator = mx.image.ImageDetIter(1, (3, 32, 32), path_imgrec=FILES / "boxes.rec")
    drawn = list(iterator.draw_next(color=(255, 0, 0), thickness=1, id2labels={0: "a"}))
    assert len(drawn) == 7
    assert drawn[0].shape == (32, 32, 3)
    assert drawn[0][3, 5].tolist() == [0, 0, 255]  # red, blue first


def epochs_without_reset(folder, count, **other):
    names = [[float(n), "a.png"] for n in range(count)]
    iterator = make(path_imgrec=None, imglist=names, path_root=str(folder), **other)
    return [labels(iterator) for _ in range(3)]


@pytest.fixture
def one_image(tmp_path):
    (tmp_path / "a.png").write_bytes(image_cases.pictures()["png"])
    return tmp_path


def test_epochs_without_reset_match_mxnet(one_image):
    full = [([0, 1], 0), ([2, 3], 0)]
    assert epochs_without_reset(one_image, 4, batch_size=2) == [full] * 3
    odd = [([0, 1], 0), ([2, 0], 1)]
    assert epochs_without_reset(one_image, 3, batch_size=2) == [odd, [], []]
    kept = epochs_without_reset(one_image, 3, batch_size=2, last_batch_handle="roll_over")
    assert kept == [[([0, 1], 0)], [([2, 0], 1), ([1, 2], 0)], [([0, 1], 0)]]
    cut = epochs_without_reset(one_image, 4, batch_size=2, last_batch_handle="discard")
    assert cut == [full, [], []]


def test_next_sample_restarts_after_stop_iteration(one_image):
    rows = [[n, "a.png"] for n in (5.0, 6.0)]
    iterator = make(path_imgrec=None, imglist=rows, path_root=str(one_image))
    assert [float(iterator.next_sample()[0].asscalar()) for _ in rows] == [5, 6]
    with pytest.raises(StopIteration):
        iterator.next_sample()
    assert iterator.next_sample()[0].asscalar() == 5
    list(iterator)
    with pytest.raises(StopIteration):
        iterator.next_sample()  # the epoch ended with a padded batch


@pytest.fixture
def three_records(tmp_path):
    with mx.recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as file:
        for number in range(3):
            header = IRHeader(0, float(number), number, 0)
            file.write_idx(number, pack_img(header, image_cases.pixels(), 3, ".png"))
    return {"path_imgrec": tmp_path / "a.rec", "path_imgidx": tmp_path / "a.idx"}


@pytest.mark.parametrize(
    ("listed", "found"), [((2, 0, 1), [0, 10, 20]), ((2, 0), [0, 20, 0])], ids=["all", "some"]
)
def test_lst_file_sets_labels_but_not_the_order_of_records(tmp_path, three_records, listed, found):
    lines = "".join(f"{n}\t{n * 10}\tx.png\n" for n in listed)
    (tmp_path / "a.lst").write_text(lines)
    iterator = make(path_imglist=str(tmp_path / "a.lst"), **three_records)
    assert iterator.seq == sorted(listed)
    assert iterator.next().label[0].asnumpy().tolist() == found


def test_a_scalar_label_is_repeated_to_label_width(three_records):
    batch = make(label_width=2, **three_records).next()
    assert batch.label[0].asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]


def test_sync_label_shape_with_a_different_object_width_raises(tmp_path):
    one = detection(tmp_path, [2, 5, 0, 0.1, 0.1, 0.5, 0.5])
    other = detection(tmp_path, [2, 6, 0, 0.1, 0.1, 0.5, 0.5, 7])
    with pytest.raises(AssertionError, match="object width mismatch"):
        one.sync_label_shape(other)


def test_random_state_is_read_once_per_image(three_records, monkeypatch):
    """Reading Python's random state copies 624 words; a draw is a hundred times faster."""
    asked = []
    monkeypatch.setattr(mx.image.chance, "streams_are_seeded", lambda: asked.append(1) or False)
    make(rand_crop=True, rand_mirror=True, brightness=0.1, pca_noise=0.1, **three_records).next()
    assert len(asked) == 3
