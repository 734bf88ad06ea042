"""Utilities of Gluon: splitting batches, clipping gradients, downloads, hooks."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
import weakref
from collections.abc import Iterable, MutableMapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import ndarray
from .._process import env
from .._process.downloads import download_file
from ..context import Context
from ..error import InvalidValue, MXNetError
from ..ndarray import NDArray
from ..ops.tensor.products import list_norms
from ..runtime.array import plain, wrap_plain
from ..symbol import Symbol
from ..util import is_np_array, is_np_shape

__all__ = [
    "HookHandle",
    "check_sha1",
    "clip_global_norm",
    "download",
    "replace_file",
    "shape_is_known",
    "split_and_load",
    "split_data",
]

_CHUNK = 1 << 20
_REPOSITORY = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"


# -- batches ----------------------------------------------------------------------------------


def split_data(
    data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Split an array into slices along the batch axis.

    Parameters
    ----------
    data : NDArray
        The array to split.
    num_slice : int
        Number of slices.
    batch_axis : int
        Axis to split.
    even_split : bool
        Whether to raise if `num_slice` does not divide the size.

    >>> [part.shape for part in mx.gluon.utils.split_data(mx.nd.ones((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ValueError(
            f"data with shape {data.shape} cannot be evenly split into {num_slice} slices along "
            f"axis {batch_axis}. Use a batch size that is a multiple of {num_slice}, or set "
            "even_split=False for slices of different sizes."
        )
    # The first slices are one longer, as in np.array_split.
    step, longer = divmod(size, num_slice)
    ends = [0]
    for i in range(num_slice):
        ends.append(ends[-1] + step + (i < longer))
    if batch_axis == 0:
        return [data[begin:end] for begin, end in pairwise(ends)]
    before = (slice(None),) * (batch_axis % data.ndim)
    return [data[(*before, slice(b, e))] for b, e in pairwise(ends)]


def split_and_load(
    data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Split a batch into one slice for each context, and copy each slice to its context.

    Parameters
    ----------
    data
        The array to split.
    ctx_list
        The devices.
    batch_axis
        The axis to split.
    even_split
        Whether to raise if the slices would differ in size.

    >>> parts = mx.gluon.utils.split_and_load(mx.nd.ones((4, 2)), [mx.cpu(0), mx.cpu(1)])
    >>> [(p.shape, p.context) for p in parts]
    [((2, 2), cpu(0)), ((2, 2), cpu(1))]
    """
    if not isinstance(data, NDArray):
        data = ndarray.array(data, ctx=ctx_list[0])
        if is_np_array():
            data = data.as_np_ndarray()
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    slices = split_data(data, len(ctx_list), batch_axis, even_split)
    return [s.as_in_context(ctx) for s, ctx in zip(slices, ctx_list, strict=True)]


def clip_global_norm(
    arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True
) -> np.float32 | NDArray:
    """Scale arrays in place so that their joint 2-norm is at most `max_norm`.

    Returns the previous norm; without `check_isfinite` an array, without synchronization.

    Parameters
    ----------
    arrays
        The arrays, such as all gradients.
    max_norm
        Maximum joint norm.
    check_isfinite
        Whether to warn if the norm is not finite; the norm is then returned as a NumPy number.

    >>> grads = [mx.nd.array([3.0]), mx.nd.array([4.0])]
    >>> mx.gluon.utils.clip_global_norm(grads, 1.0)
    np.float32(5.0)
    """
    if not arrays:
        raise InvalidValue("clip_global_norm needs at least one array.")
    tensors = [plain(a) for a in arrays]
    device = tensors[0].device
    norms = list_norms([t.float() if t.dtype.itemsize < 4 else t for t in tensors])
    total = torch.linalg.vector_norm(torch.stack([n.to(device, torch.float32) for n in norms]))
    if check_isfinite and not bool(torch.isfinite(total)):
        warnings.warn(
            "nan or inf is detected. Clipping results will be undefined.", UserWarning, stacklevel=2
        )
    if isinstance(max_norm, NDArray):
        max_norm = max_norm.item()
    scale = (max_norm / (total + 1e-8)).clamp(max=1.0)
    if not check_isfinite or not float(scale) >= 1.0:
        for tensor in tensors:
            tensor.mul_(scale.to(tensor.device))
    if check_isfinite:
        return np.float32(float(total))
    return wrap_plain(NDArray, total.reshape(1))


