"""A model to convert (its graph, parameters and inputs), and the comparison of two sides."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import ndarray
from .. import symbol as sym
from ..context import cpu
from ..dtypes import to_numpy
from ..error import InvalidType, InvalidValue, MXNetError
from ..gluon import HybridBlock
from ..graph import Entry, Graph, Node
from ..graph.graph import topological
from ..ndarray import NDArray
from ..ops.vision.boxes import box_nms
from ..ops.vision.detectors import multi_box_detection, multi_proposal, proposal
from ..runtime.array import plain
from ..symbol import Symbol
from .comparison.differences import difference, difference_of_sets
from .onnx.export import load_parameters, load_symbol
from .onnx.translate import Translator, ignored_variables

Shapes = Mapping[str, Sequence[int]] | Sequence[Sequence[int]]
# Operators whose result rows with nearly equal scores have no fixed order.
SUPPRESSIONS = (multi_box_detection, box_nms, proposal, multi_proposal)


def columns_of(node: Node) -> tuple[int, ...]:
    """Return the columns of the class and the score in the rows that a suppression reads."""
    return (node.typed["id_index"], node.typed["score_index"]) if node.op is box_nms else ()


@dataclass
class Model:
    """A symbol with its parameters as tensors.

    `names` are the parameters' paths in the tree of blocks, if the model is a block.
    """

    symbol: Symbol
    arrays: dict[str, NDArray]
    inputs: list[Node]
    shapes: dict[str, tuple]
    dtypes: dict[str, torch.dtype]
    names: dict[str, str] = field(default_factory=dict)
    name: str = "Model"

    @property
    def graph(self) -> Graph:
        """The graph of the symbol."""
        return self.symbol._graph

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All arrays as tensors."""
        return {n: plain(a) for n, a in self.arrays.items()}

    @property
    def params(self) -> dict[str, Tensor]:
        """The parameters that the graph has, as tensors."""
        names = {n.name for n in self.graph.variables}
        return {n: t for n, t in self.tensors.items() if n in names}

    @property
    def input_shapes(self) -> dict[str, tuple]:
        """The shapes of the inputs, in their order."""
        return {n.name: self.shapes[n.name] for n in self.inputs}

    @property
    def numpy_dtypes(self) -> dict[str, np.dtype]:
        """The types of the inputs."""
        return {n.name: np.dtype(to_numpy(self.dtypes[n.name])) for n in self.inputs}

    @property
    def sets(self) -> list[int]:
        """The outputs that follow from detections, whose rows have no fixed order."""
        return [
            i
            for i, head in enumerate(self.graph.heads)
            if any(n.op in SUPPRESSIONS for n in topological([head]))
        ]

    def takes(self, shapes: Mapping[str, tuple]) -> bool:
        """Return whether the graph takes inputs of these shapes with its parameters."""
        try:
            result, _, _ = self.symbol.infer_shape(**shapes)
        except MXNetError:
            return False
        expected = {n: tuple(a.shape) for n, a in self.arrays.items()}
        names = self.symbol.list_arguments()
        return result is not None and all(
            expected.get(n, tuple(s)) == tuple(s) for n, s in zip(names, result, strict=True)
        )

    def as_feed(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return inputs as NumPy arrays of the model's types."""
        feed = {}
        for name, value in arrays.items():
            if name not in self.numpy_dtypes:
                names = ", ".join(self.numpy_dtypes)
                raise InvalidValue(f"the model has no input {name!r}; its inputs: {names}.")
            array = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            feed[name] = np.ascontiguousarray(array.astype(self.numpy_dtypes[name]))
        return feed

    def run(self, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Run the symbol and return its outputs."""
        return [o.asnumpy() for o in self.bind(feed).forward(is_train=False)]

    def run_as_written(self, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Run the computation of a converted file.

        Compiled 8-bit layers round less often than their graph, so a graph with such layers is run
        node by node.
        """
        executor = self.bind(feed)
        if any(n.op is not None and n.op.facts.quantizes for n in self.graph.nodes):
            executor.set_monitor_callback(lambda name, array: None)  # every node is run to be shown
        return [o.asnumpy() for o in executor.forward(is_train=False)]

    def bind(self, feed: Mapping[str, np.ndarray]) -> Any:
        """Return an executor with inputs; missing variables that are not parameters are zero."""
        fed = {n.name for n in self.inputs}
        arrays = {n: ndarray.array(a, dtype=a.dtype) for n, a in feed.items() if n in fed}
        result, _, _ = self.symbol.infer_shape_partial(**{n: a.shape for n, a in arrays.items()})
        args = {}
        for name, shape in zip(self.symbol.list_arguments(), result, strict=True):
            if name in self.arrays:
                args[name] = self.arrays[name]
            else:
                args[name] = arrays[name] if name in arrays else ndarray.zeros(shape)
        aux = {n.name: self.arrays[n.name] for n in self.graph.auxiliary}
        return self.symbol.bind(cpu(), args, aux_states=aux, grad_req="null")

    def measure(self, feed: Mapping[str, np.ndarray], runs: int = 5) -> float:
        """Return the median seconds of a prediction, after two warm-up runs."""
        executor, seconds = self.bind(feed), []
        for _ in range(2 + runs):
            start = time.perf_counter()
            for output in executor.forward(is_train=False):
                output.wait_to_read()
            seconds.append(time.perf_counter() - start)
        return float(np.median(seconds[2:]))

    @property
    def parameter_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(t.numel() * t.element_size() for t in self.tensors.values())

    def constant(self, entry: Entry) -> Tensor | None:
        """Return the value of an entry that depends only on parameters."""
        result = Translator(self.params, torch.float32).constant(entry)
        return None if result is None else torch.from_numpy(result)


def as_model(
    model: Any, params: Any = None, shapes: Shapes | None = None, dtypes: Any = None
) -> Model:
    """Return a block, a symbol or files as a `Model`."""
    if isinstance(model, Model):
        return model
    names: dict[str, str] = {}
    if isinstance(model, HybridBlock):
        symbol, arrays, names, order = _trace(model, shapes)
        title = type(model).__name__
    else:
        if not isinstance(model, Symbol | str | os.PathLike):
            raise InvalidType(
                "a model is a HybridBlock, a Symbol or the path of a symbol's JSON file, not a "
                f"{type(model).__name__}."
            )
        if params is None:
            raise InvalidValue("the parameters of a symbol are needed: give params=...")
        symbol, arrays, title, order = load_symbol(model), load_parameters(params), "Model", None
    graph = symbol._graph
    ignored = ignored_variables(graph)
    free = [n for n in graph.variables if n.name not in arrays and n not in ignored]
    if order is not None:
        free.sort(key=lambda n: order.index(n.name) if n.name in order else len(order))
    by_name = _by_name(free, shapes)
    kinds = {n.name: torch.float32 for n in free}
    kinds.update({k: v for k, v in (dtypes or {}).items() if k in kinds})
    return Model(symbol, arrays, free, by_name, kinds, names, title)


def _by_name(inputs: Sequence[Node], shapes: Shapes | None) -> dict[str, tuple]:
    if shapes is None:
        return {}
    if isinstance(shapes, Mapping):
        return {n: tuple(s) for n, s in shapes.items()}
    if len(shapes) != len(inputs):
        expected = ", ".join(n.name for n in inputs)
        raise InvalidValue(f"{len(shapes)} shapes are given, but the inputs are: {expected}.")
    return {n.name: tuple(s) for n, s in zip(inputs, shapes, strict=True)}


def _finish_initialization(
    symbol: Symbol, block: HybridBlock, order: list[str], shapes: Shapes | None
) -> None:
    waiting = {n: p for n, p in block.collect_params().items() if p._deferred_init}
    if not waiting or shapes is None:
        return
    by_name = shapes if isinstance(shapes, Mapping) else dict(zip(order, shapes, strict=False))
    sizes = {n: tuple(d if isinstance(d, int) else 1 for d in s) for n, s in by_name.items()}
    result, _, states = symbol.infer_shape_partial(**sizes)
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    for name, shape in zip(names, [*result, *states], strict=True):
        if name in waiting and shape and all(shape):
            waiting[name].shape = shape
            waiting[name]._finish_deferred_init()


def _trace(block: HybridBlock, shapes: Shapes | None) -> tuple:
    """Return a block's symbol, its arrays, their paths in the tree of blocks, and its inputs."""
    cached = getattr(block, "_cached_graph", None)
    # A recurrent layer that was called without states has recorded its initial states as inputs.
    if cached and (shapes is None or len(shapes) == len(cached[0])):
        inputs, symbol = cached
        order = [i.name for i in inputs]
    else:
        count = len(shapes) if shapes is not None else 1
        order = ["data"] if count == 1 else [f"data{i}" for i in range(count)]
        if isinstance(shapes, Mapping):
            order = list(shapes)
        output = block(*(sym.var(n) for n in order))
        symbol = group_outputs(output)
    _finish_initialization(symbol, block, order, shapes)
    positions = block._collect_params_with_prefix()
    arrays, names = {}, {}
    for position, parameter in positions.items():
        arrays[parameter.name] = parameter._reduce()
        names.setdefault(parameter.name, position)
    for name, parameter in block.collect_params().items():
        arrays.setdefault(name, parameter._reduce())
    if not isinstance(symbol, Symbol):
        raise InvalidType(f"{type(block).__name__} gives {type(symbol)}, not symbols.")
    return symbol, arrays, names, order


def group_outputs(output: Any) -> Any:
    """Return the output of a block, which may be a nested list of symbols, as one symbol."""
    if not isinstance(output, list | tuple):
        return output
    parts = [group_outputs(part) for part in output if part is not None]
    return sym.Group([s for part in parts for s in part])


class ConversionError(MXNetError, ArithmeticError):
    """Raised if both sides of a conversion differ by more than the tolerance.

    >>> issubclass(mx.convert.ConversionError, mx.base.MXNetError)
    True
    """


class Difference(NamedTuple):
    """The largest difference of one output: absolute, and in units of its largest number.

    Parameters
    ----------
    absolute
        The absolute difference.
    relative
        The same in units of the largest number.

    >>> Difference(absolute=0.5, relative=0.1).relative
    0.1
    """

    absolute: float
    relative: float


def compare(
    found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], sets: Sequence[int] = ()
) -> list[Difference]:
    """Return the differences of all outputs; infinite for different shapes or NaN on one side.

    `sets` are the outputs that are compared as sets of rows.
    """
    if len(found) != len(wanted):
        raise ConversionError(f"one side has {len(found)} outputs, the other {len(wanted)}.")
    pairs = enumerate(zip(found, wanted, strict=True))
    return [_difference(a, b, i in sets) for i, (a, b) in pairs]


def _difference(found: np.ndarray, wanted: np.ndarray, is_set: bool) -> Difference:
    if found.shape != wanted.shape:
        raise ConversionError(f"an output has the shape {found.shape}, not {wanted.shape}.")
    a, b = (torch.from_numpy(np.array(x, np.float64)) for x in (found, wanted))
    return Difference(*(difference_of_sets if is_set else difference)(a, b))


class Change(NamedTuple):
    """Gain and loss of a smaller model.

    Parameters
    ----------
    bytes
        Bytes of the parameters, before and after.
    seconds
        Seconds of a prediction, before and after, on this machine.
    same_top1
        Fraction of rows with the same top class, if outputs are scores.

    >>> print(Change(bytes=(4000, 1000), seconds=(0.002, 0.001), same_top1=0.99))
    size 4000 -> 1000 bytes (25 %), time 2.00 -> 1.00 ms, same top class in 99.0 % of rows
    """

    bytes: tuple[int, int]
    seconds: tuple[float, float]
    same_top1: float | None

    def __str__(self) -> str:
        before, after = (1e3 * s for s in self.seconds)
        share = 100 * self.bytes[1] / max(self.bytes[0], 1)
        text = (
            f"size {self.bytes[0]} -> {self.bytes[1]} bytes ({share:.0f} %), "
            f"time {before:.2f} -> {after:.2f} ms"
        )
        if self.same_top1 is None:
            return text
        return f"{text}, same top class in {100 * self.same_top1:.1f} % of rows"


def share_of_same_top(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Return the fraction of rows whose largest score is at the same position in both arrays."""
    scores = [(a, b) for a, b in pairs if a.ndim == 2 and a.shape[1] > 1]
    if not scores:
        return None
    same = [a.argmax(1) == b.argmax(1) for a, b in scores]
    return float(np.concatenate(same).mean())


@dataclass
class Report:
    """The compared inputs, and the differences of both sides.

    Parameters
    ----------
    target
        Target format.
    tolerance
        Maximum difference.
    path
        Path of the written file.
    rows
        The compared inputs, with the differences.
    change
        Changes of size, time and decisions of an 8-bit model.
    notes
        Notes, such as static sizes and their reasons.
    sizes
        The shapes of the inputs, with names for dynamic sizes.

    >>> report = Report("onnx", 1e-5)
    >>> report.add("zeros", [Difference(0.0, 0.0)])
    >>> report.passed
    True
    """

    target: str
    tolerance: float
    path: str | None = None
    rows: dict[str, list[Difference]] = field(default_factory=dict)
    change: Change | None = None
    notes: list[str] = field(default_factory=list)
    sizes: dict[str, tuple] = field(default_factory=dict)

    def add(self, name: str, differences: list[Difference]) -> None:
        """Add the differences of one set of inputs."""
        self.rows[name] = differences

    @property
    def largest(self) -> Difference:
        """The largest differences of all."""
        results = [d for row in self.rows.values() for d in row] or [Difference(0.0, 0.0)]
        return Difference(max(d.absolute for d in results), max(d.relative for d in results))

    @property
    def passed(self) -> bool:
        """Whether all relative errors are within the tolerance."""
        return self.largest.relative <= self.tolerance

    def check(self) -> None:
        """Raise an error unless both sides agree."""
        if not self.passed:
            raise ConversionError(
                f"conversion to {self.target}: the relative error {self.largest.relative:.2e} is "
                f"above the tolerance {self.tolerance:.0e}; nothing was written.\n{self}"
            )

    def __str__(self) -> str:
        lines = [f"{'inputs':12} output  absolute   relative"]
        for name, row in self.rows.items():
            for i, d in enumerate(row):
                lines.append(f"{name:12} {i:6}  {d.absolute:.2e}   {d.relative:.2e}")
        if self.change is not None:
            lines.append(str(self.change))
        verdict = "agree" if self.passed else "DISAGREE"
        lines += self.notes
        return "\n".join([*lines, f"both sides {verdict} within {self.tolerance:.0e}"])


def test_inputs(
    shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, np.dtype], seed: int = 0
) -> dict[str, dict[str, np.ndarray]]:
    """Return sets of inputs: random ones of three sizes, zeros, ones and an uneven edge."""
    rng = np.random.RandomState(seed)

    def each(make: Callable[[tuple[int, ...]], Any]) -> dict[str, np.ndarray]:
        return {n: np.asarray(make(tuple(s))).astype(dtypes[n]) for n, s in shapes.items()}

    return {
        "normal": each(lambda s: rng.standard_normal(s)),
        "small": each(lambda s: rng.standard_normal(s) * 1e-3),
        "positive": each(lambda s: rng.uniform(0, 2, s)),
        "zeros": each(np.zeros),
        "ones": each(np.ones),
        "alternating": each(lambda s: np.where(np.arange(np.prod(s)) % 2, -1, 1).reshape(s)),
    }


vars(test_inputs)["__test__"] = False  # pytest would take it for a test
