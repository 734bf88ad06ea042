"""Compares a ported file with stored numbers: ``python check_module.py FOLDER``.

A separate program that imports torch and safetensors but not MXNext, like users of the file.
`verify` writes the folder and reads the results.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

Rows = list[dict[str, Any]]


def import_file(path: Path, name: str) -> Any:
    """Import a file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def as_tuple(output: Any) -> tuple[Tensor, ...]:
    """Return the outputs of a module as a tuple."""
    return tuple(output) if isinstance(output, tuple | list) else (output,)


# This module does not import MXNext, either.
differences = import_file(
    Path(__file__).parents[2] / "comparison/differences.py", "differences_of_outputs"
)


def difference(result: Tensor, reference: Tensor, scale: float = 0.0) -> float:
    """Return the largest error relative to the largest number."""
    return differences.difference(result, reference, scale)[1]


class Checker:
    """Runs all comparisons of one ported file."""

    def __init__(self, folder: Path) -> None:
        self.plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.file = import_file(folder / "model.py", "ported_model")
        self.rows: Rows = []
        self.notes: list[str] = []

    def load(self) -> nn.Module:
        """Return the model with its parameters."""
        return self.file.load(str(self.folder / "model.safetensors"))

    def read(self, name: str) -> dict[str, Tensor]:
        """Return the stored tensors of one kind."""
        return load_file(str(self.folder / f"{name}.safetensors"))

    def add(self, check: str, name: str, error: float) -> None:
        """Add one comparison."""
        self.rows.append({"check": check, "name": name, "error": error})

    def inputs(self, stored: dict[str, Tensor], case: str) -> list[Tensor]:
        """Return the inputs of a case in their order."""
        return [stored[f"{case}/in/{i}"] for i in range(self.plan["inputs"])]

    # -- prediction -------------------------------------------------------------------------

    def check_outputs(self) -> None:
        """Compare outputs in evaluation mode on all cases."""
        stored = self.read("cases")
        model = self.load().eval()
        for case in self.plan["cases"]:
            print(f"outputs of {case}", flush=True)  # noqa: T201 -- the parent reads the progress
            with torch.no_grad(), self.same_rows(stored, case):
                outputs = as_tuple(model(*self.inputs(stored, case)))
            for i, output in enumerate(outputs):
                self.add("outputs", f"{case} {i}", self.compare(i, output, stored, case))

    @contextmanager
    def same_rows(self, stored: dict[str, Tensor], case: str) -> Iterator[None]:
        """Compare the inputs of suppressions, then run them on MXNet's inputs.

        Rounding decides which of two boxes with nearly equal scores suppresses the other.
        """
        order = enumerate(self.plan["suppressions"])
        own = {name: getattr(self.file, name) for name, _ in self.plan["suppressions"]}

        def replacement(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Tensor, **options: Any) -> Any:
                k, (name, columns) = next(order)
                if own[name] is not function:
                    raise RuntimeError(f"the file calls {function.__name__} where MXNet has {name}")
                rows = [stored[f"{case}/rows/{k}/{j}"] for j in range(len(args))]
                for j, (result, reference) in enumerate(zip(args, rows, strict=True)):
                    error = differences.difference_of_rows(result, reference, columns)[1]
                    self.add("inputs of suppression", f"{case} {k} {j}", error)
                return function(*rows, **options)

            return run

        for name, function in own.items():
            setattr(self.file, name, replacement(function))
        try:
            yield
        finally:
            for name, function in own.items():
                setattr(self.file, name, function)

    def compare(self, i: int, output: Tensor, stored: dict[str, Tensor], case: str) -> float:
        """Return the error of one output; detections are compared as sets of rows."""
        reference = stored[f"{case}/out/{i}"]
        if i in self.plan["sets"]:
            return differences.difference_of_sets(output, reference)[1]
        return difference(output, reference)

    def find_layer(self, name: str, train: bool) -> dict[str, Any] | None:
        """Return the first module, in the order of the calls, whose output differs."""
        stored = self.read(name)
        model = self.load().train(train)
        model = model.double() if train else model
        if train:
            remove_dropout(model)
        results: list[tuple[str, Any]] = []
        for path, module in model.named_modules():
            module.register_forward_hook(_note(results, path))
        with torch.no_grad():
            model(*[stored[f"in/{i}"] for i in range(self.plan["inputs"])])
        for path, output in results:
            node = self.plan["nodes"].get(path)
            if node is None or f"node/{node}" not in stored or not isinstance(output, Tensor):
                continue
            error = difference(output, stored[f"node/{node}"])
            if error > self.plan["tolerance"]:
                return {"path": path, "node": node, "error": error}
        return None

    # -- training ---------------------------------------------------------------------------

    def check_training(self) -> None:
        """Compare a training step, and the parameters after several."""
        stored = self.read("training")
        model = self.load().to(getattr(torch, self.plan["training_dtype"])).train()
        remove_dropout(model)
        steps, rate = self.plan["steps"], self.plan["learning_rate"]
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        before = {n: b.detach().clone() for n, b in model.named_buffers()}
        counts = count_values(model)
        inputs = self.inputs(stored, "train")
        for step in range(steps):
            print(f"training step {step}", flush=True)  # noqa: T201
            optimizer.zero_grad()
            outputs = as_tuple(model(*inputs))
            loss = self._loss(outputs, stored)
            loss.backward()
            if step == 0:
                self._compare_step(model, outputs, loss, stored, before, counts)
            optimizer.step()
        scale = max((float(p.detach().abs().max()) for p in model.parameters()), default=1.0)
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if (key := f"after/{name}") in stored:
                error = difference(parameter, stored[key], 1e-3 * scale)
                self.add(f"parameters after {steps} steps", name, error)

    def _loss(self, outputs: tuple[Tensor, ...], stored: dict[str, Tensor]) -> Tensor:
        labels = [stored[f"label/{i}"] for i in range(self.plan["labels"])]
        if self.plan["has_loss"]:
            return self.file.loss(*outputs, *labels)
        heads = [stored[f"head/{i}"] for i in range(len(outputs))]
        pairs = zip(outputs, heads, strict=True)
        return torch.stack([(o * h).sum() for o, h in pairs if o.requires_grad]).sum()

    def _compare_step(
        self,
        model: nn.Module,
        outputs: tuple[Tensor, ...],
        loss: Tensor,
        stored: dict[str, Tensor],
        before: dict[str, Tensor],
        counts: dict[str, int],
    ) -> None:
        for i, output in enumerate(outputs):
            if f"train/out/{i}" in stored and i not in self.plan["sets"]:
                error = difference(output, stored[f"train/out/{i}"])
                self.add("outputs in training", str(i), error)
        if "loss" in stored:
            self.add("loss", "", difference(loss, stored["loss"]))
        grads = {k: v for k, v in stored.items() if k.startswith("grad/")}
        scale = 1e-6 * max((float(g.abs().max()) for g in grads.values()), default=0.0)
        for name, parameter in model.named_parameters(remove_duplicate=False):
            reference = grads.get(f"grad/{name}")
            if reference is None or not parameter.requires_grad:
                continue
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            self.add("gradients", name, difference(gradient, reference, scale))
        for name, buffer in model.named_buffers():
            if (reference := stored.get(f"state/{name}")) is not None:
                expected = self._expected_state(model, name, before[name], reference, counts)
                spread = stored.get(f"state/{name.rpartition('.')[0]}.running_var", torch.zeros(1))
                scale = float(spread.abs().max()) ** 0.5
                self.add("running statistics", name, difference(buffer, expected, scale))

    @staticmethod
    def _expected_state(
        model: nn.Module, name: str, before: Tensor, reference: Tensor, counts: dict[str, int]
    ) -> Tensor:
        """Return MXNet's running variance as torch counts it: with n - 1 in place of n."""
        path, _, kind = name.rpartition(".")
        norm = model.get_submodule(path)
        n = counts.get(path, 0)
        if kind != "running_var" or n < 2 or not norm.training:
            return reference
        momentum: Any = norm.momentum
        kept = (1 - momentum) * before
        return kept + (reference - kept) * n / (n - 1)

    # -- torch's compilers ------------------------------------------------------------------

    def check_compilers(self) -> None:
        """Compare the results of `torch.compile` and `torch.export`."""
        stored = self.read("cases")
        case = self.plan["cases"][0]
        inputs = self.inputs(stored, case)
        model = self.load().eval()
        with torch.no_grad():  # detections are compared with the file's own, see `same_rows`
            outputs = as_tuple(model(*inputs))
        eager = {f"{case}/out/{i}": outputs[i] for i in self.plan["sets"]}

        def compiled() -> Any:
            # Dynamo leaves recurrent layers of torch to eager mode.
            whole = not any(isinstance(m, nn.RNNBase) for m in model.modules())
            return torch.compile(model, fullgraph=whole, backend="eager")(*inputs)

        def exported() -> Any:
            return torch.export.export(model, tuple(inputs)).module()(*inputs)

        for name, run in (("torch.compile", compiled), ("torch.export", exported)):
            print(name, flush=True)  # noqa: T201
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                outputs = as_tuple(run())
            errors = [self.compare(i, o, {**stored, **eager}, case) for i, o in enumerate(outputs)]
            self.add(name, case, max(errors))


