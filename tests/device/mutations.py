"""Mutation test of the device tests: `python -m tests.device.mutations` inserts one bug at a time.

Each bug computes the right values on the CPU: a copy to the host, or a tensor created without its
device. The tests in `cases/` must fail for every one. Source files are not changed: a subprocess
imports the changed text.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
MAX_SECONDS = 600


class Mutation(NamedTuple):
    """A replacement in the text of a module, and the tests that must detect it."""

    module: str
    old: str
    new: str
    tests: str


ROWS = "test_operators.py forward_and_gradients and {}"
MUTATIONS = [
    Mutation(
        "mxnet.ops.nn.sequence",
        "time = torch.arange(data.shape[axis], device=data.device)",
        "time = torch.arange(data.shape[axis])",
        ROWS.format("sequence"),
    ),
    Mutation(
        "mxnet.ops.nn.activation",
        "torch.arange(data.shape[axis], device=data.device)",
        "torch.arange(data.shape[axis])",
        ROWS.format("softmax"),
    ),
    Mutation(
        "mxnet.ops.tensor.creation",
        "torch.zeros(N, M or N, dtype=dtype, device=run.device)",
        "torch.zeros(N, M or N, dtype=dtype)",
        ROWS.format("creation"),
    ),
    Mutation(
        "mxnet.runtime.backward",
        "    return torch.zeros_like(data)",
        "    return torch.zeros(data.shape, dtype=data.dtype)",
        ROWS.format("dense"),
    ),
    Mutation(
        "mxnet.runtime.backward",
        "(head,), (torch.ones_like(head, requires_grad=False),)",
        "(head,), (torch.ones(head.shape, dtype=head.dtype),)",
        "test_layers.py test_losses",
    ),
    Mutation(
        "mxnet.metric.base",
        "step = torch.stack((total, count))",
        "step = torch.stack((total, count)).cpu()",
        "test_traffic.py metric",
    ),
    Mutation(
        "mxnet.ops.nn.normalization",
        "moving_mean.lerp_(mean, 1.0 - momentum)",
        "moving_mean.lerp_(mean.cpu().to(mean.device), 1.0 - momentum)",
        "test_traffic.py trainer",
    ),
    Mutation(
        "mxnet.optimizer.multi_tensor",
        "torch.zeros_like(plain(weight))",
        "torch.zeros(weight.shape, dtype=plain(weight).dtype)",
        "test_training.py optimizers",
    ),
    Mutation(
        "mxnet.kvstore.kvstore",
        "plain(other).to(buffer.device, buffer.dtype)",
        "plain(other).cpu().to(buffer.device, buffer.dtype)",
        "test_traffic.py two_devices",
    ),
    Mutation(
        "mxnet.ops.vision.detectors",
        "y = (torch.arange(height, **kind)",
        "y = (torch.arange(height, dtype=dtype)",
        "test_programs.py ssd",
    ),
]


class Mutator(importlib.abc.MetaPathFinder):
    """Imports one module with a part of its text replaced."""

    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.mutation.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader)
        spec.loader = _Loader(spec.loader, self.mutation)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, original: Any, mutation: Mutation) -> None:
        super().__init__(original.name, original.path)
        self._mutation = mutation

    def get_code(self, fullname: str) -> Any:
        text = Path(self.path).read_text(encoding="utf-8")
        assert self._mutation.old in text, f"{fullname} has no {self._mutation.old!r}"
        return compile(text.replace(self._mutation.old, self._mutation.new, 1), self.path, "exec")


def run_with(number: int) -> int:
    """Run the tests with one bug, in this process."""
    import pytest

    mutation = MUTATIONS[number]
    sys.meta_path.insert(0, Mutator(mutation))
    os.environ["MXNEXT_TEST_DEVICE"] = "1"
    file, _, names = mutation.tests.partition(" ")
    options = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--tb=line"]
    return pytest.main([*options, *(["-k", names] if names else []), f"tests/device/cases/{file}"])


def main() -> int:
    """Run the tests once for each bug; return how many bugs were missed."""
    missed = 0
    for number, mutation in enumerate(MUTATIONS):
        answer = subprocess.run(
            [sys.executable, "-m", "tests.device.mutations", str(number)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
        )
        is_noticed = answer.returncode == 1 and "failed" in answer.stdout
        missed += not is_noticed
        last = answer.stdout.strip().splitlines()[-1:] or answer.stderr.splitlines()[-1:]
        print("found " if is_noticed else "MISSED", mutation.module, repr(mutation.new), *last)
    print(f"{len(MUTATIONS) - missed} of {len(MUTATIONS)} mistakes found")
    return missed


if __name__ == "__main__":
    sys.exit(run_with(int(sys.argv[1])) if len(sys.argv) > 1 else main())
