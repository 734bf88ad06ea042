"""Every operator gives the results of its plain eager call in every surrounding.

`surroundings/` defines the surroundings. One row of each operator runs in all of them;
`make nightly` runs all rows.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batches import check_each
from tests.grammar.properties import at_nightly_rate, for_rows
from tests.grammar.sampling import Row, rows_of
from tests.grammar.surroundings import load_all
from tests.grammar.surroundings.calls import Call

SURROUNDINGS = load_all()
MAX_SECONDS = 600


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .*-th input to HybridBlock is not used")
@for_rows(lambda row: True, at_most=at_nightly_rate(1))
def test_results_equal_the_plain_call_in_every_surrounding(family: str, rows: list[Row]) -> None:
    """Compare outputs, gradients and auxiliary states."""
    calls = {f"{row.key} {row.attrs}": Call(row) for row in rows}
    check_each(
        {
            f"{title}, {surrounding.name}": functools.partial(surrounding.check, call)
            for title, call in calls.items()
            for surrounding in SURROUNDINGS.values()
            if surrounding.applies(call)
        },
        lambda check: check(),
    )


@pytest.mark.slow
def test_casts_to_bfloat16_do_not_change_results() -> None:
    """Mixed precision in a subprocess with a limited oneDNN instruction set."""
    answer = subprocess.run(
        [sys.executable, "-m", "tests.grammar.surroundings", "casts"],
        env={
            **os.environ,
            "MXNEXT_TEST_HALF": "bfloat16",
            "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16",
        },
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]


def test_every_surrounding_applies_to_fully_connected() -> None:
    """A surrounding that applies to no operator would test nothing."""
    call = Call(next(row for row in rows_of("dense") if row.has_gradients))
    assert [s.name for s in SURROUNDINGS.values() if not s.applies(call)] == []
