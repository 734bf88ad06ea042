"""Runs operators in surroundings: ``python -m tests.grammar.surroundings [NAME] [--all-rows]``."""

from __future__ import annotations

import argparse
import collections
import sys
import warnings

from mxnet.util import np_shape
from tests.grammar.properties import first_of_each_operator
from tests.grammar.sampling import families, rows_of
from tests.grammar.surroundings import load_all
from tests.grammar.surroundings.calls import Call


def main() -> int:
    """Print the differences in each surrounding; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="", help="part of the surroundings' names")
    parser.add_argument("--family", action="append", help="rows of this file of samples/ only")
    parser.add_argument("--all-rows", action="store_true", help="not one row of each operator")
    options = parser.parse_args()
    chosen = [s for name, s in load_all().items() if options.name in name]
    runs: collections.Counter[str] = collections.Counter()
    failures: dict[str, list[str]] = collections.defaultdict(list)
    warnings.simplefilter("ignore")
    for family in options.family or families():
        rows = rows_of(family)
        with np_shape(family.startswith("numpy_")):
            for row in rows if options.all_rows else first_of_each_operator(rows):
                call = Call(row)
                for surrounding in chosen:
                    if not surrounding.applies(call):
                        continue
                    runs[surrounding.name] += 1
                    try:
                        surrounding.check(call)
                    except Exception as error:
                        text = " ".join(str(error).split())[:200]
                        failures[surrounding.name].append(
                            f"{row.op} {row.attrs}: {type(error).__name__}: {text}"
                        )
    for name, count in runs.items():
        print(f"{name}: {len(failures[name])} of {count} fail")
        for line in failures[name]:
            print(f"    {line}")
    return int(not runs or any(failures.values()))


if __name__ == "__main__":
    sys.exit(main())
