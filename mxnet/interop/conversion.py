"""`convert`: one function for all targets, with numerical verification."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import ndarray
from ..contrib.quantization.convert import quantize_folded
from ..error import InvalidValue, MXNetError
from ..formats import safetensors_file
from ..formats.atomic import one_commit, replacing
from ..formats.model_files import named_params, write_symbol
from ..ndarray import NDArray
from ..runtime.array import wrap_plain
from ..visualization.tracking import progress
from .comparison.isolated import run_file
from .detections import open_suppressions
from .free_sizes import Sizes, choose_sizes, describe_sizes, has_free_sizes, other_shapes
from .onnx.export import build_model, write_model
from .source import (
    Change,
    ConversionError,
    Model,
    Report,
    as_model,
    compare,
    share_of_same_top,
    test_inputs,
)
from .to_torch import to_torch

Feed = dict[str, np.ndarray]
SUFFIXES = {".onnx": "onnx", ".pt": "torch", ".pt2": "torch", ".safetensors": "safetensors"}
INT8_SUFFIX = "-int8"
TARGETS = ("onnx", "torch", "safetensors", "int8")
TOLERANCE = 1e-5


def convert(
    model: Any,
    to: str | os.PathLike[str],
    shapes: Any = None,
    tolerance: float | None = None,
    params: Any = None,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    dtypes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    opset_version: int = 13,
) -> Report:
    """Convert a model to another format; the file is written only if both sides agree.

    Parameters
    ----------
    model : HybridBlock, Symbol or str
        A block, a symbol or the path of its JSON file; the latter two need `params`.
    to : str
        Path of the file; the suffix selects the format: ``.onnx``, ``.pt2`` (a program of
        `torch.export`) or ``.safetensors`` (parameters only); a name that ends in ``-int8`` is
        the prefix of an 8-bit model, of ``-symbol.json`` and ``-0000.params``. Or a format,
        ``"onnx"``, ``"torch"`` or ``"int8"``, to compare without writing.
    shapes : list or dict of tuple
        The shapes of the inputs.
    tolerance : float, optional
        The largest relative error of any output, in units of its largest number; 1e-5, for 8-bit
        models 0.1.
    params : str, dict or list, optional
        The parameters of a symbol.
    inputs : dict or list of dict, optional
        Arrays to compare with, besides random and edge ones. An 8-bit model is calibrated and
        compared on these only; by default on random numbers, with a warning.
    dtypes : dict, optional
        The types of inputs that are not float32.
    dynamic_shapes : dict or list, optional
        Dynamic sizes in ``.onnx`` and ``.pt2``; by default the batch size, if the model supports
        it. ``{"data": {2: "height", 3: "width"}}`` adds axes. Shapes such as ``[("batch", 3,
        "height", "width")]`` list all dynamic sizes.
    opset_version : int
        The opset of an ONNX file.

    Returns
    -------
    Report
        The largest absolute and relative error of each output, and which sizes are frozen and why.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> mx.convert.convert(net, to="torch", shapes=[(1, 3)]).passed
    True
    """
    kind, path = _target(to)
    if shapes is None and kind != "safetensors":
        raise InvalidValue("shapes is needed: the shape of each input of the model.")
    kinds = {k: _torch_dtype(v) for k, v in (dtypes or {}).items()}
    source = as_model(model, params, shapes, kinds)
    if kind == "int8":
        return convert_to_int8(source, path, tolerance, _given(inputs))
    tolerance = TOLERANCE if tolerance is None else tolerance
    if kind == "safetensors":
        report = Report(kind, tolerance, str(path) if path else None)
        _write_parameters(source, path, report)
        return report
    module = to_torch(source) if kind == "torch" else None
    reason = None
    *attempts, last = choose_sizes(source, dynamic_shapes)
    for sizes in attempts:
        report = Report(kind, tolerance, str(path) if path else None, sizes=sizes)
        try:
            return _convert(source, module, report, inputs, opset_version)
        except MXNetError as error:
            reason = _first_sentence(error)
    report = Report(kind, tolerance, str(path) if path else None, sizes=last)
    return _convert(source, module, report, inputs, opset_version, reason)


def _convert(
    source: Model,
    module: torch.fx.GraphModule | None,
    report: Report,
    inputs: Any,
    opset: int,
    reason: str | None = None,
) -> Report:
    """Write a file with the sizes of the report, compare, and publish it if both sides agree.

    `reason` is the reason why other sizes are static.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, proto = _write_file(source, module, report.sizes, opset, Path(folder))
        cases = _all_cases(source, report.sizes, inputs)
        _run_both(source, file, cases, report)
        if source.sets and not report.passed:
            _compare_in_parts(source, report, cases, opset, Path(folder))
        report.check()
        if report.path is not None:
            _publish(file, proto, Path(report.path))
    report.notes += describe_sizes(source, report.sizes, reason)
    return report


