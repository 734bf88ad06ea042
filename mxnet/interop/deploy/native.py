"""C++ programs: on ONNX Runtime, with MXNet's C predict API, and on libtorch."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch

from ...error import MXNetError
from ...torch_private import compile_package
from ..source import Model, Report
from ..to_torch import to_torch
from .sample import Sample, copy_template
from .web import convert_to_onnx


def write_cpp(
    source: Model, folder: Path, sample: Sample, tolerance: float | None, inputs: Any, runtime: Any
) -> Report:
    """Write the model, a program for ONNX Runtime, the predict API and a build file."""
    report = convert_to_onnx(source, folder, tolerance, inputs)
    copy_template("cpp", folder)
    sample.write_bytes(folder / "sample")
    return report


def write_libtorch(
    source: Model, folder: Path, sample: Sample, tolerance: float | None, inputs: Any, runtime: Any
) -> Report:
    """Write the model, compiled for this kind of processor, a program and a build file."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        raise MXNetError("to='libtorch' compiles the model: install a C++ compiler, such as g++.")
    tensors, program = export_program(source, sample)
    run = compile_package(program, str(folder / "model.pt2"))
    with torch.no_grad():
        outputs = run(*tensors)
    report = sample.report(as_arrays(outputs), "libtorch", tolerance)
    copy_template("libtorch", folder)
    (folder / "sample").mkdir()
    torch.save(list(tensors), folder / "sample/inputs.pt")
    torch.save([torch.from_numpy(array) for array in sample.outputs], folder / "sample/outputs.pt")
    return report


def export_program(source: Model, sample: Sample) -> tuple[tuple, torch.export.ExportedProgram]:
    """Return the sample's inputs as tensors, and the model as a program of `torch.export`."""
    tensors = tuple(torch.from_numpy(array) for array in sample.inputs.values())
    with torch.no_grad():
        return tensors, torch.export.export(to_torch(source), tensors)


def as_arrays(outputs: Any) -> list[Any]:
    """Return one tensor or several as NumPy arrays."""
    several = outputs if isinstance(outputs, list | tuple) else [outputs]
    return [tensor.detach().numpy() for tensor in several]
