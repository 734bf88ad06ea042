"""`mx view`: a model as one HTML page."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from mxnext_cli.errors import CommandError

from ..visualization.page import render_html
from .loading.models import load_model, parse_shapes


def run(args: argparse.Namespace) -> int:
    """Write the page, and open it if asked."""
    model = load_model(args, needs_params=False)
    shapes = parse_shapes(args.shape, model.inputs)
    known = model.complete_shapes(shapes) if shapes else {}
    output = Path(args.output or f"{model.name}.html")
    if not output.parent.is_dir():
        raise CommandError(f"{output}: there is no folder {output.parent}")
    title = " · ".join(dict.fromkeys([model.name, *(f.name for f in model.files[1:])]))
    render_html(model.symbol, output, known, model.parameters, title)
    print(f"{output}: {output.stat().st_size} bytes")
    if args.open:
        webbrowser.open(output.resolve().as_uri())
    return 0
