"""`convert`: one function for all targets, which checks that both sides agree."""

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
from ..error import InvalidValue
from ..formats import safetensors_file
from ..formats.atomic import one_commit, replacing
from ..formats.model_files import named_params, write_symbol
from ..ndarray import NDArray
from ..runtime.array import wrap_plain
from ..visualization.tracking import progress
from .comparison.isolated import run_file
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
    """Convert a model to another format, run both sides, and write only if they agree.

    Parameters
    ----------
    model : HybridBlock, Symbol or str
        A block, a symbol or the path of its JSON file; for the latter two give `params`.
    to : str
        Where to write; the suffix chooses the format: ``.onnx``, ``.pt2`` (a program of
        `torch.export`) or ``.safetensors`` (parameters only); a name that ends in ``-int8`` is
        the prefix of an 8-bit model, of ``-symbol.json`` and ``-0000.params``. Or a format alone,
        ``"onnx"``, ``"torch"`` or ``"int8"``: then nothing is written, only compared.
    shapes : list or dict of tuple
        The shapes of the inputs.
    tolerance : float, optional
        The largest relative error of any output, in units of its largest number; 1e-5, for 8-bit
        models 0.1.
    params : str, dict or list, optional
        The parameters of a symbol.
    inputs : dict or list of dict, optional
        Arrays to compare with, besides random and edge ones. An 8-bit model is calibrated and
        compared on them alone; without them, on random numbers, with a warning.
    dtypes : dict, optional
        The types of inputs that are not float32.
    dynamic_shapes : list, optional
        Shapes with names in place of dynamic sizes, such as ``[("batch", 3, 224, 224)]``.
    opset_version : int
        The opset of an ONNX file.

    Returns
    -------
    Report
        The largest absolute and relative error of each output.

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
    report = Report(kind, tolerance, str(path) if path else None)
    if kind == "safetensors":
        _write_parameters(source, path, report)
        return report
    with tempfile.TemporaryDirectory() as folder:
        dynamic = _dynamic_sizes(source, dynamic_shapes)
        if kind == "onnx":
            file = Path(folder) / "model.onnx"
            proto = _onnx_model(source, dynamic, opset_version)
            file.write_bytes(proto.SerializeToString())
        else:
            file = Path(folder) / "model.pt2"
            proto = None
            _save_program(to_torch(source), source, dynamic, file)
        _run_both(source, file, _all_cases(source, dynamic, inputs), report)
        report.check()
        if path is not None:
            _publish(file, proto, path)
    return report


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


def _dynamic_sizes(source: Model, shapes: Any) -> dict[str, tuple] | None:
    """Return the shapes with names in place of dynamic sizes, by the inputs' names."""
    if shapes is None:
        return None
    if isinstance(shapes, Mapping):
        return {name: tuple(shape) for name, shape in shapes.items()}
    return dict(zip(source.input_shapes, map(tuple, shapes), strict=True))


def _onnx_model(source: Model, dynamic: dict[str, tuple] | None, opset: int) -> Any:
    types = {n.name: source.dtypes[n.name] for n in source.inputs}
    shapes = source.input_shapes
    return build_model(source.symbol, source.arrays, shapes, types, dynamic, opset, False)


def _run_both(source: Model, file: Path, cases: dict[str, Feed], report: Report) -> None:
    """Compare a file, which runs in a process of its own, with the model."""
    results = run_file(file, cases)
    for name, feed in progress(cases.items(), "comparing", unit=" inputs", leave=False):
        report.add(name, compare(results[name], source.run_as_written(feed), source.sets))


def _all_cases(source: Model, dynamic: dict[str, tuple] | None, inputs: Any) -> dict[str, Feed]:
    """Return what to compare on: of the model's sizes, of others where they are free, given."""
    dtypes = source.numpy_dtypes
    cases = test_inputs(source.input_shapes, dtypes)
    if dynamic is not None:
        shapes = {n: _enlarge(s, dynamic.get(n)) for n, s in source.input_shapes.items()}
        cases["other sizes"] = test_inputs(shapes, dtypes)["normal"]
    for i, one in enumerate(_given(inputs)):
        cases[f"given {i}"] = source.as_feed(one)
    return cases


def _enlarge(shape: tuple, dynamic: tuple | None) -> tuple:
    if dynamic is None:
        return shape
    is_free = [not isinstance(size, int) for size in dynamic]
    return tuple(n + free for n, free in zip(shape, is_free, strict=True))


def _given(inputs: Any) -> list[Mapping[str, Any]]:
    return [inputs] if isinstance(inputs, Mapping) else list(inputs)


def _save_program(
    module: torch.fx.GraphModule, source: Model, dynamic: dict[str, tuple] | None, path: Path
) -> None:
    """Write a program of `torch.export`, with free sizes where names say so."""
    shapes, free = source.input_shapes, None
    if dynamic is not None:
        free = tuple(_free_axes(dynamic.get(name)) for name in shapes)
    # An example of size 1 would make 1 the only size that the program takes.
    sizes = [
        tuple(max(n, 2) if axes and i in axes else n for i, n in enumerate(shape))
        for shape, axes in zip(shapes.values(), free or [None] * len(shapes), strict=True)
    ]
    examples = tuple(
        torch.zeros(size, dtype=source.dtypes[name])
        for name, size in zip(shapes, sizes, strict=True)
    )
    with warnings.catch_warnings():
        # Layers of torch keep their weights in a list, too, which export mentions.
        warnings.filterwarnings("ignore", ".*_flat_weights.*")
        try:
            program = torch.export.export(module, examples, dynamic_shapes=free)
        except Exception as error:
            raise ConversionError(_explain_export(module, error, free is not None)) from error
        torch.export.save(program, path)


def _free_axes(shape: tuple | None) -> dict[int, Any] | None:
    if shape is None:
        return None
    return {i: torch.export.Dim(n) for i, n in enumerate(shape) if isinstance(n, str)}


def _explain_export(module: torch.fx.GraphModule, error: Exception, is_dynamic: bool) -> str:
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    fixed = module.meta.get("fixed_sizes", ())
    if is_dynamic and fixed:
        names = ", ".join(fixed)
        return (
            f"sizes cannot be left free: {names} are written for the given shapes. Convert "
            "without dynamic sizes, or to ONNX."
        )
    return f"torch.export does not take the model: {text}"


def _publish(file: Path, proto: Any, path: Path) -> None:
    """Write a checked file to its place; it appears whole or not at all."""
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
    """Quantize a model on inputs, compare both on them, and write the 8-bit model if they agree.

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
    """Return the two files of a model with this prefix."""
    return Path(f"{prefix}-symbol.json"), Path(f"{prefix}-0000.params")


def synthetic_inputs(source: Model, count: int, seed: int) -> list[Feed]:
    """Return batches of normally distributed numbers; integers are ones."""
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
