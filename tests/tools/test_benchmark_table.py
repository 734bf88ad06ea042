"""The table of benchmarks says what was measured, and flags what cannot be trusted."""

from __future__ import annotations

import sys

from benchmarks import results, table
from benchmarks.results import Result, describe, find_stalls, load, render, store
from benchmarks.rows import Row
from benchmarks.table import measure


def make_row(**fields) -> Row:
    return Row(**{"name": "work", "ours": ("", "1"), "peers": {}, "goal": 1.0, **fields})


def test_engines_do_not_reach_the_goal_of_our_own_kernels():
    cells = {"MXNext": [2e-3], "MXNext auto": [0.8e-3], "torch": [1e-3], "MXNet": [4e-3]}
    line = describe(make_row(), cells)
    assert line[:7] == ["2 ms", "torch 1", "2.00", "≤ 1.0", "0.8", "0.80", "≤ 1.0 ✓"]
    line = describe(make_row(engine_goal=0.7, against=("mxnet",)), cells)
    assert line[:7] == ["2 ms", "MXNet 4", "0.50", "≤ 1.0 ✓", "0.8", "0.20", "≤ 0.7 ✓"]


def test_a_cell_is_the_median_with_its_range_and_wide_ones_are_flagged():
    cells = {"MXNext": [1e-3, 9e-3, 1.1e-3], "torch": [1e-3, 1.1e-3, 1e-3]}
    line = describe(make_row(), cells)
    assert line[:4] == ["1.1 ms", "torch 1", "1.10", "≤ 1.0"]
    assert line[-2:] == ["⚠ spread: MXNext 9.00", "MXNext 1.1 (1–9), torch 1 (1–1.1)"]
    assert describe(make_row(), {"MXNext": [1e-3], "torch": [2e-3]})[-2] == "one process"
    assert describe(make_row(), {"torch": [2e-3]})[0] == "failed"


def test_row_slower_than_a_row_with_ten_times_the_work_is_flagged():
    rows = [make_row(name=str(n), family="f", size=n) for n in (1, 2, 10, 100)]
    figures = {"1": 1.0, "2": 5.0, "10": 1.0, "100": 10.0}
    cells = {name: {"MXNext": [value], "torch": [1.0]} for name, value in figures.items()}
    assert find_stalls(rows, cells) == {}  # 2 and 10 differ by less
    cells["10"]["torch"] = [20.0]
    assert find_stalls(rows, cells) == {"10": {"torch"}}


def test_each_process_gives_a_figure_and_failures_none():
    row = make_row(rounds=2, number=3)
    sides = {"MXNext": (sys.executable, ("", "1")), "torch": (sys.executable, ("1 / 0", "1"))}
    cells = measure(row, sides, processes=2)
    assert {name: len(values) for name, values in cells.items()} == {"MXNext": 2}
    fresh = make_row(fresh=True, unit="MB", ours=("import os", "os.getpid()"))
    values = measure(fresh, {"MXNext": (sys.executable, fresh.ours)}, processes=2)["MXNext"]
    assert values[0] != values[1]


def test_rows_keep_the_run_they_come_from(tmp_path, monkeypatch):
    rows = [make_row(name="old"), make_row(name="new")]
    monkeypatch.setattr(results, "rows_of", lambda group: rows if group == "steps" else [])
    path = tmp_path / "results.json"
    store({"here": {"old": Result("monday", {"MXNext": [1.0]})}}, path)
    figures = load(path)
    figures["here"]["new"] = Result("tuesday", {"MXNext": [1.0]})
    store(figures, path)
    page = render(load(path))
    assert "- a: monday\n- b: tuesday" in page
    runs = {x.split(" | ")[0]: x[-3] for x in page.splitlines() if x.startswith("| ")}
    assert (runs["| old"], runs["| new"]) == ("a", "b")


def test_machines_keep_their_figures_beside_each_other(tmp_path, monkeypatch):
    row = make_row()
    monkeypatch.setattr(results, "rows_of", lambda group: [row] if group == "steps" else [])
    monkeypatch.setattr(results, "FIGURES", tmp_path / "results.json")
    monkeypatch.setattr(table, "HERE", tmp_path)
    monkeypatch.setattr(table, "rows_of", results.rows_of)
    monkeypatch.setattr(table, "load", lambda: load(results.FIGURES))
    monkeypatch.setattr(table, "store", lambda figures: store(figures, results.FIGURES))
    monkeypatch.setattr(table, "draw_ratios", lambda *_: None)
    monkeypatch.setattr(table, "draw_sizes", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["table", "steps", "--write", "--processes", "1"])
    for machine, value in (("first", 1.0), ("second", 2.0), ("first", 3.0)):
        monkeypatch.setattr(table, "describe_machine", lambda *_, name=machine: name)
        monkeypatch.setattr(table, "measure", lambda *_, figure=value: {"MXNext": [figure]})
        table.main()
    figures = {m: rows["work"].cells for m, rows in load(results.FIGURES).items()}
    assert figures == {"first": {"MXNext": [3.0]}, "second": {"MXNext": [2.0]}}
    lines = [x for x in (tmp_path / "RESULTS.md").read_text().splitlines() if "| work" in x]
    assert [line.split(" | ")[1] for line in lines[1:]] == ["3000 ms", "2000 ms"]


def test_the_page_is_written_from_the_figures():
    assert (results.HERE / "RESULTS.md").read_text() == render(load())
