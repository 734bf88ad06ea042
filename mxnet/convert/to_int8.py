"""An 8-bit model of a float model: calibrated, compared, and written if it is close enough."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import ndarray
from ..contrib.quantization.convert import quantize_folded
from ..error import InvalidValue
from ..formats.atomic import one_commit
from ..model import named_params, write_symbol
from .compare import Report, compare
from .source import Model

__all__ = ["INT8_TOLERANCE", "convert_to_int8", "int8_files", "synthetic_inputs"]

Feed = dict[str, np.ndarray]
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
    for name, feed in cases.items():
        report.add(name, compare(quantized.run(feed), source.run(feed)))
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
