"""`mx run` runs old programs, puts removed names back for them alone, and names every line."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from mxnext_cli import main
from mxnext_cli.run import removed as replacements
from tests.tools.old_programs import GONE_IN_312, PROGRAMS, PYTHON_2

NEEDED = {"thumbnails": ["PIL"], "pictures": ["scipy", "PIL"], "splitting": ["sklearn"]}


def write(folder, source, name="old.py"):
    path = folder / name
    path.write_text(source, encoding="utf-8")
    return path


def old_lines(path) -> list[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    is_old = "# old" if sys.version_info < (3, 11) else ("# old", "# old since 3.11")
    return [i for i, line in enumerate(lines, 1) if line.endswith(is_old)]


def reported(tmp_path, path, *arguments, code=0):
    report = tmp_path / "report.json"
    assert main(["run", "--report", str(report), str(path), *arguments]) == code
    return json.loads(report.read_text(encoding="utf-8"))


@pytest.mark.filterwarnings("ignore")  # the programs may use what is deprecated
@pytest.mark.parametrize("name", PROGRAMS)
def test_old_programs_run_and_every_line_is_named(name, tmp_path, capsys):
    for module in NEEDED.get(name, []):
        pytest.importorskip(module)
    path = write(tmp_path, PROGRAMS[name])
    found = reported(tmp_path, path)
    said = capsys.readouterr()
    assert said.out
    lines = {row["line"] for row in found["put_back"]}
    assert lines == set(old_lines(path)), said.err
    assert all(f"old.py:{line}" in said.err for line in lines)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_without_mx_run_they_fail(name, tmp_path, monkeypatch):
    for module in NEEDED.get(name, []):
        pytest.importorskip(module)
    path = write(tmp_path, PROGRAMS[name])
    monkeypatch.setattr(sys, "argv", [str(path)])
    with pytest.raises((AttributeError, ImportError, NameError)):
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has these modules before 3.12")
def test_modules_that_python_dropped(tmp_path, capsys):
    write(tmp_path, "VALUE = 7", "helper.py")
    found = reported(tmp_path, write(tmp_path, GONE_IN_312))
    has_setuptools = importlib.util.find_spec("distutils") is not None  # it brings its own
    assert {row["line"] for row in found["put_back"]} >= ({2} if has_setuptools else {2, 3, 4})
    assert capsys.readouterr().out.replace("True 1", "True True").split() == ["True", "True", "7"]


def test_modules_of_the_program_are_covered(tmp_path, capsys):
    write(tmp_path, "import numpy as np\ndef f():\n    return np.product([2, 3])\n", "model.py")
    write(tmp_path, "COUNT = [i for i in xrange(2)]\n", "counting.py")
    path = write(tmp_path, "import model, counting\nprint(model.f(), counting.COUNT)\n")
    found = reported(tmp_path, path)
    assert capsys.readouterr().out == "6 [0, 1]\n"
    places = {(row["file"].rpartition("/")[2], row["line"]) for row in found["put_back"]}
    assert places == {("model.py", 3), ("counting.py", 1)}


def test_libraries_do_not_see_what_is_put_back(tmp_path, capsys):
    """Only frames of the program get the old names; NumPy's own code does not."""
    source = "import numpy as np\nprint(np.product([2]), eval('hasattr(np, \"product\")', LIB))\n"
    lib = compile("def sees():\n    return hasattr(np, 'product')\n", np.__file__, "exec")
    space = {"np": np}
    exec(lib, space)
    np._sees_for_test = space["sees"]
    try:
        source = "import numpy as np\nprint(np.product([2]), np._sees_for_test())\n"
        reported(tmp_path, write(tmp_path, source))
    finally:
        del np._sees_for_test
    assert capsys.readouterr().out == "2 False\n"
    assert not hasattr(np, "product")  # and nobody does afterwards


