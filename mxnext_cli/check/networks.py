"""`mx check --run`: runs each network of a project forward and backward once, on random data.

A network is a ``-symbol.json``, or what a function or class of the project returns that can be
called without arguments. Each runs in a process of its own, with a limit of time. Programs whose
import would do more than define things are not imported, unless the user names them.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..run.program import import_aliases, resolve
from .source import UnreadableSource, read_source

SYMBOLS = ("mxnet.sym.", "mxnet.symbol.", "mxnet.gluon.", "mxnet.rnn.", "mxnet.mod.")
BLOCKS = ("Block", "HybridBlock", "Sequential", "HybridSequential")
# What networks are tried on: images, then rows, then words.
SHAPES = (
    (2, 3, 224, 224), (2, 3, 300, 300), (2, 3, 32, 32), (2, 1, 28, 28), (2, 3, 112, 112),
    (2, 784), (2, 100), (2, 10), (2, 10, 20), (8, 2, 20),
)  # fmt: skip


def run_networks(
    programs: list[Path], models: list[Path], args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Run the networks of a project; return the result of each."""
    targets = list(args.network)
    if args.run:
        targets += [str(path) for path in models if path.name.endswith("-symbol.json")]
        targets += [target for path in programs for target in find_networks(path)]
    return [_run_in_process(target, args) for target in dict.fromkeys(targets)]


def _run_in_process(target: str, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        command = [sys.executable, "-m", __name__, target, str(result), *args.shape]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=args.timeout, check=False
            )
        except subprocess.TimeoutExpired:
            problem = f"it did not end in {args.timeout:g} s; --timeout allows more"
            return {"network": target, "problems": [problem]}
        if result.is_file():
            return json.loads(result.read_text("utf-8"))
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return {"network": target, "problems": [f"the process ended with {done.returncode}: {last}"]}


# -- which functions return networks ---------------------------------------------------------------


def find_networks(path: Path) -> Iterator[str]:
    """Yield ``file:function`` for callables without required arguments that return a network."""
    if path.suffix != ".py":
        return
    try:
        tree = read_source(path).tree
    except UnreadableSource:
        return
    if not all(_only_defines(node) for node in tree.body):
        return
    aliases = import_aliases(tree)
    blocks = _block_classes(tree, aliases)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _needs_nothing(node.args, 0):
            if _returns_network(node, aliases, blocks):
                yield f"{path}:{node.name}"
        elif isinstance(node, ast.ClassDef) and node.name in blocks:
            start = next((n for n in node.body if getattr(n, "name", "") == "__init__"), None)
            if isinstance(start, ast.FunctionDef) and _needs_nothing(start.args, 1):
                yield f"{path}:{node.name}"


def _only_defines(node: ast.stmt) -> bool:
    """Return whether a statement at the top of a module has no effects beyond it."""
    if isinstance(node, ast.If):
        return "__name__" in ast.unparse(node.test) or all(map(_only_defines, node.body))
    if isinstance(node, ast.Try):
        return all(map(_only_defines, node.body))
    if isinstance(node, ast.Expr):
        text = ast.unparse(node.value)
        is_setting = text.startswith(("sys.path.", "logging.", "os.environ", "mx.random.seed"))
        return isinstance(node.value, ast.Constant) or is_setting
    if isinstance(node, ast.Assign):
        calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
        return all(ast.unparse(c.func).startswith(("os.path.", "logging.", "dict")) for c in calls)
    definitions = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    return isinstance(node, definitions)


def _needs_nothing(args: ast.arguments, skipped: int) -> bool:
    needed = len(args.posonlyargs) + len(args.args) - len(args.defaults) - skipped
    return needed <= 0 and all(default is not None for default in args.kw_defaults)


def _block_classes(tree: ast.Module, aliases: dict[str, str]) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [resolve(base, aliases) or ast.unparse(base) for base in node.bases]
        is_block = any(
            b.startswith("mxnet.gluon") and b.rpartition(".")[2] in BLOCKS for b in bases
        )
        if is_block or names & set(bases):
            names.add(node.name)
    return names


def _returns_network(function: ast.FunctionDef, aliases: dict[str, str], blocks: set[str]) -> bool:
    makers = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _makes_network(node.value, aliases, blocks)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            is_made = isinstance(node.value, ast.Name) and node.value.id in makers
            if is_made or _makes_network(node.value, aliases, blocks):
                return True
    return False


