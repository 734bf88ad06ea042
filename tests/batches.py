"""Helpers to check many small cases in one test. Each failure is reported with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

Case = TypeVar("Case")
Key = TypeVar("Key")
MAX_REPORTED = 20


def check_each(cases: Mapping[str, Case], check: Callable[[Case], None]) -> None:
    """Check every case; raise one error that names those that fail."""
    assert cases, "there is nothing to check"
    failures: dict[str, BaseException] = {}
    for name, case in cases.items():
        try:
            check(case)
        except (Exception, SystemExit) as error:
            failures[name] = error
        except BaseException as error:  # pytest.fail and pytest.raises have no common base
            if type(error).__module__.partition(".")[0] != "_pytest":
                raise
            failures[name] = error
    if failures:
        lines = [
            f"{name}\n    {type(error).__name__}: {str(error)[:400]}"
            for name, error in list(failures.items())[:MAX_REPORTED]
        ]
        raise AssertionError(
            f"{len(failures)} of {len(cases)} fail:\n" + "\n".join(lines)
        ) from next(iter(failures.values()))


def group_by(items: Iterable[Case], key: Callable[[Case], Key]) -> dict[Key, list[Case]]:
    """Return items by a key, in their order."""
    groups: dict[Key, list[Case]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
