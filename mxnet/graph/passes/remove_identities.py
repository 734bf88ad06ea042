"""Drop operators that change nothing in inference.

    x -> Dropout -> f      =>      x -> f

Which operators they are is the fact `identity` of their records. Outputs of the graph stay: users
write into them, so they must be arrays of their own.
"""

from __future__ import annotations

from ..node import Entry
from ..rewrite import Match, Pattern, Rule, rewrite
from ..typed import TypedGraph


def _pass_on(match: Match) -> Entry | None:
    root = match.root
    if match.is_output or not root.operator.facts.is_identity(root.typed):
        return None
    return root.inputs[0]


RULES = [Rule("remove_identity", Pattern(lambda op: bool(op.facts.identity)), _pass_on)]


def remove_identities(graph: TypedGraph) -> TypedGraph:
    """Let the readers of an unchanged value read the value itself."""
    return rewrite(graph, RULES)
