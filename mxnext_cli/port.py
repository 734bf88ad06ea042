"""`mx port`: a model as PyTorch source code, written only if both compute and train the same."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from mxnet.dtypes import to_torch
from mxnet.interop.port import PortReport
from mxnet.interop.port import port as port_model
from mxnet.interop.port.porting import FILES, TOLERANCE

from .models import Model, Predictor, cut_model, load_model, parse_shapes
from .output import print_json, print_table, refuse_existing
from .predict import Preparation, read_inputs


def run(args: argparse.Namespace) -> int:
    """Port a model and compare; a difference raises an error before anything is written."""
    model = cut_model(load_model(args), args.outputs)
    input_shapes = parse_shapes(args.shape, [*model.inputs, *model.labels])
    cases = []
    if args.input:
        cases = [read_inputs(args.input, model.inputs, {}, Preparation())[0]]
        input_shapes = input_shapes or {name: array.shape for name, array in cases[0].items()}
    shapes = model.complete_shapes(input_shapes)
    free = {n: s for n, s in shapes.items() if n in model.inputs or n in model.labels}
    folder = Path(args.output or model.files[0].with_name(f"{model.name}-torch"))
    refuse_existing((folder / name for name in FILES), force=args.force)
    dtypes = {name: to_torch(Predictor(model).dtypes[name]) for name in free}
    report = port_model(
        model.symbol,
        folder,
        free,
        {**model.arguments, **model.auxiliary},
        name=args.name or _class_name(model),
        source=f"`{model.files[0].name}`",
        dtypes=dtypes,
        inputs=cases,
        tolerance=TOLERANCE if args.tolerance is None else args.tolerance,
        force=args.force,
    )
    _print(args, report)
    return 0


def _class_name(model: Model) -> str:
    words = re.findall(r"[A-Za-z0-9]+", model.name)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Model{name}"


def _print(args: argparse.Namespace, report: PortReport) -> None:
    if args.json:
        rows = [row._asdict() for row in report.rows]
        print_json(
            {
                "compared": rows,
                "notes": report.notes,
                "lines": report.lines,
                "written": report.files,
            }
        )
        return
    print_table(
        ("compared", "values", "largest relative error", "allowed"),
        [(r.check, r.values, f"{r.error:.1e}", f"{r.tolerance:.0e}") for r in report.rows],
        right=(1, 2, 3),
    )
    for note in report.notes:
        print(note)
    print(f"wrote {', '.join(report.files)} ({report.lines} lines of code)")
