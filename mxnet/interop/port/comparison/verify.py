"""Comparison of a ported file with MXNet, in a separate process without MXNext."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ....formats import safetensors_file
from ...comparison.isolated import run_program
from ...source import ConversionError, columns_of
from ..text.file import FileParts
from .reference import STEPS, Arrays, Reference, Training

PROGRAM = Path(__file__).with_name("check_module.py")
TIMEOUT = 3600  # seconds
CHECKS = ("outputs", "training", "compilers")
SUPPRESSED = "inputs of suppression"
# Training is compared in double precision, where rounding cannot hide a difference.
TRAINING_TOLERANCE = {"float64": 1e-6, "float32": 1e-2}


class Row(NamedTuple):
    """The largest error of one kind of numbers, and where it is.

    >>> Row("gradients", 1e-12, 1e-6, "fc.weight", 4).passed
    True
    """

    check: str
    error: float
    tolerance: float
    worst: str
    values: int

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.error <= self.tolerance


@dataclass
class PortReport:
    """Results of the comparison of a ported file with MXNet.

    Parameters
    ----------
    name
        The name of the model's class.
    rows
        The largest error of each kind of values, with its tolerance.
    notes
        Remarks, such as values that were not compared or were adjusted before.
    lines
        Lines of the file.
    files
        The files that were written.

    >>> report = PortReport("model")
    >>> report.passed, report.rows
    (True, [])
    """

    name: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: int = 0
    files: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether all errors are within their tolerances."""
        return all(row.passed for row in self.rows)

    def error(self, check: str) -> float:
        """Return the largest error of one kind of values."""
        return max((row.error for row in self.rows if row.check == check), default=0.0)

    def __str__(self) -> str:
        """Return the report as a table."""
        lines = [f"{'compared':28} {'values':>6}  {'error':>8}  {'allowed':>7}  worst"]
        for row in self.rows:
            sizes = f"{row.values:6}  {row.error:8.1e}  {row.tolerance:7.0e}"
            lines.append(f"{row.check:28} {sizes}  {row.worst}")
        return "\n".join([*lines, *self.notes])

    def markdown(self) -> str:
        """Return the report as a page."""
        lines = [f"# {self.name}", "", "| compared | values | largest relative error | allowed |"]
        lines.append("|---|---|---|---|")
        for row in self.rows:
            lines.append(f"| {row.check} | {row.values} | {row.error:.1e} | {row.tolerance:.0e} |")
        lines += ["", *(f"- {note}" for note in self.notes), ""]
        return "\n".join(lines)


