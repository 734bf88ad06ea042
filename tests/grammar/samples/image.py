"""Image preprocessing. Bytes may differ by one: OpenCV resizes in fixed point."""

from tests.grammar.sampling import each, integers, normal, sample, uniform

_bytes = integers(0, 256, 5, 6, 3, dtype="uint8")
_floats = uniform(0, 255, 5, 6, 3)
for _image in (_bytes, _floats, integers(0, 256, 5, 6, 1, dtype="uint8"), uniform(0, 255, 5, 6, 1)):
    _one = 1.01 if _image.dtype == "uint8" else 1e-3
    _fixed = {"grad": False, "atol": _one}
    sample("_image_to_tensor", _image, grad=False)
    sample("_image_flip_left_right", _image, grad=False)
    sample("_image_crop", _image, x=each(0, 2), y=1, width=3, height=4, grad=False)
    sample(
        "_image_resize",
        _image,
        size=each((3, 4), (8, 7), (3, 7), 4, 9),
        interp=each(0, 1, 2, 3, 4),
        **_fixed,
    )
    sample("_image_resize", _image, size=each(3, 10), keep_ratio=True, **_fixed)
    for _name in ("brightness", "contrast", "saturation"):
        sample(f"_image_random_{_name}", _image, min_factor=0.4, max_factor=0.4, **_fixed)
        sample(f"_image_random_{_name}", _image, min_factor=1.6, max_factor=1.6, **_fixed)
for _image in (_bytes, _floats):
    _one = 1.01 if _image.dtype == "uint8" else 1e-2
    for _turn in (0.0, 0.15, 0.5, 0.9):
        sample(
            "_image_random_hue", _image, min_factor=_turn, max_factor=_turn, grad=False, atol=_one
        )
    sample("_image_adjust_lighting", _image, alpha=(0.1, -0.2, 0.3), grad=False, atol=_one)
    sample("_image_random_lighting", _image, alpha_std=0.0, grad=False, atol=_one)
# MXNet leaves the middle row of an odd height unset.
sample("_image_flip_top_bottom", integers(0, 256, 4, 5, 3, dtype="uint8"), grad=False)
sample("_image_flip_top_bottom", uniform(0, 255, 6, 3, 1), grad=False)
# Symmetric images, so that a random flip has one result.
sample("_image_random_flip_left_right", [[[1], [1]]], grad=False)
sample("_image_random_flip_top_bottom", [[[1]], [[1]]], grad=False)
sample("_image_to_tensor", integers(0, 256, 2, 3, 4, 3, dtype="uint8"), grad=False)
sample("_image_crop", normal(2, 4, 5, 3), x=1, y=0, width=2, height=3)
sample("_image_resize", normal(2, 4, 5, 3), size=(3, 7), grad=False)
sample("_image_normalize", normal(3, 2, 4), mean=(0.1, 0.2, 0.3), std=(0.5, 2, 3))
sample("_image_normalize", normal(2, 3, 2, 4), mean=(0.1,), std=(0.5, 2, 3))
sample(
    "_image_normalize", integers(0, 256, 3, 2, 3, dtype="uint8"), mean=(1,), std=(2,), grad=False
)
# Gray has no hue to change.
sample(
    "_image_random_color_jitter",
    [[[9, 9, 9], [5, 5, 5]]],
    brightness=0,
    contrast=0,
    saturation=0,
    hue=0.5,
    grad=False,
)
