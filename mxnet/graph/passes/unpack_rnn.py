"""Give recurrent operators their weights as they are.

    RNN(x, concat(reshape(w1, -1), ..), states)      =>      _rnn_unpacked(x, states, w1, ..)

Gluon's layers join all weights to the one vector that `RNN` takes, and the operator takes it apart
again, on every call. Gradients flow straight to the weights as well.
"""

from __future__ import annotations

from ...ops.attributes import to_string
from ...ops.fused.recurrent import rnn_unpacked
from ...ops.nn.recurrent import rnn
from ...ops.tensor.joining import concat, rnn_param_concat
from ...ops.tensor.shape_changing import reshape
from ..node import Entry, Node
from ..patterns import Match, Pattern, Rule, rewrite
from ..typed import TypedGraph


def _is_vector(entry: Entry) -> bool:
    return entry.node.op is reshape and entry.node.typed["shape"] == (-1,)


def _joins_vectors(node: Node) -> bool:
    return node.typed["dim"] == 0 and all(map(_is_vector, node.inputs))


def _unpack(match: Match) -> Node:
    node = match.root
    data, _, *states = node.inputs
    weights = [flat.node.inputs[0] for flat in match["packed"].inputs]
    inputs = [data, *states, *weights]
    counts = {"num_states": to_string(len(states)), "num_args": to_string(len(inputs))}
    return Node(rnn_unpacked, node.name, {**node.attrs, **counts}, inputs, source=node.source)


PACKED = Pattern((concat, rnn_param_concat), "packed", alone=True, when=_joins_vectors)
RULES = [Rule("unpack_rnn", Pattern(rnn, parameters=PACKED), _unpack)]


def unpack_rnn(graph: TypedGraph) -> TypedGraph:
    """Give weights to recurrent operators without packing them."""
    return rewrite(graph, RULES)
