"""`mx check` and `mx fix`: finds what an old project needs to run, from its sources.

Programs are read, not run. Names are looked up in the installed package, so the answer is that of
this version. `names` and `division` are the rules about programs, `surroundings` about what is
around them; `report` prints what they found, and `fix` writes the changes that they propose.
`networks` runs the networks of a project, if the user asks for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .. import CommandError
from ..info import READERS, read_facts
from ..output import print_json
from .division import check_divisions
from .finding import Finding
from .modules import Project
from .names import check_names, look_up
from .networks import run_networks
from .report import Report, print_report
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
        of_file, around = _check_program(path, files.project)
        findings += [(path, finding) for finding in of_file]
        notes += around
    models = [_check_model(path) for path in files.models]
    readable = [Path(model["file"]) for model in models if not model["problems"]]
    networks = run_networks(files.programs, readable, args) if args.run or args.network else []
    report = Report(files.programs, findings, notes, models, networks)
    if args.json:
        print_json(report.facts(everything=args.all))
    else:
        print_report(report, everything=args.all)
    return 1 if report.stops else 0


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


def _check_program(path: Path, project: Project) -> tuple[list[Finding], list[Note]]:
    """Check a program; a file that cannot be checked is a finding, and the check continues."""
    try:
        source = read_source(path)
        return check_source(source, project), list(check_surroundings(source))
    except UnreadableSource as error:
        return [error.finding], []
    except Exception as error:
        text = str(error) or type(error).__name__
        return [Finding(1, text, "unchecked", "the other files are checked all the same")], []


def check_source(source: Source, project: Project) -> list[Finding]:
    """Return the findings of all rules for a program, in the order of its lines."""
    rules = (check_names(source, project), check_divisions(source, project))
    reported = [f._replace(line=source.original_line(f.line)) for rule in rules for f in rule]
    findings = {(f.line, f.name, f.status): f for f in (*source.findings, *reported)}
    return [findings[key] for key in sorted(findings)]


def _check_model(path: Path) -> dict[str, Any]:
    try:
        facts = read_facts(path)
    except Exception as error:
        text = str(error) or type(error).__name__
        return {"file": str(path), "kind": None, "problems": [text]}
    return {"file": str(path), "kind": facts["kind"], "problems": facts["problems"]}
