"""Write `docs/compatibility.md`: how much of MXNet 1.9.1 is supported, from recorded facts.

Run ``python -m tools.compatibility``. MXNet's names and parameters were recorded by
`tests/golden/record/record_surface.py`, its operators in `tests/golden/data/operator_names.json`.
No number of the page is written by hand; a test compares the page with what this tool writes.
"""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mxnet.ops import registry
from tests.golden import HERE as GOLDEN
from tests.golden.record.record_surface import parameters
from tools import versions
from tools.tables import NAMES, absent_names, sample_rows

__all__ = ["PAGE", "Coverage", "is_accepted", "measure", "page"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
SURFACE = GOLDEN / "surface.json"
# Kinds of files that MXNet 1.9.1 wrote among the recorded ones, and the tests that read them.
FILES = {
    "parameters, `.params`": ("**/*.params", "tests/formats"),
    "networks, `-symbol.json`": ("**/*-symbol.json", "tests/symbol"),
    "symbols with attributes, scopes and odd names": ("symbols/*.json", "tests/symbol"),
    "records, `.rec`": ("**/*.rec", "tests/test_recordio.py"),
    "indexes of records, `.idx`": ("**/*.idx", "tests/test_recordio.py"),
    "states of optimizers, `.states`": ("**/*.states", "tests/optimizer"),
}
HEAD = """\
# Compatibility

How much of MXNet 1.9.1 is supported. The numbers are counted from facts that were recorded with \
MXNet 1.9.1. [Differences](differences.md) lists intentional differences; [What works](wishes.md) \
has a command to try each feature.
"""
NAMES_HEAD = """\
## Names and parameters

*Names* are the public functions and classes of a module, *members* the methods and properties of \
its classes. *Calls* are those of both whose parameters Python can tell; they are the same if each \
parameter of MXNet is taken by its name and at its position, with the same default. Defaults of \
operators stand in their records, which `tests/test_docs.py` compares."""


@dataclass
class Coverage:
    """How much of a module is supported."""

    module: str
    names: int = 0
    members: int = 0
    calls: int = 0
    absent_names: list[str] = field(default_factory=list)
    absent_members: list[str] = field(default_factory=list)
    other_calls: dict[str, tuple[str, str]] = field(default_factory=dict)  # MXNet's and ours

    def count(self, name: str) -> bool:
        """Count a recorded name; return whether it is supported."""
        owner, _, member = name.rpartition(".")
        self.members += bool(owner)
        self.names += not owner
        home = importlib.import_module(f"mxnet.{self.module}")
        holder = getattr(home, owner, None) if owner else home
        if holder is not None and hasattr(holder, member):
            return True
        (self.absent_members if owner else self.absent_names).append(name)
        return False

    def compare(self, name: str, theirs: str) -> None:
        """Compare the parameters of a call."""
        value: object = importlib.import_module(f"mxnet.{self.module}")
        for part in name.split("."):
            value = getattr(value, part)
        ours = parameters(value)
        if ours is not None:
            self.calls += 1
            if not is_accepted(theirs, ours):
                self.other_calls[name] = theirs, ours


def measure() -> Iterator[Coverage]:
    """Yield the coverage of each recorded module."""
    for module, recorded in json.loads(SURFACE.read_text(encoding="utf-8")).items():
        coverage = Coverage(module)
        for name, theirs in recorded.items():
            if coverage.count(name) and theirs is not None:
                coverage.compare(name, theirs)
        yield coverage


def is_accepted(theirs: str, ours: str) -> bool:
    """Return whether calls written for MXNet's parameters mean the same in ours.

    >>> is_accepted("data, axis=1", "data, axis=1, more=None"), is_accepted("axis=1", "axis=0")
    (True, False)
    """
    needed, available = _split(theirs), _split(ours)
    order = list(available)
    takes_any = any(name.startswith("*") for name in needed)
    for position, (name, default) in enumerate(needed.items()):
        if name.startswith("*"):
            continue
        if name not in available:
            if "**kwargs" not in available:
                return False
            continue
        is_in_place = takes_any or order.index(name) == position
        if not is_in_place or not _is_same_default(default, available[name]):
            return False
    return True


def _split(text: str) -> dict[str, str | None]:
    """Return the parameters of a call and their defaults as text.

    >>> _split("shape, scale=(1, 2), *args")
    {'shape': None, 'scale': '(1, 2)', '*args': None}
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    pairs = [part.strip().partition("=") for part in parts if part.strip() not in ("", "*", "/")]
    return {name: default if equals else None for name, equals, default in pairs}


def _is_same_default(theirs: str | None, ours: str | None) -> bool:
    """Return whether defaults agree, as far as text can tell."""
    if theirs is None or theirs == "_Null":  # the operator's record says it
        return True
    return theirs == ours or (theirs.startswith("<") and ours is not None)


# -- the page -----------------------------------------------------------------------------------


def page() -> str:
    """Return the whole page."""
    modules = list(measure())
    parts = [HEAD, _versions(), _operators(), _names(modules), _others(modules), _files()]
    parts.append(_packages())
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [" | ".join(heads), "|".join("---" for _ in heads)]
    return "\n".join([*lines, *(" | ".join(map(str, row)) for row in rows)])


def _versions() -> str:
    head = (
        "## Versions\n\nThe quick tests passed with these versions of Python, torch and NumPy. "
        "`python -m tools.versions --python PATH --torch VERSION --numpy VERSION --write` adds a "
        "row; `mx doctor` says when torch is newer than all of them."
    )
    heads = ("Python", "torch", "NumPy", "passed", "failed", "skipped", "date")
    return f"{head}\n\n{_table(heads, versions.read())}"


def _operators() -> str:
    recorded = json.loads(NAMES.read_text(encoding="utf-8"))
    names = {name for first, others in recorded["aliases"].items() for name in (first, *others)}
    sampled = sample_rows()
    supported = len(names) - len(absent_names())
    in_use = [name for name in recorded["in_use"] if registry.find(name) is not None]
    rows = [
        ("names of MXNet's registry that a user may call", len(names), supported),
        ("operators that public projects use", len(recorded["in_use"]), len(in_use)),
        ("operators with samples that every property is tested on", "", len(sampled)),
        ("such samples", "", sum(map(len, sampled.values()))),
        ("arrays that MXNet 1.9.1 computed, compared with ours", _count_answers(), ""),
    ]
    return (
        "## Operators\n\n"
        + _table(("", "MXNet 1.9.1", "supported"), rows)
        + ("\n\n[Operators](operators.md) lists all, and those that are absent with the reason.")
    )


def _count_answers() -> int:
    """Return how many arrays the recorded answers hold."""
    total = 0
    for path in GOLDEN.rglob("*.npz"):
        with zipfile.ZipFile(path) as archive:
            total += len(archive.namelist())
    return total


def _names(modules: Sequence[Coverage]) -> str:
    everything = Coverage("")
    rows = []
    for part in modules:
        rows.append((f"`mx.{part.module}`", *_figures(part)))
        for key in ("names", "members", "calls"):
            setattr(everything, key, getattr(everything, key) + getattr(part, key))
        everything.absent_names += part.absent_names
        everything.absent_members += part.absent_members
        everything.other_calls |= {f"{part.module}.{n}": c for n, c in part.other_calls.items()}
    rows.insert(0, ("**all**", *_figures(everything)))
    heads = ("Module", "Names", "supported", "Members", "supported", "Calls", "same parameters")
    return f"{NAMES_HEAD}\n\n{_table(heads, rows)}"


def _figures(part: Coverage) -> tuple[int, ...]:
    names, members = len(part.absent_names), len(part.absent_members)
    pairs = ((part.names, names), (part.members, members), (part.calls, len(part.other_calls)))
    return tuple(figure for total, less in pairs for figure in (total, total - less))


def _others(modules: Sequence[Coverage]) -> str:
    absent = [
        f"`{part.module}.{name}`"
        for part in modules
        for name in (*part.absent_names, *part.absent_members)
    ]
    rows = [
        (f"`{part.module}.{name}`", *(f"`{_shorten(theirs, ours)}`" for theirs, ours in pair))
        for part in modules
        for name, (first, second) in part.other_calls.items()
        for pair in [((first, second), (second, first))]
    ]
    text = f"### Absent\n\n{len(absent)} names: {', '.join(absent)}.\n\n### Other parameters\n\n"
    return text + _table(("Call", "MXNet 1.9.1", "MXNext"), rows)


def _shorten(text: str, other: str) -> str:
    """Return the parameters that the other call does not have in the same form."""
    first, second = _split(text), _split(other)
    unlike = [n for n, default in first.items() if n not in second or second[n] != default]
    shown = [name if first[name] is None else f"{name}={first[name]}" for name in unlike]
    return ", ".join(shown) or "the same in another order"


def _files() -> str:
    rows = [
        (kind, len(list(GOLDEN.glob(pattern))), f"`{tests}`")
        for kind, (pattern, tests) in FILES.items()
    ]
    head = (
        "## Files\n\nFiles that MXNet 1.9.1 wrote, which tests read; what MXNext writes is theirs"
    )
    table = _table(("Kind", "files of MXNet", "tests"), rows)
    return f"{head} byte for byte where the tests say so.\n\n{table}"


def _packages() -> str:
    from tests.golden.record.package_programs import PACKAGES, SEAMS

    answers = json.loads((GOLDEN / "packages.json").read_text(encoding="utf-8"))
    rows = [
        (f"`{name}`", (function.__doc__ or "").split("\n")[0], len(answers[name]))
        for name, function in {**PACKAGES, **SEAMS}.items()
    ]
    head = (
        "## Packages\n\nPrograms with packages that were written for MXNet, and programs that use "
        "MXNet as those do; results are compared with those of MXNet 1.9.1 "
        "(`tests/_compat`; packages that are not installed are skipped)."
    )
    return f"{head}\n\n{_table(('Program', 'what it does', 'arrays compared'), rows)}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
