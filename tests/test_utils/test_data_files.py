"""Downloads and dataset helpers."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.server
import pickle
import struct
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mxnet import test_utils as t
from mxnet.error import MXNetError

CONTENT = b"weights" * 1000


class Server(http.server.BaseHTTPRequestHandler):
    failures = 0
    asked = 0

    def do_GET(self):
        cls = type(self)
        cls.asked += 1
        if cls.failures:
            cls.failures -= 1
            return self.send_error(503)
        if self.path == "/none":
            return self.send_error(404)
        self.send_response(200)
        short = self.path == "/short.bin"
        self.send_header("Content-Length", str(len(CONTENT) + (10 if short else 0)))
        self.end_headers()
        return self.wfile.write(CONTENT)

    def log_message(self, *args):
        pass


@pytest.fixture
def address():
    Server.failures = Server.asked = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(120)
    server.server_close()


def test_download_with_fname_and_dirname(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert t.download(f"{address}/a.bin?x=1") == "a.bin"
    assert Path("a.bin").read_bytes() == CONTENT
    path = t.download(f"{address}/a.bin", fname="b.bin", dirname="deep/er")
    assert path == str(Path("deep/er/b.bin")) and Path(path).read_bytes() == CONTENT
    asked = Server.asked
    assert t.download(f"{address}/a.bin") == "a.bin" and Server.asked == asked
    Path("a.bin").write_bytes(b"old")
    t.download(f"{address}/a.bin", overwrite=True)
    assert Path("a.bin").read_bytes() == CONTENT


def test_download_retries(address, tmp_path):
    Server.failures = 2
    t.download(f"{address}/a.bin", dirname=str(tmp_path), retries=3)
    assert Server.asked == 3
    Server.failures = 5
    with pytest.raises(MXNetError, match=r"Failed downloading.*503"):
        t.download(f"{address}/b.bin", dirname=str(tmp_path), retries=2)


def test_failed_downloads_leave_no_files(address, tmp_path):
    with pytest.raises(MXNetError, match="404"):
        t.download(f"{address}/none", dirname=str(tmp_path))
    assert Server.asked == 1  # waiting does not help
    with pytest.raises(MXNetError, match="IncompleteRead"):
        t.download(f"{address}/short.bin", dirname=str(tmp_path), retries=1)
    with pytest.raises(MXNetError, match="SHA-1"):
        t.download(f"{address}/a.bin", dirname=str(tmp_path), retries=1, sha1_hash="0" * 40)
    with pytest.raises(AssertionError, match="at least 0"):
        t.download(f"{address}/a.bin", retries=-1)
    with pytest.raises(ValueError, match="give fname"):
        t.download(f"{address}/")
    assert list(tmp_path.iterdir()) == []
    right = hashlib.sha1(CONTENT).hexdigest()
    t.download(f"{address}/a.bin", dirname=str(tmp_path), sha1_hash=right)


def test_download_model(address, tmp_path):
    info = {"net": {"symbol": f"{address}/s", "params": f"{address}/p"}}
    assert t.download_model("net", str(tmp_path), info) == (str(tmp_path / "net"), 0)
    assert (tmp_path / "net-0000.params").read_bytes() == CONTENT
    assert t.download_model("net", str(tmp_path)) == (str(tmp_path / "net"), 0)
    assert t.download_model("other", str(tmp_path), info) == (None, 0)
    with pytest.raises(MXNetError, match=r"put other-symbol.json and other-0000.params into"):
        t.download_model("other", str(tmp_path))


def test_get_zip_data_and_get_bz2_data(address, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr("inside.txt", "text")
    t.get_zip_data(str(tmp_path), "unused", "x.zip")
    assert (tmp_path / "inside.txt").read_text() == "text"
    (tmp_path / "y.bz2").write_bytes(bz2.compress(b"packed"))
    t.get_bz2_data(str(tmp_path), "y.txt", "unused", "y.bz2")
    assert (tmp_path / "y.txt").read_bytes() == b"packed"


def write_mnist(folder, packed):
    folder.mkdir(parents=True)
    for name, count in (("train", 5), ("t10k", 3)):
        images = np.arange(count * 784, dtype=np.uint8)
        labels = np.arange(count, dtype=np.uint8)
        files = {
            f"{name}-images-idx3-ubyte": struct.pack(">4I", 2051, count, 28, 28) + images.tobytes(),
            f"{name}-labels-idx1-ubyte": struct.pack(">2I", 2049, count) + labels.tobytes(),
        }
        for file, content in files.items():
            path = folder / (file + ".gz" * packed)
            path.write_bytes(gzip.compress(content) if packed else content)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("where", ["data", "home/datasets/mnist"])
def test_mnist_from_local_files(tmp_path, monkeypatch, packed, where):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    write_mnist(tmp_path / where, packed)
    mnist = t.get_mnist()
    assert {k: (v.shape, v.dtype.name) for k, v in mnist.items()} == {
        "train_data": ((5, 1, 28, 28), "float32"),
        "train_label": ((5,), "int8"),
        "test_data": ((3, 1, 28, 28), "float32"),
        "test_label": ((3,), "int8"),
    }
    assert mnist["train_data"].max() == 1 and mnist["train_data"][0, 0, 0, 1] == np.float32(1 / 255)
    t.get_mnist_ubyte()
    assert Path("data/t10k-labels-idx1-ubyte").read_bytes()[-3:] == b"\0\1\2"
    t.get_mnist_pkl()
    parts = pickle.loads(gzip.decompress(Path("data/mnist.pkl.gz").read_bytes()))
    assert parts[2][0].shape == (3, 784)


def test_mnist_iterators(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_mnist(tmp_path / "data", packed=True)
    train, test = t.get_mnist_iterator(batch_size=2, input_shape=(1, 28, 28))
    assert next(train).data[0].shape == (2, 1, 28, 28)
    assert next(test).label[0].asnumpy().tolist() == [0, 1]
    flat, _ = t.get_mnist_iterator(batch_size=2, input_shape=(784,))
    assert next(flat).data[0].shape == (2, 784)


def test_missing_datasets_raise_with_the_expected_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    with pytest.raises(MXNetError, match=r"train-images-idx3-ubyte .*Put it into .*datasets.mnist"):
        t.get_mnist()
    with pytest.raises(MXNetError, match=r"cifar10.zip .*datasets.cifar10"):
        t.get_cifar10()


def test_damaged_mnist_raises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_mnist(tmp_path / "data", packed=False)
    path = tmp_path / "data" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MXNetError, match="damaged"):
        t.get_mnist()


def test_cifar10_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    with zipfile.ZipFile("data/cifar10.zip", "w") as file:
        for name in ("train.rec", "test.rec", "train.lst", "test.lst"):
            file.writestr(f"cifar/{name}", name)
    t.get_cifar10()
    assert Path("data/cifar/test.rec").read_text() == "test.rec"
    Path("data/cifar10.zip").unlink()
    t.get_cifar10()


def test_get_im2rec_path(tmp_path, monkeypatch):
    tool = tmp_path / "tools" / "im2rec.py"
    tool.parent.mkdir()
    tool.touch()
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    assert t.get_im2rec_path() == str(tool)
