"""`mx convert`: a model in another format, written only if both compute the same."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mxnet import ndarray as nd
from mxnet import symbol as sym
from mxnet.dtypes import to_torch
from mxnet.formats.atomic import one_commit
from mxnet.formats.model_files import named_params, write_symbol
from mxnet.interop import Difference, Report
from mxnet.interop import convert as convert_model
from mxnet.interop.conversion import INT8_SUFFIX, INT8_TOLERANCE, convert_to_int8
from mxnet.interop.onnx.export import DEFAULT_OPSET
from mxnet.interop.source import as_model, compare, test_inputs

from . import CommandError, UsageError
from .deploy import FOLDERS, write_folder
from .models import Model, Predictor, Shapes, cut_model, load_model, parse_shapes
from .output import print_json, print_table, refuse_existing
from .predict import Preparation, read_inputs

Arrays = dict[str, np.ndarray]

SUFFIXES = {
    "onnx": (".onnx",),
    "torch": (".pt2",),
    "safetensors": (".safetensors",),
    "mxnet": ("-symbol.json", "-0000.params"),
    "int8": ("-symbol.json", "-0000.params"),
}
TOLERANCE = 1e-4
MAX_BATCHES = 8  # of given inputs that a converted model is compared on


class Job(NamedTuple):
    """A conversion: the model, the output files, and the inputs to compare on."""

    model: Model
    shapes: Shapes
    dtypes: dict[str, Any]
    cases: list[Arrays]
    targets: list[Path]
    tolerance: float
    calibration: str
    dynamic: dict[str, Any] | None
    opset: int


def run(args: argparse.Namespace) -> int:
    """Convert and compare; an error above the tolerance raises before anything is written."""
    model = cut_model(load_model(args), args.outputs)
    input_shapes = parse_shapes(args.shape, model.inputs)
    cases = []
    if args.input:
        cases = [read_inputs(args.input, model.inputs, {}, Preparation())[0]]
    if not input_shapes and cases:
        input_shapes = {name: array.shape for name, array in cases[0].items()}
    if args.to == "safetensors":  # only arrays: nothing is run
        input_shapes, shapes, dtypes = {}, {}, {}
    else:
        shapes = {n: s for n, s in model.complete_shapes(input_shapes).items() if n in model.inputs}
        dtypes = {name: Predictor(model).dtypes[name] for name in model.inputs}
    if args.to in FOLDERS:
        report, folder = write_folder(args, model, shapes, dtypes, cases)
        _print(args, report, model.symbol.list_outputs(), [folder])
        return 0
    if args.to in ("onnx", "torch") and args.dynamic_batch is None:
        cases = [batch for case in cases for batch in _cut_batches(case, shapes)]
    targets = _choose_targets(args, model)
    if args.tolerance is None:
        args.tolerance = INT8_TOLERANCE if args.to == "int8" else TOLERANCE
    job = Job(
        model,
        shapes,
        dtypes,
        cases,
        targets,
        args.tolerance,
        args.calibration,
        _dynamic_shapes(args, shapes),
        _choose_opset(args),
    )
    report = WRITERS.get(args.to, _write_other)(job)
    _print(args, report, model.symbol.list_outputs(), [str(target) for target in targets])
    return 0


def _dynamic_shapes(args: argparse.Namespace, shapes: Shapes) -> dict[str, Any] | None:
    """Return the dynamic sizes: named axes, or complete shapes; None: the batch."""
    axis = args.dynamic_batch
    if axis is None and not args.dynamic:
        return None
    if args.to not in ("onnx", "torch"):
        option = "--dynamic" if args.dynamic else "--dynamic-batch"
        raise UsageError(f"{option} is for onnx and torch, not for {args.to}")
    if args.dynamic == ["none"]:
        if axis is not None:
            raise UsageError("--dynamic none freezes all sizes; leave --dynamic-batch out")
        return dict(shapes)
    axes = _parse_dynamic(args.dynamic, shapes)
    if axis is None:
        return axes
    for name, shape in shapes.items():
        if not 0 <= axis < len(shape):
            raise UsageError(f"--dynamic-batch {axis}: {name} {shape} has no such axis")
    return {
        name: tuple({axis: "batch", **axes.get(name, {})}.get(i, n) for i, n in enumerate(shape))
        for name, shape in shapes.items()
    }


def _parse_dynamic(texts: Sequence[str], shapes: Shapes) -> dict[str, dict[int, str]]:
    """Return the axes that options ``--dynamic`` name.

    >>> _parse_dynamic(["data:2=height,3=width"], {"data": (1, 3, 8, 8)})
    {'data': {2: 'height', 3: 'width'}}
    """
    axes: dict[str, dict[int, str]] = {}
    for text in texts:
        name, _, pairs = text.rpartition(":")
        if name not in shapes:
            raise UsageError(f"--dynamic {text}: the inputs are {', '.join(shapes)}")
        for pair in pairs.split(","):
            axis, _, size = pair.partition("=")
            if not axis.isdecimal() or not size.isidentifier():
                raise UsageError(f"--dynamic {text}: write it as data:2=height,3=width")
            if int(axis) >= len(shapes[name]):
                raise UsageError(f"--dynamic {text}: {name} {shapes[name]} has no axis {axis}")
            axes.setdefault(name, {})[int(axis)] = size
    return axes


def _choose_opset(args: argparse.Namespace) -> int:
    if args.opset is None:
        return DEFAULT_OPSET
    if args.to != "onnx":
        raise UsageError(f"--opset is for onnx, not for {args.to}")
    return args.opset


def _choose_targets(args: argparse.Namespace, model: Model) -> list[Path]:
    """Return the files to write, none of which is there already, unless --force."""
    name = f"{model.name}{INT8_SUFFIX}" if args.to == "int8" else model.name
    base = args.output or str(model.files[0].with_name(name))
    for suffix in SUFFIXES[args.to]:
        base = base.removesuffix(suffix)
    targets = [Path(base + suffix) for suffix in SUFFIXES[args.to]]
    for target in targets:
        if not target.parent.is_dir():
            raise CommandError(f"{target}: there is no folder {target.parent}")
        if any(target.exists() and target.samefile(file) for file in model.files):
            raise UsageError(f"{target} is the model itself; give --output another name")
    refuse_existing(targets, force=args.force)
    return targets


def _write_other(job: Job) -> Report:
    params = {**job.model.arguments, **job.model.auxiliary}
    return convert_model(
        job.model.symbol,
        job.targets[0],
        job.shapes,
        job.tolerance,
        params,
        job.cases,
        job.dtypes,
        job.dynamic,
        job.opset,
    )


def _cut_batches(case: dict[str, Any], shapes: dict[str, tuple]) -> list[dict[str, Any]]:
    sizes = {name: shapes[name][0] for name in case}
    count = min(len(array) // sizes[name] for name, array in case.items())
    return [
        {name: array[i * sizes[name] : (i + 1) * sizes[name]] for name, array in case.items()}
        for i in range(min(count, MAX_BATCHES))
    ] or [case]


def _write_mxnet(job: Job) -> Report:
    """Write files that MXNet 1.9.1 reads, after comparing the model with the re-read one."""
    model = job.model
    symbol = sym.load_json(model.symbol.tojson())
    again = Model(model.name, symbol, model.arguments, model.auxiliary)
    report = Report("mxnet", job.tolerance, str(job.targets[0]))
    cases = test_inputs(job.shapes, {n: np.dtype(t) for n, t in job.dtypes.items()})
    cases |= {f"given {i}": case for i, case in enumerate(job.cases)}
    left, right = Predictor(model), Predictor(again)
    for name, inputs in cases.items():
        report.add(name, compare(right(inputs), left(inputs)))
    report.check()
    with one_commit():
        write_symbol(str(job.targets[0]), model.symbol)
        nd.save(str(job.targets[1]), named_params(model.arguments, model.auxiliary))
    return report


def _write_int8(job: Job) -> Report:
    """Write an 8-bit model after comparing it with the float model."""
    params = {**job.model.arguments, **job.model.auxiliary}
    types = {name: to_torch(dtype) for name, dtype in job.dtypes.items()}
    source = as_model(job.model.symbol, params, job.shapes, types)
    prefix = Path(str(job.targets[0]).removesuffix(SUFFIXES["int8"][0]))
    if not job.cases:
        print(
            "mx convert: no --input is given, so the 8-bit ranges come from random numbers; "
            "accuracy on real data may suffer",
            file=sys.stderr,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the same, for programs
        return convert_to_int8(source, prefix, job.tolerance, job.cases, job.calibration)


WRITERS = {"mxnet": _write_mxnet, "int8": _write_int8}


def _print(args: argparse.Namespace, report: Report, names: list[str], files: list[str]) -> None:
    if args.to == "safetensors":
        names = [f"{len(report.rows)} arrays"]
        rows = {"stored": [report.largest]}
    else:
        rows = report.rows
    outputs = [_worst(name, i, rows) for i, name in enumerate(names)]
    if args.json:
        facts = {"inputs": len(rows), "outputs": outputs, "written": files}
        facts |= {} if report.change is None else {"change": report.change._asdict()}
        facts |= {"sizes": report.sizes, "notes": report.notes} if report.sizes else {}
        print_json({**facts, "tolerance": args.tolerance})
        return
    print_table(
        ("output", "absolute error", "relative error", "worst input"),
        [
            (o["output"], f"{o['absolute']:.3g}", f"{o['relative']:.3g}", o["worst_input"])
            for o in outputs
        ],
        right=(1, 2),
    )
    if report.change is not None:
        print(report.change)
    for note in report.notes:
        print(note)
    inputs = "1 input" if len(rows) == 1 else f"{len(rows)} inputs"
    print(f"compared on {inputs}; wrote {', '.join(files)}")


def _worst(name: str, index: int, rows: dict[str, list[Difference]]) -> dict[str, Any]:
    case = max(rows, key=lambda key: rows[key][index].absolute)
    return {
        "output": name,
        "absolute": rows[case][index].absolute,
        "relative": max(row[index].relative for row in rows.values()),
        "worst_input": case,
    }
