"""Every example has its output on the site."""

from __future__ import annotations

import ast

from tools.example_output import EXAMPLES, OUTPUT, find_output, list_examples, make_command


def test_every_example_has_output_and_nothing_else_has():
    names = list_examples()
    recorded = {path.relative_to(OUTPUT).with_suffix("").as_posix() for path in OUTPUT.rglob("*.*")}
    assert recorded == set(names), "run: python -m tools.example_output NAME"
    for name in names:
        printed, picture = find_output(name)
        assert printed.strip(), name
        assert "Traceback" not in printed
        draws = '"--picture"' in (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert not draws or picture is not None, name


def test_the_command_is_the_one_of_the_docstring():
    for name in list_examples():
        tree = ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
        documented = ast.get_docstring(tree) or ""
        program = make_command(name).rpartition("python ")[2]
        assert program in documented or f"python {program}" not in documented
