"""Image data sets: well-known ones, folders, lists and record files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .... import image, recordio
from ....error import FormatError
from ....ndarray import NDArray
from ....runtime.array import wrap_plain
from ....util import is_np_array
from .. import dataset
from ..fetching import Source, Wanted, dataset_folder, unpacked, unzipped

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageListDataset",
    "ImageRecordDataset",
]

Transform = Callable[[Any, Any], Any] | None


def _array(values: np.ndarray) -> NDArray:
    array = wrap_plain(NDArray, torch.from_numpy(values))
    return array.as_np_ndarray() if is_np_array() else array


class MNIST(dataset._DownloadedDataset):
    """Handwritten digits: images (28, 28, 1) of uint8 with labels 0 to 9.

    Parameters
    ----------
    root : str
        Folder of the four files, such as ``train-images-idx3-ubyte.gz``; missing files are
        downloaded.
    train : bool
        Whether to load the 60000 training images; otherwise the 10000 test images.
    transform : callable
        Function from image and label to a sample.

    >>> digits = mx.gluon.data.vision.MNIST(train=False)  # doctest: +SKIP
    >>> image, label = digits[0]  # doctest: +SKIP
    """

    _namespace = "mnist"
    _places: tuple[str, ...] = ()
    _hint = ""
    _mirrors: tuple[str, ...] = (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    )
    _train_data = Wanted("train-images-idx3-ubyte.gz", "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d")
    _train_label = Wanted("train-labels-idx1-ubyte.gz", "2a80914081dc54586dbdf242f9805a6b8d2a15fc")
    _test_data = Wanted("t10k-images-idx3-ubyte.gz", "c3a25af1f52dad7f726cce8cacb138654b760d48")
    _test_label = Wanted("t10k-labels-idx1-ubyte.gz", "763e7fa3757d93b0cdec073cef058b2004252c17")

    def __init__(
        self,
        root: str | os.PathLike[str] = dataset_folder("mnist"),  # noqa: B008 (read once)
        train: bool = True,
        transform: Transform = None,
    ) -> None:
        self._train = train
        super().__init__(root, transform)

    def _get_data(self) -> None:
        data = self._train_data if self._train else self._test_data
        label = self._train_label if self._train else self._test_label
        source = Source(self._root, self._namespace, self._places, self._hint, self._mirrors)
        images, labels = (unzipped(file, source, (data, label)) for file in (data, label))
        self._data = _array(_idx(images, data.name)[..., None])
        self._label = _idx(labels, label.name).astype(np.int32)


def _idx(content: bytes, name: str) -> np.ndarray:
    """Parse an IDX file of bytes: 2 zero bytes, type, rank, sizes, data."""
    rank = content[3] if content[:3] == b"\x00\x00\x08" else 0
    shape = np.frombuffer(content, ">u4", rank, 4).tolist() if len(content) >= 4 + 4 * rank else []
    if not rank or len(content) != 4 + 4 * rank + np.prod(shape):
        raise FormatError(f"{name} does not hold an IDX file of bytes.")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape).copy()


class FashionMNIST(MNIST):
    """Zalando's images of clothing, in the form of `MNIST`.

    The files of Debian's package ``dataset-fashion-mnist`` are found automatically.

    Parameters
    ----------
    root
        Folder of the four files; missing files are downloaded.
    train
        Whether to load the 60000 training images; otherwise the 10000 test images.
    transform
        Function from image and label to a sample.

    >>> clothes = mx.gluon.data.vision.FashionMNIST(train=False)  # doctest: +SKIP
    """

    _namespace = "fashion-mnist"
    _places = ("/usr/share/datasets/fashion-mnist", "/usr/share/dataset-fashion-mnist")
    _mirrors = ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",)
    _hint = "Debian and Ubuntu have them in the package dataset-fashion-mnist."
    _train_data = Wanted(
        "train-images-idx3-ubyte.gz",
        "0cf37b0d40ed5169c6b3aba31069a9770ac9043d",
        "b9bd999c0106c9b8b4b0cefce58c9a6060f27095",
    )
    _train_label = Wanted(
        "train-labels-idx1-ubyte.gz",
        "236021d52f1e40852b06a4c3008d8de8aef1e40b",
        "4bccf37222e01638381eaa326bf730337a597267",
    )
    _test_data = Wanted(
        "t10k-images-idx3-ubyte.gz",
        "626ed6a7c06dd17c0eec72fa3be1740f146a2863",
        "880056926db704f9f713097915f99da346f5b1d1",
    )
    _test_label = Wanted(
        "t10k-labels-idx1-ubyte.gz",
        "17f9ab60e7257a1620f4ad76bbbaf857c3920701",
        "958122e8b4b97fd4e71eca2d08ef754ed77c3ad9",
    )

    def __init__(
        self,
        root: str | os.PathLike[str] = dataset_folder("fashion-mnist"),  # noqa: B008
        train: bool = True,
        transform: Transform = None,
    ) -> None:
        super().__init__(root, train, transform)


class CIFAR10(dataset._DownloadedDataset):
    """Small photographs of ten classes: images (32, 32, 3) of uint8, labels 0 to 9.

    Parameters
    ----------
    root : str
        Folder of the ``.bin`` files or of their archive.
    train : bool
        Whether to load the 50000 training images; otherwise the 10000 test images.
    transform : callable
        Function from image and label to a sample.

    >>> photographs = mx.gluon.data.vision.CIFAR10(train=False)  # doctest: +SKIP
    """

    _namespace = "cifar10"
    _mirrors: tuple[str, ...] = ("https://www.cs.toronto.edu/~kriz/",)
    _archive_file = Wanted("cifar-10-binary.tar.gz", "fab780a1e191a7eda0f345501ccd62d20f7ed891")
    _train_data = (
        Wanted("data_batch_1.bin", "aadd24acce27caa71bf4b10992e9e7b2d74c2540"),
        Wanted("data_batch_2.bin", "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795"),
        Wanted("data_batch_3.bin", "1dd00a74ab1d17a6e7d73e185b69dbf31242f295"),
        Wanted("data_batch_4.bin", "aab85764eb3584312d3c7f65fd2fd016e36a258e"),
        Wanted("data_batch_5.bin", "26e2849e66a845b7f1e4614ae70f4889ae604628"),
    )
    _test_data = (Wanted("test_batch.bin", "67eb016db431130d61cd03c7ad570b013799c88c"),)
    _labels, _label_at = 1, 0  # label bytes before each image, and the index of the label

    def __init__(
        self,
        root: str | os.PathLike[str] = dataset_folder("cifar10"),  # noqa: B008
        train: bool = True,
        transform: Transform = None,
    ) -> None:
        self._train = train
        super().__init__(root, transform)

    def _get_data(self) -> None:
        files = self._train_data if self._train else self._test_data
        source = Source(self._root, self._namespace, mirrors=self._mirrors)
        paths = unpacked(files, self._archive_file, source).values()
        rows = np.concatenate([np.fromfile(path, np.uint8) for path in paths])
        rows = rows.reshape(-1, self._labels + 3 * 32 * 32)
        images = rows[:, self._labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self._data = _array(np.ascontiguousarray(images))
        self._label = rows[:, self._label_at].astype(np.int32)


class CIFAR100(CIFAR10):
    """Like `CIFAR10`, with 100 classes in 20 groups.

    Parameters
    ----------
    root : str
        Folder of the ``.bin`` files or of their archive.
    fine_label : bool
        Whether to use the 100 fine labels; otherwise the 20 coarse ones.
    train : bool
        Whether to load the 50000 training images; otherwise the 10000 test images.
    transform : callable
        Function from image and label to a sample.

    >>> photographs = mx.gluon.data.vision.CIFAR100(fine_label=True)  # doctest: +SKIP
    """

    _namespace = "cifar100"
    _archive_file = Wanted("cifar-100-binary.tar.gz", "a0bb982c76b83111308126cc779a992fa506b90b")
    _train_data = (Wanted("train.bin", "e207cd2e05b73b1393c74c7f5e7bea451d63e08e"),)
    _test_data = (Wanted("test.bin", "8fb6623e830365ff53cf14adec797474f5478006"),)
    _labels = 2

    def __init__(
        self,
        root: str | os.PathLike[str] = dataset_folder("cifar100"),  # noqa: B008
        fine_label: bool = False,
        train: bool = True,
        transform: Transform = None,
    ) -> None:
        self._label_at = int(fine_label)
        super().__init__(root, train, transform)


class ImageRecordDataset(dataset.RecordFileDataset):
    """The images of a record file with their labels.

    Parameters
    ----------
    filename : str
        The path of the ``.rec`` file; its ``.idx`` file is next to it.
    flag : {0, 1}
        1 for color images, 0 for grayscale.
    transform : callable
        Function from image and label to a sample.

    >>> header, image = mx.recordio.IRHeader(0, 7.0, 0, 0), np.zeros((4, 6, 3), "uint8")
    >>> with mx.recordio.MXIndexedRecordIO("a.idx", "a.rec", "w") as file:
    ...     _ = file.write_idx(0, mx.recordio.pack_img(header, image))
    >>> image, label = mx.gluon.data.vision.ImageRecordDataset("a.rec")[0]
    >>> image.shape, float(label)
    ((4, 6, 3), 7.0)
    """

    def __init__(
        self, filename: str | os.PathLike[str], flag: int = 1, transform: Transform = None
    ) -> None:
        super().__init__(filename)
        self._flag = flag
        self._transform = transform

    def __getitem__(self, idx: int) -> Any:
        header, encoded = recordio.unpack(super().__getitem__(idx))
        return _sample(image.imdecode(encoded, self._flag), header.label, self._transform)


def _sample(array: NDArray, label: Any, transform: Transform) -> Any:
    return (array, label) if transform is None else transform(array, label)


class ImageFolderDataset(dataset.Dataset):
    """Image files in one folder for each class: ``root/car/0001.jpg``, ``root/bus/a.png``.

    Parameters
    ----------
    root : str
        Folder that has one folder for each class.
    flag : {0, 1}
        1 for color images, 0 for grayscale.
    transform : callable
        Function from image and label to a sample.

    Attributes
    ----------
    synsets : list
        The names of the classes, in order; a label is an index into it.
    items : list of tuples
        The path and the label of every image.

    >>> import os, cv2
    >>> os.makedirs("photos/car")
    >>> cv2.imwrite("photos/car/1.png", np.zeros((4, 6, 3), "uint8"))
    True
    >>> image, label = mx.gluon.data.vision.ImageFolderDataset("photos")[0]
    >>> image.shape, label
    ((4, 6, 3), 0)
    """

    def __init__(
        self, root: str | os.PathLike[str], flag: int = 1, transform: Transform = None
    ) -> None:
        self._root = str(Path(root).expanduser())
        self._flag = flag
        self._transform = transform
        self._exts = [".jpg", ".jpeg", ".png"]
        self.synsets: list[str] = []
        self.items: list[tuple[str, int]] = []
        for folder in sorted(Path(self._root).iterdir()):
            self._add_class(folder)

    def _add_class(self, folder: Path) -> None:
        if not folder.is_dir():
            warnings.warn(f"Ignoring {folder}, which is not a directory.", stacklevel=4)
            return
        label = len(self.synsets)
        self.synsets.append(folder.name)
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() in self._exts:
                self.items.append((str(path), label))
            else:
                warnings.warn(
                    f"Ignoring {path} of type {path.suffix}. Only support {', '.join(self._exts)}",
                    stacklevel=4,
                )

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        return _sample(image.imread(path, self._flag), label, self._transform)

    def __len__(self) -> int:
        return len(self.items)


class ImageListDataset(dataset.Dataset):
    """Image files that a list names, with their labels.

    Parameters
    ----------
    root : str
        Folder that paths in the list are relative to.
    imglist : str, or list of lists
        A ``.lst`` file as `im2rec` writes it (number, labels, path), or rows of labels and path.
    flag : {0, 1}
        1 for color images, 0 for grayscale.
    transform : callable
        Function from image and label to a sample.

    >>> import cv2
    >>> cv2.imwrite("1.png", np.zeros((4, 6, 3), "uint8"))
    True
    >>> image, label = mx.gluon.data.vision.ImageListDataset(".", [[7, "1.png"]])[0]
    >>> image.shape, float(label)
    ((4, 6, 3), 7.0)
    """

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        imglist: str | os.PathLike[str] | Sequence[Sequence[Any]] | None = None,
        flag: int = 1,
        transform: Transform = None,
    ) -> None:
        if imglist is None:
            raise ValueError("ImageListDataset needs imglist: a .lst file, or rows of labels, path")
        self._root = str(Path(root).expanduser())
        self._flag = flag
        self._transform = transform
        if isinstance(imglist, str | os.PathLike):
            lines = Path(imglist).read_text(encoding="utf-8").splitlines()
            rows: Any = [line.strip().split("\t")[1:] for line in lines if line.strip()]
        else:
            rows = imglist
        self.items = [self._item(row) for row in rows]

    def _item(self, row: Sequence[Any]) -> tuple[str, Any]:
        if len(row) < 2:
            raise FormatError(f"A row of an image list has labels and a path, not {row!r}.")
        *labels, name = row
        path = str(Path(self._root, name))
        if len(labels) == 1 and isinstance(labels[0], str | int | float):
            return path, float(labels[0])
        return path, np.asarray(labels, np.float32).reshape(-1)

    def __getitem__(self, idx: int) -> Any:
        path, label = self.items[idx]
        return _sample(image.imread(path, self._flag), label, self._transform)

    def __len__(self) -> int:
        return len(self.items)
