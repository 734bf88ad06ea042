"""`mx` itself: it starts without torch, explains errors on one screen, and completes."""

from __future__ import annotations

import doctest
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mxnext_cli import CommandError, describe_error, main, output
from mxnext_cli.commands import COMMANDS
from mxnext_cli.output import format_bytes, print_json, print_table

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


def started(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["summary", "--help"], ["zzz"]])
def test_answers_without_importing_torch(arguments):
    program = (
        "import sys, mxnext_cli\n"
        "try: mxnext_cli.main(sys.argv[1:])\n"
        "finally: print('torch' in sys.modules, 'numpy' in sys.modules, file=sys.stderr)"
    )
    done = started("-c", program, *arguments)
    assert done.stderr.splitlines()[-1] == "False False"


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert [name for name in COMMANDS if f"    {name}" not in said] == []


def test_every_command_is_documented():
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"mx {name}" not in page] == []


def test_without_a_command_it_prints_help(capsys):
    assert main([]) == 2
    assert "usage: mx" in capsys.readouterr().out


def test_wrong_arguments_exit_with_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["summary"])
    assert ended.value.code == 2
    assert "model" in capsys.readouterr().err


def test_python_m_mxnet_is_quiet_when_the_pipe_is_closed():
    file = str(GOLDEN / "params" / "checkpoint.params")
    info = shlex.join([sys.executable, "-m", "mxnet", "info", "--all", file])
    command = f"{info} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, text=True, capture_output=True, timeout=120
    )
    assert done.stderr == ""
    assert done.returncode in (0, 141)  # the pipe may take all before it is closed


def test_writing_to_a_closed_pipe_ends_quietly(monkeypatch, capsys):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    assert main(["info", str(GOLDEN / "records" / "images.rec")]) == 141
    assert capsys.readouterr().err == ""


def test_ctrl_c_ends_quietly(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mxnext_cli.doctor.gather", lambda: interrupted(None))
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == ""


def test_unexpected_errors_are_short_unless_asked(monkeypatch, capsys):
    def broken():
        raise ZeroDivisionError("no")

    monkeypatch.setattr("mxnext_cli.doctor.gather", broken)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().err
    assert said == "mx doctor: ZeroDivisionError: no\n(mx --traceback ... shows where)\n"
    assert main(["--traceback", "doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_long_errors_are_cut_to_a_screen():
    text = describe_error(CommandError("\n".join(f"line {i} " + "x" * 900 for i in range(100))))
    assert len(text.splitlines()) == 17
    assert text.endswith("... 84 more lines")
    assert max(map(len, text.splitlines())) <= 400


def test_tables_are_plain_outside_terminals(capsys):
    print_table(("name", "size"), [("a", 1), ("[bold]b", 20)], right=[1])
    assert capsys.readouterr().out.splitlines() == [
        "name     size",
        "-------  ----",
        "a           1",
        "[bold]b    20",
    ]


def test_tables_on_terminals_do_not_interpret_names(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table(("name",), [("[bold]b\x1b[31m",)])
    said = capsys.readouterr().out
    assert "[bold]b" in said
    assert "\x1b[31m" not in said


def test_json_holds_no_nan(capsys):
    print_json({"a": float("nan"), "b": (1, 2)})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1, 2]}
    assert format_bytes(5 << 40) == "5.0 TiB"


def test_completion_of_bash(tmp_path, capsys):
    script = tmp_path / "mx.bash"
    assert main(["completion", "bash"]) == 0
    script.write_text(capsys.readouterr().out)
    ask = (
        f"source {shlex.quote(str(script))}; COMP_WORDS=(mx {{words}}); COMP_CWORD={{n}}; _mx; "
        'printf "%s\\n" "${{COMPREPLY[@]}}"'
    )

    def completed(*words: str) -> list[str]:
        command = ask.format(words=" ".join(words), n=len(words))
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, text=True, capture_output=True, timeout=20
        )
        assert done.stderr == ""
        return done.stdout.split()

    assert completed("su") == ["summary"]
    assert completed("summary", "--ti") == ["--time"]
    assert "info" in completed("rec", "in")
    assert completed("im2rec", "--encoding", ".p") == [".png"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_of_other_shells_names_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in said] == []


def test_damaged_files_are_errors_of_one_screen(tmp_path, capsys):
    """Whatever a file holds, commands that read models fail in a few lines and write nothing."""
    good = (GOLDEN / "gluon" / "dense-symbol.json").read_bytes()
    params = (GOLDEN / "gluon" / "dense-0000.params").read_bytes()
    damaged = {
        "empty": (b"", params),
        "not-json": (b"\x00\xff\xfe" * 50, params),
        "deep": (b'{"nodes": ' + b"[" * 100_000, params),
        "no-nodes": (b'{"nodes": 3}', params),
        "unknown-operator": (good.replace(b"FullyConnected", b"os.system(1)"), params),
        "cut-params": (good, params[:-9]),
        "huge-count": (good, params[:16] + b"\xff" * 8 + params[24:]),
    }
    for name, (symbol, arrays) in damaged.items():
        (tmp_path / f"{name}-symbol.json").write_bytes(symbol)
        (tmp_path / f"{name}-0000.params").write_bytes(arrays)
    (tmp_path / "x.csv").write_text("1,2,3,4,5")
    before = sorted(tmp_path.iterdir())
    for name in damaged:
        model = str(tmp_path / name)
        for arguments in READING_MODELS:
            filled = [a.format(model=model, folder=tmp_path) for a in arguments]
            code = main([*filled, *SHAPES.get(filled[0], [])])
            said = capsys.readouterr()
            assert code in (1, 2), (arguments, name)
            assert 1 <= len(said.err.splitlines() or said.out.splitlines()) <= 24
            assert "Traceback" not in said.err
            assert "--traceback" not in said.err, (arguments, name, said.err)
    assert sorted(tmp_path.iterdir()) == before


SHAPES = {
    "summary": ["--shape", "1,5"],
    "view": ["--shape", "1,5"],
    "convert": ["--shape", "1,5"],
    "predict": ["--shape", "5"],
}
READING_MODELS = [
    ["info", "{model}-symbol.json", "{model}-0000.params"],
    ["summary", "{model}"],
    ["view", "{model}", "--output", "{folder}/out.html"],
    ["convert", "{model}", "--to", "mxnet", "--output", "{folder}/out"],
    ["predict", "{model}", "--input", "{folder}/x.csv", "--output", "{folder}/out.npy"],
]


@pytest.mark.parametrize("module", [output])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0
