"""`load_weights`: load trained parameters from any supported file into a network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..error import MXNetError
from ..gluon import Block
from ..gluon.parameter.dictionary import named_arrays, without_kind
from ..ndarray import NDArray
from ..runtime.array import plain
from .from_torch import load_torch_parameters

HUB = "hf://"
# Files of a folder or a Hub repository, in order of preference.
PATTERNS = ("*.params", "*.safetensors", "*.pth", "*.pt", "*.bin", "*.onnx")
HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def load_weights(net: Block, source: str | os.PathLike[str], ctx: Any = None) -> Block:
    """Load parameters into a network and return it.

    Parameters
    ----------
    net : Block
        The network.
    source : str
        A ``.params`` file of MXNet; a torch checkpoint (``.pth``, ``.pt``, ``.bin`` or
        ``.safetensors``), whose layers are matched in order, see `load_torch_parameters`; an
        ``.onnx`` file, by the names of its arrays or else in order; a folder that holds one of
        them; or ``hf://owner/name`` or ``hf://owner/name/file`` of the Hugging Face Hub.
    ctx
        Device, or list of devices.

    >>> net = mx.gluon.nn.Dense(2, in_units=3, prefix="fc_")
    >>> net.initialize()
    >>> net.save_parameters("fc.params")
    >>> mx.convert.load_weights(net, "fc.params") is net
    True
    """
    path = find_file(source)
    if path.suffix == ".params":
        _load_params(net, path, ctx)
        return net
    if path.suffix == ".onnx":
        _load_onnx(net, path)
    else:
        load_torch_parameters(net, str(path))
    if ctx is not None:
        net.collect_params().reset_ctx(ctx)
    return net


def find_file(source: str | os.PathLike[str]) -> Path:
    """Return the file of the parameters, downloaded from the Hub for ``hf://``."""
    text = os.fspath(source)
    if text.startswith(HUB):
        return _fetch_from_hub(text)
    path = Path(text).expanduser()
    if not path.is_dir():
        if not path.exists():
            raise MXNetError(f"pretrained={text!r}: there is no such file or folder.")
        return path
    for pattern in PATTERNS:
        files = sorted(path.glob(pattern))
        if len(files) == 1 or (files and pattern == "*.params"):
            return files[-1]  # the last epoch
        if files:
            names = ", ".join(file.name for file in files)
            raise MXNetError(f"pretrained={text!r}: the folder has {names}; name one of them.")
    raise MXNetError(f"pretrained={text!r}: the folder has none of {', '.join(PATTERNS)}.")


def _fetch_from_hub(name: str) -> Path:
    try:
        import huggingface_hub  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MXNetError(
            f"{name}: the Hugging Face Hub needs its library: pip install huggingface_hub"
        ) from error
    owner, _, rest = name.removeprefix(HUB).partition("/")
    repository, _, file = rest.partition("/")
    if not owner or not repository:
        raise MXNetError(f"{name} is not hf://owner/name or hf://owner/name/file.")
    first: Exception | None = None
    for candidate in [file] if file else HUB_FILES:
        try:
            return Path(huggingface_hub.hf_hub_download(f"{owner}/{repository}", candidate))
        except Exception as error:  # the library has many classes, for a missing file too
            first = first or error
    raise MXNetError(f"{name} could not be fetched: {first}") from first


def _load_params(net: Block, path: Path, ctx: Any) -> None:
    """Load by name; the prefix of an exported network may have a different number."""
    arrays = {without_kind(name): array for name, array in named_arrays(str(path)).items()}
    renamed = _rename(net, arrays)
    if renamed is None:
        net.load_parameters(str(path), ctx=ctx)
    else:
        net.collect_params().load_dict(renamed, ctx, filename=str(path))


def _load_onnx(net: Block, path: Path) -> None:
    """Load by the names that `mx.onnx.export_model` writes, or else layer by layer in order."""
    from .onnx.importer import import_model

    _, arguments, auxiliary = import_model(str(path))
    arrays = {**arguments, **auxiliary}
    renamed = _rename(net, arrays)
    if renamed is not None:
        net.collect_params().load_dict(
            renamed, ignore_extra=True, filename=str(path), cast_dtype=True
        )
        return
    load_torch_parameters(net, {name: plain(array) for name, array in arrays.items()})


def _rename(net: Block, arrays: dict[str, NDArray]) -> dict[str, NDArray] | None:
    """Return the arrays under the names of a network's parameters, if they match.

    Networks of one class are numbered: ``resnetv10_conv0_weight``, ``resnetv11_conv0_weight``.
    """
    names = net.collect_params().keys()
    if names <= arrays.keys():
        return arrays
    first = next(iter(arrays), "").partition("_")[0] + "_"
    renamed = {net.prefix + n.removeprefix(first): a for n, a in arrays.items()}
    return renamed if names <= renamed.keys() else None
