"""Reference results of MXNet, with which a ported file is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from .... import ndarray
from ....base import py_str
from ....context import cpu
from ....error import InvalidValue, MXNetError
from ....graph import Node
from ....graph.graph import Graph, compose, topological
from ....graph.passes.infer import infer_shapes
from ....ops.nn.activation import softmax
from ....ops.nn.dropout import dropout
from ....ops.nn.loss_outputs import logistic_regression_output, softmax_output, svm_output
from ....ops.nn.recurrent import rnn
from ....ops.nn.sequence import sequence_last, sequence_mask, sequence_reverse
from ....ops.tensor.indexing import embedding, one_hot, pick, take
from ....symbol import Symbol
from ...source import Model, test_inputs
from ..text.losses import LOSS_ROWS

Arrays = dict[str, np.ndarray]

STEPS = 5
MIN_BATCH = 4  # for training
STEP_SIZE = 0.0001  # change in the first step, relative to the largest parameter
INDEX_READERS = (embedding, take, one_hot, pick)
LENGTH_READERS = (sequence_mask, sequence_last, sequence_reverse, softmax, rnn)
LENGTHS = ("sequence_length", "length")
BINARY = logistic_regression_output
CLASSIFIERS = (softmax_output, svm_output)
DROPS = (dropout, rnn)


@dataclass
class Training:
    """Results of several training steps in MXNet."""

    inputs: Arrays
    heads: list[np.ndarray]
    outputs: list[np.ndarray]
    gradients: Arrays
    states: Arrays
    after: Arrays
    learning_rate: float
    labels: Arrays = field(default_factory=dict)
    dtype: str = "float64"


class Reference:
    """Runs a model in MXNet, in prediction and in training."""

    def __init__(
        self, model: Model, trainer: Model | None = None, labels: Any = (), frozen: Any = ()
    ) -> None:
        self.model = model
        self.frozen = set(frozen)
        self.trainer = trainer or model  # with output layers
        self.labels = list(labels)
        shapes = infer_shapes(self.trainer.graph, self._known_shapes()).values
        self.ranges = _ranges(self.trainer, shapes)

    # -- inputs -----------------------------------------------------------------------------

    def cases(self, given: Mapping[str, Arrays]) -> dict[str, Arrays]:
        """Return inputs for prediction: random values, edge cases, another batch size, `given`."""
        shapes, dtypes = self.model.input_shapes, self.model.numpy_dtypes
        cases = {n: self._in_range(c) for n, c in test_inputs(shapes, dtypes).items()}
        other = {n: (s[0] + 1, *s[1:]) if s else s for n, s in shapes.items()}
        if self.model.takes(other):
            cases["other batch"] = self._in_range(test_inputs(other, dtypes)["normal"])
        return {**cases, **given}

    def _in_range(self, feed: Arrays) -> Arrays:
        """Replace indices and lengths by random values in their valid ranges."""
        rng = np.random.RandomState(0)
        return {
            n: rng.randint(*self.ranges[n], a.shape).astype(a.dtype) if n in self.ranges else a
            for n, a in feed.items()
        }

    # -- runs -------------------------------------------------------------------------------

    def predict(self, feed: Arrays) -> list[np.ndarray]:
        """Return the outputs in prediction."""
        return self.model.run(feed)

    def inputs_of(self, node: Node, feed: Arrays) -> list[np.ndarray]:
        """Return the inputs of a node in prediction."""
        return replace(self.model, symbol=Symbol(list(node.inputs))).run(feed)

    def internals(self, feed: Arrays, train: bool) -> Arrays:
        """Return the outputs of all nodes, by their names."""
        results: Arrays = {}
        model = self.trainer if train else self.model
        executor = self._bind(model, feed, "float64" if train else "float32", "null")

        def note(name: Any, array: Any) -> None:
            results[py_str(name)] = array.asnumpy()

        executor.set_monitor_callback(note)
        executor.forward(is_train=train)
        graph = model.graph
        return {
            node.name: results[node.output_names()[0]]
            for node in graph.nodes
            if node.op is not None and node.output_names()[0] in results
        }

    def train(self, batch: Arrays | None = None) -> Training:
        """Train several steps of gradient descent, in float64 if all operators support it."""
        feed = batch or self.training_batch()
        try:
            return self._train(feed, "float64")
        except MXNetError:
            return self._train(feed, "float32")

    def training_batch(self) -> Arrays:
        """Return random inputs of at least `MIN_BATCH` samples, if the graph supports it."""
        shapes = self.model.input_shapes
        larger = {n: (max(s[0], MIN_BATCH), *s[1:]) if s else s for n, s in shapes.items()}
        if self.model.takes(larger):
            shapes = larger
        batch = self._in_range(test_inputs(shapes, self.model.numpy_dtypes, seed=1)["normal"])
        return {**batch, **self._random_labels(shapes)}

    def _random_labels(self, shapes: Mapping[str, tuple]) -> Arrays:
        """Return labels: classes for a softmax, 0 and 1 for a probability, else any numbers."""
        symbol = self.trainer.symbol
        known = {n: tuple(a.shape) for n, a in self.model.arrays.items()} | dict(shapes)
        args = symbol.list_arguments()
        result, _, _ = symbol.infer_shape_partial(**{n: s for n, s in known.items() if n in args})
        by_name = dict(zip(args, result, strict=True))
        rng, labels = np.random.RandomState(3), {}
        for name in self.labels:
            shape = tuple(by_name[name] or self._given_label_shape(name, shapes))
            classes = self._classes(name)
            is_class = classes > 0
            values = rng.randint(0, classes, shape) if is_class else rng.standard_normal(shape)
            labels[name] = values.astype(np.float32)
        return labels

    def _given_label_shape(self, name: str, shapes: Mapping[str, tuple]) -> tuple:
        if name not in self.trainer.shapes:
            raise InvalidValue(f"the shape of the label {name} does not follow: give {name}=...")
        batch = next(iter(shapes.values()))[0]
        return (batch, *self.trainer.shapes[name][1:])

    def _classes(self, label: str) -> int:
        """Return how many classes a label distinguishes; 0 for any number."""
        graph = self.trainer.graph
        for node in graph.nodes:
            if node.op in LOSS_ROWS and label in _sources(node.inputs[1:]):
                if node.op is BINARY:
                    return 2
                if node.op in CLASSIFIERS:
                    multi = node.typed.get("multi_output", False)
                    shapes = infer_shapes(graph, self._known_shapes()).values
                    entry = node.inputs[0]
                    shape: Any = shapes[entry.node][entry.index]
                    return int(shape[1] if multi else shape[-1])
        return 0

    def _known_shapes(self) -> dict[str, Any]:
        return {n: tuple(a.shape) for n, a in self.model.arrays.items()} | self.model.input_shapes

    def _train(self, feed: Arrays, dtype: str) -> Training:
        executor = self._bind(self.trainer, feed, dtype, "write")
        rng = np.random.RandomState(2)
        has_loss = self.has_loss
        outputs = [o.asnumpy() for o in executor.forward(is_train=True)]
        count = max(1, outputs[0].shape[0] if outputs[0].shape else 1)
        heads = [] if has_loss else [rng.standard_normal(o.shape) / count for o in outputs]
        for i in self.model.sets if heads else ():
            heads[i] = np.zeros_like(heads[i])
        gradients = self._backward(executor, heads, dtype)
        states = {n: a.asnumpy() for n, a in executor.aux_dict.items()}
        weights = {n: executor.arg_dict[n] for n in gradients}
        size = max((float(np.abs(a.asnumpy()).max()) for a in weights.values()), default=1.0)
        slope = max((float(np.abs(g).max()) for g in gradients.values()), default=1.0)
        rate = STEP_SIZE * size / max(slope, 1e-12)
        current = gradients
        for step in range(STEPS):
            for name, gradient in current.items():
                weights[name][:] = weights[name].asnumpy() - rate * gradient
            if step < STEPS - 1:
                executor.forward(is_train=True)
                current = self._backward(executor, heads, dtype)
        after = {n: a.asnumpy() for n, a in weights.items()}
        labels = {n: feed[n] for n in self.labels}
        inputs = {n: a for n, a in feed.items() if n not in labels}
        return Training(inputs, heads, outputs, gradients, states, after, rate, labels, dtype)

    @property
    def has_loss(self) -> bool:
        """Whether the symbol has output layers, which need no head gradient."""
        return self.trainer is not self.model

    def _backward(self, executor: Any, heads: list[np.ndarray], dtype: str) -> Arrays:
        if heads:
            executor.backward([ndarray.array(h, dtype=dtype) for h in heads])
        else:
            executor.backward()
        return {
            n: g.asnumpy()
            for n, g in executor.grad_dict.items()
            if g is not None and n in self.model.arrays
        }

    def _bind(self, model: Model, feed: Arrays, dtype: str, grad_req: str) -> Any:
        """Return an executor of the graph without dropout, on arrays of one type."""
        symbol = Symbol(without_dropout(model.graph))
        types = {n: dtype if a.dtype == np.float32 else a.dtype for n, a in feed.items()}
        arrays = {n: ndarray.array(a, dtype=types[n]) for n, a in feed.items()}
        arrays |= {n: _cast(a, dtype) for n, a in self.model.arrays.items()}
        names = symbol.list_arguments()
        shapes = {n: a.shape for n, a in arrays.items() if n in names}
        result, _, _ = symbol.infer_shape_partial(**shapes)
        args, grads = {}, {}
        for name, shape in zip(names, result, strict=True):
            args[name] = arrays[name] if name in arrays else ndarray.zeros(shape, dtype=dtype)
            is_trained = name in self.model.arrays and name not in self.frozen
            if grad_req != "null" and is_trained:
                grads[name] = ndarray.zeros(args[name].shape, dtype=dtype)
        aux = {n.name: arrays[n.name] for n in symbol._graph.auxiliary}
        requests = {n: grad_req if n in grads else "null" for n in args}
        return symbol.bind(cpu(), args, grads or None, requests, aux_states=aux)


def _cast(array: Any, dtype: str) -> Any:
    is_real = np.issubdtype(np.dtype(array.dtype), np.floating)
    return array.astype(dtype, copy=True) if is_real else array.copy()


def without_dropout(graph: Graph) -> list[Any]:
    """Return the heads of a copy of a graph with all dropout disabled."""
    heads = compose(graph)
    for node in Graph(heads).nodes:
        if node.op in DROPS and "p" in node.typed:
            node.set_attribute("p", "0")
    return heads


def _ranges(model: Model, shapes: Mapping[Node, Any]) -> dict[str, tuple[int, int]]:
    """Return the valid ranges of inputs that are indices or lengths."""
    ranges: dict[str, tuple[int, int]] = {}
    params = model.params
    for node in model.graph.nodes:
        if node.op not in (*INDEX_READERS, *LENGTH_READERS):
            continue
        for index, entry in enumerate(node.inputs):
            source = entry.node
            while source.op is not None and len(source.inputs) == 1:
                source = source.inputs[0].node
            if source.op is not None or source.name in params:
                continue
            if node.op in INDEX_READERS:
                ranges[source.name] = 0, _rows(node, index, params)
            elif node.input_names[index] in LENGTHS:
                data = node.inputs[0]
                sizes = shapes[data.node][data.index] or (0,)
                ranges[source.name] = 1, sizes[node.typed.get("axis", 0)] + 1
    return {n: (low, high) for n, (low, high) in ranges.items() if high > low}


def _sources(entries: Any) -> set[str]:
    return {n.name for e in entries for n in topological([e])}


def _rows(node: Node, index: int, params: Mapping[str, torch.Tensor]) -> int:
    if "input_dim" in node.typed:
        return int(node.typed["input_dim"])
    if "depth" in node.typed:
        return int(node.typed["depth"])
    table = node.inputs[0].node.name
    return int(params[table].shape[0]) if index == 1 and table in params else 0
