"""Sample inputs with the model's outputs, which every deployed model includes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...error import MXNetError
from ..source import Model, Report, compare

TEMPLATES = Path(__file__).parent / "templates"
TOLERANCE = 1e-5


@dataclass
class Sample:
    """Inputs in the order of the model, and its outputs."""

    inputs: dict[str, np.ndarray]
    outputs: list[np.ndarray]

    @classmethod
    def of(cls, source: Model, given: Sequence[Mapping[str, Any]]) -> Sample:
        """Return the first given input, or a random one, with the model's outputs."""
        feed = source.as_feed(given[0]) if given else random_inputs(source)
        return cls({n.name: feed[n.name] for n in source.inputs}, source.run_as_written(feed))

    def report(self, outputs: Sequence[Any], kind: str, tolerance: float | None) -> Report:
        """Return the differences from the sample's outputs; raise above the tolerance."""
        report = Report(kind, TOLERANCE if tolerance is None else tolerance, None)
        report.add("sample", compare(outputs, self.outputs))
        report.check()
        return report

    def write_bytes(self, folder: Path) -> None:
        """Write each array as a binary file."""
        folder.mkdir()
        for i, array in enumerate(self.inputs.values()):
            (folder / f"input{i}.bin").write_bytes(array.tobytes())
        for i, array in enumerate(self.outputs):
            (folder / f"output{i}.bin").write_bytes(array.tobytes())


def random_inputs(source: Model) -> dict[str, np.ndarray]:
    """Return normally distributed numbers. Integer inputs are filled with ones."""
    rng = np.random.RandomState(0)
    feed = {}
    for name, shape in source.input_shapes.items():
        dtype = source.numpy_dtypes[name]
        is_real = np.issubdtype(dtype, np.floating)
        feed[name] = (rng.standard_normal(shape) if is_real else np.ones(shape)).astype(dtype)
    return feed


def copy_template(name: str, folder: Path) -> None:
    """Copy the texts of a target."""
    for path in sorted((TEMPLATES / name).iterdir()):
        (folder / path.name).write_bytes(path.read_bytes())


def missing(target: str, package: str, error: ImportError) -> MXNetError:
    """Return the error for a target whose package is not installed."""
    return MXNetError(f"to={target!r} needs {package}: pip install {package} ({error})")
