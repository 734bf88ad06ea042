"""The targets of `mx convert` that are folders: a model with all that it needs to run."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from mxnet.dtypes import to_torch
from mxnet.interop import Report, deploy
from mxnet.interop.deploy import TARGETS
from mxnet.interop.source import as_model

from . import UsageError
from .models import Model, Shapes
from .output import refuse_existing

FOLDERS = tuple(TARGETS)
TOLERANCE = 1e-4


def write_folder(
    args: argparse.Namespace, model: Model, shapes: Shapes, dtypes: dict[str, Any], cases: list
) -> tuple[Report, str]:
    """Write the folder; return how both sides differ, and its name."""
    if args.runtime is not None and args.to != "web":
        raise UsageError(f"--runtime is for web, not for {args.to}")
    folder = Path(args.output or model.files[0].with_name(f"{model.name}-{args.to}"))
    refuse_existing([folder], force=args.force)
    if args.tolerance is None:
        args.tolerance = TOLERANCE
    kinds = {name: to_torch(dtype) for name, dtype in dtypes.items()}
    source = as_model(model.symbol, {**model.arguments, **model.auxiliary}, shapes, kinds)
    report = deploy(
        replace(source, name=model.name),
        args.to,
        folder,
        shapes,
        tolerance=args.tolerance,
        inputs=cases,
        runtime=args.runtime,
        force=args.force,
    )
    return report, str(folder)
