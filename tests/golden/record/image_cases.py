"""Calls of `mx.image` that are recorded in MXNet and compared in MXNext."""

from __future__ import annotations

import base64
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
FRACTIONS = [[0.05], [0.2, 0.7, 0.4, 0.9, 0.1], [0.81, 0.33, 0.62, 0.17, 0.48, 0.99]]
EIGENVALUES = [55.46, 4.794, 1.148]
EIGENVECTORS = [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]


def pictures():
    """Return compressed pictures by name."""
    lines = (DATA / "pictures.txt").read_text().split()
    return dict(zip(lines[::2], map(base64.b64decode, lines[1::2]), strict=True))


def pixels(height=12, width=10, seed=0):
    """Return a smooth picture with some noise, so that errors of interpolation show."""
    chance = np.random.RandomState(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 3 + c) + np.cos(y / 2 - c) for c in range(3)]
    return np.uint8(
        np.clip(128 + 50 * np.stack(waves, 2) + chance.randint(-20, 20, (height, width, 3)), 0, 255)
    )


def boxes():
    return np.array(
        [[0, 0.1, 0.1, 0.5, 0.5], [1, 0.4, 0.5, 0.9, 0.95], [2, 0.7, 0.1, 0.8, 0.3]], np.float32
    )


def calls(mx):
    """Give (name, fractions to draw, function without arguments)."""
    yield from decoding(mx)
    yield from geometry(mx)
    yield from augmenters(mx)
    yield from detection(mx)


def decoding(mx):
    for name, content in pictures().items():
        for flag in (0, 1):
            for rgb in (0, 1) if flag else (1,):
                yield (
                    f"imdecode {name} {flag} {rgb}",
                    [0.5],
                    lambda c=content, f=flag, r=rgb: mx.image.imdecode(c, flag=f, to_rgb=r),
                )


def geometry(mx):
    image = mx.nd.array(pixels(), dtype="uint8")
    smooth = image.astype("float32")
    grey = image[:, :, :1]
    for interp in (0, 1, 2, 3, 4):
        for w, h in ((7, 20), (5, 6), (20, 24), (23, 5)):
            for kind, x in (("bytes", image), ("floats", smooth), ("grey", grey)):
                if kind == "grey" and interp != 1:
                    continue
                yield (
                    f"imresize {kind} {w} {h} {interp}",
                    [0.5],
                    lambda x=x, w=w, h=h, i=interp: mx.image.imresize(x, w, h, interp=i),
                )
    border = mx.image.image.copyMakeBorder
    for kind in range(5):
        yield f"border {kind}", [0.5], lambda k=kind: border(image, 1, 2, 3, 4, type=k)
    yield "border values", [0.5], lambda: border(image, 1, 0, 0, 2, values=(1, 2, 3))
    yield "border value", [0.5], lambda: border(smooth, 1, 0, 0, 2, value=9.5)
    for size in (5, 10, 17):
        yield f"resize_short {size}", [0.5], lambda s=size: mx.image.resize_short(image, s)
    yield "fixed_crop", [0.5], lambda: mx.image.fixed_crop(image, 2, 3, 4, 5)
    yield "fixed_crop size", [0.5], lambda: mx.image.fixed_crop(image, 2, 3, 4, 5, (8, 9), 1)
    for size in ((4, 5), (20, 10), (7, 3), (8, 50)):
        yield f"center_crop {size}", [0.5], lambda s=size: mx.image.center_crop(image, s)
        for n, f in enumerate(FRACTIONS):
            yield f"random_crop {size} {n}", f, lambda s=size: mx.image.random_crop(image, s)
    for area in (0.3, (0.5, 0.7), (2, 3)):
        for n, f in enumerate(FRACTIONS):
            yield (
                f"random_size_crop {area} {n}",
                f,
                lambda a=area: mx.image.random_size_crop(image, (6, 5), a, (0.6, 1.7)),
            )
    chw = smooth.transpose((2, 0, 1))
    pair = mx.nd.stack(chw, chw * 0.5)
    for angle in (0, 10, -37.5, 90, 200):
        for zoom in ({}, {"zoom_in": True}, {"zoom_out": True}):
            yield (
                f"imrotate {angle} {zoom}",
                [0.5],
                lambda a=angle, z=zoom: mx.image.imrotate(chw, a, **z),
            )
    yield "imrotate batch", [0.5], lambda: mx.image.imrotate(pair, mx.nd.array([20, -50]))
    yield "random_rotate", [0.2], lambda: mx.image.random_rotate(chw, (-30, 50))
    yield "random_rotate batch", [0.2, 0.9], lambda: mx.image.random_rotate(pair, (-30, 50))
    means = mx.nd.array([1, 2, 3])
    yield "color_normalize", [0.5], lambda: mx.image.color_normalize(smooth, means, means)


