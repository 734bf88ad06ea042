"""Decoding and augmenting images: errors, reproducibility, unchanged inputs."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.formats import image_codec as formats
from mxnet.image import chance
from tests.batches import check_each
from tests.golden import HERE as GOLDEN
from tests.golden.record import image_cases
from tests.image.scripted import ScriptedGenerator

pytest.importorskip("cv2")
PICTURES = image_cases.pictures()
IMAGE = mx.nd.array(image_cases.pixels(), dtype="uint8")


def test_imread_reads_files_and_errors_name_them(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(PICTURES["png"])
    assert mx.image.imread(path).shape == (12, 20, 3)
    assert mx.image.imread(str(path), 0).shape == (12, 20, 1)
    (tmp_path / "bad.png").write_bytes(PICTURES["png"][:200])
    with pytest.raises(FormatError, match=r"bad\.png"):
        mx.image.imread(tmp_path / "bad.png")
    with pytest.raises(MXNetError, match="No such file"):
        mx.image.imread(tmp_path / "none.png")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_imdecode_accepts_bytes_like_objects_and_arrays(kind):
    wanted = mx.image.imdecode(PICTURES["png"]).asnumpy()
    assert np.array_equal(mx.image.imdecode(kind(PICTURES["png"])).asnumpy(), wanted)
    array = np.frombuffer(PICTURES["png"], np.uint8).copy()
    assert np.array_equal(mx.image.imdecode(array).asnumpy(), wanted)
    assert np.array_equal(mx.image.imdecode(mx.nd.array(array, dtype="uint8")).asnumpy(), wanted)


def test_imdecode_with_out():
    out = mx.nd.zeros((12, 20, 3), dtype="uint8")
    assert mx.image.imdecode(PICTURES["png"], out=out) is out
    assert out.asnumpy().any()
    with pytest.raises(MXNetError, match="out has shape"):
        mx.image.imdecode(PICTURES["png"], out=mx.nd.zeros((2, 2, 3), dtype="uint8"))


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ("text", ValueError, "must be of type bytes"),
        (None, ValueError, "must be of type bytes"),
        (b"", FormatError, "empty buffer"),
        (b"garbage", FormatError, "Decoding failed"),
        (PICTURES["png"][:100], FormatError, "Decoding failed"),
        (PICTURES["jpeg"][:30], FormatError, "Decoding failed"),
    ],
)
def test_imdecode_of_non_images_raises(wrong, error, said):
    with pytest.raises(error, match=said):
        mx.image.imdecode(wrong)


@pytest.mark.parametrize("name", ["jpeg", "jpeg_progressive", "png", "png_16bit", "bmp"])
def test_damaged_images_decode_or_raise(name, capfd):
    chance = random.Random(5)
    for _ in range(150):
        raw = bytearray(PICTURES[name])
        for _ in range(chance.choice((1, 3, 20))):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        raw = raw[: chance.randrange(len(raw))] if chance.random() < 0.3 else raw
        try:
            pixels = mx.image.imdecode(bytes(raw))
        except MXNetError as error:
            assert re.search("Decoding (failed|refused)|empty", str(error))
            continue
        assert pixels.shape[2] == 3
        assert pixels.size < 2**24


def test_decoding_without_simplejpeg_is_equal(monkeypatch):
    with_it = [mx.image.imdecode(p).asnumpy().astype(int) for p in PICTURES.values()]
    monkeypatch.setattr(formats, "jpeg_decoder", lambda: None)
    without = [mx.image.imdecode(p).asnumpy() for p in PICTURES.values()]
    assert all(np.abs(a - b).max() <= 1 for a, b in zip(with_it, without, strict=True))


def test_missing_opencv_error_names_the_package():
    program = (
        "import sys; sys.modules['cv2'] = None; import mxnet as mx\n"
        "try: mx.image.imresize(mx.nd.zeros((4, 4, 3)), 2, 2)\n"
        "except ImportError as error: print(error)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "pip install opencv-python-headless" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mx.image.imresize(IMAGE, 0, 5), "at least 1"),
        (lambda: mx.image.imresize(IMAGE[:, :, 0], 4, 5), "imresize takes an image"),
        (lambda: mx.image.imresize(IMAGE.astype("int32"), 4, 5), "cannot be resized"),
        (lambda: mx.image.imresize(IMAGE, 4, 5, interp=7), "Unknown interp method 7"),
        (lambda: mx.image.image.copyMakeBorder(IMAGE, 1, 1, 1, 1, type=5), "border type 5"),
        (lambda: mx.image.fixed_crop(IMAGE, -2, 3, 4, 5), "does not start inside"),
        (lambda: mx.image.random_size_crop(IMAGE, (4, 5), 0.5, (1, 1), a=3), "unexpected keyword"),
        (lambda: mx.image.imrotate(IMAGE, 10), "Only `float32`"),
        (lambda: mx.image.imrotate(mx.nd.ones((5, 9)), 10), "Only 3D and 4D"),
        (lambda: mx.image.imrotate(mx.nd.ones((1, 5, 9)), 10, True, True), "cannot be both"),
        (lambda: mx.image.Augmenter()(IMAGE), "Must override"),
        (lambda: mx.image.DetBorrowAug(3), "invalid Augmenter"),
        (lambda: mx.image.DetRandomSelectAug([3]), "DetAugmenter in list only"),
        (lambda: mx.image.CreateAugmenter((3, 4, 4), rand_resize=True), "rand_resize needs"),
        (
            lambda: mx.image.CreateAugmenter((3, 4, 4), mean=np.array([1, 2])),
            "mean must have one number",
        ),
    ],
)
def test_invalid_calls_raise(call, said):
    with pytest.raises(
        (MXNetError, ValueError, TypeError, AssertionError, RuntimeError), match=said
    ):
        call()


def test_invalid_detection_augmenter_ranges_warn():
    with pytest.warns(UserWarning, match="DetRandomCropAug due to invalid aspect_ratio_range"):
        assert not mx.image.DetRandomCropAug(0.1, (1.2, 0.8)).enabled
    with pytest.warns(UserWarning, match="DetRandomPadAug due to invalid area_range"):
        assert not mx.image.DetRandomPadAug((0.8, 1.2), (0.5, 0.9)).enabled


def test_augmenters_are_reproducible_and_keep_their_uint8_input():
    augmenters = mx.image.CreateAugmenter(
        (3, 8, 8), resize=14, rand_crop=True, rand_resize=True, rand_mirror=True, mean=True,
        std=True, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.2, pca_noise=0.1,
        rand_gray=0.5, inter_method=10,
    )  # fmt: skip

    def run():
        mx.random.seed(11)
        made = IMAGE
        for augmenter in augmenters:
            made = augmenter(made)
        return made.asnumpy()

    before = IMAGE.asnumpy()
    assert np.array_equal(run(), run())
    assert np.array_equal(IMAGE.asnumpy(), before)


def test_module_aliases_of_mxnet():
    import mxnet.image.detection
    import mxnet.image.image

    assert mxnet.image.det is mxnet.image.detection
    assert mx.img is mx.image
    assert mxnet.image.image.ImageIter is mx.image.ImageIter
    assert mx.nd.imdecode(PICTURES["png"]).shape == (1, 3, 12, 20)


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_integer_masks_can_be_resized_with_nearest_only(dtype):
    mask = mx.nd.array(np.arange(6).reshape(2, 3, 1), dtype=dtype)
    made = mx.image.imresize(mask, 6, 2, interp=0)
    assert str(np.dtype(made.dtype)) == dtype
    assert made.asnumpy()[:, :, 0].tolist() == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]
    with pytest.raises(MXNetError, match="interp=1"):
        mx.image.imresize(mask, 6, 2, interp=1)


def test_sizes_are_integers_or_integer_strings():
    assert mx.image.imresize(IMAGE, "4", "5").shape == (5, 4, 3)
    for call in (
        lambda: mx.image.imresize(IMAGE, 2.5, 3),
        lambda: mx.image.resize_short(IMAGE, 2.5),
        lambda: mx.image.center_crop(IMAGE, (4.5, 3)),
    ):
        with pytest.raises(MXNetError, match="must be an integer"):
            call()


def test_scalar_border_value_leaves_a_fourth_channel_zero():
    image = mx.nd.ones((1, 1, 4), dtype="uint8")
    made = mx.image.copyMakeBorder(image, 0, 0, 1, 0, value=9.0)
    assert made.asnumpy().tolist() == [[[9, 9, 9, 0], [1, 1, 1, 1]]]


def test_single_border_value_applies_to_the_first_channel():
    made = mx.image.copyMakeBorder(mx.nd.ones((1, 1, 3), dtype="uint8"), 0, 0, 1, 0, values=9)
    assert made.asnumpy().tolist() == [[[9, 0, 0], [1, 1, 1]]]


def test_unknown_keywords_of_a_crop_raise():
    with pytest.raises(AssertionError, match="unexpected keyword"):
        mx.image.RandomSizedCropAug((5, 4), 1.0, (1, 1), most=3)


FACTS = json.loads((GOLDEN / "image.results.json").read_text())
ARRAYS = np.load(GOLDEN / "image.results.npz")
CASES = list(image_cases.calls(mx))


def tolerance(name: str, dtype: np.dtype) -> float:
    """Integers may differ by one if JPEG or OpenCV's version rounds differently."""
    if dtype == np.uint8:
        return 1 if "jpeg" in name or "esize" in name or "rop" in name.lower() else 0
    return 2e-2 if dtype == np.float16 else 2e-3