def _write_file(
    source: Model, module: torch.fx.GraphModule | None, sizes: Sizes, opset: int, folder: Path
) -> tuple[Path, Any]:
    """Write a file of ONNX, or of torch if there is a module; return it with the ONNX model."""
    if module is None:
        file, proto = folder / "model.onnx", _onnx_model(source, sizes, opset)
        file.write_bytes(proto.SerializeToString())
        return file, proto
    file = folder / "model.pt2"
    _save_program(module, source, sizes, file)
    return file, None


def _compare_in_parts(
    source: Model, report: Report, cases: dict[str, Feed], opset: int, folder: Path
) -> None:
    """Compare a detector before its suppressions, and behind them given the same boxes."""
    opened = open_suppressions(source, report.sizes, cases)
    module = to_torch(opened.model) if report.target == "torch" else None
    (folder / "parts").mkdir()
    file, _ = _write_file(opened.model, module, opened.sizes, opset, folder / "parts")
    for case, outputs in run_file(file, opened.cases).items():
        report.add(case, opened.compare(case, outputs))
    report.notes.append(
        "suppression was compared given the same boxes, because rounding decides which of two "
        "boxes with nearly equal scores is kept: the last outputs are the boxes before it"
    )


def _first_sentence(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".")


def _target(to: str | os.PathLike[str]) -> tuple[str, Path | None]:
    if to in ("onnx", "torch", "int8"):
        return str(to), None
    path = Path(to)
    if path.name.endswith(INT8_SUFFIX):
        return "int8", path
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InvalidValue(
            f"to={str(to)!r}: give a file that ends in {', '.join(SUFFIXES)}, a prefix that ends "
            f"in {INT8_SUFFIX}, or 'onnx', 'torch', 'int8'."
        )
    return kind, path


def _torch_dtype(dtype: Any) -> torch.dtype:
    from ..dtypes import to_torch as named

    return named(dtype)


def _onnx_model(source: Model, sizes: Sizes, opset: int) -> Any:
    types = {n.name: source.dtypes[n.name] for n in source.inputs}
    shapes = source.input_shapes
    return build_model(source.symbol, source.arrays, shapes, types, sizes, opset, False)


def _run_both(source: Model, file: Path, cases: dict[str, Feed], report: Report) -> None:
    """Compare the outputs of a file, run in a separate process, with the model's."""
    results = run_file(file, cases)
    if source.sets:
        report.notes.append("outputs that follow from detections were compared as sets of rows")
    for name, feed in progress(cases.items(), "comparing", unit=" inputs", leave=False):
        report.add(name, compare(results[name], source.run_as_written(feed), source.sets))


def _all_cases(source: Model, sizes: Sizes, inputs: Any) -> dict[str, Feed]:
    """Return the inputs to compare: of the model's sizes, of dynamic sizes, and the given ones."""
    dtypes = source.numpy_dtypes
    cases = test_inputs(source.input_shapes, dtypes)
    if has_free_sizes(sizes):
        cases["other sizes"] = test_inputs(other_shapes(source, sizes), dtypes)["normal"]
    for i, one in enumerate(_given(inputs)):
        cases[f"given {i}"] = source.as_feed(one)
    return cases


def _given(inputs: Any) -> list[Mapping[str, Any]]:
    return [inputs] if isinstance(inputs, Mapping) else list(inputs)


def _save_program(module: torch.fx.GraphModule, source: Model, sizes: Sizes, path: Path) -> None:
    """Write a program of `torch.export`, with free sizes where names say so."""
    is_dynamic = has_free_sizes(sizes)
    free = tuple(_free_axes(shape) for shape in sizes.values()) if is_dynamic else None
    # With an example of size 1 the program would accept only 1.
    examples = tuple(
        torch.zeros(
            [
                n if isinstance(s, int) else max(n, 2)
                for n, s in zip(shape, sizes[name], strict=True)
            ],
            dtype=source.dtypes[name],
        )
        for name, shape in source.input_shapes.items()
    )
    with warnings.catch_warnings():
        # Torch's layers also keep their weights in a list, of which export warns.
        warnings.filterwarnings("ignore", ".*_flat_weights.*")
        try:
            program = torch.export.export(module, examples, dynamic_shapes=free)
        except Exception as error:
            raise ConversionError(_explain_export(module, error, is_dynamic)) from error
        torch.export.save(program, path)


def _free_axes(shape: tuple) -> dict[int, Any]:
    # A named size has no bounds, but heights and widths must often exceed a kernel.
    named, other = torch.export.Dim, torch.export.Dim.DYNAMIC
    return {i: other if i else named(n) for i, n in enumerate(shape) if isinstance(n, str)}


def _explain_export(module: torch.fx.GraphModule, error: Exception, is_dynamic: bool) -> str:
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    fixed = module.meta.get("fixed_sizes", ())
    if is_dynamic and fixed:
        names = ", ".join(fixed)
        return (
            f"sizes cannot be left free, because torch programs have {names} for the given shapes "
            "alone. Convert without dynamic sizes, or to ONNX."
        )
    return f"torch.export does not take the model: {text}"


