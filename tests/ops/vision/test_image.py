"""Image operators: bounds of random changes, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError


def test_flip_of_an_odd_size() -> None:
    image = mx.nd.arange(3).reshape((3, 1, 1))
    assert mx.nd.image.flip_top_bottom(image).asnumpy().ravel().tolist() == [2, 1, 0]


def test_random_flip_has_both_outcomes() -> None:
    image = mx.nd.arange(2).reshape((1, 2, 1))
    seen = {tuple(mx.nd.image.random_flip_left_right(image).asnumpy().ravel()) for _ in range(64)}
    assert seen == {(0, 1), (1, 0)}


def test_random_brightness_is_within_bounds() -> None:
    image = mx.nd.ones((1, 1, 3))
    made = [
        float(mx.nd.image.random_brightness(image, 0.5, 1.5).asnumpy()[0, 0, 0]) for _ in range(64)
    ]
    assert 0.5 <= min(made) < 0.8 and 1.2 < max(made) <= 1.5


def test_color_changes_keep_one_channel_images() -> None:
    image = mx.nd.array(np.full((2, 2, 1), 7), dtype="uint8")
    for changed in (
        mx.nd.image.random_hue(image, 0.1, 0.9),
        mx.nd.image.random_saturation(image, 0.1, 0.9),
        mx.nd.image.adjust_lighting(image, alpha=(1, 1, 1)),
    ):
        assert np.array_equal(changed.asnumpy(), image.asnumpy())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: mx.nd.image.crop(x, x=2, y=0, width=2, height=1), "should not be greater"),
        (lambda x: mx.nd.image.crop(x, x=0, y=0, width=0, height=1), "must not be empty"),
        (lambda x: mx.nd.image.resize(x, size=(2, 2), interp=9), "unknown interpolation"),
        (lambda x: mx.nd.image.random_brightness(x, -1, 1), "min_factor"),
        (lambda x: mx.nd.image.normalize(x, mean=(1, 2)), "Invalid mean"),
        (lambda x: mx.nd.image.flip_left_right(x[0]), "must have shape"),
    ],
)
def test_invalid_calls_raise(call, text: str) -> None:
    with pytest.raises(MXNetError, match=text):
        call(mx.nd.ones((3, 3, 3)))


def test_infer_shape_of_a_crop_beyond_the_image_raises() -> None:
    cropped = mx.sym.image.crop(mx.sym.var("x"), x=2, y=0, width=2, height=1)
    assert cropped.infer_shape(x=(3, 4, 3))[1] == [(1, 2, 3)]
    with pytest.raises(MXNetError, match="should not be greater"):
        cropped.infer_shape(x=(3, 3, 3))


@pytest.mark.parametrize("shape", [(7, 9, 3), (2, 7, 9, 3), (4, 5, 5)])
def test_normalize_of_channels_last_raises(shape) -> None:
    with pytest.raises(MXNetError, match="channels on the first axis"):
        mx.nd.image.normalize(mx.nd.ones(shape), mean=0.5, std=2.0)


@pytest.mark.parametrize("shape", [(3, 4, 5), (4, 5, 4), (4, 5, 2)])
@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
def test_color_changes_of_channels_first_raise(name, shape) -> None:
    with pytest.raises(MXNetError, match="1 or 3 channels"):
        getattr(mx.nd.image, f"random_{name}")(mx.nd.ones(shape), min_factor=1, max_factor=1)


def test_random_hue_of_uint8_truncates_as_in_mxnet():
    image = np.random.RandomState(0).randint(0, 256, (8, 8, 3)).astype("uint8")
    # Some are 1e-5 below an integer, so every step must round like IEEE 754.
    made = mx.nd.image.random_hue(mx.nd.array(image, dtype="uint8"), 0.1, 0.1)
    wanted = [172, 52, 46, 250, 67, 199, 175, 195, 8, 242, 20, 140, 36, 73, 87, 215, 112, 88]
    assert made.asnumpy().ravel()[:18].tolist() == wanted
