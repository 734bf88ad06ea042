"""Models on disk as commands name them: a prefix, a symbol file, a parameter file or ONNX."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mxnext_cli.errors import CommandError, UsageError

from ... import ndarray as nd
from ... import symbol as sym
from ...error import FormatError
from ...graph.passes.infer import infer_shapes
from ...ndarray import NDArray
from ...ops.shapes import is_known
from ...symbol import Symbol

SYMBOL_SUFFIX = "-symbol.json"
PARAMS_NAME = re.compile(r"(?P<prefix>.+)-(?P<epoch>\d{4,})\.params")
# Operators call the inputs that hold parameters by these names.
PARAMETER_ROLES = frozenset(
    {"weight", "bias", "gamma", "beta", "parameters", "moving_mean", "moving_var"}
)
LABEL_ROLE = "label"

Shape = tuple[int, ...]
Shapes = dict[str, Shape]


@dataclass
class Model:
    """A graph with its parameters, and what of its variables is data or label."""

    name: str
    symbol: Symbol
    arguments: dict[str, NDArray] = field(default_factory=dict)
    auxiliary: dict[str, NDArray] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    has_params: bool = True
    stored_shapes: Shapes = field(default_factory=dict)  # of inputs, that the file says
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

    def known_shapes(self, given: Mapping[str, Shape]) -> Shapes:
        """Return the given shapes of inputs, with those of the parameters."""
        for name in given:
            if name not in self.inputs and name not in self.labels:
                known = ", ".join([*self.inputs, *self.labels]) or "none"
                raise UsageError(f"--shape: the model has no input {name!r}; its inputs: {known}")
        stored = {n: s for n, s in self.stored_shapes.items() if n in self.inputs}
        return {**{n: a.shape for n, a in self.parameters.items()}, **stored, **given}

    def complete_shapes(self, given: Mapping[str, Shape]) -> Shapes:
        """Return the shape of every variable; ask for what does not follow from the given ones."""
        graph = self.symbol._graph
        found = infer_shapes(graph, self.known_shapes(given))
        shapes = {node.name: found.values[node][0] for node in graph.variables}
        missing = [name for name in self.inputs if not is_known(shapes.get(name))]
        if missing:
            example = " ".join(f"--shape {n}={_example(shapes.get(n))}" for n in missing)
            raise UsageError(f"the shapes of inputs are not in the file; give them: {example}")
        unknown = [name for name, shape in shapes.items() if not is_known(shape)]
        if unknown:
            raise CommandError(
                f"the shapes of {', '.join(unknown[:5])} do not follow from {dict(given)}"
            )
        return shapes


def _example(shape: Shape | None) -> str:
    """Return how a shape could be written, with letters for what is not known."""
    if shape is None:
        return "1,..."
    letters = ["N", "C", "H", "W", "D"]
    return ",".join(
        str(n) if n > 0 else (letters[i] if i < 5 else "N") for i, n in enumerate(shape)
    )


def variable_roles(symbol: Symbol) -> dict[str, set[str]]:
    """Return what the operators that read each variable call it: weight, label, data ..."""
    roles: dict[str, set[str]] = {node.name: set() for node in symbol._graph.variables}
    for node in symbol._graph.nodes:
        for name, entry in zip(node.input_names, node.inputs, strict=True):
            if entry.node.op is None:
                roles[entry.node.name].add(name)
    return roles


def load_model(args: argparse.Namespace, *, needs_params: bool = True) -> Model:
    """Read the model that the arguments name."""
    path = Path(args.model)
    if path.suffix == ".onnx":
        return _load_onnx(path)
    symbol_path, params_path = _find_files(path, args.epoch, args.params)
    symbol = read_symbol(symbol_path)
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
    """Return the symbol file and the parameter file, if there is one."""
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


def _choose_params(prefix: Path, epoch: int | None) -> Path | None:
    found = {
        int(match["epoch"]): path
        for path in prefix.parent.glob("*.params")
        if (match := PARAMS_NAME.fullmatch(path.name)) and match["prefix"] == prefix.name
    }
    if epoch is None:
        plain = prefix.with_name(prefix.name + ".params")
        return found[max(found)] if found else (plain if plain.is_file() else None)
    if epoch not in found:
        known = ", ".join(map(str, sorted(found))) or "none"
        raise CommandError(f"{prefix}: there is no epoch {epoch}; found: {known}")
    return found[epoch]


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f", and no folder {path.parent}"
    found = sorted(p.name for p in path.parent.glob(f"*{SYMBOL_SUFFIX}"))
    return f"; models there: {', '.join(found[:5])}" if found else ""


def read_symbol(path: Path) -> Symbol:
    """Read a symbol file; what is wrong with it is said with its name."""
    try:
        return sym.load(str(path))
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
    wanted = set(symbol.list_arguments())
    return (
        {n: a for n, a in named.items() if n in wanted},
        {n: a for n, a in named.items() if n in states},
    )


def _read_safetensors(path: Path) -> dict[str, NDArray]:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise CommandError(
            f"{path}: reading it needs safetensors: pip install 'mxnext[safetensors]'"
        ) from None
    try:
        return {name: nd.from_torch(tensor) for name, tensor in load_file(str(path)).items()}
    except SafetensorError as error:
        raise CommandError(f"{path}: it is not a safetensors file: {error}") from None


def _load_onnx(path: Path) -> Model:
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file")
    from ...contrib.onnx import get_model_metadata, import_model

    symbol, arguments, auxiliary = import_model(str(path))
    stored = {
        name: tuple(shape)
        for name, shape in get_model_metadata(str(path))["input_tensor_data"]
        if all(isinstance(n, int) and n > 0 for n in shape)
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
