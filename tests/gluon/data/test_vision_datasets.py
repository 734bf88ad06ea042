"""Vision datasets, from generated files and from Debian's Fashion-MNIST package."""

from __future__ import annotations

import gzip
import hashlib
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.contrib.data import text
from mxnet.gluon.data import DataLoader, RecordFileDataset, fetching, vision

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
PIXELS = np.arange(3 * 28 * 28, dtype="uint32").astype("uint8").reshape(3, 28, 28)


def sha1(content):
    return hashlib.sha1(content).hexdigest()


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def unreachable(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setattr(fetching, "download", unreachable)


def mnist_files(folder, wrapped=gzip.compress):
    images = struct.pack(">IIII", 2051, 3, 28, 28) + PIXELS.tobytes()
    labels = struct.pack(">II", 2049, 3) + bytes([3, 1, 4])
    for name, content in (("images-idx3", images), ("labels-idx1", labels)):
        (folder / f"train-{name}-ubyte.gz").write_bytes(wrapped(content))
    return images, labels


def made_mnist(folder, **hashes):
    class Small(vision.MNIST):
        _train_data = vision.MNIST._train_data._replace(**hashes["data"])
        _train_label = vision.MNIST._train_label._replace(**hashes["label"])

    return Small(root=folder)


def test_mnist_returns_images_with_a_channel_and_int32_labels(tmp_path):
    mnist_files(tmp_path)
    files = [(tmp_path / f"train-{n}-ubyte.gz") for n in ("images-idx3", "labels-idx1")]
    data, label = ({"sha1": sha1(f.read_bytes())} for f in files)
    dataset = made_mnist(tmp_path, data=data, label=label)
    assert len(dataset) == 3
    picture, number = dataset[1]
    assert (picture.asnumpy() == PIXELS[1][..., None]).all()
    assert picture.dtype is np.uint8
    assert (number, number.dtype) == (1, np.int32)
    x, y = next(iter(DataLoader(dataset, 2)))
    assert (x.shape, y.dtype) == ((2, 28, 28, 1), np.int32)
    scaled = dataset.transform_first(lambda x: x.astype("float32") / 255)
    assert scaled[1][0].asnumpy().max() <= 1


def test_recompressed_files_are_accepted_if_their_content_matches(tmp_path):
    images, labels = mnist_files(tmp_path, lambda content: gzip.compress(content, 1, mtime=7))
    hashes = [{"sha1": "0", "content": sha1(c)} for c in (images, labels)]
    assert len(made_mnist(tmp_path, data=hashes[0], label=hashes[1])) == 3


def test_missing_files_raise_with_the_expected_folder(tmp_path):
    for kind in (vision.MNIST, vision.CIFAR10, vision.CIFAR100):
        with pytest.raises(FileNotFoundError, match=r"Put the files into that folder") as caught:
            kind(root=tmp_path / "new")
        assert str(tmp_path / "new") in str(caught.value)
    mnist_files(tmp_path)
    with pytest.raises(mx.MXNetError, match=r"train-images-idx3-ubyte.gz.*another SHA-1"):
        vision.MNIST(root=tmp_path)


@pytest.mark.parametrize("fine", [None, False, True])
def test_cifar_reads_color_planes(tmp_path, fine):
    before = 1 if fine is None else 2
    rows = np.arange(2 * (before + 3072), dtype="uint32").astype("uint8").reshape(2, -1)
    rows[:, :before] = [[7, 77][:before], [2, 22][:before]]
    (tmp_path / "part.bin").write_bytes(rows.tobytes())
    wanted = fetching.Wanted("part.bin", sha1(rows.tobytes()))
    kind = vision.CIFAR10 if fine is None else vision.CIFAR100

    class Small(kind):
        _train_data = (wanted, wanted)

    dataset = Small(tmp_path) if fine is None else Small(tmp_path, fine)
    assert len(dataset) == 2 * (1 if len({wanted, wanted}) == 1 else 2)
    picture, label = dataset[0]
    assert label == (77 if fine else 7)
    assert (picture.asnumpy() == rows[0, before:].reshape(3, 32, 32).transpose(1, 2, 0)).all()


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_files_are_extracted_from_archives(tmp_path, kind):
    inner = tmp_path / "inner.bin"
    inner.write_bytes(b"content")
    archive = tmp_path / f"all.{kind}"
    if kind == "tar":
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(inner, "some/folder/../evil/inner.bin")
    else:
        with zipfile.ZipFile(archive, "w") as packed:
            packed.write(inner, "some/folder/inner.bin")
    inner.unlink()
    wanted = fetching.Wanted("inner.bin", sha1(b"content"))
    source = fetching.Source(str(tmp_path), "x")
    paths = fetching.unpacked([wanted], fetching.Wanted(archive.name, "0"), source)
    assert paths["inner.bin"].read_bytes() == b"content"
    assert paths["inner.bin"].parent == tmp_path


@pytest.mark.skipif(
    not DEBIAN.is_dir(), reason=f"Debian's dataset-fashion-mnist is not installed in {DEBIAN}"
)
def test_fashion_mnist_is_read_from_the_debian_package(tmp_path):
    for train, count in ((True, 60000), (False, 10000)):
        dataset = vision.FashionMNIST(root=tmp_path, train=train)
        assert len(dataset) == count
        assert np.bincount(dataset._label).tolist() == [count // 10] * 10
        x, y = next(iter(DataLoader(dataset, 100, shuffle=True)))
        assert (x.shape, x.dtype, y.shape) == ((100, 28, 28, 1), np.uint8, (100,))


# -- pictures in files -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    cv2 = pytest.importorskip("cv2")
    for name in ("b/2.png", "b/1.JPG", "a/x.jpeg", "a/y.txt", "B/q.png", "c.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        kind = {".txt": ".png", ".JPG": ".jpg"}.get(path.suffix, path.suffix)
        picture = np.full((2, 3, 3), [1, 2, 3], "uint8")  # blue first
        path.write_bytes(cv2.imencode(kind, picture)[1].tobytes())
    return tmp_path


def test_image_folder_dataset(folder):
    with pytest.warns(UserWarning, match="Ignoring"):
        dataset = vision.ImageFolderDataset(folder)
    assert dataset.synsets == ["B", "a", "b"]
    names = [(Path(path).relative_to(folder).as_posix(), label) for path, label in dataset.items]
    assert names == [("B/q.png", 0), ("a/x.jpeg", 1), ("b/1.JPG", 2), ("b/2.png", 2)]
    picture, label = dataset[3]
    assert picture.asnumpy()[0, 0].tolist() == [3, 2, 1]
    assert label == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grey = vision.ImageFolderDataset(folder, 0, lambda image, label: (image, -label))
    assert grey[1][0].shape == (2, 3, 1)
    assert grey[1][1] == -1
    with pytest.raises(FileNotFoundError):
        vision.ImageFolderDataset(folder / "nowhere")


def test_image_list_dataset(folder):
    lines = "0\t5.0\tb/2.png\n1\t1.0\t2.0\ta/x.jpeg\n"
    (folder / "some.lst").write_text(lines)
    dataset = vision.ImageListDataset(folder, folder / "some.lst")
    assert dataset[0][0].shape == (2, 3, 3)
    assert dataset[0][1] == 5.0
    assert dataset[1][1].tolist() == [1.0, 2.0]
    rows = vision.ImageListDataset(folder, [[5, "b/2.png"], [[1, 2], "a/x.jpeg"]], flag=0)
    assert (rows[0][0].shape, rows[0][1]) == ((2, 3, 1), 5.0)
    assert rows[1][1].tolist() == [1.0, 2.0]
    with pytest.raises(mx.MXNetError, match="row"):
        vision.ImageListDataset(folder, [["b/2.png"]])


def test_image_record_dataset(tmp_path):
    pytest.importorskip("cv2")
    path = tmp_path / "x.rec"
    with mx.recordio.MXIndexedRecordIO(tmp_path / "x.idx", path, "w") as file:
        for i in range(5):
            header = mx.recordio.IRHeader(0, float(i) if i < 4 else [1, 2], i, 0)
            picture = np.full((4, 5, 3), [i, 2, 3], "uint8")
            file.write_idx(i, mx.recordio.pack_img(header, picture, 3, ".png"))
    dataset = vision.ImageRecordDataset(path)
    assert len(dataset) == 5
    assert dataset[1][0].asnumpy()[0, 0].tolist() == [3, 2, 1]
    assert dataset[1][1] == 1.0
    assert dataset[4][1].tolist() == [1.0, 2.0]
    assert vision.ImageRecordDataset(path, flag=0)[0][0].shape == (4, 5, 1)
    changed = vision.ImageRecordDataset(path, transform=lambda image, label: label + 1)
    assert changed[2] == 3.0
    assert RecordFileDataset(path)[0][24:28] == b"\x89PNG"
    with pytest.raises(IndexError):
        dataset[9]
    loader = DataLoader(dataset.take(4), 2, num_workers=2)
    got = [(x.asnumpy()[:, 0, 0, 2].tolist(), y.asnumpy().tolist()) for x, y in loader]
    assert got == [([0, 1], [0.0, 1.0]), ([2, 3], [2.0, 3.0])]


# -- words ---------------------------------------------------------------------------------------


class Words:
    """A vocabulary that numbers words in order of appearance."""

    def __init__(self):
        self.known = {}

    def to_indices(self, words):
        return [self.known.setdefault(word, len(self.known)) for word in words]


def test_wikitext_labels_are_shifted_by_one_word(tmp_path):
    content = " \n = Title = \n \n the cat sat on the mat \n the <unk> dog , sat . \n\n"
    (tmp_path / "wiki.train.tokens").write_text(content)
    wanted = fetching.Wanted("wiki.train.tokens", sha1(content.encode()))

    class Small(text.WikiText2):
        _data_file = {"train": wanted}  # noqa: RUF012 (as in the class above)

    words = Words()
    dataset = Small(tmp_path, vocab=words, seq_len=4)
    assert dataset.vocabulary is words
    assert list(words.known)[:4] == ["=", "Title", "<eos>", "the"]
    assert dataset[0][0].asnumpy().tolist() == [0, 1, 0, 2]
    assert dataset[0][1].asnumpy().tolist() == [1, 0, 2, 3]
    assert (len(dataset), dataset[0][0].dtype) == (4, np.int32)
    assert dataset.frequencies["the"] == 3
    assert "<eos>" not in dataset.frequencies
    with pytest.raises(KeyError):
        Small(tmp_path, segment="other")


def test_files_of_a_verified_archive_are_not_verified_again(tmp_path, monkeypatch):
    archive = tmp_path / "gluon/dataset/small/all.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("part.bin", "content")
    monkeypatch.setenv("MXNET_GLUON_REPO", str(tmp_path))
    monkeypatch.setattr(fetching, "download", mx.gluon.utils.download)
    wanted = fetching.Wanted("all.zip", sha1(archive.read_bytes()))
    source = fetching.Source(str(tmp_path / "root"), "small")
    found = fetching.unpacked([fetching.Wanted("part.bin", "0" * 40)], wanted, source)
    assert found["part.bin"].read_text() == "content"