# -- files ------------------------------------------------------------------------------------


def check_sha1(filename: str | os.PathLike[str], sha1_hash: str) -> bool:
    """Return whether the content of a file has this SHA-1 hash.

    Parameters
    ----------
    filename
        Path of the file.
    sha1_hash
        Expected SHA-1, in hexadecimal.

    >>> _ = Path("empty").write_bytes(b"")
    >>> mx.gluon.utils.check_sha1("empty", "da39a3ee5e6b4b0d3255bfef95601890afd80709")
    True
    """
    digest = hashlib.sha1()
    with Path(filename).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == sha1_hash


def replace_file(src: str | os.PathLike[str], dst: str | os.PathLike[str]) -> None:
    """Replace a file by another one atomically.

    Parameters
    ----------
    src
        The file to move.
    dst
        New path; an existing file is replaced.

    >>> _ = Path("new").write_text("text"), Path("old").write_text("")
    >>> mx.gluon.utils.replace_file("new", "old")
    >>> Path("old").read_text()
    'text'
    """
    Path(src).replace(dst)


def download(
    url: str | Sequence[str],
    path: str | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """Download a file atomically and return its path.

    Parameters
    ----------
    url : str or list of str
        Address of the file, or several, which are tried in order.
    path : str
        A file or an existing folder; by default the URL's last part in the current folder.
    overwrite : bool
        Whether to download the file even if it exists.
    sha1_hash : str
        Expected hash; an existing file with another hash is downloaded again.
    retries : int
        Number of retries after a failure.
    verify_ssl : bool
        Whether to verify the server's certificate.

    >>> _ = Path("source.txt").write_text("text")
    >>> name = mx.gluon.utils.download(Path("source.txt").absolute().as_uri(), path="copy.txt")
    Downloading copy.txt from file:///...source.txt...
    >>> Path(name).read_text()
    'text'
    """
    addresses = [url] if isinstance(url, str) else list(url)
    target = _download_target(addresses[0], path)
    if retries < 0:
        raise InvalidValue(f"Number of retries should be at least 0, currently it's {retries}")
    if not verify_ssl:
        warnings.warn(
            "Unverified HTTPS request is being made (verify_ssl=False): the server of "
            f"{addresses[0]} is not verified. Pass sha1_hash to verify the content.",
            stacklevel=2,
        )
    there = target.exists() and not overwrite
    if not (there and (not sha1_hash or check_sha1(target, sha1_hash))):
        download_file(
            addresses,
            target,
            sha1=sha1_hash,
            retries=retries,
            verify_ssl=verify_ssl,
            on_start=lambda address: _say(f"Downloading {target} from {address}..."),
            on_retry=lambda error, left: _say(
                f"download failed due to {error!r}, retrying, {left} left"
            ),
        )
    return str(target)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _download_target(url: str, path: str | None) -> Path:
    name = url.split("/")[-1]
    if path is None:
        if not name:
            raise ValueError(
                "Can't construct file-name from this URL. Please set the `path` option manually."
            )
        return Path(name)
    target = Path(path).expanduser()
    return target / name if target.is_dir() else target


def named_mirrors() -> list[str]:
    """Return the mirrors in ``MXNET_GLUON_REPO``: addresses and folders."""
    return [m.strip() for m in env.get("MXNET_GLUON_REPO").split(",") if m.strip()]


def repository_addresses(name: str, *others: str) -> list[str]:
    """Return the addresses of a file of MXNet's repository on the configured mirrors.

    Without mirrors, the addresses are `others` and the one that MXNet used.

    >>> repository_addresses("gluon/models/x.zip")
    ['https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/gluon/models/x.zip']
    """
    mirrors = [Path(m).resolve().as_uri() if Path(m).is_dir() else m for m in named_mirrors()]
    if not mirrors:
        return [*others, f"{_REPOSITORY}{name}"]
    return [f"{mirror.rstrip('/')}/{name}" for mirror in mirrors]


def _get_repo_url() -> str:
    return repository_addresses("")[0]


def _get_repo_file_url(namespace: str, filename: str) -> str:
    return repository_addresses(f"{namespace}/{filename}")[0]


# -- hooks ------------------------------------------------------------------------------------


class HookHandle:
    """Handle of a registered hook; use `detach`, or a `with` statement, to remove the hook.

    >>> net = mx.gluon.nn.HybridSequential()
    >>> with net.register_forward_hook(lambda block, inputs, output: None):
    ...     len(net._forward_hooks)
    1
    >>> len(net._forward_hooks)
    0
    """

    def __init__(self) -> None:
        self._hooks_dict_ref: Any = None
        self._id: int | None = None

    def attach(self, hooks_dict: MutableMapping[int, Any], hook: Any) -> None:
        """Add the hook to a dictionary of hooks."""
        if self._hooks_dict_ref is not None:
            raise MXNetError("The same handle cannot be attached twice.")
        self._id = id(hook)
        hooks_dict[self._id] = hook
        self._hooks_dict_ref = weakref.ref(hooks_dict)

    def detach(self) -> None:
        """Remove the hook; a second call does nothing."""
        hooks = self._hooks_dict_ref() if self._hooks_dict_ref is not None else None
        if hooks is not None:
            hooks.pop(self._id, None)

    def __getstate__(self) -> tuple:
        hooks = self._hooks_dict_ref() if self._hooks_dict_ref is not None else None
        return hooks, self._id

    def __setstate__(self, state: tuple) -> None:
        hooks, self._id = state
        self._hooks_dict_ref = None if hooks is None else weakref.ref(hooks)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.detach()


# -- shapes and text --------------------------------------------------------------------------


def shape_is_known(shape: Sequence[int] | None) -> bool:
    """Return whether every size is known; in classic semantics 0 and () mean unknown.

    Parameters
    ----------
    shape
        The shape.

    >>> mx.gluon.utils.shape_is_known((3, 0)), mx.gluon.utils.shape_is_known((3, 4))
    (False, True)
    """
    if shape is None:
        return False
    unknown = -1 if is_np_shape() else 0
    if len(shape) == 0:
        return unknown == -1
    for size in shape:
        if size == unknown:
            return False
        if isinstance(size, str):
            raise TypeError(f"the size {size!r} is text, not a number")
        if size < unknown:
            raise AssertionError(
                f"shape dimension size cannot be less than {unknown}, while received {size}"
            )
    return True


def _indent(text: str, spaces: int) -> str:
    return text.replace("\n", "\n" + " " * spaces)


def _brief_print_list(names: Iterable[str], limit: int = 7) -> str:
    """Return quoted names; the middle of long lists is replaced by dots.

    >>> mx.gluon.utils._brief_print_list("abcdefgh", 4)
    "'a', 'b', ..., 'g', 'h'"
    """
    quoted = [f"'{name}'" for name in names]
    if len(quoted) > limit:
        quoted = [*quoted[: limit // 2], "...", *quoted[len(quoted) - (limit + 1) // 2 :]]
    return ", ".join(quoted)


def _check_same_symbol_type(symbols: Sequence[Symbol]) -> type[Symbol]:
    first = type(symbols[0])
    if any(type(s) is not first for s in symbols):
        raise TypeError(
            "Classic symbols and NumPy symbols cannot be the outputs of one block: "
            f"{[type(s).__name__ for s in symbols]}. Convert with as_nd_ndarray() or "
            "as_np_ndarray()."
        )
    return first


def _check_all_np_symbols(kind: type[Symbol]) -> None:
    """Raise for classic symbols among the outputs, as NumPy mode requires."""
    if not kind.is_numpy:
        raise TypeError(
            f"Block's output has type {kind.__name__}; in NumPy mode it must be mx.sym.np._Symbol. "
            "Convert with as_np_ndarray()."
        )


def _check_all_np_ndarrays(outputs: Any) -> None:
    """Raise for classic arrays among (nested) outputs, as NumPy mode requires."""
    from ..numpy import ndarray as np_ndarray

    if isinstance(outputs, list | tuple):
        for item in outputs:
            _check_all_np_ndarrays(item)
    elif isinstance(outputs, NDArray) and not isinstance(outputs, np_ndarray):
        raise TypeError(
            f"Block's output has type {type(outputs).__name__}; in NumPy mode it must be "
            "mx.np.ndarray. Convert with as_np_ndarray()."
        )