def all_augmenters(mx):
    image = mx.image
    return [
        image.ResizeAug(8),
        image.ResizeAug(17, 9),
        image.ForceResizeAug((4, 5), 3),
        image.ForceResizeAug((21, 25), 9),
        image.ForceResizeAug((5, 25), 10),
        image.RandomCropAug((4, 5)),
        image.CenterCropAug((4, 5)),
        image.RandomSizedCropAug((4, 5), 0.08, (0.75, 1.33)),
        image.BrightnessJitterAug(0.3),
        image.ContrastJitterAug(0.3),
        image.SaturationJitterAug(0.3),
        image.HueJitterAug(0.3),
        image.ColorJitterAug(0.1, 0.2, 0.3),
        image.ColorJitterAug(0, 0.2, 0),
        image.LightingAug(0.1, np.array(EIGENVALUES), np.array(EIGENVECTORS)),
        image.ColorNormalizeAug(mx.nd.array([1, 2, 3]), mx.nd.array([2, 2, 2])),
        image.ColorNormalizeAug(np.array([1, 2, 3.0]), None),
        image.RandomGrayAug(0.5),
        image.HorizontalFlipAug(0.5),
        image.CastAug(),
        image.CastAug("float16"),
        image.SequentialAug([image.CastAug(), image.RandomGrayAug(0.5)]),
        image.RandomOrderAug([image.CastAug(), image.HorizontalFlipAug(0.5)]),
    ]


def augmenters(mx):
    for number, augmenter in enumerate(all_augmenters(mx)):
        name = f"{type(augmenter).__name__} {number}"
        yield f"{name} dumps", [0.5], lambda a=augmenter: (a.dumps(),)
        for n, f in enumerate(FRACTIONS):
            augmenter = all_augmenters(mx)[number]  # MXNet's keep the order that they drew last
            x = mx.nd.array(pixels(), dtype="uint8" if number in (0, 1, 2, 3, 4, 5) else "float32")
            yield f"{name} {n}", f, lambda a=augmenter, x=x: a(x)
    settings = [
        {},
        {"resize": 8},
        {"rand_crop": True},
        {"rand_crop": True, "rand_resize": True},
        {"rand_mirror": True, "mean": True, "std": True},
        {"mean": np.array([1, 2, 3]), "std": np.array([1, 2, 3])},
        {"brightness": 0.1, "contrast": 0.1, "saturation": 0.2, "hue": 0.1, "pca_noise": 0.05},
        {"rand_gray": 0.2, "inter_method": 10},
    ]
    for number, setting in enumerate(settings):
        yield (
            f"CreateAugmenter {number}",
            [0.5],
            lambda s=setting: ([a.dumps() for a in mx.image.CreateAugmenter((3, 5, 4), **s)],),
        )


