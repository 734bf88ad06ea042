"""The report of `mx check`: findings by severity, with equal ones of a file on one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..output import print_table
from ..run.python2 import read_text
from .finding import LEVELS, STATUSES, Finding
from .surroundings import Note

MAX_NAMES = 5  # of networks that ran


class Report(NamedTuple):
    """All that was found in a project."""

    programs: list[Path]
    findings: list[tuple[Path, Finding]]
    notes: list[Note]
    files: list[dict[str, Any]]  # models and data
    networks: list[dict[str, Any]]  # networks that were run

    @property
    def stops(self) -> bool:
        """Whether something stops the project even under `mx run`."""
        stopping = any(STATUSES[finding.status].stops for _, finding in self.findings)
        return stopping or any(f["problems"] for f in [*self.files, *self.networks])

    def facts(self, *, everything: bool) -> dict[str, Any]:
        """Return what is printed as JSON: every finding, with counts."""
        findings = [f for _, f in self.findings]
        own = [f for f in findings if f.status in ("covered", "absent", "nd only")]
        counts = {
            status.replace(" ", "_"): len({f.name for f in findings if f.status == status})
            for status in STATUSES
            if status != "covered"
        }
        shown = [(p, f) for p, f in self.findings if everything or f.status != "covered"]
        return {
            "programs": len(self.programs),
            "uses": len(own),
            "names": len({f.name for f in own}),
            "operators": len({f.name for f in own if f.is_operator}),
            **counts,
            "found": [_as_row(path, finding) for path, finding in shown],
            "notes": [note._asdict() for note in self.notes],
            "files": self.files,
            "networks": self.networks,
        }


def _as_row(path: Path, finding: Finding) -> dict[str, Any]:
    return {
        "file": str(path),
        "line": finding.line,
        "name": finding.name,
        "status": finding.status,
        "level": STATUSES[finding.status].level,
        "hint": finding.hint,
        "is_operator": finding.is_operator,
        "is_fixed_by_mx_fix": bool(finding.edits) or finding.status == "python 2",
    }


def print_report(report: Report, *, everything: bool) -> None:
    """Print a report; with `everything`, a line for each finding."""
    for level, title in LEVELS.items():
        findings = [(p, f) for p, f in report.findings if STATUSES[f.status].level == level]
        if level == "covered" and not everything:
            continue
        rows = _one_by_one(findings) if everything else _group(findings)
        if rows:
            print_table(("place", "name", "status", "hint"), rows, title=f"{title}\n")
            print()
    for line in _describe_notes(report.notes, everything=everything):
        print(line)
    for file in [*report.files, *report.networks]:
        name = file.get("file") or file["network"]
        for problem in file["problems"]:
            first, *more = problem.removeprefix(f"{name}: ").splitlines()
            print(f"{name}: {first}{' ...' if more else ''}")
    for line in _summarize(report):
        print(line)


def _one_by_one(findings: list[tuple[Path, Finding]]) -> list[tuple[str, ...]]:
    return [(f"{p}:{f.line}", f.name, f.status, f.hint) for p, f in findings]


def _group(findings: list[tuple[Path, Finding]]) -> list[tuple[str, ...]]:
    """Return a row for each kind of finding of a file; packages are counted over all files."""
    groups: dict[tuple[Any, ...], list[tuple[Path, Finding]]] = {}
    for path, finding in findings:
        file = "" if finding.status == "missing package" else path
        key = (file, finding.status, finding.kind or finding.name)
        groups.setdefault(key, []).append((path, finding))
    order = list(STATUSES)
    rows = sorted(groups.values(), key=lambda g: order.index(g[0][1].status))
    return [_as_group_row(group) for group in rows]


def _as_group_row(group: list[tuple[Path, Finding]]) -> tuple[str, ...]:
    path, first = group[0]
    name = first.kind if len(group) > 1 and first.kind else first.name
    count = f" ({len(group)} times)" if len(group) > 1 else ""
    return f"{path}:{first.line}", f"{name}{count}", first.status, first.hint


def _describe_notes(notes: list[Note], *, everything: bool) -> Iterable[str]:
    groups: dict[str, list[Note]] = {}
    for note in notes:
        groups.setdefault(note.text, []).append(note)
    for text, group in groups.items():
        for note in group if everything else group[:1]:
            more = f" ({len(group)} places)" if len(group) > 1 and not everything else ""
            yield f"{note.file}:{note.line}: note: {text}{more}"


def _summarize(report: Report) -> Iterable[str]:
    facts = report.facts(everything=False)
    verb = "uses" if facts["programs"] == 1 else "use"
    missing = facts["absent"] + facts["fork"]
    yield (
        f"{_count(facts['programs'], 'program')} {verb} {_count(facts['names'], 'name')} of MXNet "
        f"({_count(facts['operators'], 'operator')}) in {_count(facts['uses'], 'place')}: "
        f"{missing or 'none'} absent."
    )
    if facts["files"]:
        good = sum(not file["problems"] for file in facts["files"])
        yield f"{good} of {len(facts['files'])} model and data files are fine."
    if facts["networks"]:
        good = [n["network"] for n in facts["networks"] if not n["problems"]]
        names = ", ".join(good[:MAX_NAMES]) + (" ..." if len(good) > MAX_NAMES else "")
        number = _count(len(facts["networks"]), "network")
        yield f"{len(good)} of {number} ran forward and backward{': ' if names else '.'}{names}"
    yield f"Next: {_next_step(report, facts)}"


def _next_step(report: Report, facts: dict[str, Any]) -> str:
    if facts["fork"]:
        return "replace the layers of the fork: neither MXNet nor MXNext has them."
    if facts["syntax"] or facts["unchecked"]:
        return "look at the files that could not be read; leave out those that are not programs."
    if facts["absent"]:
        return "replace the absent names, then mx check again."
    if facts["missing_package"]:
        hints = [f.hint for _, f in report.findings if f.status == "missing package"]
        commands = [
            hint.removeprefix("pip install ").partition(" (")[0]
            for hint in hints
            if hint.startswith("pip install")
        ]
        if commands:
            return f"pip install {' '.join(dict.fromkeys(commands))}"
        return "install the missing packages, or copy them into the project."
    if facts["division"]:
        return "mx fix --apply writes //; then mx run the program."
    if facts["quotient"]:
        return (
            "look at the quotients: write // where the integer was meant. Then mx run the program."
        )
    return f"mx run {_main_program(report)}"


def _main_program(report: Report) -> str:
    """Return the likely entry point: named train or main, or the only one that can be started."""
    programs = [p for p in report.programs if p.suffix == ".py"]
    started = [p for p in programs if "__main__" in read_text(p.read_bytes())] or programs
    for pattern in (r"train.*", r"main|run.*|demo.*", r".*train.*"):
        for path in sorted(started, key=lambda p: (len(p.parts), p.name)):
            if re.fullmatch(pattern, path.stem):
                return str(path)
    return str(started[0]) if len(started) == 1 else "YOUR_PROGRAM.py"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
