"""Files that tests and examples read: downloads, archives, MNIST and CIFAR-10.

Nothing is fetched unless an address is given: data sets are read from files that are there, and
an error says which file to put where.
"""

from __future__ import annotations

import bz2
import gzip
import logging
import os
import pickle
import shutil
import struct
import urllib.parse
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._process.downloads import DownloadError, download_file
from ..base import data_dir
from ..error import MXNetError
from ..formats.atomic import replacing
from ..io import DataIter, MNISTIter

_MNIST_FILES = {
    "train_data": "train-images-idx3-ubyte",
    "train_label": "train-labels-idx1-ubyte",
    "test_data": "t10k-images-idx3-ubyte",
    "test_label": "t10k-labels-idx1-ubyte",
}


def download(
    url: str,
    fname: str | None = None,
    dirname: str | None = None,
    overwrite: bool = False,
    retries: int = 5,
    sha1_hash: str | None = None,
) -> str:
    """Download a file atomically and return its path.

    Parameters
    ----------
    url : str
        Address of the file.
    fname
        The name to store it under; by default the last part of the address.
    dirname
        The folder to store it in. It is created if it does not exist.
    overwrite
        Whether to download a file that already exists.
    retries
        How often to try.
    sha1_hash
        What the content must hash to, optional.

    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("text")
    >>> mx.test_utils.download(pathlib.Path("a.txt").absolute().as_uri(), fname="b.txt")
    'b.txt'
    """
    if retries < 0:
        raise AssertionError("Number of retries should be at least 0")
    path = Path(fname or Path(urllib.parse.urlparse(url).path).name)
    if dirname is not None:
        path = Path(dirname, path)
    if not path.name:
        raise ValueError(f"The address {url!r} ends in no file name: give fname.")
    if path.exists() and not overwrite:
        logging.getLogger().info("%s exists, skipping download", path)
        return str(path)
    try:
        download_file([url], path, sha1=sha1_hash, retries=max(retries - 1, 0), on_retry=_log_retry)
    except DownloadError as error:
        raise MXNetError(f"Failed downloading url {error}") from error
    logging.getLogger().info("downloaded %s into %s successfully", url, path)
    return str(path)


def _log_retry(error: Exception, left: int) -> None:
    logging.getLogger().warning(
        "download failed (%s), retrying, %d attempt%s left", error, left, "s"[: left != 1]
    )


