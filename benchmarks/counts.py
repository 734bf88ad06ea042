"""Count what a training step costs, compared with torch: kernels, bytes, reads, Python frames.

Times depend on the machine, counts do not: kernels that are launched (views left out), bytes that
they write, values that the host reads, for which it waits, and Python functions that are entered.

    python -m benchmarks.counts                # print the table
    python -m benchmarks.counts --only LSTM    # only some rows
    python -m benchmarks.counts --list NAME    # the kernels of one row, on both sides
    python -m benchmarks.counts --device       # on the device of `tests/device`
    python -m benchmarks.counts --write        # write benchmarks/COUNTS.md
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import mxnet as mx
from mxnet.ops import families
from mxnet.runtime import gradients

from . import counted, counted_tasks

ROWS = (*counted.ROWS, *counted_tasks.ROWS)
# Without the networks of the zoo, whose convolutions take minutes on the device of the tests.
SMALL = [row for row in ROWS if not row.name.startswith(("ResNet", "MobileNet"))]
WARM_STEPS = 4  # programs are prepared in the first, states of optimizers are made, caches fill
TABLE = Path(__file__).with_name("COUNTS.md")
# They allocate or rename, but launch nothing.
_FREE = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "detach",
    "lift_fresh",
    "_unsafe_view",
    "_reshape_alias",
}
# The host waits for their values.
_READS = {"_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "_unique2"}


class Counts(NamedTuple):
    """What one step costs.

    Parameters
    ----------
    kernels : by name.
    written : bytes.
    reads : values that are read on the host.
    frames : Python functions that are entered.
    """

    kernels: Counter[str]
    written: int
    reads: int
    frames: int

    @property
    def total(self) -> int:
        """The number of kernels."""
        return self.kernels.total()


class _Kernels(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()
        self.written = self.reads = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        if name in _FREE or name.startswith("profiler::") or _is_view(func):
            return out
        self.kernels[name] += 1
        self.reads += name in _READS
        if func._schema.is_mutable:
            targets = [
                a
                for a, s in zip(args, func._schema.arguments, strict=False)
                if _is_written(s) and not (s.name == "grads" and "_fused_" in name)
            ]
            targets += [v for k, v in (kwargs or {}).items() if k == "out" or k.endswith("_out")]
            self.written += _bytes(targets)
        else:
            self.written += _bytes(out)
        return out


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _is_view(func: Any) -> bool:
    results = func._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in results)


def _bytes(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.nbytes if value.layout is torch.strided else 0
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0


@contextlib.contextmanager
def _reusing_numbers() -> Iterator[None]:
    """Use the constants that are kept; under torch's modes they would be made for each call."""
    before = families.count_dispatch_modes
    families.count_dispatch_modes = gradients.count_dispatch_modes = lambda: 0
    try:
        yield
    finally:
        families.count_dispatch_modes = gradients.count_dispatch_modes = before


def count(step: Callable[[], Any]) -> Counts:
    """Return what a step costs after warm-up."""
    for _ in range(WARM_STEPS):
        step()
    frames = 0

    def profile(frame: object, event: str, _: object) -> None:
        nonlocal frames
        frames += event == "call"

    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(None)
    with _reusing_numbers(), _Kernels() as seen:
        step()
    return Counts(seen.kernels, seen.written, seen.reads, frames)


def measure(row: counted.Row) -> tuple[Counts, Counts | None]:
    """Return the counts of a row, of MXNext and of torch, on the current device."""
    torch.manual_seed(0)
    ours = count(row.ours())
    if row.torch is None:
        return ours, None
    device = mx.nd.zeros(1).handle.device
    with contextlib.nullcontext() if device.type == "cpu" else device:
        step = row.torch()
    # Torch makes its threads of devices when it is imported, before `last_device` adds some.
    with torch.autograd.grad_mode.set_multithreading_enabled(False):
        try:
            return ours, count(step)
        except NotImplementedError:  # the device of the tests has no sparse tensors
            if device.type == "cpu":
                raise
            return ours, None


def _cell(ours: float, theirs: float | None, unit: float = 1) -> str:
    if theirs is None:
        return f"{ours / unit:,.4g} | – | –"
    ratio = f"{ours / theirs:.2f}" if theirs else "–"
    return f"{ours / unit:,.4g} | {theirs / unit:,.4g} | {ratio}"


def line(name: str, ours: Counts, theirs: Counts | None) -> str:
    """Return a line of the table."""
    other = theirs or Counts(Counter(), 0, 0, 0)
    kernels = _cell(ours.total, theirs and theirs.total)
    written = _cell(ours.written, theirs and theirs.written, 1e6)
    reads = f"{ours.reads} | {other.reads if theirs else '–'}"
    frames = f"{ours.frames} | {other.frames if theirs else '–'}"
    return f"| {name} | {kernels} | {written} | {reads} | {frames} |"


