"""`port`: converts a model to a folder with `model.py`, its weights and a report."""

from __future__ import annotations

import keyword
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...dtypes import to_torch
from ...error import InvalidValue
from ...formats import safetensors_file
from ...formats.atomic import one_commit, replacing
from ...gluon import HybridBlock
from ..source import Shapes
from .build import Draft, draft_block, draft_symbol
from .comparison.reference import Reference
from .comparison.verify import PortReport, Verifier
from .text.file import write_file

TOLERANCE = 1e-5
FILES = ("model.py", "model.safetensors", "report.md")


def port(
    model: Any,
    output: str | os.PathLike[str] | None = None,
    shapes: Shapes | None = None,
    params: Any = None,
    *,
    name: str | None = None,
    source: str | None = None,
    dtypes: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    tolerance: float = TOLERANCE,
    force: bool = False,
) -> PortReport:
    """Write a model as PyTorch source code with its weights, if both compute the same.

    Outputs, gradients, running statistics and several training steps are compared in a process
    without MXNext. If anything disagrees, nothing is written.

    Parameters
    ----------
    model : HybridBlock, Symbol or str
        A block, a symbol or the path of its JSON file; for the latter two give `params`.
    output : str, optional
        The folder for ``model.py``, ``model.safetensors`` and ``report.md``. Without it the model
        is only compared.
    shapes : list or dict of tuple
        The shapes of the inputs.
    params : str, dict or list, optional
        The parameters of a symbol.
    name : str, optional
        The name of the model's class; by default that of the block.
    source : str, optional
        What the header says the file was generated from.
    dtypes : dict, optional
        The types of inputs that are not float32.
    inputs : dict or list of dict, optional
        Arrays to compare outputs on, besides random and edge ones.
    tolerance : float
        The largest relative error of outputs in prediction.
    force : bool
        Whether to replace files that are there.

    Returns
    -------
    PortReport
        The largest error of everything that was compared.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> mx.convert.port(net, shapes=[(2, 3)]).passed
    True
    """
    if shapes is None:
        raise InvalidValue("shapes is needed: the shape of each input of the model.")
    if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
        raise InvalidValue(f"name={name!r} is not the name of a class.")
    folder = None if output is None else Path(output)
    if folder is not None:
        _check_folder(folder, force)
    kinds = {k: to_torch(v) for k, v in (dtypes or {}).items()}
    if isinstance(model, HybridBlock):
        draft = draft_block(model, shapes, kinds, name)
    else:
        draft = draft_symbol(model, params, shapes, kinds, name)
    if source is not None:
        draft.parts.source = source
    return _verify_and_write(draft, folder, inputs, tolerance)


def _check_folder(folder: Path, force: bool) -> None:
    taken = [name for name in FILES if (folder / name).exists()]
    if taken and not force:
        raise InvalidValue(f"{folder / taken[0]} is there already; force=True replaces it.")


def _verify_and_write(
    draft: Draft, folder: Path | None, inputs: Any, tolerance: float
) -> PortReport:
    model, parts = draft.model, draft.parts
    report = PortReport(parts.title)
    many = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    given = {f"given {i}": model.as_feed(feed) for i, feed in enumerate(many)}
    with tempfile.TemporaryDirectory() as scratch:
        at = Path(scratch)
        arrays = {n: a.asnumpy() for n, a in model.arrays.items()}
        weights = at / "model.safetensors"
        safetensors_file.write(weights, parts.layout.state_dict(arrays))
        (at / "model.py").write_text(write_file(parts, ()), encoding="utf-8")
        reference = Reference(model, draft.trainer, draft.labels, draft.frozen)
        verifier = Verifier(at, reference, parts, tolerance)
        if parts.skeletons:
            verifier.check_loading(report, list(parts.skeletons))
        else:
            verifier.run(report, given)
        text = write_file(parts, _header(report))
        report.lines = len(text.splitlines())
        if folder is not None:
            _publish(folder, text, weights, report)
    return report


def _header(report: PortReport) -> list[str]:
    if not report.rows:
        return report.notes
    errors = [f"- {row.check}: {row.error:.1e}" for row in report.rows]
    return ["Largest errors against MXNet, relative to the largest number:", *errors]


def _publish(folder: Path, text: str, weights: Path, report: PortReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    contents = (text.encode(), weights.read_bytes(), report.markdown().encode())
    report.files = [str(folder / name) for name in FILES]
    with one_commit():
        for path, content in zip(report.files, contents, strict=True):
            with replacing(Path(path)) as file:
                file.write(content)
