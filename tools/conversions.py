"""Print which operators convert to torch, to ``.pt2`` files and to ONNX, and why others do not.

Run ``python -m tools.conversions [FAMILY ...]``. Sample rows of the grammar are converted, run and
compared with our own results; ``.pt2`` files run in one process that cannot import mxnet.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mxnet.convert import UnsupportedTorch
from torch import nn

import mxnet as mx
from mxnet import dtypes
from mxnet.error import MXNetError
from mxnet.interop import to_torch
from mxnet.interop.source import Model, as_model
from mxnet.ops import registry
from mxnet.symbol.codegen import make_function
from tests.grammar.calling import arrays_of, call
from tests.grammar.sampling import Row, families, rows_of

YES = "yes"
TARGETS = ("torch", "pt2", "onnx")
CHILD_TIMEOUT = 900
# Weights that models have as constants; as inputs they are another row.
PARAMETERS = {"RNN": {"in1"}}
CHILD = """
import pathlib, sys
sys.modules["mxnet"] = None  # an import would fail
import numpy, torch
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pt2")):
    program = torch.export.load(path).module()
    with numpy.load(path.with_suffix(".npz")) as stored:
        feed = [torch.from_numpy(stored[n]) for n in sorted(stored.files, key=int)]
    outputs = program(*feed)
    numpy.savez(path.with_suffix(".out.npz"), *(o.detach().numpy() for o in outputs))