def test_arguments_exit_code_and_file_name(tmp_path, capsys):
    source = "import sys\nprint(sys.argv[1:], __name__, __file__ == sys.argv[0])\nsys.exit(3)\n"
    path = write(tmp_path, source)
    reported(tmp_path, path, "--lr", "0.1", "-v", code=3)
    assert capsys.readouterr().out == "['--lr', '0.1', '-v'] __main__ True\n"


def test_exit_with_a_message(tmp_path, capsys):
    reported(tmp_path, write(tmp_path, "raise SystemExit('no data')"), code=1)
    assert capsys.readouterr().err.startswith("no data")


def test_failures_show_the_program_and_a_hint(tmp_path, capsys):
    path = write(tmp_path, "def f():\n    return {}.iteritems()\n\nf()\n")
    found = reported(tmp_path, path, code=1)
    said = capsys.readouterr().err
    assert said.count("File ") == 2
    assert "mxnext_cli" not in said
    assert "hint: dict.iteritems() became dict.items()" in said
    assert "AttributeError" in found["error"]


def test_python_2_is_reported_with_its_lines(tmp_path, capsys):
    reported(tmp_path, write(tmp_path, PYTHON_2), code=1)
    said = capsys.readouterr().err
    assert "written for Python 2; 4 lines" in said
    assert [f"old.py:{i}" in said for i in (2, 4, 5, 6)] == [True] * 4


def test_a_program_without_removed_names_gets_no_report(tmp_path, capsys):
    reported(tmp_path, write(tmp_path, "print(1)"))
    assert capsys.readouterr().err == ""


def test_quiet(tmp_path, capsys):
    path = write(tmp_path, "print(list(xrange(1)))")
    assert main(["run", "--quiet", str(path)]) == 0
    assert capsys.readouterr().err == ""


def test_an_absent_program(capsys):
    assert main(["run", "absent.py"]) == 1
    assert capsys.readouterr().err == "mx run: absent.py: there is no such file\n"


def test_starting_a_program_imports_nothing_before_it(tmp_path):
    """Variables that a program sets for torch or MXNet before it imports them have effect."""
    path = write(tmp_path, "import sys\nprint('torch' in sys.modules, 'numpy' in sys.modules)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mxnext_cli", "run", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "False False\n"


def test_replacements():
    assert replacements.LooseVersion("1.10") > "1.9"
    assert replacements.LooseVersion("1.2b1") != "1.2"
    assert [replacements.strtobool(t) for t in ("yes", "0")] == [1, 0]
    assert replacements.msort([[2, 1], [1, 2]]).tolist() == [[1, 1], [2, 2]]
    assert replacements.cmp(1, 2) == -1
    assert replacements.asfarray([1, 2]).dtype == np.float64
    low_high = replacements.random_integers(1, 2, size=50)
    assert set(low_high.tolist()) == {1, 2}


def test_pandas_renames(tmp_path, capsys):
    pytest.importorskip("pandas")
    source = """
        import pandas as pd
        frame = pd.DataFrame({"a": [1, 2]})
        print(len(frame.append(frame)), frame.as_matrix().shape, frame.ix[0]["a"])
        print(pd.rolling_mean(frame["a"], 2).iloc[1], dict(frame.iteritems())["a"].sum())
        """
    found = reported(tmp_path, write(tmp_path, textwrap.dedent(source)))
    assert capsys.readouterr().out == "4 (2, 1) 1\n1.5 3\n"
    assert {row["line"] for row in found["put_back"]} == {4, 5}


def test_packages_that_are_adjusted_can_be_imported(tmp_path):
    """Two import hooks ask the finders after them, and not each other."""
    package = tmp_path / "gluoncv"
    package.mkdir()
    (package / "__init__.py").write_text("VALUE = 3\n")
    path = write(tmp_path, "import mxnet\nimport gluoncv\nprint(gluoncv.VALUE)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mxnet", "run", str(path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == "3\n", done.stderr
