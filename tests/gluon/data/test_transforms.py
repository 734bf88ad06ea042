"""Transformations that draw: how often, within which bounds, repeatably. Values: golden tests."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data.vision import transforms

DRAWING = {
    "flip": lambda: transforms.RandomFlipLeftRight(),
    "upside down": lambda: transforms.RandomFlipTopBottom(),
    "brightness": lambda: transforms.RandomBrightness(0.5),
    "contrast": lambda: transforms.RandomContrast(0.5),
    "saturation": lambda: transforms.RandomSaturation(0.5),
    "hue": lambda: transforms.RandomHue(0.5),
    "jitter": lambda: transforms.RandomColorJitter(0.3, 0.3, 0.3, 0.3),
    "lighting": lambda: transforms.RandomLighting(20),
    "crop": lambda: transforms.RandomCrop((5, 4)),
    "padded crop": lambda: transforms.RandomCrop((12, 9), pad=2),
    "resized crop": lambda: transforms.RandomResizedCrop((5, 4)),
    "grey": lambda: transforms.RandomGray(0.5),
    "apply": lambda: transforms.RandomApply(transforms.RandomFlipLeftRight(), 0.7),
    "hybrid apply": lambda: transforms.HybridRandomApply(transforms.RandomFlipLeftRight(), 0.7),
    "compose": lambda: transforms.Compose(
        [transforms.RandomFlipLeftRight(), transforms.RandomBrightness(0.5), transforms.ToTensor()]
    ),
    "hybrid compose": lambda: transforms.HybridCompose(
        [transforms.RandomFlipLeftRight(), transforms.ToTensor()]
    ),
}


def picture(dtype="uint8"):
    values = np.random.RandomState(3).randint(0, 256, (8, 9, 3))
    return mx.nd.array(values, dtype=dtype)


@pytest.mark.parametrize("name", DRAWING)
def test_draws_differ_and_repeat_under_a_seed(name):
    change = DRAWING[name]()
    runs = []
    for _ in range(2):
        mx.random.seed(4)
        runs.append([change(picture()).asnumpy() for _ in range(20)])
    assert all((a == b).all() for a, b in zip(*runs, strict=True))
    assert any((a != runs[0][0]).any() for a in runs[0])


def test_rotation_draws_whether_and_how_far():
    tensor = transforms.ToTensor()(picture())
    mx.random.seed(4)
    change = transforms.RandomRotation((-40, 40), rotate_with_proba=0.5)
    same = [bool((change(tensor).asnumpy() == tensor.asnumpy()).all()) for _ in range(60)]
    assert 10 < sum(same) < 50
    with pytest.raises(TypeError, match="after ToTensor"):
        transforms.Rotate(5)(picture())
    with pytest.raises(ValueError, match="ordered"):
        transforms.RandomRotation((5, -5))
    with pytest.raises(ValueError, match="between 0 and 1"):
        transforms.RandomRotation((-5, 5), rotate_with_proba=2)


def test_crops_have_the_size_that_was_asked_for():
    assert transforms.RandomCrop(4)(picture()).shape == (4, 4, 3)
    assert transforms.RandomCrop((5, 4))(picture()).shape == (4, 5, 3)
    assert transforms.RandomCrop((13, 12), pad=2)(picture()).shape == (12, 13, 3)
    assert transforms.RandomResizedCrop((5, 4))(picture()).shape == (4, 5, 3)
    assert transforms.CropResize(1, 2, 4, 3, 6)(picture()).shape == (6, 6, 3)


def test_grey_keeps_type_and_channels():
    grey = transforms.RandomGray(1.0)(picture())
    assert (grey.dtype, grey.shape) == (np.uint8, (8, 9, 3))
    values = grey.asnumpy()
    assert (values[..., 0] == values[..., 2]).all()


def test_neighbours_run_as_one_graph_for_every_size():
    change = transforms.Compose(
        [transforms.Resize(6), transforms.ToTensor(), transforms.Normalize(0.5, 0.25)]
    )
    assert len(change) == 1
    for shape in ((8, 9, 3), (20, 7, 3), (8, 9, 3), (5, 5, 1)):
        image = mx.nd.ones(shape, dtype="uint8") * 255
        assert change(image).shape == (shape[2], 6, 6)
        assert np.allclose(change(image).asnumpy(), 2)


def test_transforms_in_worker_processes():
    change = transforms.Compose(
        [transforms.RandomResizedCrop(6), transforms.RandomFlipLeftRight(), transforms.ToTensor()]
    )
    images = mx.gluon.data.ArrayDataset([picture()] * 6, np.arange(6))
    loader = mx.gluon.data.DataLoader(images.transform_first(change), 3, num_workers=2)
    runs = []
    for _ in range(2):
        mx.random.seed(8)
        runs.append(np.concatenate([x.asnumpy() for x, _ in loader]))
    assert runs[0].shape == (6, 3, 6, 6)
    assert (runs[0] == runs[1]).all()
    assert len(np.unique(runs[0].reshape(6, -1), axis=0)) > 1
