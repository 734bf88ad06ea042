"""Models as commands name them, a prefix or a file, and `Predictor`, which runs them."""

from __future__ import annotations

import argparse
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mxnet import dtypes
from mxnet import ndarray as nd
from mxnet import symbol as sym
from mxnet.context import Context, cpu, torch_device
from mxnet.error import FormatError, MXNetError
from mxnet.executor import CachedOp
from mxnet.graph.passes.infer import infer_shapes, infer_types
from mxnet.graph.symbol_json import loads
from mxnet.ndarray import NDArray
from mxnet.ops.shapes import is_known
from mxnet.symbol import Symbol

from . import CommandError, UsageError

SYMBOL_SUFFIX = "-symbol.json"
PARAMS_NAME = re.compile(r"(?P<prefix>.+)-(?P<epoch>\d{4,})\.params")
# Operators call the inputs that hold parameters by these names.
PARAMETER_ROLES = frozenset(
    {"weight", "bias", "gamma", "beta", "parameters", "moving_mean", "moving_var"}
)
LABEL_ROLE = "label"

Shape = tuple[int, ...]
Shapes = dict[str, Shape]
Arrays = dict[str, np.ndarray]
PREPARING_RUNS = 2  # a program is fixed after its second run
MAX_SHAPES = 1024  # of inputs, whose zeros are remembered


@dataclass
class Model:
    """A graph with its parameters, and the roles of its variables: data or label."""

    name: str
    symbol: Symbol
    arguments: dict[str, NDArray] = field(default_factory=dict)
    auxiliary: dict[str, NDArray] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    has_params: bool = True
    stored_shapes: Shapes = field(default_factory=dict)  # of inputs, that the file says
    ctx: Context = field(default_factory=cpu)  # where it runs
    inputs: list[str] = field(init=False)
    labels: list[str] = field(init=False)

    def __post_init__(self) -> None:
        roles = variable_roles(self.symbol)
        free = [
            name
            for name in self.symbol.list_arguments()
            if name not in self.arguments and (self.has_params or not roles[name] & PARAMETER_ROLES)
        ]
        self.labels = [name for name in free if roles[name] == {LABEL_ROLE}]
        self.inputs = [name for name in free if name not in self.labels]

    @property
    def parameters(self) -> dict[str, NDArray]:
        """All arrays that the files hold."""
        return {**self.arguments, **self.auxiliary}

    def known_shapes(self, shapes: Mapping[str, Shape]) -> Shapes:
        """Return the given shapes of inputs, with those of the parameters."""
        for name in shapes:
            if name not in self.inputs and name not in self.labels:
                names = ", ".join([*self.inputs, *self.labels]) or "none"
                raise UsageError(f"--shape: the model has no input {name!r}; its inputs: {names}")
        stored = {n: s for n, s in self.stored_shapes.items() if n in self.inputs}
        return {**{n: a.shape for n, a in self.parameters.items()}, **stored, **shapes}

    def complete_shapes(self, known: Mapping[str, Shape]) -> Shapes:
        """Return the shape of every variable; raise an error that asks for missing shapes."""
        graph = self.symbol._graph
        inferred = infer_shapes(graph, self.known_shapes(known))
        shapes = {node.name: inferred.values[node][0] for node in graph.variables}
        missing = [name for name in self.inputs if not is_known(shapes.get(name))]
        if missing:
            example = " ".join(f"--shape {n}={_example(shapes.get(n))}" for n in missing)
            raise UsageError(
                f"the model's files do not contain the shapes of its inputs; specify them, for "
                f"example: {example}"
            )
        unknown = [name for name, shape in shapes.items() if not is_known(shape)]
        if unknown:
            raise CommandError(
                f"the shapes of {', '.join(unknown[:5])} do not follow from {dict(known)}"
            )
        return shapes


def _example(shape: Shape | None) -> str:
    """Return an example of a shape argument, with letters for unknown sizes."""
    if shape is None:
        return "1,3,224,224"
    letters = ["N", "C", "H", "W", "D"]
    return ",".join(
        str(n) if n > 0 else (letters[i] if i < 5 else "N") for i, n in enumerate(shape)
    )


def variable_roles(symbol: Symbol) -> dict[str, set[str]]:
    """Return the input names of each variable at its operators: weight, label, data ..."""
    roles: dict[str, set[str]] = {node.name: set() for node in symbol._graph.variables}
    for node in symbol._graph.nodes:
        for name, entry in zip(node.input_names, node.inputs, strict=True):
            if entry.node.op is None:
                roles[entry.node.name].add(name)
    return roles


def find_files(args: argparse.Namespace) -> list[Path]:
    """Return the files of the model that the arguments name."""
    path = Path(args.model)
    if path.suffix == ".onnx":
        return [path]
    files = _find_files(path, args.epoch, args.params)
    return [file for file in files if file is not None]


