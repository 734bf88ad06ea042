"""Pairs of operators give equal results eagerly, bound, hybridized, and one by one.

`make test` checks every operator with some of its neighbors, `make nightly` with all.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable

import pytest

from mxnet import MXNetError
from tests.batches import check_each
from tests.grammar.pairs import NEIGHBORS, Pair, by_hand
from tests.grammar.properties import ALL_ROWS, for_rows
from tests.grammar.sampling import Row
from tests.grammar.surroundings import DEFAULT_ROUNDINGS
from tests.grammar.surroundings.calls import FORMS, Call, Results

SHARE = 1 if ALL_ROWS else 4  # one of this many pairs is checked


def _is_checked(title: str) -> bool:
    return zlib.crc32(title.encode()) % SHARE == 0


def _check(pair: Pair) -> None:
    """Compare the ways to run a pair; all or none of them raise."""
    ways: dict[str, Callable[[Pair], Results]] = {f.name: f for f in FORMS if f.applies(pair)}
    try:
        expected = pair.expected
    except MXNetError:
        for name, run in ways.items():
            with pytest.raises(MXNetError):
                run(pair)
                pytest.fail(f"{name}: no error, unlike the eager call")
        return
    if pair.is_after and pair.differentiated and not pair.is_random:
        ways["one by one"] = by_hand
    for name, run in ways.items():
        try:
            run(pair).compare(expected, DEFAULT_ROUNDINGS)
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .*-th input to HybridBlock is not used")
@for_rows(lambda row: True, at_most=1)
def test_pairs_of_operators_compute_the_same_in_every_form(family: str, rows: list[Row]) -> None:
    cases = {}
    for row in rows:
        call = Call(row)
        for name, neighbor in NEIGHBORS.items():
            for is_after in (True, False):
                fits = any(call.real_outputs) if is_after else call.differentiated
                title = f"{row.op} {'before' if is_after else 'after'} {name!r}"
                if fits and _is_checked(title):
                    pair = Pair.of(call, neighbor, after=is_after)
                    cases[title] = functools.partial(_check, pair)
    if cases:
        check_each(cases, lambda check: check())
