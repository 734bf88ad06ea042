"""Images to arrays: `imdecode`, `imread`; and the way between arrays and OpenCV's pixels."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from ..error import MXNetError, ShapeError
from ..formats import image_codec
from ..formats.location import existing_file
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray
from ..util import is_np_array


def imdecode(
    buf: bytes | bytearray | np.ndarray | NDArray,
    flag: int = 1,
    to_rgb: bool = True,
    out: NDArray | None = None,
) -> NDArray:
    """Decode a JPEG, PNG or other image to a uint8 array (height, width, channels).

    Parameters
    ----------
    buf : bytes, bytearray, or a uint8 array
        The compressed image.
    flag : {0, 1}
        1 for three channels, 0 for one (gray).
    to_rgb : bool
        Whether red comes first; else blue does, as in OpenCV.
    out : NDArray, optional
        Where to put the pixels.

    >>> pixels = np.full((2, 3, 3), 7, dtype=np.uint8)
    >>> png = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0.0, 0, 0), pixels, 3, ".png")[24:]
    >>> mx.image.imdecode(png, flag=0).shape
    (2, 3, 1)
    """
    if isinstance(buf, NDArray):
        buf = pixels_of(buf)
    if isinstance(buf, np.ndarray):
        buf = np.ascontiguousarray(buf, dtype=np.uint8).reshape(-1).data
    if not isinstance(buf, bytes | bytearray | memoryview):
        raise ValueError(
            "buf must be of type bytes, bytearray or numpy.ndarray,"
            f"if you would like to input type str, please convert to bytes; got {type(buf)}"
        )
    return _decoded(buf, flag, to_rgb, out, "the given bytes")


def imread(
    filename: str | os.PathLike[str], flag: int = 1, to_rgb: bool = True, out: NDArray | None = None
) -> NDArray:
    """Read an image file to a uint8 array; see `imdecode`.

    Parameters
    ----------
    filename
        Path of the file.
    flag
        1 for three channels, 0 for gray.
    to_rgb
        Whether red comes first; else blue.
    out
        Array that receives the result.

    >>> import cv2
    >>> cv2.imwrite("a.png", np.zeros((2, 3, 3), "uint8"))
    True
    >>> mx.image.imread("a.png").shape
    (2, 3, 3)
    """
    path = existing_file(filename)
    return _decoded(path.read_bytes(), flag, to_rgb, out, f"{str(path)!r}")


def _decoded(content: Any, flag: int, to_rgb: bool, out: NDArray | None, source: str) -> NDArray:
    if flag < 0:
        raise MXNetError(f"value {flag} for Parameter flag should be greater equal to 0")
    if len(content) == 0:
        raise image_codec.BadImage(f"Input cannot be an empty buffer: {source}.")
    pixels = image_codec.decode(content, int(flag), rgb=bool(to_rgb), source=source)
    if out is None:
        return array_of(pixels)
    if out.shape != pixels.shape:
        raise ShapeError(f"out has shape {out.shape}, and the image {pixels.shape}.")
    out[:] = array_of(pixels)
    return out


def pixels_of(image: NDArray | np.ndarray) -> np.ndarray:
    """Return an image's pixels for OpenCV, which only reads them: on the CPU without a copy."""
    if isinstance(image, NDArray):
        return plain(image).cpu().numpy()
    return np.asarray(image)


def array_of(pixels: np.ndarray, like: Any = None) -> NDArray:
    """Return pixels as an array of the kind of ``like``; it takes the memory over.

    Without ``like`` the array is one of `mx.np` where its arrays are switched on.
    """
    if not pixels.flags.writeable or not pixels.flags.c_contiguous:
        pixels = pixels.copy(order="C")
    if isinstance(like, NDArray):
        return wrap_plain(type(like), torch.from_numpy(pixels))
    made = wrap_plain(NDArray, torch.from_numpy(pixels))
    return made.as_np_ndarray() if is_np_array() else made
