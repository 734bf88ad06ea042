"""Facts about operators: `Options` of the declaration, `Facts` of the behavior.

Code that depends on properties of an operator reads its record (``op.facts.random``) instead of
lists of names. Families set the defaults of their members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

Attrs = dict[str, Any]
Outputs = int | tuple[str, ...]  # their number, or their names

if TYPE_CHECKING:  # only for type checkers and editors
    from typing_extensions import TypedDict

    from .declare import Op

    class Options(TypedDict, total=False, extra_items=Any):
        """Keywords of `op` and `Op`. Further ones are fields of `Facts`: ``random=True``."""

        optional: Mapping[str, Callable[[Attrs], bool]]
        """Input name -> whether it is present, given the complete attributes."""
        outputs: Outputs | Callable[[Attrs], Outputs]
        """What the function returns: how many (by default 1), their names, or a function of the
        attributes that returns either. Without names MXNet's rule names them (see
        `Node.output_names`)."""
        total: int | Callable[[Attrs], int] | None
        """Number of outputs in model files, if some are hidden."""
        attributes_of: Op | None
        """Another operator whose attributes this one has too, before its own. The function gets
        them as ``**attrs``, those that were given."""
        count: str | None
        """For variadic operators, the attribute with the number of inputs."""
        types: str | None
        """Dtype pattern such as ``"T I -> T"``; by default all are equal."""
        shape: Callable | None
        """A rule of `shapes`; by default companion rules or torch's meta tensors decide."""
        method: bool
        """Whether NDArray and Symbol have it as a method."""
        auto_inputs: bool
        """Whether symbols create variables for missing inputs."""
        mutates: tuple[str, ...]
        """Inputs that are mutated, besides auxiliary states."""
        input_names: Callable[[Attrs], list[str]] | None
        """Names of the inputs as a function of the attributes, for irregular operators."""
        value_dependent: bool
        """Whether the output shape depends on values, so that no rule can infer it."""


Precision = Literal["half", "full", "widest", "any", "own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Properties of an operator.

    Parameters
    ----------
    random : whether it draws random numbers, so that two runs differ.
    loss : whether it is a loss layer, which defines its own gradient.
    has_labels : whether backward does not write gradients of inputs other than the first, as in
    loss layers.
    index_input : the input with class labels or row indices, which may be out of range.
    head_gradient : whether backward reads the gradients of the outputs; by default unless `loss`.
    scales_loss : whether mixed precision scales the gradient of this output layer.
    pointwise : whether each output element depends on one element of each input only. fresh :
    whether every output is known to be a new tensor that shares no memory with the inputs.
    identity : whether the result equals the first input in inference; a function of the attributes
    if it depends on them.
    overwritable : whether every output is a new tensor that the gradient does not need, so that its
    only consumer may overwrite it. commutative : whether the first two inputs may be exchanged.
    keeps_finite : whether results are finite if all inputs are. keeps_layout : whether the result
    has the memory format of the first input. layout : the memory format of its result, such as
    ``channels_last``. keeps_zeros : whether zeros map to zeros, so that sparse arrays stay sparse.
    precision : its precision in mixed precision (float16): ``half``, ``full`` (float32), the
        ``widest`` type of its inputs, ``any`` type unchanged, or its ``own`` (casts, updates).
    bfloat16 : the same for bfloat16, if different.
    full_precision_when : attribute -> values that need float32.
    input_init : input -> initializer (``__init__`` of its variable).
    without_gradient : inputs that are indices, conditions or shapes, for which backward writes
    zeros. full_precision_inputs : inputs that stay float32 for 16-bit data (BatchNorm).
    names_single_input : whether MXNet's Monitor shows a single input by name; else ``input0``.
    names_output : whether its ``output`` has that name in block hooks too; else a number.
    gradients_by_input : whether gradients have the inputs' names in Monitor; else they are
    numbered.
    gradient_names : names of gradients if neither applies; None is not shown.
    hidden_outputs : the attribute that enables further outputs, and their names; None with
    `Op.reveal`. quantizes : the float operator of which this is the 8-bit form.
    quantizes_when : a predicate of the attributes for which it applies; by default all.
    straight_through : whether the gradient is that of the identity, truncated for integer results.
    zero_for_integers : whether the gradients of integer inputs are zeros. casts : whether gradients
    flow through integers if its attribute ``dtype`` is an integer type. accumulates : whether its
    result has 32 bits, for `requantize`. holds_layer : whether its node has the subgraph of a fused
    layer.
    repeatable : whether its torch calls depend only on shapes, dtypes and attributes, and are made
    in the calling thread, so that executors may capture them.
    """

    random: bool = False
    loss: bool = False
    has_labels: bool = False
    index_input: str | None = None
    head_gradient: bool | None = None
    scales_loss: bool = False
    pointwise: bool = False
    fresh: bool = False
    identity: bool | Callable[[dict[str, Any]], bool] = False
    overwritable: bool = False
    commutative: bool = False
    keeps_finite: bool = False
    keeps_layout: bool = False
    layout: str | None = None
    keeps_zeros: bool = False
    precision: Precision = "any"
    bfloat16: Precision | None = None
    full_precision_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    input_init: Mapping[str, str] = field(default_factory=dict)
    without_gradient: tuple[str, ...] = ()
    full_precision_inputs: tuple[str, ...] = ()
    names_single_input: bool = False
    names_output: bool = False
    gradients_by_input: bool = False
    gradient_names: tuple[str | None, ...] | None = None
    hidden_outputs: tuple[str | None, tuple[str, ...]] | None = None
    quantizes: Any | None = None
    quantizes_when: Callable[[dict[str, Any]], bool] | None = None
    straight_through: bool = False
    zero_for_integers: bool = False
    casts: bool = False
    accumulates: bool = False
    holds_layer: bool = False
    repeatable: bool = False

    @property
    def needs_head_gradient(self) -> bool:
        """Whether backward from the outputs uses the gradients of those outputs."""
        return not self.loss if self.head_gradient is None else self.head_gradient

    def is_identity(self, attrs: dict[str, Any]) -> bool:
        """Return whether the result equals the first input in inference."""
        return self.identity(attrs) if callable(self.identity) else self.identity

    def makes_integers(self, attrs: Mapping[str, Any]) -> bool:
        """Return whether it makes integers through which gradients flow."""
        if not self.casts:
            return False
        dtype = attrs.get("dtype")
        return dtype is not None and not dtype.is_floating_point

    def precision_for(self, target: str) -> Precision:
        """Return the precision it wants when the 16-bit type is `target`.

        In bfloat16 only operators that are declared so take 16 bits; all others run in float32.

        >>> Facts(precision="half").precision_for("bfloat16"), Facts().precision_for("bfloat16")
        ('half', 'full')
        """
        if target == "float16" or self.precision == "own" or self.full_precision_when:
            return self.precision
        if self.bfloat16 is not None:
            return self.bfloat16
        return "full" if self.precision == "any" else self.precision
