"""Under ``npx.set_np()`` image functions and transforms return `mx.np` arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon.data.vision import transforms


@pytest.fixture(autouse=True)
def numpy_semantics() -> Iterator[None]:
    """Turn NumPy's shapes and arrays on for one test."""
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.fixture
def picture() -> bytes:
    """Return a PNG of 8 rows and 10 columns."""
    pixels = onp.arange(240, dtype=onp.uint8).reshape(8, 10, 3)
    header = mx.recordio.IRHeader(0, 0.0, 0, 0)
    return mx.recordio.pack_img(header, pixels, 3, ".png")[24:]


def test_image_functions_return_np_arrays(picture: bytes) -> None:
    decoded = mx.image.imdecode(picture)
    made = [
        decoded,
        mx.image.imresize(decoded, 5, 4),
        mx.image.resize_short(decoded, 4),
        mx.image.center_crop(decoded, (4, 4))[0],
        mx.image.color_normalize(decoded.astype("float32"), mx.np.array([1.0, 2, 3])),
    ]
    assert [type(x) for x in made] == [mx.np.ndarray] * 5


def test_transforms_in_a_loader_return_np_arrays(picture: bytes) -> None:
    change = transforms.Compose(
        [transforms.Resize(6), transforms.CenterCrop(4), transforms.ToTensor()]
    )
    image = mx.image.imdecode(picture)
    data = mx.gluon.data.ArrayDataset([image, image], [1.0, 2.0]).transform_first(change)
    (images, labels), *rest = mx.gluon.data.DataLoader(data, batch_size=2)
    assert not rest
    assert type(images) is type(labels) is mx.np.ndarray
    assert images.shape == (2, 3, 4, 4)
