"""Images that claim too many pixels raise before they are decoded."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest

import mxnet as mx
from mxnet.formats import image_codec
from mxnet.formats.image_codec import read_size

cv2 = pytest.importorskip("cv2")
PIXELS = np.random.default_rng(0).integers(0, 255, (37, 53, 3), np.uint8)
ENDINGS = (".jpg", ".png", ".bmp", ".webp", ".tiff", ".ppm", ".ras")


def encoded(ending, *settings):
    return cv2.imencode(ending, PIXELS, settings)[1].tobytes()


def bomb():
    """Return a JPEG of a few hundred bytes that claims a thousand million pixels."""
    raw = cv2.imencode(".jpg", np.zeros((8, 8, 3), np.uint8))[1].tobytes()
    at = raw.index(b"\xff\xc0") + 5
    return raw[:at] + struct.pack(">HH", 32000, 32000) + raw[at + 4 :]


@pytest.mark.parametrize("ending", ENDINGS)
def test_size_is_read_from_the_header(ending):
    assert read_size(encoded(ending))[:2] == (53, 37)


def test_scans_of_a_progressive_jpeg_are_counted():
    assert read_size(encoded(".jpg")).scans == 1
    progressive = encoded(".jpg", cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
    assert 2 < read_size(progressive).scans < 50
    at = progressive.index(b"\xff\xda")
    with pytest.raises(image_codec.BadImage, match="scans"):
        mx.image.imdecode(progressive[:at] + b"\xff\xda" * 600 + progressive[at:])


@pytest.mark.parametrize("ending", ENDINGS)
def test_read_size_of_damaged_headers_does_not_raise(ending):
    chance = np.random.default_rng(1)
    raw = encoded(ending)
    for _ in range(300):
        damaged = bytearray(raw[: chance.integers(1, len(raw))])
        damaged[chance.integers(0, min(60, len(damaged)))] = chance.integers(0, 256)
        found = read_size(bytes(damaged))
        assert found is None or found.width >= 0


def test_decompression_bombs_raise_in_every_decoder(tmp_path):
    raw = bomb()
    assert len(raw) < 700
    header = mx.recordio.IRHeader(0, 1.0, 7, 0)
    path, rec = tmp_path / "bomb.jpg", tmp_path / "bomb.rec"
    path.write_bytes(raw)
    with mx.recordio.MXIndexedRecordIO(tmp_path / "bomb.idx", rec, "w") as file:
        file.write_idx(7, mx.recordio.pack(header, raw))
    (tmp_path / "folder" / "a").mkdir(parents=True)
    (tmp_path / "folder" / "a" / "bomb.jpg").write_bytes(raw)
    shape = {"data_shape": (3, 8, 8), "batch_size": 1}
    start = time.process_time()
    for decode in (
        lambda: mx.image.imdecode(raw),
        lambda: mx.nd.imdecode(raw),
        lambda: mx.image.imread(path),
        lambda: mx.recordio.unpack_img(mx.recordio.pack(header, raw)),
        lambda: mx.gluon.data.vision.ImageFolderDataset(tmp_path / "folder")[0],
        lambda: mx.gluon.data.vision.ImageRecordDataset(rec)[0],
        lambda: next(mx.io.ImageRecordIter(path_imgrec=str(rec), **shape)),
        lambda: next(mx.image.ImageIter(path_imgrec=str(rec), **shape)),
    ):
        with pytest.raises(mx.MXNetError, match="32000 x 32000 pixels"):
            decode()
    assert time.process_time() - start < 10


def test_max_pixels_is_configurable(monkeypatch):
    raw = encoded(".png")
    monkeypatch.setenv("MXNET_IMAGE_MAX_PIXELS", str(37 * 53))
    assert mx.image.imdecode(raw).shape == (37, 53, 3)
    monkeypatch.setenv("MXNET_IMAGE_MAX_PIXELS", str(37 * 53 - 1))
    with pytest.raises(image_codec.ImageTooLarge, match=r"53 x 37 pixels.*MXNET_IMAGE_MAX_PIXELS"):
        mx.image.imdecode(raw)
    monkeypatch.setenv("MXNET_IMAGE_MAX_PIXELS", "0")
    assert mx.image.imdecode(raw).shape == (37, 53, 3)


def test_oversized_png_chunk_raises():
    raw = bytearray(encoded(".png"))
    raw[33:37] = b"\xff\xff\xff\x7f"
    start = time.process_time()
    with pytest.raises(image_codec.BadImage, match="the chunk at byte 33 claims 4294967167 bytes"):
        mx.image.imdecode(bytes(raw))
    header = mx.recordio.IRHeader(0, 1.0, 7, 0)
    assert mx.recordio.unpack_img(mx.recordio.pack(header, bytes(raw)))[1] is None
    assert time.process_time() - start < 2