def _note(results: list[tuple[str, Any]], path: str) -> Callable[..., None]:
    def hook(module: nn.Module, inputs: Any, output: Any) -> None:
        results.append((path, output))

    return hook


def remove_dropout(model: nn.Module) -> None:
    """Set all probabilities of dropout to 0, because random draws cannot be compared."""
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        elif isinstance(module, nn.RNNBase):
            module.dropout = 0.0


def count_values(model: nn.Module) -> dict[str, int]:
    """Return the number of values that each batch normalization averages. Calls fill the dict."""
    counts: dict[str, int] = {}

    def register(path: str, norm: nn.Module) -> None:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            counts[path] = inputs[0].numel() // inputs[0].shape[1]

        norm.register_forward_pre_hook(hook)

    for path, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            register(path, module)
    return counts


def main(folder: str, checks: Iterable[str]) -> None:
    """Run the checks and store their results."""
    torch.set_num_threads(max(1, torch.get_num_threads()))
    checker = Checker(Path(folder))
    result: dict[str, Any] = {}
    for check in checks:
        if check == "outputs":
            checker.check_outputs()
            if any(row["error"] > checker.plan["tolerance"] for row in checker.rows):
                break  # the other checks would fail, too
        elif check == "training":
            checker.check_training()
        elif check == "compilers":
            checker.check_compilers()
        elif check == "loading":
            checker.load()
        elif check in ("layers", "training_layers"):
            result["layer"] = checker.find_layer(check, check == "training_layers")
    result["rows"] = checker.rows
    path = Path(folder) / "results.json"
    path.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    # Prevent imports of MXNext's modules from the folder of this file.
    sys.path.remove(str(Path(__file__).resolve().parent))
    main(sys.argv[1], sys.argv[2:])
