"""`Vocabulary`: tokens and their indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

__all__ = ["Vocabulary"]


class Vocabulary:
    """Indexes tokens: first the unknown token, then reserved ones, then by descending frequency.

    Parameters
    ----------
    counter : Counter
        Counts of tokens; by default there are only special tokens.
    most_freq_count : int
        Maximum number of tokens of the counter.
    min_freq : int
        Minimum count of a token.
    unknown_token
        Token with index 0, which represents all unknown tokens.
    reserved_tokens
        Tokens that are always in the vocabulary.

    >>> from collections import Counter
    >>> vocab = mx.contrib.text.vocab.Vocabulary(Counter("abracadabra"), min_freq=2)
    >>> vocab.idx_to_token
    ['<unk>', 'a', 'b', 'r']
    >>> vocab.to_indices(["b", "z"])
    [2, 0]
    """

    def __init__(
        self,
        counter: Counter | None = None,
        most_freq_count: int | None = None,
        min_freq: int = 1,
        unknown_token: Hashable = "<unk>",
        reserved_tokens: Sequence[Hashable] | None = None,
    ) -> None:
        _require(min_freq > 0, "`min_freq` must be set to a positive value.")
        if reserved_tokens is not None:
            distinct = set(reserved_tokens)
            _require(
                unknown_token not in distinct, "`reserved_token` cannot contain `unknown_token`."
            )
            _require(
                len(distinct) == len(reserved_tokens),
                "`reserved_tokens` cannot contain duplicate reserved tokens.",
            )
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else list(reserved_tokens)
        self._idx_to_token: list[Any] = [unknown_token, *(reserved_tokens or ())]
        if counter is not None:
            self._add_by_count(counter, most_freq_count, min_freq)
        self._token_to_idx = {token: i for i, token in enumerate(self._idx_to_token)}

    def _add_by_count(self, counter: Counter, most_freq_count: int | None, min_freq: int) -> None:
        _require(
            isinstance(counter, Counter), "`counter` must be an instance of collections.Counter."
        )
        special = set(self._idx_to_token)
        # Tokens of equal frequency are sorted alphabetically.
        ranked = sorted(sorted(counter.items()), key=lambda pair: pair[1], reverse=True)
        target = [token for token, n in ranked if n >= min_freq and token not in special]
        self._idx_to_token += target[:most_freq_count]

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """The index of every token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """The tokens by index."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """The token that represents all unknown tokens."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """The tokens that are always in the vocabulary."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> int | list[int]:
        """Return the index of a token, or of each token in a list; 0 for unknown tokens."""
        if isinstance(tokens, list):
            return [self._token_to_idx.get(token, 0) for token in tokens]
        return self._token_to_idx.get(tokens, 0)

    def to_tokens(self, indices: int | list[int]) -> Any:
        """Return the token of an index, or of each index in a list."""
        results = []
        for index in indices if isinstance(indices, list) else [indices]:
            if not isinstance(index, int) or index >= len(self):
                raise ValueError(f"Token index {index} in the provided `indices` is invalid.")
            results.append(self._idx_to_token[index])
        return results if isinstance(indices, list) else results[0]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
