"""Record how SciPy 1.1 handled images. Run with Python 3.6, scipy 1.1.0 and pillow 5.4.1:

    python tests/golden/record/record_scipy_misc.py

Left out is what Pillow itself computes differently today: the rounding of color to gray, palettes
of colors, nearest neighbors of transparent pixels, cubic functions that shrink one axis and
stretch the other, and images of one bit.
"""

import json
import pathlib
import tempfile

import numpy as np
from PIL import Image

RANDOM = np.random.RandomState(0)
ARRAYS = {
    "bytes": RANDOM.randint(0, 256, (5, 6)).astype("uint8"),
    "gray": RANDOM.rand(5, 6),
    "signed": RANDOM.randint(-500, 900, (5, 6)),
    "constant": np.full((5, 6), 3.5),
    "color": RANDOM.rand(5, 6, 3),
    "color_bytes": RANDOM.randint(0, 256, (5, 6, 3)).astype("uint8"),
    "channels_first": RANDOM.rand(3, 5, 6),
    "channels_between": RANDOM.rand(5, 3, 6),
    "three_rows": RANDOM.rand(3, 6, 3),
    "alpha": RANDOM.randint(0, 256, (5, 6, 4)).astype("uint8"),
    "five_channels": RANDOM.rand(5, 6, 5),
    "line": RANDOM.rand(5),
    "complex": RANDOM.rand(5, 6) + 1j,
}
TOIMAGE = [
    {},
    {"cmin": 0, "cmax": 1},
    {"cmin": 2, "cmax": 1},
    {"high": 200, "low": 20},
    {"high": 300},
    {"channel_axis": 2},
    {"mode": "L"},
    {"mode": "RGB"},
    {"mode": "RGBA"},
    {"mode": "YCbCr"},
    {"mode": "CMYK"},
    {"mode": "F"},
    {"mode": "P"},
]
IMRESIZE = [
    {"size": 50},
    {"size": 0.67},
    {"size": [7, 4]},
    {"size": [3, 3], "interp": "bicubic"},
    {"size": [8, 9], "interp": "cubic"},
    {"size": 150, "interp": "lanczos"},
    {"size": [4, 4], "mode": "F"},
]
FILES = ("L", "RGB", "RGBA", "P", "1")
IMREAD = [{}, {"flatten": True}, {"mode": "RGB"}, {"mode": "RGBA"}]


def describe(result):
    """Return a result as JSON."""
    mode = getattr(result, "mode", None)
    array = np.asarray(result)
    values = array.ravel().tolist()
    return {"mode": mode, "dtype": array.dtype.str, "shape": list(array.shape), "values": values}


def answer(function, *arguments, **settings):
    """Return what a function says, or the name of its error."""
    try:
        return describe(function(*arguments, **settings))
    except ValueError:
        return "ValueError"


def save_and_load(misc, array):
    """Return an array as it is after `imsave`."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "a.png")
        misc.imsave(path, array)
        return np.array(Image.open(path))


def make_file(kind):
    """Return an image of some mode that Pillow converts without rounding."""
    if kind == "P":
        image = Image.fromarray(ARRAYS["bytes"] % 3)
        image.putpalette([10, 20, 30, 40, 50, 60, 250, 0, 1] + [0] * 759)
        return image
    if kind == "1":
        return Image.fromarray((ARRAYS["bytes"] > 128).astype("uint8") * 255).convert("1")
    return Image.fromarray(ARRAYS["bytes" if kind == "L" else "alpha"]).convert(kind)


def load(misc, kind, **settings):
    """Return what `imread` makes of a file of some mode."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "a.png")
        make_file(kind).save(path)
        return misc.imread(path, **settings)


def list_answers(misc):
    """Return all answers by the text of their question."""
    answers = {}
    for name, array in sorted(ARRAYS.items()):
        for settings in TOIMAGE:
            key = f"toimage {name} {json.dumps(settings, sort_keys=True)}"
            answers[key] = answer(misc.toimage, array, **settings)
        for settings in IMRESIZE:
            key = f"imresize {name} {json.dumps(settings, sort_keys=True)}"
            answers[key] = answer(misc.imresize, array, **settings)
        answers[f"imsave {name}"] = answer(save_and_load, misc, array)
    for kind in FILES:
        for settings in IMREAD:
            key = f"imread {kind} {json.dumps(settings, sort_keys=True)}"
            answers[key] = answer(load, misc, kind, **settings)
    return answers


if __name__ == "__main__":
    import scipy.misc

    text = json.dumps(list_answers(scipy.misc), separators=(",", ":"), sort_keys=True)
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "scipy_misc.json"
    path.write_text(text + "\n")