class Verifier:
    """Writes the input of the checking process, runs it, and reads its results."""

    def __init__(
        self, folder: Path, reference: Reference, parts: FileParts, tolerance: float
    ) -> None:
        self.folder, self.reference, self.layout = folder, reference, parts.layout
        self.suppressions = parts.suppressions
        self.tolerance, self.has_loss = tolerance, reference.has_loss
        self.names = [n.name for n in reference.model.inputs]
        self.training: Training | None = None
        self._constant_outputs: list[int] = []

    def run(self, report: PortReport, given: dict[str, Arrays]) -> None:
        """Fill a report, or raise the error that names the first layer that differs."""
        checks = list(CHECKS)
        cases = self.reference.cases(given)
        self._write_cases(cases)
        if self._constant_outputs:
            report.notes.append(
                f"Outputs {self._constant_outputs} were the same number everywhere on all inputs "
                "that were compared: give inputs for which they are not, with --input."
            )
        reason = self._write_training()
        if reason is not None:
            checks.remove("training")
            report.notes.append(f"Training was not compared: {reason}.")
        if "other batch" not in cases:
            report.notes.append("The batch is frozen: MXNet's graph takes no other size.")
        self._write_plan(list(cases))
        results = self._run(checks)
        self._fill(report, results["rows"])
        self._add_notes(report)
        if not report.passed:
            raise self._explain(report, cases)

    def check_loading(self, report: PortReport, skeletons: Sequence[str]) -> None:
        """Check that a file with unimplemented operators loads its weights."""
        self._write_plan([])
        self._run(["loading"])
        names = ", ".join(skeletons)
        report.notes.append(f"Nothing was compared: {names} must be written by hand first.")

    # -- input of the process ---------------------------------------------------------------

    def _write_cases(self, cases: dict[str, Arrays]) -> None:
        tensors: dict[str, Any] = {}
        varying: set[int] = set()
        for case, feed in cases.items():
            for i, name in enumerate(self.names):
                tensors[f"{case}/in/{i}"] = torch.from_numpy(np.ascontiguousarray(feed[name]))
            for i, output in enumerate(self.reference.predict(feed)):
                tensors[f"{case}/out/{i}"] = torch.from_numpy(np.ascontiguousarray(output))
                if output.size and (output != output.flat[0]).any():
                    varying.add(i)
            for i, (_, node) in enumerate(self.suppressions):
                for j, array in enumerate(self.reference.inputs_of(node, feed)):
                    tensors[f"{case}/rows/{i}/{j}"] = torch.from_numpy(np.ascontiguousarray(array))
        heads = range(len(self.reference.model.graph.heads))
        self._constant_outputs = [i for i in heads if i not in varying]
        safetensors_file.write(self.folder / "cases.safetensors", tensors)

    def _write_training(self) -> str | None:
        """Write the results of training, or return the reason why they cannot be compared."""
        graph = self.reference.trainer.graph
        draws = [n for n in graph.nodes if n.op is not None and _draws(n)]
        if draws:
            return f"{draws[0].name} ({draws[0].operator.name}) draws random numbers"
        if len(self.reference.model.sets) == len(self.reference.model.graph.heads):
            return "the outputs are detections; --outputs cuts a network before them"
        if not self.reference.model.arrays:
            return "the model has no parameters"
        training = self.training = self.reference.train()
        tensors = {f"train/in/{i}": training.inputs[n] for i, n in enumerate(self.names)}
        tensors |= {f"label/{i}": a for i, a in enumerate(training.labels.values())}
        tensors |= {f"head/{i}": a for i, a in enumerate(training.heads)}
        if not self.has_loss:
            tensors |= {f"train/out/{i}": a for i, a in enumerate(training.outputs)}
            pairs = zip(training.outputs, training.heads, strict=True)
            tensors["loss"] = np.asarray(sum(float((o * h).sum()) for o, h in pairs))
        dtype = getattr(torch, training.dtype)
        ready = {k: _real(torch.as_tensor(np.asarray(a)), dtype) for k, a in tensors.items()}
        for kind, arrays in (("grad", training.gradients), ("after", training.after),
                             ("state", training.states)):  # fmt: skip
            laid = self.layout.tensors(arrays)
            sources = self.layout.sources
            ready |= {f"{kind}/{p}": t for p, t in laid.items() if sources[p].constant is None}
        if any(not bool(t.isfinite().all()) for t in ready.values()):
            return "MXNet's numbers overflow on random inputs"
        self._add_ties(ready)
        safetensors_file.write(self.folder / "training.safetensors", ready)
        return None

    def _add_ties(self, tensors: dict[str, Any]) -> None:
        """Keep the gradients of shared parameters under one name only."""
        for path, _ in self.layout.ties:
            tensors.pop(f"grad/{path}", None)
            tensors.pop(f"after/{path}", None)

    def _write_plan(self, cases: list[str]) -> None:
        training = self.training
        plan = {
            "inputs": len(self.names),
            "cases": cases,
            "sets": self.reference.model.sets,
            "suppressions": [(name, columns_of(node)) for name, node in self.suppressions],
            "labels": 0 if training is None else len(training.labels),
            "has_loss": self.has_loss,
            "steps": STEPS,
            "learning_rate": 0.0 if training is None else training.learning_rate,
            "training_dtype": "float32" if training is None else training.dtype,
            "nodes": self.layout.nodes,
            "tolerance": self.tolerance,
        }
        (self.folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")

    # -- results of the process -------------------------------------------------------------

    def _run(self, checks: Sequence[str]) -> Any:
        command = [sys.executable, str(PROGRAM), str(self.folder), *checks]
        settings = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        run_program(command, "the ported model", TIMEOUT, settings, shown=6)
        return json.loads((self.folder / "results.json").read_text(encoding="utf-8"))

    def _fill(self, report: PortReport, rows: list[dict[str, Any]]) -> None:
        training = 0.0 if self.training is None else TRAINING_TOLERANCE[self.training.dtype]
        exact = ("outputs", SUPPRESSED, "torch.compile", "torch.export")
        for check in dict.fromkeys(row["check"] for row in rows):
            of = [row for row in rows if row["check"] == check]
            worst = max(of, key=lambda row: row["error"])
            limit = self.tolerance if check in exact else training
            report.rows.append(Row(check, worst["error"], limit, worst["name"], len(of)))

    def _add_notes(self, report: PortReport) -> None:
        if self.training is not None:
            report.notes.append(f"Training was compared in {self.training.dtype}, without dropout.")
        if self.reference.model.sets:
            report.notes.append(
                "Detections were compared as sets of rows, given the same rows before suppression: "
                "rounding decides which of two boxes with nearly equal scores is kept."
            )
        if self.layout.norms:
            report.notes.append(
                "torch's running variance is unbiased (n - 1 in the divisor), MXNet's is biased "
                "(n): running variances are compared after this factor."
            )

    # -- errors -----------------------------------------------------------------------------

    def _explain(self, report: PortReport, cases: dict[str, Arrays]) -> ConversionError:
        wrong = next(row for row in report.rows if not row.passed)
        place = ""
        if wrong.check in ("outputs", "outputs in training", "torch.compile", "torch.export"):
            place = self._find_layer(wrong, cases)
        elif wrong.worst:
            place = f" The largest is that of {wrong.worst}."
        return ConversionError(
            f"mx port: {wrong.check} differ by {wrong.error:.2e}, above {wrong.tolerance:.0e}; "
            f"nothing was written.{place}\n{report}"
        )

    def _find_layer(self, wrong: Row, cases: dict[str, Arrays]) -> str:
        """Return a sentence about the first layer that differs."""
        train = wrong.check == "outputs in training"
        if train and self.training is not None:
            feed = {**self.training.inputs, **self.training.labels}
        else:
            feed = cases.get(wrong.worst.rpartition(" ")[0]) or cases[next(iter(cases))]
        kind = "training_layers" if train else "layers"
        tensors = {f"in/{i}": torch.as_tensor(feed[n]) for i, n in enumerate(self.names)}
        if train:
            tensors = {k: _real(t, torch.float64) for k, t in tensors.items()}
        for name, array in self.reference.internals(feed, train).items():
            tensors[f"node/{name}"] = torch.from_numpy(np.ascontiguousarray(array))
        safetensors_file.write(self.folder / f"{kind}.safetensors", tensors)
        layer = self._run([kind])["layer"]
        if layer is None:
            return " Each layer alone agrees: the difference is in what stands between them."
        return (
            f" The first layer that differs is {layer['path']} (MXNet's node {layer['node']!r}), "
            f"by {layer['error']:.2e}."
        )


def _real(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _draws(node: Any) -> bool:
    """Return whether a node draws random numbers even if dropout is disabled."""
    kind = node.typed.get("act_type")
    if not node.operator.facts.random or (kind is not None and kind != "rrelu"):
        return False
    return "p" not in node.typed or node.typed.get("mode") == "always"
