"""A ``.pte`` file for phones: ExecuTorch with XNNPACK's kernels."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ..source import Model, Report
from .native import as_arrays, export_program
from .sample import Sample, missing


def write_executorch(
    source: Model, folder: Path, sample: Sample, tolerance: float | None, inputs: Any, runtime: Any
) -> Report:
    """Write model.pte, after a run by ExecuTorch's runtime, and the sample."""
    try:
        partitioners = import_module("executorch.backends.xnnpack.partition.xnnpack_partitioner")
        lower = import_module("executorch.exir").to_edge_transform_and_lower
        runtime_of = import_module("executorch.runtime").Runtime
    except ImportError as error:
        raise missing("executorch", "executorch", error) from error
    tensors, program = export_program(source, sample)
    lowered = lower(program, partitioner=[partitioners.XnnpackPartitioner()])
    file = folder / "model.pte"
    file.write_bytes(lowered.to_executorch().buffer)
    method = runtime_of.get().load_program(str(file)).load_method("forward")
    report = sample.report(as_arrays(method.execute(list(tensors))), "executorch", tolerance)
    sample.write_bytes(folder / "sample")
    return report