def download_model(
    model_name: str, dst_dir: str = "./", meta_info: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[str | None, int]:
    """Return (path prefix, epoch) of a model, downloaded if `meta_info` has its addresses.

    Parameters
    ----------
    model_name : str
        Name of the model.
    dst_dir
        Where the files are, or go to.
    meta_info : dict of model name to ``{'symbol': url, 'params': url}``, optional
        A model that is not in it gives ``(None, 0)``.

    >>> mx.test_utils.download_model("no-such-model", meta_info={})
    (None, 0)
    """
    folder = Path(dst_dir)
    prefix = folder / model_name
    symbol, params = (Path(f"{prefix}{end}") for end in ("-symbol.json", "-0000.params"))
    if meta_info is not None:
        if model_name not in meta_info:
            return None, 0
        download(meta_info[model_name]["symbol"], fname=symbol.name, dirname=str(folder))
        download(meta_info[model_name]["params"], fname=params.name, dirname=str(folder))
    elif not (symbol.exists() and params.exists()):
        raise MXNetError(
            f"Model {model_name}: put {symbol.name} and {params.name} into {folder.resolve()}, or "
            "give meta_info with the addresses of its symbol and params. MXNet's own model "
            "server is not there any more."
        )
    return str(prefix), 0


# -- archives ----------------------------------------------------------------------------------


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Download a zip archive into a folder, unless it is there, and unpack it there.

    Parameters
    ----------
    data_dir
        The folder.
    url
        Address of the file.
    data_origin_name
        Name of the downloaded file.

    >>> import pathlib, zipfile
    >>> with zipfile.ZipFile("a.zip", "w") as archive:
    ...     archive.writestr("a.txt", "text")
    >>> mx.test_utils.get_zip_data("data", pathlib.Path("a.zip").absolute().as_uri(), "a.zip")
    >>> pathlib.Path("data/a.txt").read_text()
    'text'
    """
    folder = Path(data_dir)
    archive = folder / data_origin_name
    if not archive.exists():
        download(url, fname=data_origin_name, dirname=str(folder))
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Download a bz2 file into a folder and unpack it as `data_name`, unless that is there.

    Parameters
    ----------
    data_dir
        The folder.
    data_name
        Name of the unpacked file.
    url
        Address of the file.
    data_origin_name
        Name of the downloaded file.

    >>> import bz2, pathlib
    >>> _ = pathlib.Path("a.bz2").write_bytes(bz2.compress(b"text"))
    >>> url = pathlib.Path("a.bz2").absolute().as_uri()
    >>> mx.test_utils.get_bz2_data("data", "a.txt", url, "a.bz2")
    >>> pathlib.Path("data/a.txt").read_text()
    'text'
    """
    folder = Path(data_dir)
    unpacked, archive = folder / data_name, folder / data_origin_name
    if unpacked.exists():
        return
    if not archive.exists():
        download(url, fname=data_origin_name, dirname=str(folder))
    with bz2.open(archive) as source, replacing(unpacked) as target:
        shutil.copyfileobj(source, target)
    archive.unlink()


# -- data sets ---------------------------------------------------------------------------------


def _folders(name: str) -> list[Path]:
    return [Path(), Path("data"), Path(data_dir(), "datasets", name)]


def _find(name: str, dataset: str) -> Path:
    folders = _folders(dataset)
    for folder in folders:
        for end in ("", ".gz"):
            if (folder / f"{name}{end}").is_file():
                return folder / f"{name}{end}"
    raise MXNetError(
        f"{dataset}: the file {name} (or {name}.gz) is missing. Put it into "
        f"{folders[-1].absolute()}, or into one of {folders[0].absolute()}, "
        f"{folders[1].absolute()}. MXNET_HOME names another place for data sets."
    )


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _read_idx(path: Path) -> np.ndarray:
    """Return the array of an IDX file of bytes: magic number, sizes, data."""
    content = _content(path)
    zero, kind, ndim = struct.unpack(">HBB", content[:4])
    start = 4 + 4 * ndim
    shape = struct.unpack(f">{ndim}I", content[4:start])
    if zero != 0 or kind != 8 or len(content) - start != int(np.prod(shape)):
        raise MXNetError(f"{path} is damaged or not an MNIST file: bytes with a header of sizes.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def get_mnist() -> dict[str, np.ndarray]:
    """Return the MNIST images, float32 between 0 and 1 of shape (N, 1, 28, 28), and labels.

    The four files ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and ``t10k-...``, or
    their ``.gz``, are read from the current folder, ``data`` or ``~/.mxnet/datasets/mnist``.

    >>> digits = mx.test_utils.get_mnist()  # doctest: +SKIP
    """
    arrays = {key: _read_idx(_find(name, "mnist")) for key, name in _MNIST_FILES.items()}
    for key, values in arrays.items():
        if values.ndim == 3:
            arrays[key] = values[:, None].astype(np.float32) / 255
        else:
            arrays[key] = values.astype(np.int8)
    return arrays


def get_mnist_ubyte() -> None:
    """Make sure that the unpacked MNIST files are in the folder ``data``.

    >>> mx.test_utils.get_mnist_ubyte()  # doctest: +SKIP
    """
    for name in _MNIST_FILES.values():
        target = Path("data", name)
        if target.exists():
            continue
        source = _find(name, "mnist")
        target.parent.mkdir(exist_ok=True)
        with replacing(target) as file:
            file.write(_content(source))


def get_mnist_pkl() -> None:
    """Make sure that ``data/mnist.pkl.gz`` is there, made from the MNIST files if need be.

    >>> mx.test_utils.get_mnist_pkl()  # doctest: +SKIP
    """
    target = Path("data", "mnist.pkl.gz")
    if target.exists():
        return
    mnist = get_mnist()
    flat = {k: v.reshape(len(v), -1) if v.ndim > 1 else v for k, v in mnist.items()}
    split = max(len(flat["train_data"]) - 10000, 0)
    parts = (
        (flat["train_data"][:split], flat["train_label"][:split].astype(np.int64)),
        (flat["train_data"][split:], flat["train_label"][split:].astype(np.int64)),
        (flat["test_data"], flat["test_label"].astype(np.int64)),
    )
    target.parent.mkdir(exist_ok=True)
    with replacing(target) as file:
        file.write(gzip.compress(pickle.dumps(parts, protocol=2)))


def get_cifar10() -> None:
    """Make sure that ``data/cifar`` has train.rec, test.rec and their lists.

    They are unpacked from ``cifar10.zip``, out of ``data`` or ``~/.mxnet/datasets/cifar10``.

    >>> mx.test_utils.get_cifar10()  # doctest: +SKIP
    """
    names = ("train.rec", "test.rec", "train.lst", "test.lst")
    target = Path("data")
    if all((target / "cifar" / name).exists() for name in names):
        return
    archive = _find("cifar10.zip", "cifar10")
    with zipfile.ZipFile(archive) as file:
        file.extractall(target)


def get_im2rec_path(home_env: str = "MXNET_HOME") -> str:
    """Return the path of the tool im2rec.py.

    Parameters
    ----------
    home_env
        Variable that names MXNet's folder.

    >>> mx.test_utils.get_im2rec_path().endswith("im2rec.py")
    True
    """
    candidates = [Path(__file__).parent.parent / "io" / "im2rec.py"]
    if home_env in os.environ:
        candidates.insert(0, Path(os.environ[home_env], "tools", "im2rec.py"))
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    raise OSError(
        "Could not find path to tools/im2rec.py; looked at " + ", ".join(map(str, candidates))
    )


# -- iterators ------------------------------------------------------------------------------------


class DummyIter(DataIter):
    """Returns the first batch of another iterator again and again, to measure speed.

    Parameters
    ----------
    real_iter : DataIter
        The other iterator.

    >>> real = mx.io.NDArrayIter(np.arange(4), batch_size=2)
    >>> dummy = mx.test_utils.DummyIter(real)
    >>> dummy.next().data[0].asnumpy()
    array([0., 1.], dtype=float32)
    """

    def __init__(self, real_iter: Any) -> None:
        super().__init__()
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data
        self.provide_label = real_iter.provide_label
        self.batch_size = real_iter.batch_size
        self.the_batch = next(iter(real_iter))

    def __iter__(self) -> DummyIter:
        return self

    def next(self) -> Any:
        """Return the batch."""
        return self.the_batch


def get_mnist_iterator(
    batch_size: int, input_shape: tuple[int, ...], num_parts: int = 1, part_index: int = 0
) -> tuple[DataIter, DataIter]:
    """Return iterators over the training and test images of MNIST, from files in ``data``.

    Parameters
    ----------
    batch_size
        Number of samples in a batch.
    input_shape
        Shape of an image.
    num_parts
        Number of parts the samples are split into.
    part_index
        Index of the part to read.

    >>> train, test = mx.test_utils.get_mnist_iterator(100, (784,))  # doctest: +SKIP
    """
    get_mnist_ubyte()
    flat = len(input_shape) != 3
    parts = {"num_parts": num_parts, "part_index": part_index}
    train, test = (
        MNISTIter(
            image=f"data/{name}-images-idx3-ubyte",
            label=f"data/{name}-labels-idx1-ubyte",
            batch_size=batch_size,
            shuffle=name == "train",
            flat=flat,
            **parts,
        )
        for name in ("train", "t10k")
    )
    return train, test