def _makes_network(node: ast.expr, aliases: dict[str, str], blocks: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = resolve(node.func, aliases) or ast.unparse(node.func)
    return name in blocks or name.startswith(SYMBOLS)


# -- in the process of one network -----------------------------------------------------------------


def main(target: str, result: str, *shapes: str) -> None:
    """Load a network, train it for a step, and write the result."""
    facts: dict[str, Any] = {"network": target, "problems": []}
    try:
        network = _load(target)
        facts["data"] = _train_once(network, shapes)
    except (Exception, SystemExit) as error:
        text = str(error) or type(error).__name__
        facts["problems"] = [text if "." in type(error).__name__ else _name_error(error, text)]
    Path(result).write_text(json.dumps(facts), encoding="utf-8")


def _name_error(error: BaseException, text: str) -> str:
    return f"{type(error).__name__}: {text.splitlines()[0]}"


def _load(target: str) -> Any:
    import mxnet as mx

    file, _, function = target.partition(":")
    if file.endswith(".json"):
        return mx.sym.load(file)
    result = _call(Path(file).resolve(), function or "get_symbol")
    return next((m for m in result if m is not None), None) if isinstance(result, tuple) else result


def _call(path: Path, function: str) -> Any:
    import importlib

    from ..run.program import Program
    from ..run.restored_names import restored_names

    root = path.parent
    parts = [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    sys.path[:0] = [str(root), str(path.parent)]
    sys.argv = [str(path)]
    with restored_names(Program(path)):
        return getattr(importlib.import_module(".".join(parts)), function)()


def _train_once(network: Any, texts: tuple[str, ...]) -> str:
    """Run a network forward and backward; return the shapes of its data."""
    import mxnet as mx

    mx.random.seed(0)
    if isinstance(network, mx.sym.Symbol):
        return _train_symbol(network, texts)
    if isinstance(network, mx.gluon.Block):
        return _train_block(network, texts)
    raise TypeError(f"it returned a {type(network).__name__}, not a symbol or a block")


def _train_symbol(symbol: Any, texts: tuple[str, ...]) -> str:
    import mxnet as mx

    from ..models import Model, parse_shapes

    model = Model("network", symbol, has_params=False)
    shapes = parse_shapes(list(texts), model.inputs) if texts else _guess_shapes(model)
    executor = symbol.simple_bind(mx.cpu(), grad_req="write", **shapes)
    for name, array in executor.arg_dict.items():
        if name not in model.labels:
            array[:] = mx.nd.random.uniform(-0.1, 0.1, array.shape)
    outputs = executor.forward(is_train=True)
    executor.backward([mx.nd.ones(o.shape, dtype=o.dtype) for o in outputs])
    mx.nd.waitall()
    return " ".join(f"{n}={executor.arg_dict[n].shape}" for n in model.inputs)


def _guess_shapes(model: Any) -> dict[str, tuple[int, ...]]:
    if not model.inputs:
        return {}
    first, *others = model.inputs
    for shape in SHAPES:
        for of_others in (None, shape, shape[:1]):
            shapes = {first: shape, **(dict.fromkeys(others, of_others) if of_others else {})}
            try:
                arguments, _, _ = model.symbol.infer_shape(**shapes)
            except Exception:  # try the next shape
                continue
            if arguments is not None and all(all(s) and s for s in arguments):
                return shapes
    example = " ".join(f"--shape {name}=N,..." for name in model.inputs)
    raise ValueError(f"none of the usual shapes fits its inputs; specify them: {example}")


def _train_block(block: Any, texts: tuple[str, ...]) -> str:
    import mxnet as mx

    from ..models import parse_shapes

    shapes = [*parse_shapes(list(texts), ["data"]).values()] if texts else [*SHAPES]
    problems = []
    for shape in shapes:
        try:
            block.initialize(force_reinit=True)
            with mx.autograd.record():
                outputs = _flatten(block(mx.nd.random.uniform(0, 1, shape)))
                loss = mx.nd.add_n(*[o.astype("float32").sum().reshape((1,)) for o in outputs])
            loss.backward()
            mx.nd.waitall()
            return str(shape)
        except Exception as error:  # the shape may not fit; the next may
            problems.append(error)
    raise problems[0]


def _flatten(outputs: Any) -> list[Any]:
    if isinstance(outputs, list | tuple):
        return [array for part in outputs for array in _flatten(part)]
    return [outputs]


if __name__ == "__main__":
    main(*sys.argv[1:])