def _publish(file: Path, proto: Any, path: Path) -> None:
    if proto is not None:
        write_model(proto, path)
        return
    with file.open("rb") as checked, replacing(path) as target:
        shutil.copyfileobj(checked, target)


def _write_parameters(source: Model, path: Path | None, report: Report) -> None:
    if path is None:
        raise InvalidValue("safetensors needs the name of a file.")
    tensors = {source.names.get(n, n): t for n, t in source.tensors.items()}
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(8)}.safetensors")
    try:
        safetensors_file.write(scratch, tensors)
        stored = safetensors_file.read(scratch)
        for name, tensor in tensors.items():
            result = wrap_plain(NDArray, stored[name]).asnumpy()
            report.add(name, compare([result], [tensor.detach().numpy()]))
        report.check()
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


# Of the largest number of an output. A step of 8 bits is 1/127 of a layer's range, and deep
# networks add up the rounding of many layers.
INT8_TOLERANCE = 0.1
SYNTHETIC_BATCHES = 4


def convert_to_int8(
    source: Model,
    prefix: Path | None,
    tolerance: float | None = None,
    inputs: Sequence[Mapping[str, Any]] = (),
    calib_mode: str = "naive",
) -> Report:
    """Quantize a model on inputs, compare both on them, and write the 8-bit model if close.

    Without inputs the model is calibrated on random numbers, with a warning, and compared on
    others of the same distribution.
    """
    if not source.inputs:
        raise InvalidValue("a model without inputs cannot be calibrated.")
    batches = [source.as_feed(one) for one in inputs]
    cases = {f"given {i}": feed for i, feed in enumerate(batches)}
    if not batches:
        warnings.warn(
            "the 8-bit ranges are calibrated on random numbers; give real inputs for real accuracy",
            stacklevel=3,
        )
        batches = synthetic_inputs(source, SYNTHETIC_BATCHES, seed=0)
        held_out = synthetic_inputs(source, SYNTHETIC_BATCHES, seed=1)
        cases = {f"random {i}": feed for i, feed in enumerate(held_out)}
    quantized = quantize_source(source, batches, calib_mode)
    files = None if prefix is None else int8_files(prefix)
    tolerance = INT8_TOLERANCE if tolerance is None else tolerance
    report = Report("int8", tolerance, None if files is None else str(files[0]))
    pairs = []
    for name, feed in cases.items():
        results, expected = quantized.run(feed), source.run(feed)
        report.add(name, compare(results, expected))
        pairs.append((results[0], expected[0]))
    feed = next(iter(cases.values()))
    report.change = Change(
        (source.parameter_bytes, quantized.parameter_bytes),
        (source.measure(feed), quantized.measure(feed)),
        share_of_same_top(pairs),
    )
    report.check()
    if files is not None:
        _write(quantized, files)
    return report


def int8_files(prefix: Path) -> tuple[Path, Path]:
    """Return the symbol and parameter file of a prefix."""
    return Path(f"{prefix}-symbol.json"), Path(f"{prefix}-0000.params")


def synthetic_inputs(source: Model, count: int, seed: int) -> list[Feed]:
    """Return batches of normally distributed numbers. Integer inputs are filled with ones."""
    rng = np.random.RandomState(seed)

    def fill(shape: tuple, dtype: np.dtype) -> np.ndarray:
        is_real = np.issubdtype(dtype, np.floating)
        return (rng.standard_normal(shape) if is_real else np.ones(shape)).astype(dtype)

    shapes, dtypes = source.input_shapes, source.numpy_dtypes
    return [{n: fill(s, dtypes[n]) for n, s in shapes.items()} for _ in range(count)]


def quantize_source(source: Model, batches: Sequence[Feed], calib_mode: str) -> Model:
    """Return the 8-bit model, calibrated on batches."""
    states = {n.name for n in source.graph.auxiliary}
    names = [n.name for n in source.inputs]
    symbol, arguments, auxiliary = quantize_folded(
        source.symbol,
        {n: a for n, a in source.arrays.items() if n not in states},
        {n: a for n, a in source.arrays.items() if n in states},
        names,
        calib_data=[[ndarray.array(b[n], dtype=b[n].dtype) for n in names] for b in batches],
        calib_mode=calib_mode,
    )
    return replace(source, symbol=symbol, arrays={**arguments, **auxiliary})


def _write(quantized: Model, files: tuple[Path, Path]) -> None:
    states = {n.name for n in quantized.graph.auxiliary}
    arguments = {n: a for n, a in quantized.arrays.items() if n not in states}
    auxiliary = {n: a for n, a in quantized.arrays.items() if n in states}
    with one_commit():
        write_symbol(str(files[0]), quantized.symbol)
        ndarray.save(str(files[1]), named_params(arguments, auxiliary))
