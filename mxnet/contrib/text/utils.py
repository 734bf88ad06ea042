"""Counting of tokens."""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["count_tokens_from_str"]


def count_tokens_from_str(
    source_str: str,
    token_delim: str = " ",
    seq_delim: str = "\n",
    to_lower: bool = False,
    counter_to_update: Counter | None = None,
) -> Counter:
    r"""Count the tokens of a text, split at two delimiters.

    Parameters
    ----------
    source_str : str
        The text.
    token_delim, seq_delim : str
        Regular expressions of the delimiters of tokens and sequences.
    to_lower : bool
        Whether to count in lower case.
    counter_to_update : Counter
        A counter to add to and return.

    >>> mx.contrib.text.utils.count_tokens_from_str("a b \n a")
    Counter({'a': 2, 'b': 1})
    """
    tokens = (token for token in re.split(f"{token_delim}|{seq_delim}", source_str) if token)
    counter = Counter() if counter_to_update is None else counter_to_update
    counter.update(token.lower() if to_lower else token for token in tokens)
    return counter