_SIDES = ("torch", "ratio")
_COLUMNS = ("step", "kernels", *_SIDES, "MB written", *_SIDES, "reads", "torch", "frames", "torch")
HEAD = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"
INTRODUCTION = """# What one step costs

`python -m benchmarks.counts --write` writes these tables. For one training step after
warm-up, the tables list the number of kernels (excluding views), the megabytes they write, the
number of device-to-host reads, and the number of Python function calls. Each is compared with the
same network in idiomatic PyTorch with `foreach=True` (both are in `benchmarks/counted.py` and
`counted_tasks.py`). Counts do not depend on the speed of the machine.
`tests/behavior/test_counts.py` and `tests/device/cases/test_counts.py` fail if the number of
kernels or reads of a small network grows.

Where MXNext needs more than PyTorch:

- Gradients are copied into persistent arrays, because users and views may hold references to them.
  This takes one kernel for all small gradients, and one for every 8 MB of large ones.
- Eager BatchNorm updates its running variance with the biased variance, as MXNet does; PyTorch's
  kernel only supports the unbiased one. This takes two extra kernels: one fills a buffer with
  zeros, the other updates both statistics. Graphs need three kernels for all layers.
- Labels and indices are floating-point numbers in MXNet: they are converted, and indices of
  embeddings are clipped. This accounts for most of the remaining difference in the small
  word-embedding and matrix-factorization networks.
- `reshape` copies in eager mode. In a graph it copies only if its result is visible to the user.
- The parameters of an eager recurrent layer are concatenated, and so are their gradients.
- `SoftmaxOutput` (Module, buckets) ignores labels out of range, and outputs probabilities. MXNet's
  losses return one average per sample. `cross_entropy` is fused only for a batch of vectors, so
  the losses over anchors (SSD) and in half precision are composed of several kernels.
- `SigmoidBinaryCrossEntropyLoss` (GAN) follows MXNet's formula, which takes several kernels;
  PyTorch's loss is one kernel.
- Sparse gradients update only some rows of a weight: the rows are gathered, updated and written
  back.
- Modules copy data and labels into the arrays that they are bound to.
- On a CPU, weights of small networks are copied to the channels-last layout, and convolutions with
  few windows run as matrix products (`im2col`, `mm`); both save time there. Other devices do
  neither.
- On a CPU, the backward pass of `clip` needs a second kernel so that gradients propagate where the
  input is NaN.
- On a CPU, layers with packed weights check during inference whether their input is finite, which
  is counted as a host read. Other devices do not use packed weights
  (`tests/device/cases/test_traffic.py`).

"Device" is the simulated accelerator of `tests/device`, which computes on the CPU. PyTorch figures
are missing where the simulated device does not support a required feature (sparse tensors, AMP).

The host reads of PyTorch's optimizers are reads of their step counters. On a CPU, MXNext optimizers
that allocate temporaries process 1 MB of weights at a time, so that the temporaries stay in the
cache; on other devices they process all weights at once.

"""
CPU, DEVICE = "On a CPU", "On a device"


def limits(title: str) -> dict[str, tuple[int, int]]:
    """Return kernels and reads of each row of a table in the file."""
    part = TABLE.read_text(encoding="utf-8").partition(f"## {title}")[2].partition("##")[0]
    rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {row[0][2:]: (int(row[1].replace(",", "")), int(row[7])) for row in rows[1:]}


def version_of_table() -> list[str]:
    """Return the first two numbers of the version of torch that the tables are of."""
    text = TABLE.read_text(encoding="utf-8")
    return text.partition("With torch ")[2].partition(",")[0].split(".")[:2]


def print_kernels(name: str, ours: Counts, theirs: Counts | None) -> None:
    """Print the kernels of a row."""
    print(name)
    other: Counter[str] = Counter() if theirs is None else theirs.kernels
    for kernel in sorted({*ours.kernels, *other}, key=lambda k: other[k] - ours.kernels[k]):
        print(f"    {kernel:40} {ours.kernels[kernel]:5} {other[kernel]:5}")


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--list", metavar="NAME", help="print the kernels of these rows")
    parser.add_argument("--device", action="store_true", help="count on the device of the tests")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    chosen = parser.parse_args()
    if chosen.write and (chosen.only or chosen.list or chosen.device):
        parser.error("--write needs all rows, on both devices")
    warnings.filterwarnings("ignore")
    name = chosen.list or chosen.only
    if not chosen.write:
        rows = [row for row in ROWS if name in row.name]
        print_table(rows, bool(chosen.list), last_device() if chosen.device else mx.cpu())
        return
    version = torch.__version__.split("+")[0]
    own = print_table(ROWS, False, mx.cpu())
    other = print_table(SMALL, False, last_device())  # loaded for good: the CPU comes first
    text = f"{INTRODUCTION}With torch {version}, and float32 unless a row says otherwise.\n\n"
    TABLE.write_text(f"{text}## {CPU}\n\n{own}\n## {DEVICE}\n\n{other}")


def last_device() -> mx.Context:
    """Return the last device, that of the tests where torch has none."""
    from tests.device import second_device  # compiles it

    second_device.ensure()
    return mx.gpu(mx.context.num_gpus() - 1)


def print_table(rows: Sequence[counted.Row], lists_kernels: bool, context: mx.Context) -> str:
    """Print some rows, and return their table."""
    lines = [HEAD]
    print(HEAD)
    with context:
        for row in rows:
            counts = measure(row)
            lines.append(line(row.name, *counts))
            print(lines[-1], flush=True)
            if lists_kernels:
                print_kernels(row.name, *counts)
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
