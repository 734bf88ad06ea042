"""`Options`: what a declaration may say about an operator besides its function's signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

Attrs = dict[str, Any]
Outputs = int | tuple[str, ...]  # how many, or their names

if TYPE_CHECKING:  # for type checkers and editors alone: nothing reads it in a running program
    from typing_extensions import TypedDict

    from .declare import Op

    class Options(TypedDict, total=False, extra_items=Any):
        """Keywords of `op` and `Op`. Further ones are fields of `Facts`: ``random=True``."""

        optional: Mapping[str, Callable[[Attrs], bool]]
        """Input name -> whether it is there, given the complete attributes."""
        outputs: Outputs | Callable[[Attrs], Outputs]
        """What the function returns: how many (by default 1), their names, or a function of the
        attributes that returns either. Without names MXNet's rule names them (see
        `Node.output_names`)."""
        total: int | Callable[[Attrs], int] | None
        """How many outputs MXNet counts in model files, where it hides some."""
        attributes_of: Op | None
        """Another operator whose attributes this one has too, before its own. The function gets
        them as ``**attrs``, those that were given."""
        count: str | None
        """For variadic operators, the attribute that says how many inputs there are."""
        types: str | None
        """Dtype pattern such as ``"T I -> T"``; by default all are equal."""
        shape: Callable | None
        """A rule of `shapes`; by default companion rules or torch's meta tensors decide."""
        method: bool
        """Whether NDArray and Symbol have it as a method."""
        auto_inputs: bool
        """Whether a Symbol makes variables for inputs that are not given, as by default."""
        mutates: tuple[str, ...]
        """Inputs that are changed in place, besides auxiliary states."""
        input_names: Callable[[Attrs], list[str]] | None
        """Names of the inputs as a function of the attributes, for irregular operators."""
        value_dependent: bool
        """Whether the output shape depends on values, so that no rule can infer it."""
