"""The functions of images that `scipy.misc` had, by PIL, as it computed them.

`mx run` lends them to a program, and `mx fix` copies them into it.
"""

from __future__ import annotations

from typing import Any


def _to_uint8(a: Any, high: float, low: float, cmin: float | None, cmax: float | None) -> Any:
    """Return pixels as `scipy.misc` made them: values that are not bytes are scaled to a range."""
    import numpy as np

    a = np.asarray(a)
    if a.dtype == np.uint8:
        return a
    first = float(a.min() if cmin is None else cmin)
    last = float(a.max() if cmax is None else cmax)
    scaled = (a - first) * ((high - low) / ((last - first) or 1.0)) + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any,
    high: float = 255,
    low: float = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    *,
    mode: str | None = None,
) -> Any:
    """Return a PIL image of an array: pixels (rows, columns) or (rows, columns, channels)."""
    import numpy as np
    from PIL import Image

    if mode == "F":
        return Image.fromarray(np.asarray(arr, dtype=np.float32))
    image = Image.fromarray(_to_uint8(arr, high, low, cmin, cmax))
    if mode not in (None, image.mode):
        raise ValueError(f"an array of shape {np.shape(arr)} is no image of mode {mode!r}")
    return image


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> Any:
    """Read an image as an array."""
    import numpy as np
    from PIL import Image

    image = Image.open(name)
    if mode is not None:
        image = image.convert(mode)
    elif image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif image.mode == "1":
        image = image.convert("L")
    return np.asarray(image.convert("F") if flatten else image)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Write an array as an image."""
    toimage(arr).save(name, format=format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> Any:
    """Return an image in another size: pixels, a percentage or a factor."""
    import numpy as np
    from PIL import Image

    image = toimage(arr, mode=mode)
    if isinstance(size, (int, np.integer)):
        target = tuple(int(n * size / 100.0) for n in image.size)
    elif isinstance(size, (float, np.floating)):
        target = tuple(int(n * size) for n in image.size)
    else:
        target = (int(size[1]), int(size[0]))
    names = {"cubic": "BICUBIC"}
    return np.asarray(image.resize(target, Image.Resampling[names.get(interp, interp.upper())]))
