"""A page that runs a model in the browser by onnxruntime-web."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ...error import InvalidValue
from ..conversion import convert
from ..source import Model, Report
from .sample import Sample, copy_template

VERSION = "1.30.0"
ADDRESS = f"https://cdn.jsdelivr.net/npm/onnxruntime-web@{VERSION}/dist/"
RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
# Types supported by pages.
TYPES = frozenset({"float32", "float64", "int32", "int64", "int8", "uint8", "bool"})


def write_web(
    source: Model, folder: Path, sample: Sample, tolerance: float | None, inputs: Any, runtime: Any
) -> Report:
    """Write the model, the page, its script and, if its files are given, the runtime."""
    for name, array in sample.inputs.items():
        if array.dtype.name not in TYPES:
            raise InvalidValue(f"input {name!r} is {array.dtype}, which a page cannot make.")
    report = convert_to_onnx(source, folder, tolerance, inputs)
    copy_template("web", folder)
    address = ADDRESS
    if runtime is not None:
        address = _copy_runtime(Path(runtime), folder)
    described = describe(source, folder / "model.onnx", sample)
    text = json.dumps({**described, "runtime": address}, indent=1)
    (folder / "model.json").write_text(text, encoding="utf-8")
    return report


def convert_to_onnx(source: Model, folder: Path, tolerance: float | None, inputs: Any) -> Report:
    """Write model.onnx after comparing."""
    shapes = source.input_shapes
    file = folder / "model.onnx"
    return convert(source, file, shapes, tolerance, inputs=inputs, dynamic_shapes=shapes)


def _copy_runtime(package: Path, folder: Path) -> str:
    files = package / "dist"
    missing = [name for name in RUNTIME if not (files / name).is_file()]
    if missing:
        raise InvalidValue(
            f"{package} is not onnxruntime-web: {', '.join(missing)} is not in its dist. Get it by "
            f"npm install onnxruntime-web@{VERSION} and give node_modules/onnxruntime-web."
        )
    (folder / "ort").mkdir()
    for name in RUNTIME:
        shutil.copy(files / name, folder / "ort" / name)
    return "ort/"


def describe(source: Model, file: Path, sample: Sample) -> dict[str, Any]:
    """Return the description of a model for the page."""
    import onnx

    graph = onnx.load(file).graph
    weights = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in weights]
    arrays = {name: sample.inputs[name] for name in names}
    return {
        "name": source.name,
        "inputs": [
            {"name": name, "shape": array.shape, "dtype": array.dtype.name}
            for name, array in arrays.items()
        ],
        "outputs": [value.name for value in graph.output],
        "sample": {
            "inputs": [_encode(array) for array in arrays.values()],
            "outputs": [_encode(array) for array in sample.outputs],
        },
    }


def _encode(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
