"""`mx check` and `mx fix`: what an old project needs to run, read from its sources.

Programs are read, not run. Names are looked up in the installed package, so the answer is that of
this version. `names` and `division` are the rules about programs, `surroundings` about what is
around them; `fix` writes the changes that the rules propose.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .. import CommandError
from ..info import READERS, read_facts
from ..output import print_json, print_table
from .division import check_divisions
from .finding import STATUSES, Finding
from .modules import Project
from .names import check_names, look_up
from .source import Source, UnreadableSource, read_source
from .surroundings import Note, check_shell_script, check_surroundings

__all__ = ["look_up", "run"]

SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "__pycache__", "node_modules", "build"})


class Files(NamedTuple):
    """The files of a project that can be checked."""

    programs: list[Path]
    models: list[Path]
    scripts: list[Path]
    project: Project


def run(args: argparse.Namespace) -> int:
    """Print what an old project needs; return 1 if something stops it even under `mx run`."""
    files = list_files(args.paths)
    findings: list[tuple[Path, Finding]] = []
    notes: list[Note] = [note for path in files.scripts for note in check_shell_script(path)]
    for path in files.programs:
        try:
            source = read_source(path)
        except UnreadableSource as error:
            findings.append((path, error.finding))
            continue
        findings += [(path, finding) for finding in check_source(source, files.project)]
        notes += check_surroundings(source)
    facts = _facts(findings, notes, [_check_file(p) for p in files.models], files, args.all)
    if args.json:
        print_json(facts)
    else:
        _print(facts)
    stops = any(STATUSES[finding.status][1] for _, finding in findings)
    return 1 if stops or any(f["problems"] for f in facts["files"]) else 0


def list_files(paths: Iterable[str]) -> Files:
    """Return the programs, model files and shell scripts below the paths."""
    files: list[Path] = []
    for text in paths:
        path = Path(text)
        if path.is_dir():
            files += [
                p for p in sorted(path.rglob("*")) if p.is_file() and not _is_skipped(p, path)
            ]
        elif path.is_file():
            files.append(path)
        else:
            raise CommandError(f"{path}: there is no such file or folder")
    programs = [p for p in files if p.suffix in (".py", ".ipynb")]
    models = [p for p in files if p.suffix in READERS and _is_model(p)]
    if not programs and not models:
        raise CommandError(f"{', '.join(paths)}: no programs or model files there")
    return Files(programs, models, [p for p in files if p.suffix == ".sh"], Project(files))


def _is_skipped(path: Path, root: Path) -> bool:
    return any(part in SKIPPED_FOLDERS for part in path.relative_to(root).parts)


def _is_model(path: Path) -> bool:
    return path.suffix != ".json" or path.name.endswith("symbol.json")


def check_source(source: Source, project: Project) -> list[Finding]:
    """Return what the rules say of a program, in the order of its lines."""
    rules = (check_names(source, project), check_divisions(source))
    reported = [f._replace(line=source.original_line(f.line)) for rule in rules for f in rule]
    findings = {(f.line, f.name, f.status): f for f in (*source.findings, *reported)}
    return [findings[key] for key in sorted(findings)]


def _check_file(path: Path) -> dict[str, Any]:
    try:
        facts = read_facts(path)
    except (CommandError, OSError) as error:
        return {"file": str(path), "kind": None, "problems": [str(error)]}
    return {"file": str(path), "kind": facts["kind"], "problems": facts["problems"]}


def _facts(
    findings: list[tuple[Path, Finding]],
    notes: list[Note],
    models: list[dict[str, Any]],
    files: Files,
    everything: bool,
) -> dict[str, Any]:
    own = [f for _, f in findings if f.status in ("covered", "absent")]
    shown = [(p, f) for p, f in findings if everything or f.status != "covered"]
    counts = {
        status.replace(" ", "_"): len({f.name for _, f in findings if f.status == status})
        for status in STATUSES
        if status != "covered"
    }
    return {
        "programs": len(files.programs),
        "uses": len(own),
        "names": len({f.name for f in own}),
        "operators": len({f.name for f in own if f.is_operator}),
        **counts,
        "found": [_as_row(path, finding) for path, finding in shown],
        "notes": [note._asdict() for note in notes],
        "files": models,
    }


def _as_row(path: Path, finding: Finding) -> dict[str, Any]:
    return {
        "file": str(path),
        "line": finding.line,
        "name": finding.name,
        "status": finding.status,
        "hint": finding.hint,
        "is_operator": finding.is_operator,
        "is_fixed_by_mx_fix": bool(finding.edits) or finding.status == "python 2",
    }


def _print(facts: dict[str, Any]) -> None:
    rows = [(f"{n['file']}:{n['line']}", n["name"], n["status"], n["hint"]) for n in facts["found"]]
    if rows:
        print_table(("place", "name", "status", "hint"), rows)
    for note in facts["notes"]:
        print(f"{note['file']}:{note['line']}: note: {note['text']}")
    for file in facts["files"]:
        for problem in file["problems"]:
            print(f"{file['file']}: {problem}")
    verb = "uses" if facts["programs"] == 1 else "use"
    print(
        f"{_count(facts['programs'], 'program')} {verb} {_count(facts['names'], 'name')} of MXNet "
        f"({_count(facts['operators'], 'operator')}) in {_count(facts['uses'], 'place')}: "
        f"{facts['absent'] or 'none'} absent."
    )
    if facts["files"]:
        good = sum(not file["problems"] for file in facts["files"])
        print(f"{good} of {len(facts['files'])} model and data files are fine.")
    if facts["removed"] or facts["python_2"]:
        removed, lines = (
            _count(facts["removed"], "removed name"),
            _count(facts["python_2"], "line"),
        )
        print(f"{removed} and {lines} of Python 2: mx run handles them, mx fix changes them.")
    if facts["division"]:
        verb = "needs" if facts["division"] == 1 else "need"
        print(f"{_count(facts['division'], 'division')} {verb} //: mx fix changes them.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
