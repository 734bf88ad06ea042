"""`deploy`: a folder that runs a model without MXNext, in browsers, C++ programs and phones.

Each target is a module here that writes a folder; it copies files from `templates`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...error import InvalidValue, did_you_mean
from ..source import Model, Report, as_model
from .executorch import write_executorch
from .native import write_cpp, write_libtorch
from .sample import Sample
from .web import write_web

__all__ = ["TARGETS", "deploy"]

TARGETS = {
    "web": write_web,
    "cpp": write_cpp,
    "libtorch": write_libtorch,
    "executorch": write_executorch,
}


def deploy(
    model: Any,
    to: str,
    folder: str | os.PathLike[str],
    shapes: Any = None,
    params: Any = None,
    tolerance: float | None = None,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    dtypes: Mapping[str, Any] | None = None,
    runtime: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Report:
    """Write a folder that runs a model without MXNext, after comparing both outputs.

    The folder has sample inputs with the model's outputs, and its program can check itself
    against them.

    Parameters
    ----------
    model : HybridBlock, Symbol or str
        A block, a symbol or the path of its JSON file; for the latter two give `params`.
    to : {'web', 'cpp', 'libtorch', 'executorch'}
        A page for browsers (onnxruntime-web); a C++ program and MXNet's C predict API on ONNX
        Runtime; a C++ program on libtorch with a model that AOTInductor compiled; a ``.pte`` file
        for phones.
    folder : str
        Target folder; it must be empty, unless `force`.
    shapes : list or dict of tuple
        The shapes of the inputs.
    params : str, dict or list, optional
        The parameters of a symbol.
    tolerance : float, optional
        The largest relative error of any output, in units of its largest number; 1e-5.
    inputs : dict or list of dict, optional
        Arrays to compare on, besides random and edge ones; the first is the sample.
    dtypes : dict, optional
        The types of inputs that are not float32.
    runtime : str, optional
        For the web: the folder ``node_modules/onnxruntime-web``, whose files are copied, so that
        the page loads nothing from other hosts.
    force : bool
        Whether to replace files in the folder.

    Returns
    -------
    Report
        The largest absolute and relative error of each output.

    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> report = mx.convert.deploy(net, "web", "site", shapes=[(1, 3)])
    >>> import os
    >>> sorted(os.listdir("site"))
    ['app.js', 'index.html', 'model.json', 'model.onnx']
    """
    if to not in TARGETS:
        raise InvalidValue(
            f"to={to!r} must be one of {', '.join(TARGETS)}. {did_you_mean(to, TARGETS)}".rstrip()
        )
    if shapes is None:
        raise InvalidValue("shapes is needed: the shape of each input of the model.")
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InvalidValue(f"{target} is not a folder.")
    if not force and target.is_dir() and any(target.iterdir()):
        raise InvalidValue(f"{target} holds files already; force=True replaces them.")
    kinds = {name: _torch_dtype(dtype) for name, dtype in (dtypes or {}).items()}
    source = as_model(model, params, shapes, kinds)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".deploy") as scratch:
        cases = [inputs] if isinstance(inputs, Mapping) else list(inputs)
        sample = Sample.of(source, cases)
        report = TARGETS[to](source, Path(scratch), sample, tolerance, cases, runtime)
        _publish(Path(scratch), target)
    report.path = str(target)
    return report


def _torch_dtype(dtype: Any) -> Any:
    from ...dtypes import to_torch

    return to_torch(dtype)


def _publish(scratch: Path, target: Path) -> None:
    """Move all files of a finished folder to the target."""
    for path in sorted(scratch.rglob("*")):
        final = target / path.relative_to(scratch)
        if path.is_dir():
            final.mkdir(parents=True, exist_ok=True)
        else:
            final.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, final)
