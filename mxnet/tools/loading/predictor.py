"""`Predictor`: a model prepared for prediction, which several threads may call at once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from mxnext_cli.errors import CommandError, UsageError

from ... import dtypes
from ... import ndarray as nd
from ...error import MXNetError
from ...executor import CachedOp
from ...graph.passes.infer import infer_shapes, infer_types
from ...ndarray import NDArray
from ...ops.shapes import is_known
from .models import Model, Shape

Arrays = dict[str, np.ndarray]

PREPARING_RUNS = 2  # a program is fixed after its second run
MAX_SHAPES = 1024  # of inputs, whose zeros are remembered


class Predictor:
    """Runs a model on NumPy arrays whose first axis is the batch.

    Labels, and inputs whose shapes follow from the others such as the initial states of recurrent
    layers, are filled with zeros.
    """

    def __init__(self, model: Model) -> None:
        missing = set(model.symbol.list_auxiliary_states()) - set(model.auxiliary)
        if missing:
            raise CommandError(f"{model.name}: the parameters lack {', '.join(sorted(missing))}")
        self.model = model
        self.output_names = model.symbol.list_outputs()
        graph = model.symbol._graph
        types = {n: dtypes.to_torch(a.dtype) for n, a in model.parameters.items()}
        known = infer_types(graph, types, default=dtypes.to_torch("float32"))
        self.dtypes = {v.name: dtypes.to_numpy(known.values[v][0]) for v in graph.variables}
        self._parameters = model.parameters
        self._call = CachedOp(model.symbol)
        self._lock = threading.Lock()
        self._is_prepared = False
        self._filled: dict[tuple, dict[str, NDArray]] = {}

    def check_names(self, given: Mapping[str, Any]) -> None:
        """Refuse inputs that the model does not have."""
        unknown = sorted(set(given) - set(self.model.inputs) - set(self.model.labels))
        if unknown:
            raise UsageError(
                f"the model has no input {unknown[0]!r}; its inputs: {', '.join(self.model.inputs)}"
            )

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for one batch."""
        self.check_names(inputs)
        arrays = {name: nd.array(value, dtype=self.dtypes[name]) for name, value in inputs.items()}
        filled = self._fill({name: array.shape for name, array in arrays.items()})
        feed = {**self._parameters, **filled, **arrays}
        if not self._is_prepared:
            with self._lock:  # preparing changes what threads share
                for _ in range(0 if self._is_prepared else PREPARING_RUNS):
                    self._run(feed)
                self._is_prepared = True
        return self._run(feed)

    def _fill(self, given: dict[str, Shape]) -> dict[str, NDArray]:
        """Return zeros for what is not given, remembered for the next call of these shapes."""
        key = tuple(sorted(given.items()))
        filled = self._filled.get(key)
        if filled is None:
            with self._lock:
                if len(self._filled) >= MAX_SHAPES:
                    self._filled.clear()
                filled = self._filled[key] = self._zeros(given)
        return filled

    def _run(self, feed: Mapping[str, NDArray]) -> list[np.ndarray]:
        made = self._call(*(feed[node.name] for node in self.model.symbol._graph.variables))
        return [out.asnumpy() for out in (made if isinstance(made, list) else [made])]

    def _zeros(self, given: dict[str, Shape]) -> dict[str, NDArray]:
        """Return zeros for the variables that are neither given nor parameters."""
        graph = self.model.symbol._graph
        shapes = infer_shapes(graph, self.model.known_shapes(given))
        filled = {}
        for node in graph.variables:
            name, shape = node.name, shapes.values[node][0]
            if name in given or name in self._parameters:
                continue
            if not is_known(shape):
                raise UsageError(f"the model needs the input {name!r}, too; given: {sorted(given)}")
            filled[name] = nd.zeros(shape, dtype=self.dtypes[name])
        return filled

    def in_batches(self, inputs: Arrays, size: int) -> list[np.ndarray]:
        """Return the outputs for any number of samples, computed in batches."""
        counts = {len(value) for value in inputs.values()}
        if len(counts) != 1:
            shown = ", ".join(f"{n} {v.shape}" for n, v in inputs.items())
            raise UsageError(f"inputs have different numbers of samples: {shown}")
        (count,) = counts
        if count == 0:
            raise UsageError("there are no samples")
        parts = [
            self({name: value[at : at + size] for name, value in inputs.items()})
            for at in range(0, count, size)
        ]
        if len(parts) == 1:
            return parts[0]
        for name, first in zip(self.output_names, parts[0], strict=True):
            if len(first.shape) == 0 or first.shape[0] != size:
                raise MXNetError(
                    f"the output {name} {first.shape} has no row for each of {size} samples: give "
                    f"one batch (--batch {count})"
                )
        return [np.concatenate(column) for column in zip(*parts, strict=True)]
