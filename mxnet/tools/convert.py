"""`mx convert`: a model in another format, written only if both compute the same."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mxnext_cli.errors import CommandError, UsageError
from mxnext_cli.output import print_json, print_table

from .. import ndarray as nd
from ..model import named_params, write_symbol
from .comparison import Arrays, Difference, Run, compare, make_inputs
from .input_files import Preparation, read_inputs
from .models import (
    Model,
    Shapes,
    load_model,
    parse_shapes,
    read_parameters,
    read_symbol,
)
from .predictor import Predictor


class Target(NamedTuple):
    """A format: what its files are called, and how they are written and run."""

    suffixes: tuple[str, ...]
    write: Callable[[Model, Shapes, Predictor, Path], None]
    load: Callable[[Model, Path], Run]


def run(args: argparse.Namespace) -> int:
    """Convert into a temporary folder, compare, and move the files to their place."""
    target = TARGETS[args.to]
    model = load_model(args)
    given = parse_shapes(args.shape, model.inputs)
    predictor = Predictor(model)
    cases = _given_cases(args.input, model)
    if not given and cases:
        given = {name: array.shape for name, array in cases[0][1].items()}
    shapes = {n: s for n, s in model.complete_shapes(given).items() if n in model.inputs}
    places = _places(args, model, target)
    cases += list(make_inputs(model, shapes, predictor.dtypes, args.seed))
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "model"
        target.write(model, shapes, predictor, draft)
        differences = compare(
            predictor.output_names,
            cases,
            predictor,
            target.load(model, draft),
            atol=args.atol,
            rtol=args.rtol,
        )
        is_right = all(d.is_within for d in differences)
        if is_right:
            for suffix, place in zip(target.suffixes, places, strict=True):
                _move(draft.with_name(draft.name + suffix), place)
    _print(args, differences, places if is_right else [], len(cases))
    return 0 if is_right else 1


def _given_cases(files: list[str], model: Model) -> list[tuple[str, Arrays]]:
    if not files:
        return []
    arrays, _ = read_inputs(files, model.inputs, {}, Preparation())
    return [("given", arrays)]


def _places(args: argparse.Namespace, model: Model, target: Target) -> list[Path]:
    """Return the files to write, none of which is there already, unless --force."""
    base = args.output or str(model.files[0].with_name(model.name))
    for suffix in target.suffixes:
        base = base.removesuffix(suffix)
    places = [Path(base + suffix) for suffix in target.suffixes]
    for place in places:
        if not place.parent.is_dir():
            raise CommandError(f"{place}: there is no folder {place.parent}")
        if any(place.exists() and place.samefile(file) for file in model.files):
            raise UsageError(f"{place} is the model itself; give --output another name")
        if place.exists() and not args.force:
            raise CommandError(f"{place} is there already; --force replaces it")
    return places


def _move(source: Path, place: Path) -> None:
    """Put a finished file in its place, whole or not at all, also across file systems."""
    beside = place.with_name(f".{place.name}.part")
    try:
        shutil.copyfile(source, beside)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _print(
    args: argparse.Namespace, differences: list[Difference], places: list[Path], cases: int
) -> None:
    files = [str(place) for place in places]
    if args.json:
        rows = [d._asdict() for d in differences]
        facts: dict[str, Any] = {"inputs": cases, "outputs": rows, "written": files}
        print_json({**facts, "atol": args.atol, "rtol": args.rtol})
        return
    print_table(
        ("output", "absolute error", "relative error", "worst input", ""),
        [
            (d.output, f"{d.absolute:.3g}", f"{d.relative:.3g}", d.worst_input,
             "" if d.is_within else "too far")
            for d in differences
        ],
        right=(1, 2),
    )  # fmt: skip
    if files:
        print(f"compared on {cases} inputs; wrote {', '.join(files)}")
    else:
        print(f"the outputs differ by more than --atol {args.atol:g} and --rtol {args.rtol:g}: "
              "nothing was written")  # fmt: skip


# -- formats ---------------------------------------------------------------------------------------


def _write_onnx(model: Model, shapes: Shapes, predictor: Predictor, draft: Path) -> None:
    from .. import onnx

    types = [predictor.dtypes[name] for name in model.inputs]
    ordered = [shapes[name] for name in model.inputs]
    params = [model.arguments, model.auxiliary]
    onnx.export_model(model.symbol, params, ordered, types, f"{draft}.onnx")


def _load_onnx(model: Model, draft: Path) -> Run:
    try:
        import onnxruntime
    except ImportError:
        raise CommandError("comparing needs onnxruntime: pip install 'mxnext[onnx]'") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(
        f"{draft}.onnx", options, providers=["CPUExecutionProvider"]
    )
    taken = [value.name for value in session.get_inputs()]

    def predict(inputs: Arrays) -> list[np.ndarray]:
        return session.run(None, {name: inputs[name] for name in taken})

    return predict


def _write_safetensors(model: Model, shapes: Shapes, predictor: Predictor, draft: Path) -> None:
    try:
        from safetensors.torch import save_file
    except ImportError:
        raise CommandError(
            "safetensors is not installed: pip install 'mxnext[safetensors]'"
        ) from None
    tensors = {n: a.to_torch().detach().contiguous().clone() for n, a in model.parameters.items()}
    save_file(tensors, f"{draft}.safetensors", metadata={"format": "mxnet"})


def _load_safetensors(model: Model, draft: Path) -> Run:
    return Predictor(_with_parameters(model, Path(f"{draft}.safetensors")))


def _with_parameters(model: Model, path: Path) -> Model:
    arguments, auxiliary = read_parameters(path, model.symbol)
    return Model(model.name, model.symbol, arguments, auxiliary, [path])


def _write_mxnet(model: Model, shapes: Shapes, predictor: Predictor, draft: Path) -> None:
    write_symbol(f"{draft}-symbol.json", model.symbol)
    nd.save(f"{draft}-0000.params", named_params(model.arguments, model.auxiliary))


def _load_mxnet(model: Model, draft: Path) -> Run:
    symbol = read_symbol(Path(f"{draft}-symbol.json"))
    read = read_parameters(Path(f"{draft}-0000.params"), symbol)
    return Predictor(Model(model.name, symbol, *read, [draft]))


TARGETS = {
    "onnx": Target((".onnx",), _write_onnx, _load_onnx),
    "safetensors": Target((".safetensors",), _write_safetensors, _load_safetensors),
    "mxnet": Target(("-symbol.json", "-0000.params"), _write_mxnet, _load_mxnet),
}