def test_recorded_calls_match_mxnet(monkeypatch):
    check_each({case[0]: case for case in CASES}, lambda case: _check_call(*case, monkeypatch))


def _check_call(name, fractions, call, monkeypatch):
    script = ScriptedGenerator(fractions)
    monkeypatch.setattr(chance, "generator", lambda: script)
    result = call()
    parts = result if isinstance(result, tuple) else (result,)
    expected = FACTS[name]
    assert len(parts) == len(expected)
    for number, (part, fact) in enumerate(zip(parts, expected, strict=True)):
        if fact is not None:
            assert json.loads(json.dumps(part)) == fact
            continue
        wanted = ARRAYS[f"{name}|{number}"]
        found = part.asnumpy() if isinstance(part, mx.nd.NDArray) else part
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        far = np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()
        assert far <= tolerance(name, wanted.dtype), far


def test_interp_5_resizes_and_negative_interp_raises():
    pixels = mx.nd.array(np.arange(48).reshape(4, 4, 3), dtype="uint8")
    resized = mx.image.imresize(pixels, 2, 2, interp=5)
    assert resized.asnumpy().ravel()[:4].tolist() == [8, 9, 10, 14]
    with pytest.raises(MXNetError, match="Unknown interp method -1"):
        mx.image.imresize(pixels, 2, 2, interp=-1)
