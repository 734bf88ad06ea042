"""The functions of images that `scipy.misc` had, by PIL, as it computed them.

`mx run` lends them to a program, and `mx fix` copies them into it.
"""

from __future__ import annotations

from typing import Any


def _to_uint8(a: Any, high: float, low: float, cmin: float | None, cmax: float | None) -> Any:
    """Return pixels as `scipy.misc` made them: values that are not bytes are scaled to a range."""
    import numpy as np

    if a.dtype == np.uint8:
        return a
    if not 0 <= low <= high <= 255:
        raise ValueError(f"low={low} and high={high} are not in order from 0 to 255")
    first = float(a.min() if cmin is None else cmin)
    last = float(a.max() if cmax is None else cmax)
    if last < first:
        raise ValueError(f"cmax={last:g} is less than cmin={first:g}")
    scaled = (a - first) * ((high - low) / ((last - first) or 1.0)) + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)


def _to_channels_last(a: Any, channel_axis: int | None) -> Any:
    """Return pixels with their colors last; by default they are on the first axis of 3, or of 4."""
    import numpy as np

    axis = a.shape.index(3 if 3 in a.shape else 4) if channel_axis is None else channel_axis
    if a.shape[axis] not in (3, 4):
        raise ValueError(f"axis {axis} of shape {a.shape} has neither 3 nor 4 colors")
    return np.ascontiguousarray(np.moveaxis(a, axis, -1))


def toimage(
    arr: Any,
    high: float = 255,
    low: float = 0,
    cmin: float | None = None,
    cmax: float | None = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """Return a PIL image of an array: gray pixels, or pixels with 3 or 4 colors on any axis."""
    import numpy as np
    from PIL import Image

    arr = np.asarray(arr)
    is_gray = arr.ndim == 2
    if np.iscomplexobj(arr) or not (is_gray or (arr.ndim == 3 and {3, 4} & set(arr.shape))):
        raise ValueError(f"an array of shape {arr.shape} and type {arr.dtype} is no image")
    if is_gray and mode == "F":
        return Image.fromarray(arr.astype(np.float32))
    if is_gray and mode == "I":
        first, last = (arr.min() if cmin is None else cmin), (arr.max() if cmax is None else cmax)
        scaled = (arr * 1.0 - first) * (high - low) / ((last - first) or 1.0) + low
        return Image.fromarray(scaled.astype(np.int32))
    pixels = _to_uint8(arr, high, low, cmin, cmax)
    image = Image.fromarray(pixels if is_gray else _to_channels_last(pixels, channel_axis))
    if is_gray and (mode == "P" or (mode is None and pal is not None)):
        gray = np.repeat(np.arange(256), 3)
        image.putpalette(np.asarray(gray if pal is None else pal).astype(np.uint8).tobytes())
    others = {"RGB": "YCbCr", "RGBA": "CMYK"}
    if mode is not None and mode == others.get(image.mode):
        return Image.frombytes(mode, image.size, image.tobytes())
    if mode not in (None, image.mode):
        raise ValueError(f"an array of shape {arr.shape} is no image of mode {mode!r}")
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
    if image.mode == "1":
        image = image.convert("L")
    return np.asarray(image.convert("F") if flatten else image)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Write an array as an image."""
    toimage(arr, channel_axis=2).save(name, format=format)


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
