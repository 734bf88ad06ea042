"""Transforms match MXNet 1.9.1; random ones are within bounds and reproducible."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.data.vision import transforms
from tests.golden import HERE
from tests.golden.record.data_programs import PROGRAMS, TRANSFORMS, answer
from tests.golden.record.data_programs import picture as golden_image

RECORDED = HERE / "gluon_data"
FACTS = json.loads((RECORDED / "facts.json").read_text(encoding="utf-8"))
IMAGES = dict(np.load(RECORDED / "transforms.npz"))
LEVEL = {
    "Compose/uint8": 1 / 255 / 0.2
}  # one gray level, after the transforms that follow resizing


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_match_mxnet(name):
    ours, theirs = json.loads(json.dumps(answer(mx, name))), FACTS[name]
    if theirs == ["fails", "any"]:
        assert ours[0] == "fails"
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", TRANSFORMS)
def test_repr_matches_mxnet(name):
    assert repr(TRANSFORMS[name](transforms)) == FACTS["repr"][name]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformed_image_matches_mxnet(name, dtype):
    ours = TRANSFORMS[name](transforms)(golden_image(mx, dtype)).asnumpy()
    theirs = IMAGES[f"{name}/{dtype}"]
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    within = 1 if theirs.dtype == np.uint8 else 1e-3 * max(1, np.abs(theirs).max())
    within = LEVEL.get(f"{name}/{dtype}", within) * 1.001
    assert np.abs(ours.astype("float64") - theirs.astype("float64")).max() <= within


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


def image(dtype="uint8"):
    values = np.random.RandomState(3).randint(0, 256, (8, 9, 3))
    return mx.nd.array(values, dtype=dtype)


@pytest.mark.parametrize("name", DRAWING)
def test_random_transforms_vary_and_are_reproducible_with_a_seed(name):
    change = DRAWING[name]()
    runs = []
    for _ in range(2):
        mx.random.seed(4)
        runs.append([change(image()).asnumpy() for _ in range(20)])
    assert all((a == b).all() for a, b in zip(*runs, strict=True))
    assert any((a != runs[0][0]).any() for a in runs[0])


def test_random_rotation_respects_its_probability():
    tensor = transforms.ToTensor()(image())
    mx.random.seed(4)
    change = transforms.RandomRotation((-40, 40), rotate_with_proba=0.5)
    same = [bool((change(tensor).asnumpy() == tensor.asnumpy()).all()) for _ in range(60)]
    assert 10 < sum(same) < 50
    with pytest.raises(TypeError, match="after ToTensor"):
        transforms.Rotate(5)(image())
    with pytest.raises(ValueError, match="ordered"):
        transforms.RandomRotation((5, -5))
    with pytest.raises(ValueError, match="between 0 and 1"):
        transforms.RandomRotation((-5, 5), rotate_with_proba=2)


def test_crops_have_the_requested_size():
    assert transforms.RandomCrop(4)(image()).shape == (4, 4, 3)
    assert transforms.RandomCrop((5, 4))(image()).shape == (4, 5, 3)
    assert transforms.RandomCrop((13, 12), pad=2)(image()).shape == (12, 13, 3)
    assert transforms.RandomResizedCrop((5, 4))(image()).shape == (4, 5, 3)
    assert transforms.CropResize(1, 2, 4, 3, 6)(image()).shape == (6, 6, 3)


def test_random_gray_keeps_dtype_and_channels():
    grey = transforms.RandomGray(1.0)(image())
    assert (grey.dtype, grey.shape) == (np.uint8, (8, 9, 3))
    values = grey.asnumpy()
    assert (values[..., 0] == values[..., 2]).all()


def test_adjacent_hybrid_transforms_are_merged_for_all_sizes():
    change = transforms.Compose(
        [transforms.Resize(6), transforms.ToTensor(), transforms.Normalize(0.5, 0.25)]
    )
    assert len(change) == 1
    for shape in ((8, 9, 3), (20, 7, 3), (8, 9, 3), (5, 5, 1)):
        image = mx.nd.ones(shape, dtype="uint8") * 255
        assert change(image).shape == (shape[2], 6, 6)
        assert np.allclose(change(image).asnumpy(), 2)


def test_random_transforms_in_workers_are_reproducible():
    change = transforms.Compose(
        [transforms.RandomResizedCrop(6), transforms.RandomFlipLeftRight(), transforms.ToTensor()]
    )
    images = mx.gluon.data.ArrayDataset([image()] * 6, np.arange(6))
    loader = mx.gluon.data.DataLoader(images.transform_first(change), 3, num_workers=2)
    runs = []
    for _ in range(2):
        mx.random.seed(8)
        runs.append(np.concatenate([x.asnumpy() for x, _ in loader]))
    assert runs[0].shape == (6, 3, 6, 6)
    assert (runs[0] == runs[1]).all()
    assert len(np.unique(runs[0].reshape(6, -1), axis=0)) > 1
