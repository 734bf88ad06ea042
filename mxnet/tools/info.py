"""`mx info`: what files are, which MXNet wrote them, what they hold, what is wrong with them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mxnext_cli.errors import CommandError
from mxnext_cli.output import format_bytes, format_count, print_facts, print_json, print_table

from . import doctor
from .loading.file_facts import Facts, read_facts

SHOWN = 12  # arrays and operators, without --all
HIDDEN = frozenset({"file", "all_arrays", "nodes", "problems"})


def run(args: argparse.Namespace) -> int:
    """Print the facts about each file; return 1 if one cannot be read or has problems."""
    if not args.files:
        return doctor.run(args)
    found: list[Facts] = []
    failed = False
    for name in args.files:
        try:
            found.append(read_facts(Path(name)))
        except (CommandError, OSError) as error:
            failed = True
            found.append({"file": name, "error": str(error)})
    if args.json:
        print_json(found)
    else:
        for facts in found:
            _print(facts, args.all)
    return 1 if failed or any(facts.get("problems") for facts in found) else 0


def _print(facts: Facts, everything: bool) -> None:
    if "error" in facts:
        sys.stderr.write(f"mx info: {facts['error']}\n")
        return
    shown = {k.replace("_", " "): _text(k, v) for k, v in facts.items() if k not in HIDDEN}
    print_facts(shown, title=facts["file"])
    arrays = facts.get("all_arrays", [])
    if arrays:
        rows = [(a["name"], _shape(a["shape"]), a["dtype"], a["storage"]) for a in arrays]
        _print_rows(("array", "shape", "dtype", "storage"), rows, everything)
    nodes = facts.get("nodes", [])
    if nodes and everything:
        rows = [(n["name"], n["operator"], _pairs(n["attributes"])) for n in nodes]
        _print_rows(("layer", "operator", "attributes"), rows, everything)
    for problem in facts["problems"]:
        print(f"  problem: {problem}")


def _print_rows(headings: tuple[str, ...], rows: list[tuple], everything: bool) -> None:
    shown = rows if everything else rows[:SHOWN]
    print_table(headings, shown)
    if len(shown) < len(rows):
        print(f"... {len(rows) - len(shown)} more (--all)")


def _shape(shape: list[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in values.items())


def _text(key: str, value: Any) -> str | None:
    if value is None:
        return None
    if key == "bytes":
        return format_bytes(value)
    if key == "parameters":
        return f"{value} ({format_count(value)})"
    if isinstance(value, dict):
        if key in ("operators", "contents", "dtypes"):
            return ", ".join(f"{n} {name}" for name, n in list(value.items())[:SHOWN])
        return _pairs(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