def detection_augmenters(mx):
    image = mx.image
    flip = image.DetHorizontalFlipAug
    return [
        image.DetBorrowAug(image.CastAug()),
        image.DetRandomSelectAug([flip(1.0), image.DetBorrowAug(image.CastAug())], skip_prob=0.3),
        flip(0.5),
        image.DetRandomCropAug(),
        image.DetRandomCropAug(0.5, (0.5, 2.0), (0.1, 0.9), 0.3, 20),
        image.DetRandomCropAug(0.0, (0.9, 1.1), (0.02, 0.08), 0.05, 7),
        image.DetRandomCropAug(0.3, 0.8, 0.5, 0.5, 9),
        image.DetRandomPadAug(),
        image.DetRandomPadAug((0.5, 2.0), (1.2, 2.0), 50, (1, 2, 3)),
        image.CreateMultiRandCropAugmenter([0.1, 0.3], (0.75, 1.33), [(0.1, 1.0), (0.2, 1.0)]),
    ]


def detection(mx):
    image = mx.image
    chance = np.random.RandomState(3)
    scripts = [chance.rand(chance.randint(1, 40)).round(3).tolist() for _ in range(25)]
    for number, augmenter in enumerate(detection_augmenters(mx)):
        name = f"{type(augmenter).__name__} {number}"
        yield f"{name} dumps", [0.5], lambda a=augmenter: (a.dumps(),)
        for n, f in enumerate(scripts):
            augmenter = detection_augmenters(mx)[number]
            x = mx.nd.array(pixels(20, 30) // 8 * 8, dtype="uint8")
            yield f"{name} {n}", f, lambda a=augmenter, x=x: shape_and_label(a, x)
    settings = [
        {},
        {"resize": 10, "rand_crop": 0.5, "rand_pad": 0.4, "rand_mirror": True},
        {"rand_gray": 0.1, "mean": True, "std": True, "brightness": 0.1, "contrast": 0.1},
        {"saturation": 0.1, "hue": 0.1, "pca_noise": 0.1},
        {"rand_crop": 1, "min_object_covered": [0.1, 0.3]},
        {"area_range": (0.3, 2.5), "rand_crop": 1, "rand_pad": 1},
    ]
    for number, setting in enumerate(settings):
        yield (
            f"CreateDetAugmenter {number}",
            [0.5],
            lambda s=setting: ([a.dumps() for a in image.CreateDetAugmenter((3, 8, 8), **s)],),
        )


def shape_and_label(augmenter, image):
    """Return what is enough to identify a crop: its shape, the sum of its pixels, and the boxes."""
    made, label = augmenter(image, boxes())
    return list(made.shape), float(made.asnumpy().astype("float64").sum()), label


# A folder for im2rec, its options, and a list of some of its pictures.

FOLDER = {
    "root.jpg": "jpeg",
    "cat/b.png": "png",
    "cat/a.jpg": "jpeg_low",
    "cat/e.JPG": "jpeg_progressive",
    "cat/n.bmp": "bmp",
    "dog/c.jpeg": "jpeg_grey",
    "dog/puppy/d.png": "png_alpha",
    "dog/puppy/a.png": "png_grey",
    "none/notes.txt": "bmp",
}
LIST_OPTIONS = [
    [],
    ["--recursive"],
    ["--recursive", "--no-shuffle"],
    ["--recursive", "--train-ratio", "0.5", "--test-ratio", "0.3"],
    ["--recursive", "--train-ratio", "0.5"],
    ["--recursive", "--chunks", "2"],
    ["--recursive", "--chunks", "3", "--train-ratio", "0.6"],
    ["--recursive", "--exts", ".png", ".bmp"],
]
LIST = "3\t1\t2.5\tcat/b.png\n0\t4\troot.jpg\n7\t2\t3\tdog/puppy/d.png\n5\t0\tcat/a.jpg\n"
RECORD_OPTIONS = [
    ["--pass-through"],
    ["--pass-through", "--pack-label"],
    [],
    ["--resize", "12"],
    ["--resize", "12", "--center-crop", "--quality", "50"],
    ["--color", "0", "--encoding", ".png", "--quality", "3"],
    ["--color", "-1", "--encoding", ".png", "--quality", "9", "--num-thread", "2"],
]


def write_folder(root):
    content = pictures()
    for name, picture in FOLDER.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[picture])
