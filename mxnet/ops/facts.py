"""`Facts`: what passes, AMP, sparse dispatch, docs and export ask about an operator.

Whoever needs to know something about an operator asks its record (``op.facts.random``), never a
list of names. Families fill in the defaults of their members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Precision = Literal["half", "full", "widest", "any", "own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Properties of one operator.

    Parameters
    ----------
    random : whether it draws random numbers, so that two runs differ.
    loss : whether it is a loss layer, which defines its own gradient.
    head_gradient : whether backward reads the gradients of the outputs; by default unless `loss`.
    scales_loss : whether mixed precision scales the gradient that this output layer makes.
    pointwise : whether each output element depends on one element of each input only.
    fresh : whether every output is a new tensor that shares no memory with the inputs.
    keeps_zeros : whether zeros map to zeros, so that sparse arrays stay sparse.
    precision : what mixed precision (float16) runs it in: ``half``, ``full`` (float32), the
        ``widest`` type of its inputs, ``any`` type as it comes, or its ``own`` (casts, updates).
    bfloat16 : the same for bfloat16, where it differs.
    full_precision_when : attribute -> values that need float32.
    full_precision_inputs : inputs that stay float32 while the data is 16 bits (BatchNorm).
    """

    random: bool = False
    loss: bool = False
    head_gradient: bool | None = None
    scales_loss: bool = False
    pointwise: bool = False
    fresh: bool = True
    keeps_zeros: bool = False
    precision: Precision = "any"
    bfloat16: Precision | None = None
    full_precision_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    full_precision_inputs: tuple[str, ...] = ()

    @property
    def needs_head_gradient(self) -> bool:
        """Whether backward from the outputs uses the gradients of those outputs."""
        return not self.loss if self.head_gradient is None else self.head_gradient

    def precision_for(self, target: str) -> Precision:
        """Return the precision it wants when the 16-bit type is `target`.

        In bfloat16 only operators that are declared so take 16 bits; all others run in float32.

        >>> Facts(precision="half").precision_for("bfloat16"), Facts().precision_for("bfloat16")
        ('half', 'full')
        """
        if target == "float16" or self.precision == "own":
            return self.precision
        if self.bfloat16 is not None:
            return self.bfloat16
        return "full" if self.precision == "any" else self.precision
