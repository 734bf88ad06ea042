"""Converts the output layers of a symbol to a loss function with MXNet's gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....graph import Entry, Graph, Node
from ....ops import registry
from ....ops.tensor.shape_changing import flatten, reshape
from ....symbol import Symbol
from .emit import literal

LossRow = Callable[..., str]
LOSS_ROWS: dict[Any, LossRow] = {}  # by operator record


def row(*names: str) -> Callable[[LossRow], LossRow]:
    """Register the text of a loss: ``build(losses, node, x, label)``."""

    def register(build: LossRow) -> LossRow:
        for name in names:
            LOSS_ROWS[registry.get(name)] = build
        return build

    return register


@dataclass
class Split:
    """A symbol without its output layers, and the output layers."""

    symbol: Symbol
    losses: list[Node] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def split_losses(symbol: Symbol) -> Split:
    """Replace the output layers of a symbol by their inputs. Return the symbol and the layers."""
    heads: list[Entry] = []
    losses, labels = [], []
    for head in symbol._graph.heads:
        node = head.node
        if node.op not in LOSS_ROWS:
            heads.append(head)
            continue
        losses.append(node)
        heads.append(node.inputs[0])
        labels += [_label_source(e).name for e in node.inputs[1:]]
    if not losses:
        return Split(symbol)
    return Split(Symbol(heads), losses, list(dict.fromkeys(labels)))


def _label_source(entry: Entry) -> Node:
    """Return the variable of a label, which may be reshaped."""
    node = entry.node
    while node.op in RESHAPES:
        node = node.inputs[0].node
    if node.op is not None:
        from ..steps import UnsupportedPort

        raise UnsupportedPort(
            f"mx port: the label {node.name!r} is computed by {node.operator.name}. Cut the "
            "network before its output layers: --outputs."
        )
    return node


RESHAPES = (reshape, flatten)


@dataclass
class LossWriter:
    """Writes the function `loss` of a file."""

    split: Split
    shapes: dict[Node, Any]
    functions: dict[str, str]

    def text(self, names: list[str]) -> str:
        """Return the function; `names` are those of all outputs of the model."""
        labels = {n: _identifier(n) for n in self.split.labels}
        terms = []
        used: set[str] = set()
        outputs = dict(zip(self._heads(), names, strict=True))
        for node in self.split.losses:
            x = outputs[node]
            label = next((_label_text(e, labels) for e in node.inputs[1:]), "")
            terms.append(LOSS_ROWS[node.op](self, node, x, label))
            used.add(x)
        args = [*names, *labels.values()]
        head = f"def loss({', '.join(f'{a}: Tensor' for a in args)}) -> Tensor:"
        doc = '    """Return the loss whose gradient MXNet\'s output layers give."""'
        lines = [head, doc]
        if len(head) > 88:
            lines = ["def loss(", *(f"    {a}: Tensor," for a in args), ") -> Tensor:", doc]
        if len(terms) == 1:
            return "\n".join([*lines, *_return(terms[0])])
        for i, term in enumerate(terms):
            lines += _assign(f"loss{i + 1}", term)
        total = " + ".join(f"loss{i + 1}" for i in range(len(terms)))
        return "\n".join([*lines, f"    return {total}"])

    def _heads(self) -> list[Any]:
        """Return the output layer of each output of the model, or the output's own entry."""
        by_entry = {(n.inputs[0].node, n.inputs[0].index): n for n in self.split.losses}
        graph: Graph = self.split.symbol._graph
        return [by_entry.get((e.node, e.index), (e.node, e.index)) for e in graph.heads]

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the input shape of an output layer."""
        return self.shapes[node.inputs[0].node][node.inputs[0].index]


def _label_text(entry: Entry, labels: dict[str, str]) -> str:
    name = labels[_label_source(entry).name]
    return name if entry.node.op is None else f"{name}.flatten()"


def _identifier(name: str) -> str:
    from ..steps import identifier

    return identifier(name)


def _return(text: str) -> list[str]:
    return _break(f"    return {text}")


def _assign(name: str, text: str) -> list[str]:
    return _break(f"    {name} = {text}")


def _break(line: str) -> list[str]:
    if len(line) <= 88:
        return [line]
    from .emit import split_arguments

    head, _, rest = line.partition("(")
    return [f"{head}(", *(f"        {a}," for a in split_arguments(rest[:-1])), "    )"]


def _scaled(text: str, scale: float) -> str:
    return text if scale == 1 else f"{literal(scale)} * {text}"


@row("SoftmaxOutput")
def softmax_output(w: LossWriter, node: Node, x: str, label: str) -> str:
    """Write a call of `F.cross_entropy`.

    Write `softmax_loss` if labels are ignored or smoothed, or the loss is averaged over valid
    labels.
    """
    a, shape = node.typed, w.shape(node)
    is_plain = not a["use_ignore"] and not a["smooth_alpha"] and a["normalization"] != "valid"
    counts_ignored = a["normalization"] == "valid" and not a["use_ignore"]
    if a["out_grad"] or (a["multi_output"] and a["smooth_alpha"]):
        raise _unsupported(node)
    if counts_ignored and a["ignore_label"] != -1:
        raise _unsupported(node)
    if is_plain and len(shape) == 2 and not a["multi_output"]:
        reduction = "mean" if a["normalization"] == "batch" else "sum"
        text = f'F.cross_entropy({x}, {label}.long(), reduction="{reduction}")'
        return _scaled(text, a["grad_scale"])
    w.functions["softmax_loss"] = "softmax_loss"
    options: dict[str, Any] = {"dim": 1 if a["multi_output"] else -1}
    if a["use_ignore"]:
        options["ignore_label"] = int(a["ignore_label"])
    if a["normalization"] != "null":
        options["normalization"] = a["normalization"]
    if a["smooth_alpha"]:
        options["smoothing"] = a["smooth_alpha"]
    shown = ", ".join(f"{k}={literal(v)}" for k, v in options.items())
    return _scaled(f"softmax_loss({x}, {label}, {shown})", a["grad_scale"])


def _width(w: LossWriter, node: Node) -> float:
    shape = w.shape(node)
    count = 1
    for n in shape[1:]:
        count *= n
    return node.typed["grad_scale"] / count


@row("LinearRegressionOutput")
def linear_regression(w: LossWriter, node: Node, x: str, label: str) -> str:
    """Half the squared error."""
    text = f"({x} - {label}.reshape({x}.shape)).square().sum()"
    return f"{literal(0.5 * _width(w, node))} * {text}"


@row("MAERegressionOutput")
def absolute_regression(w: LossWriter, node: Node, x: str, label: str) -> str:
    """The absolute error."""
    return _scaled(f"({x} - {label}.reshape({x}.shape)).abs().sum()", _width(w, node))


@row("LogisticRegressionOutput")
def logistic_regression(w: LossWriter, node: Node, x: str, label: str) -> str:
    """The cross entropy of one probability."""
    text = f'F.binary_cross_entropy_with_logits({x}, {label}.reshape({x}.shape), reduction="sum")'
    return _scaled(text, _width(w, node))


@row("SVMOutput")
def svm(w: LossWriter, node: Node, x: str, label: str) -> str:
    """The function `hinge_loss`."""
    a = node.typed
    w.functions["hinge_loss"] = "hinge_loss"
    scale = a["regularization_coefficient"]
    options = f"margin={literal(float(a['margin']))}, squared={not a['use_linear']}"
    return _scaled(f"hinge_loss({x}, {label}, {options})", scale)


@row("MakeLoss", "make_loss")
def make_loss(w: LossWriter, node: Node, x: str, label: str) -> str:
    """The sum."""
    a = node.typed
    scale = a.get("grad_scale", 1.0)
    kind = a.get("normalization", "null")
    if kind == "valid":
        raise _unsupported(node)
    return _scaled(f"{x}.sum()" + (f" / {x}.shape[0]" if kind == "batch" else ""), scale)


def _unsupported(node: Node) -> Exception:
    from ..steps import UnsupportedPort

    return UnsupportedPort(
        f"mx port: the loss {node.operator.name} (node {node.name!r}) with the attributes "
        f"{dict(node.attrs)} has no row. Cut the network before it: --outputs "
        f"{node.inputs[0].node.name}."
    )