"""


@dataclass
class Outcome:
    """What became of one operator, in words: ``yes`` or the reason why not."""

    operator: str
    torch: str = "no sample"
    pt2: str = "no sample"
    onnx: str = "no sample"

    def worsen(self, target: str, text: str) -> None:
        """Write the outcome of one row; a reason is not overwritten by a success."""
        if getattr(self, target) in ("no sample", YES):
            setattr(self, target, text)


@dataclass
class Sample:
    """One row with its symbol, arrays and our own results."""

    row: Row
    symbol: Any
    params: dict[str, Any]
    free: dict[str, Any]
    expected: list[np.ndarray]
    module: nn.Module | None = None
    feed: list[torch.Tensor] = field(default_factory=list)

    @property
    def operator(self) -> str:
        """The registered name of the operator."""
        return registry.get(self.row.op).name

    def as_model(self) -> Model:
        """Return the sample as a model to convert."""
        shapes = {n: a.shape for n, a in self.free.items()}
        types = {n: dtypes.to_torch(a.dtype) for n, a in self.free.items()}
        return as_model(self.symbol, self.params, shapes, types)

    def check(self, outputs: Iterable[np.ndarray]) -> str:
        """Return ``yes`` if results agree, else how they differ."""
        outputs = list(outputs)
        if len(outputs) != len(self.expected):
            return f"gives {len(outputs)} results, not {len(self.expected)}"
        is_half = any(a.dtype == np.float16 for a in self.expected)
        limit = 5e-3 if is_half else 1e-4
        for a, b in zip(outputs, self.expected, strict=True):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"gives {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
            with np.errstate(invalid="ignore"):
                if not np.allclose(a, b, rtol=limit, atol=limit / 10, equal_nan=True):
                    return "gives other values"
        return YES


def read_sample(row: Row) -> Sample:
    """Return a row, run eagerly."""
    op = registry.get(row.op)
    arrays = arrays_of(row)
    expected = [o.asnumpy() for o in call(row, [a.copy() for a in arrays])]
    named = {f"in{i}": a for i, a in enumerate(arrays)}
    symbol = make_function(op, row.op)(*map(mx.sym.var, named), name="it", **row.attrs)
    fixed = {*PARAMETERS.get(op.name, ()), *symbol.list_auxiliary_states()}
    inputs = symbol.list_inputs()
    params = {n: a for n, a in named.items() if n in fixed and n in inputs}
    free = {n: a for n, a in named.items() if n in inputs and n not in params}
    return Sample(row, symbol, params, free, expected)


def convert_to_torch(sample: Sample) -> str:
    """Convert a sample, run the module, and return the outcome."""
    try:
        module = to_torch(sample.as_model())
    except UnsupportedTorch as error:
        return str(error).partition("(node 'it') ")[2] or str(error)
    names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    sample.feed = [torch.from_numpy(sample.free[n].asnumpy()) for n in names]
    outputs = module(*sample.feed)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    result = sample.check(o.detach().numpy() for o in outputs)
    if result == YES:
        sample.module = module
    return result


class Together(nn.Module):
    """Several modules as one, which takes the inputs of all and gives the outputs of all."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(s.module for s in samples if s.module is not None)
        self.counts = [len(s.feed) for s in samples]

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run each module on its own inputs."""
        outputs: list[torch.Tensor] = []
        for part, count in zip(self.parts, self.counts, strict=True):
            result = part(*inputs[:count])
            inputs = inputs[count:]
            outputs += result if isinstance(result, tuple) else (result,)
        return tuple(outputs)


def export(samples: Sequence[Sample], folder: Path, name: str) -> dict[str, str]:
    """Write modules as one program; where that fails, alone. Return the reasons of failures."""
    try:
        feed = [t for s in samples for t in s.feed]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(Together(samples), tuple(feed))
            torch.export.save(program, folder / f"{name}.pt2")
        arrays: dict[str, Any] = {str(i): t.numpy() for i, t in enumerate(feed)}
        np.savez(folder / f"{name}.npz", **arrays)
    except Exception as error:
        (folder / f"{name}.pt2").unlink(missing_ok=True)
        if len(samples) == 1:
            text = str(error).strip().splitlines() or [type(error).__name__]
            return {samples[0].row.key: f"torch.export: {text[0]}"}
        middle = len(samples) // 2
        return {
            **export(samples[:middle], folder, f"{name}a"),
            **export(samples[middle:], folder, f"{name}b"),
        }
    (folder / f"{name}.txt").write_text("\n".join(s.row.key for s in samples))
    return {}


def run_programs(folder: Path, by_key: dict[str, Sample]) -> dict[str, str]:
    """Run all programs of a folder without mxnet; return the outcome of each row."""
    command = [sys.executable, "-c", CHILD, str(folder)]
    subprocess.run(command, check=True, timeout=CHILD_TIMEOUT, cwd=folder)
    outcomes = {}
    for listing in folder.glob("*.txt"):
        with np.load(listing.with_suffix(".out.npz")) as stored:
            outputs = iter([stored[n] for n in stored.files])
            for key in listing.read_text().split("\n"):
                sample = by_key[key]
                outcomes[key] = sample.check([next(outputs) for _ in sample.expected])
    return outcomes


def convert_to_onnx(sample: Sample) -> str:
    """Convert a sample to ONNX, run it, and return the outcome."""
    from mxnet.interop.onnx.builder import UnsupportedExport, rows
    from mxnet.interop.onnx.export import build_model
    from tests.interop.onnx.running import run

    opset = rows()[sample.operator].since if sample.operator in rows() else 16
    shapes = {n: a.shape for n, a in sample.free.items()}
    types = {n: a.dtype for n, a in sample.free.items()}
    try:
        model = build_model(sample.symbol, sample.params, shapes, types, opset=max(16, opset))
    except UnsupportedExport as error:
        return str(error).partition("(node 'it') ")[2] or str(error)
    try:
        outputs = run(model, {n: a.asnumpy() for n, a in sample.free.items()})
    except Exception as error:  # what ONNX Runtime refuses at run time, such as indices
        return f"ONNX Runtime refuses the sample's values: {str(error).splitlines()[0][-120:]}"
    return sample.check(outputs)


def choose_rows(family: str, count: int) -> dict[str, list[Row]]:
    """Return rows of each operator, from all over the grid of its options."""
    grouped: dict[str, list[Row]] = {}
    for row in rows_of(family):
        grouped.setdefault(row.op, []).append(row)
    return {op: rows[:: -(-len(rows) // count)] for op, rows in grouped.items()}


@contextlib.contextmanager
def meaning_of(family: str) -> Iterator[None]:
    """Have ``()`` be a scalar and 0 a size for the rows of NumPy operators."""
    with mx.util.np_shape(family.startswith("numpy_")):
        yield


def sweep(
    chosen: Sequence[str] = (), count: int = 2, targets: Sequence[str] = TARGETS, step: int = 1
) -> list[Outcome]:
    """Convert rows of all families, or of those chosen, and return what became of each operator.

    Of each family, every `step`-th row that torch computes is written as ``.pt2``, with the first.
    """
    outcomes: dict[str, Outcome] = {}
    by_key: dict[str, Sample] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for family in chosen or families():
            with meaning_of(family):
                samples = _sweep_family(family, count, targets, outcomes)[::step]
            if "pt2" in targets and samples:
                by_key |= {s.row.key: s for s in samples}
                with meaning_of(family):
                    failures = export(samples, folder, family)
                for key, text in failures.items():
                    outcomes[by_key[key].operator].worsen("pt2", text)
        if by_key:
            for key, text in run_programs(folder, by_key).items():
                outcomes[by_key[key].operator].worsen("pt2", text)
    return sorted(outcomes.values(), key=lambda o: o.operator)


def _sweep_family(
    family: str, count: int, targets: Sequence[str], outcomes: dict[str, Outcome]
) -> list[Sample]:
    """Convert rows of one family to torch and ONNX; return those that torch computes."""
    done = []
    for rows in choose_rows(family, count).values():
        for row in rows:
            sample = read_sample(row)
            outcome = outcomes.setdefault(sample.operator, Outcome(sample.operator))
            result = convert_to_torch(sample)
            outcome.worsen("torch", result)
            if result == YES:
                done.append(sample)
            else:
                outcome.worsen("pt2", result)
            if "onnx" in targets:
                try:
                    outcome.worsen("onnx", convert_to_onnx(sample))
                except MXNetError as error:
                    outcome.worsen("onnx", str(error))
    return done


def main() -> None:
    """Print the table and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--rows", type=int, default=2, help="sample rows of each operator")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    outcomes = sweep(args.families, args.rows)
    for outcome in outcomes:
        cells = [getattr(outcome, t) for t in TARGETS]
        if all(c == YES for c in cells):
            print(f"{outcome.operator:45} yes  yes  yes")
            continue
        print(f"{outcome.operator:45} " + "  ".join("yes" if c == YES else "no " for c in cells))
        for target, cell in zip(TARGETS, cells, strict=True):
            if cell != YES and not (target == "pt2" and cell == outcome.torch):
                print(f"    {target}: {cell}")
    for target in TARGETS:
        total = sum(getattr(o, target) == YES for o in outcomes)
        print(f"{target}: {total} of {len(outcomes)} operators")


if __name__ == "__main__":
    main()