def parse_device(text: str | None) -> Context:
    """Return the device that ``--device`` names: cpu, gpu or gpu:1.

    >>> parse_device("cpu")
    cpu(0)
    """
    match = re.fullmatch(r"(cpu|gpu)(?::(\d+)|\((\d+)\))?", text or "cpu")
    if match is None:
        raise UsageError(f"--device {text}: it is cpu, gpu or gpu:1")
    ctx = Context(match[1], int(match[2] or match[3] or 0))
    torch_device(ctx)  # raises immediately for a missing GPU
    return ctx


def load_model(
    args: argparse.Namespace, *, needs_params: bool = True, keep_unknown: bool = False
) -> Model:
    """Read the model that the arguments name, for the device that they name.

    For inspection of a model, its operators may be unknown.
    """
    ctx = parse_device(getattr(args, "device", None))
    model = _read_model(args, needs_params, keep_unknown)
    model.ctx = ctx
    return model


def cut_model(model: Model, outputs: str | None) -> Model:
    """Return the part of a model that ends in the named nodes, such as those before detections."""
    if outputs is None:
        return model
    internals = model.symbol.get_internals()
    known = internals.list_outputs()
    names = []
    for name in outputs.split(","):
        names.append(name if name in known else f"{name}_output")
        if names[-1] not in known:
            raise UsageError(f"--outputs: the model has no output {name!r}")
    symbol = sym.Group([internals[name] for name in names]) if names[1:] else internals[names[0]]
    arguments, states = set(symbol.list_arguments()), set(symbol.list_auxiliary_states())
    return replace(
        model,
        symbol=symbol,
        arguments={n: a for n, a in model.arguments.items() if n in arguments},
        auxiliary={n: a for n, a in model.auxiliary.items() if n in states},
    )


def _read_model(args: argparse.Namespace, needs_params: bool, keep_unknown: bool) -> Model:
    path = Path(args.model)
    if path.suffix == ".onnx":
        return _load_onnx(path)
    symbol_path, params_path = _find_files(path, args.epoch, args.params)
    symbol = read_symbol(symbol_path, keep_unknown=keep_unknown)
    name = symbol_path.name.removesuffix(SYMBOL_SUFFIX).removesuffix(".json")
    if params_path is None:
        if needs_params:
            raise CommandError(
                f"{symbol_path}: there is no {name}-0000.params beside it; name the file with "
                "--params"
            )
        return Model(name, symbol, files=[symbol_path], has_params=False)
    arguments, auxiliary = read_parameters(params_path, symbol)
    return Model(name, symbol, arguments, auxiliary, [symbol_path, params_path])


def _find_files(path: Path, epoch: int | None, params: str | None) -> tuple[Path, Path | None]:
    named = PARAMS_NAME.fullmatch(path.name)
    if path.name.endswith(".json"):
        prefix = path.with_name(path.name.removesuffix(SYMBOL_SUFFIX).removesuffix(".json"))
        symbol_path = path
    elif path.suffix == ".params":
        prefix = path.with_name(named["prefix"] if named else path.stem)
        symbol_path = prefix.with_name(prefix.name + SYMBOL_SUFFIX)
        params = params or str(path)
    else:
        prefix, symbol_path = path, path.with_name(path.name + SYMBOL_SUFFIX)
    if not symbol_path.is_file():
        raise CommandError(f"{symbol_path}: there is no such file{_nearby(symbol_path)}")
    if params is not None:
        if not Path(params).is_file():
            raise CommandError(f"{params}: there is no such file")
        return symbol_path, Path(params)
    return symbol_path, _choose_params(prefix, epoch)


def params_by_epoch(folder: Path, prefix: str) -> dict[int, Path]:
    """Return the parameter files of a prefix in a folder, ``PREFIX-NNNN.params``."""
    return {
        int(match["epoch"]): path
        for path in folder.glob("*.params")
        if (match := PARAMS_NAME.fullmatch(path.name)) and match["prefix"] == prefix
    }


def _choose_params(prefix: Path, epoch: int | None) -> Path | None:
    files = params_by_epoch(prefix.parent, prefix.name)
    if epoch is None:
        plain = prefix.with_name(prefix.name + ".params")
        return files[max(files)] if files else (plain if plain.is_file() else None)
    if epoch not in files:
        epochs = ", ".join(map(str, sorted(files))) or "none"
        raise CommandError(f"{prefix}: there is no epoch {epoch}; found: {epochs}")
    return files[epoch]


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f", and no folder {path.parent}"
    models = sorted(p.name for p in path.parent.glob(f"*{SYMBOL_SUFFIX}"))
    return f"; models there: {', '.join(models[:5])}" if models else ""


def read_symbol(path: Path, *, keep_unknown: bool = False) -> Symbol:
    """Read a symbol file; errors name the file."""
    try:
        if not keep_unknown:
            return sym.load(str(path))
        text = path.read_text(encoding="utf-8", errors="replace")
        return Symbol(loads(text, keep_unknown=True))
    except FormatError as error:
        raise CommandError(f"{path}: {error}") from error


