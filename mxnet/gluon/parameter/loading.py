"""Load saved arrays into parameters: all of them, or none when something does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .errors import ParameterError

if TYPE_CHECKING:
    from ...ndarray import NDArray
    from .parameter import Parameter

__all__ = ["load_all"]


def load_all(
    pairs: Sequence[tuple[Parameter, NDArray]],
    problems: Sequence[str],
    source: str,
    ctx: Any,
    cast_dtype: bool,
    dtype_source: str,
) -> None:
    """Give parameters their arrays, unless there are problems already or some do not fit.

    Parameters
    ----------
    pairs
        Parameters with the arrays they get.
    problems
        What is wrong with the names.
    source
        What the arrays were read from, for messages.
    ctx, cast_dtype, dtype_source
        See `Block.load_parameters`.
    """
    problems = list(problems)
    for param, array in pairs:
        try:
            param._check_loading(array, ctx, cast_dtype, dtype_source)
        except ParameterError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise ParameterError(problems[0])
    if problems:
        listed = "".join(f"\n  {number}. {text}" for number, text in enumerate(problems, 1))
        raise ParameterError(
            f"{len(problems)} parameters do not fit {source}, and none was changed:{listed}"
        )
    for param, array in pairs:
        param._load_init(array, ctx, cast_dtype, dtype_source)
