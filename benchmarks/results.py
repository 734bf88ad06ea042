"""The figures of all rows, kept in `results.json` by machine and with their dates, and their table.

A run replaces only the rows of its own machine; those of other machines are kept. A cell has one
figure from each process that measured it. `RESULTS.md` is generated from the figures alone.
"""

from __future__ import annotations

import importlib
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.rows import Row

HERE = pathlib.Path(__file__).parent
FIGURES = HERE / "results.json"
GROUPS = ("steps", "graphs", "pointwise", "storage", "inference", "training", "sizes")
UNITS = {"ms": (1e3, "ms"), "us": (1e6, "µs"), "value": (1e3, "ms"), "MB": (1.0, "MB")}
MAX_SPREAD = 1.2  # largest by smallest figure of a cell's processes, above which a row is flagged
OWN, ENGINES = "MXNext", "MXNext auto"

Cells = Mapping[str, Sequence[float]]  # figures of the processes, by side


@dataclass(frozen=True)
class Result:
    """The figures of a row, and the date, machine and versions they come from."""

    run: str
    cells: dict[str, list[float]]


Results = dict[str, dict[str, Result]]  # by machine, then by the names of rows


def load(path: pathlib.Path = FIGURES) -> Results:
    """Return the results of all machines."""
    if not path.is_file():
        return {}
    return {
        machine: {name: Result(**fields) for name, fields in rows.items()}
        for machine, rows in json.loads(path.read_text()).items()
    }


def store(results: Results, path: pathlib.Path = FIGURES) -> None:
    """Write the results of all machines."""
    fields = {
        machine: {name: asdict(result) for name, result in rows.items()}
        for machine, rows in results.items()
    }
    path.write_text(json.dumps(fields, indent=1, ensure_ascii=False) + "\n")


def rows_of(group: str) -> list[Row]:
    """Return the rows of a group."""
    return importlib.import_module(f"benchmarks.rows.{group}").ROWS


def spread(values: Sequence[float]) -> float:
    """Return how many times the smallest figure the largest is.

    >>> spread([2.0, 3.0])
    1.5
    """
    return max(values) / min(values)


def compare(row: Row, cells: Cells, side: str) -> tuple[str, float] | None:
    """Return the fastest of the peers that a row is measured against, and the ratio to it."""
    targets = {"MXNet" if name == "mxnet" else name for name in row.against}
    peers = {
        name: median(values)
        for name, values in cells.items()
        if not name.startswith(OWN) and (name in targets or not targets)
    }
    if not peers or side not in cells:
        return None
    peer = min(peers, key=lambda name: peers[name])
    return peer, median(cells[side]) / peers[peer]


def find_stalls(rows: Iterable[Row], results: Mapping[str, Cells]) -> dict[str, set[str]]:
    """Return, by row, the sides that took longer than for at least ten times as much work."""
    sized = [row for row in rows if row.family and row.name in results]
    stalls: dict[str, set[str]] = {}
    for small in sized:
        for large in sized:
            if large.family != small.family or large.size < 10 * small.size:
                continue
            few, many = results[small.name], results[large.name]
            for side in few.keys() & many.keys():
                if median(few[side]) > MAX_SPREAD * median(many[side]):
                    stalls.setdefault(small.name, set()).add(side)
    return stalls


def describe(row: Row, cells: Cells, stalls: Iterable[str] = ()) -> list[str]:
    """Return the cells of a line: own kernels, best other, ratio, goal, engines, notes, all."""
    scale, unit = UNITS[row.unit]

    def show(side: str) -> str:
        return f"{median(cells[side]) * scale:.4g}" if side in cells else "–"

    own, engines = compare(row, cells, OWN), compare(row, cells, ENGINES)
    other = f"{own[0]} {show(own[0])}" if own else "–"
    ratio, goal = _judge(own, row.goal)
    engine_ratio, engine_goal = _judge(engines, row.engine_goal or row.goal)
    wide = [f"{name} {spread(v):.2f}" for name, v in cells.items() if spread(v) > MAX_SPREAD]
    notes = [f"⚠ spread: {', '.join(wide)}"] if wide else []
    notes += [f"⚠ stall: {', '.join(sorted(stalls))}"] if stalls else []
    if max(map(len, cells.values()), default=0) < 2:
        notes.append("one process")
    everyone = ", ".join(_show_range(name, values, scale) for name, values in cells.items())
    first = f"{show(OWN)} {unit}" if OWN in cells else "failed"
    engine = [show(ENGINES), engine_ratio, engine_goal if ENGINES in cells else "–"]
    return [first, other, ratio, goal, *engine, "; ".join(notes), everyone]


def _judge(comparison: tuple[str, float] | None, goal: float) -> tuple[str, str]:
    if comparison is None:
        return "–", f"≤ {goal}"
    ratio = f"{comparison[1]:.2f}"
    return ratio, f"≤ {goal}{' ✓' if float(ratio) <= goal else ''}"


def _show_range(name: str, values: Sequence[float], scale: float) -> str:
    text = f"{name} {median(values) * scale:.4g}"
    if len(values) < 2:
        return text
    return f"{text} ({min(values) * scale:.4g}–{max(values) * scale:.4g})"


HEAD = """\
# Results

Written by `python -m benchmarks.table --write` from `results.json`. Each process reports its
fastest round. A cell shows the median over the processes, with the minimum and maximum in brackets.
Ratios are relative to the fastest engine named in the row's goal. *Engines* is
`hybridize(backend="auto")`, which may run OpenVINO, ONNX Runtime or oneDNN's graph compiler. A row
is flagged (⚠) if the slowest process of a cell takes more than {spread} times as long as the
fastest, or if the row takes longer than the same benchmark with at least ten times as much work.

![Ratios of all rows](ratios.svg)

![Cost against size](sizes.svg)
"""
COLUMNS = ["work", "MXNext", "best other", "ratio", "goal", "engines", "ratio", "goal"]
COLUMNS += ["notes", "all", "run"]
ENGINE_COLUMNS = slice(5, 8)


def render(results: Results, groups: Sequence[str] = GROUPS) -> str:
    """Return the page of results. Each run is named by a letter, and described once."""
    runs = list(dict.fromkeys(r.run for rows in results.values() for r in rows.values()))
    letters = {run: chr(ord("a") + i) for i, run in enumerate(runs)}
    lines = [HEAD.format(spread=MAX_SPREAD), "Runs:", ""]
    lines += [f"- {letters[run]}: {run}" for run in runs]
    for group in groups:
        table = _render_rows(rows_of(group), results, letters)
        if table:
            lines += ["", f"## {group.capitalize()}", "", *(f"| {' | '.join(x)} |" for x in table)]
    return "\n".join(lines) + "\n"


def _render_rows(
    rows: Sequence[Row], results: Results, letters: Mapping[str, str]
) -> list[list[str]]:
    """Return head and lines of a table: each row once for every machine that measured it."""
    cells = {m: {name: r.cells for name, r in figures.items()} for m, figures in results.items()}
    stalls = {machine: find_stalls(rows, figures) for machine, figures in cells.items()}
    measured = [(row, m) for row in rows for m in results if row.name in results[m]]
    if not measured:
        return []
    table = [COLUMNS[:]]
    for row, machine in measured:
        line = describe(row, cells[machine][row.name], stalls[machine].get(row.name, ()))
        table.append([row.name, *line, letters[results[machine][row.name].run]])
    if not any(ENGINES in cells[machine][row.name] for row, machine in measured):
        for line in table:
            del line[ENGINE_COLUMNS]
    table.insert(1, ["---"] * len(table[0]))
    return table