def read_parameters(path: Path, symbol: Symbol) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Read the arrays of a model, with or without the ``arg:`` and ``aux:`` of checkpoints."""
    read = _read_safetensors(path) if path.suffix == ".safetensors" else nd.load(str(path))
    if isinstance(read, list):
        if read:
            raise CommandError(f"{path}: its arrays have no names; parameters have names")
        read = {}
    named = {re.sub(r"^(arg|aux):", "", name): array for name, array in read.items()}
    states = set(symbol.list_auxiliary_states())
    arguments = set(symbol.list_arguments())
    return (
        {n: a for n, a in named.items() if n in arguments},
        {n: a for n, a in named.items() if n in states},
    )


def _read_safetensors(path: Path) -> dict[str, NDArray]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise CommandError(
            f"{path}: reading it needs safetensors: pip install safetensors"
        ) from None
    try:
        return {name: nd.from_torch(tensor) for name, tensor in load_file(str(path)).items()}
    except SafetensorError as error:
        raise CommandError(f"{path}: it is not a safetensors file: {error}") from None


def _load_onnx(path: Path) -> Model:
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    from mxnet.contrib.onnx import get_model_metadata, import_model

    symbol, arguments, auxiliary = import_model(str(path))
    stored = {
        name: (shape[0] or 1, *shape[1:]) if shape else ()  # a free batch is one sample
        for name, shape in get_model_metadata(str(path))["input_tensor_data"]
        if all(isinstance(n, int) and n > 0 for n in shape[1:])
    }
    return Model(path.stem, symbol, dict(arguments), dict(auxiliary), [path], stored_shapes=stored)


def parse_shapes(texts: Sequence[str], inputs: Sequence[str]) -> Shapes:
    """Return the shapes that options ``--shape`` give; without a name it is that of ``data``.

    >>> parse_shapes(["1,3,8,8"], ["data"])
    {'data': (1, 3, 8, 8)}
    """
    shapes = {}
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        if not equals:
            if len(inputs) != 1 and "data" not in inputs:
                raise UsageError(
                    f"--shape {text}: the model has the inputs {', '.join(inputs)}; write NAME="
                )
            name = "data" if "data" in inputs else inputs[0]
        try:
            shape = tuple(int(n) for n in re.split(r"[,x ]+", numbers.strip("() ,")) if n)
        except ValueError:
            raise UsageError(f"--shape {text}: write it as data=1,3,224,224") from None
        if any(n < 1 for n in shape):
            raise UsageError(f"--shape {text}: sizes are 1 or more")
        shapes[name] = shape
    return shapes


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
        inferred = infer_types(graph, types, default=dtypes.to_torch("float32"))
        self.dtypes = {v.name: dtypes.to_numpy(inferred.values[v][0]) for v in graph.variables}
        self._ctx = model.ctx
        self._parameters = {n: a.as_in_context(model.ctx) for n, a in model.parameters.items()}
        self._call = CachedOp(model.symbol)
        self._lock = threading.Lock()
        self._is_prepared = False
        self._filled: dict[tuple, dict[str, NDArray]] = {}

    def check_names(self, inputs: Mapping[str, Any]) -> None:
        """Raise for inputs that the model does not have."""
        unknown = sorted(set(inputs) - set(self.model.inputs) - set(self.model.labels))
        if unknown:
            raise UsageError(
                f"the model has no input {unknown[0]!r}; its inputs: {', '.join(self.model.inputs)}"
            )

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for one batch."""
        self.check_names(inputs)
        arrays = {
            name: nd.array(value, ctx=self._ctx, dtype=self.dtypes[name])
            for name, value in inputs.items()
        }
        filled = self._fill({name: array.shape for name, array in arrays.items()})
        feed = {**self._parameters, **filled, **arrays}
        if not self._is_prepared:
            with self._lock:  # preparing changes what threads share
                for _ in range(0 if self._is_prepared else PREPARING_RUNS):
                    self._run(feed)
                self._is_prepared = True
        return self._run(feed)

    def _fill(self, shapes: dict[str, Shape]) -> dict[str, NDArray]:
        """Return zeros for missing inputs, cached for the next call with these shapes."""
        key = tuple(sorted(shapes.items()))
        filled = self._filled.get(key)
        if filled is None:
            with self._lock:
                if len(self._filled) >= MAX_SHAPES:
                    self._filled.clear()
                filled = self._filled[key] = self._zeros(shapes)
        return filled

    def _run(self, feed: Mapping[str, NDArray]) -> list[np.ndarray]:
        outputs = self._call(*(feed[node.name] for node in self.model.symbol._graph.variables))
        return [out.asnumpy() for out in ([outputs] if isinstance(outputs, NDArray) else outputs)]

    def _zeros(self, shapes: dict[str, Shape]) -> dict[str, NDArray]:
        """Return zeros for the variables that are neither given nor parameters."""
        graph = self.model.symbol._graph
        inferred = infer_shapes(graph, self.model.known_shapes(shapes))
        filled = {}
        for node in graph.variables:
            name, shape = node.name, inferred.values[node][0]
            if name in shapes or name in self._parameters:
                continue
            if not is_known(shape):
                raise UsageError(
                    f"the model needs the input {name!r}, too; given: {sorted(shapes)}"
                )
            filled[name] = nd.zeros(shape, ctx=self._ctx, dtype=self.dtypes[name])
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
