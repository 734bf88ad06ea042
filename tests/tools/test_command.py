"""`mx` itself: starts without torch, explains errors, completes; `mx doctor`; the demo's model."""

from __future__ import annotations

import collections
import doctest
import importlib.metadata
import io
import json
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnext_cli import CommandError, check, doctor, main, models, output, rec
from mxnext_cli.commands import COMMANDS, Parser
from mxnext_cli.output import format_bytes, print_json, print_table
from mxnext_cli.program import describe_error
from tests.golden import HERE as GOLDEN

ROOT = Path(__file__).parents[2]


def started(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "summary --help", "rec --help", "completion bash", "zzz"]
)
def test_answers_without_importing_torch(arguments):
    program = (
        "import sys, mxnext_cli\n"
        "try: mxnext_cli.main(sys.argv[1:])\n"
        "finally: print('torch' in sys.modules, 'numpy' in sys.modules, file=sys.stderr)"
    )
    done = started("-c", program, *arguments.split())
    assert done.stderr.splitlines()[-1] == "False False"


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert [name for name in COMMANDS if f"    {name}" not in said] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_explains_every_option(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert "`" not in capsys.readouterr().out
    parser = Parser(prog=name)
    COMMANDS[name].declare(parser)
    assert [a.dest for a in parser._actions if not a.help and not a.choices] == []


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


def test_ctrl_c_ends_with_a_line(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mxnext_cli.doctor.gather", lambda: interrupted(None))
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "\nmx: interrupted\n"


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
            if name == "unknown-operator" and arguments[0] in ("info", "view"):
                continue  # these commands show what is available
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


@pytest.mark.parametrize("module", [check, models, output, rec])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0


Usage = collections.namedtuple("Usage", "total used free")


@pytest.fixture
def healthy(monkeypatch, tmp_path):
    """Whatever machine this is: room on its disks, a home, a core per thread, no idle driver."""
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 1 << 40))
    monkeypatch.setattr(doctor, "_device_problems", list)


@pytest.mark.usefixtures("healthy")
def test_a_healthy_installation(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "MXNext" in said
    assert importlib.metadata.version("torch") in said
    assert "No problems found." in said


@pytest.mark.usefixtures("healthy")
def test_facts_as_json(capsys):
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["libraries"]["torch"] == importlib.metadata.version("torch")
    assert "cpu" in facts["devices"]
    assert facts["problems"] == []


@pytest.mark.usefixtures("healthy")
def test_doctor_reports_an_installed_mxnet(monkeypatch, capsys):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda n: "1.9.1" if n == "mxnet" else real(n))
    assert main(["doctor"]) == 1
    assert "pip uninstall mxnet" in capsys.readouterr().out


@pytest.mark.usefixtures("healthy")
def test_a_setting_that_cannot_be_read(monkeypatch, capsys):
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "many")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "problem: Environment variable MXNET_OPTIMIZER_AGGREGATION_SIZE='many'" in said


@pytest.mark.usefixtures("healthy")
def test_full_disks(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 1 << 10))
    assert any("1.0 KiB free" in problem for problem in doctor.find_problems())


@pytest.mark.usefixtures("healthy")
def test_more_threads_than_cores(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 10_000)
    assert any("OMP_NUM_THREADS" in problem for problem in doctor.find_problems())


@pytest.mark.usefixtures("healthy")
def test_a_home_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "models"))
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert any("set MXNET_HOME" in problem for problem in doctor.find_problems())


@pytest.mark.usefixtures("healthy")
def test_kernels_that_compute_nonsense(monkeypatch):
    monkeypatch.setattr(doctor.nd, "dot", lambda a, b: a)
    assert any("matrix product is wrong" in problem for problem in doctor.find_problems())


DEMO = ROOT / "examples" / "demo.py"


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The demo's network, trained for no time, exported as the demo exports it."""
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(DEMO), run_name="demo")
    mx.random.seed(0)
    net = names["lenet"]()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    _, held_out = names["digits"]()
    images = np.stack([image for image, _ in (held_out[i] for i in range(4))])
    scores = net(mx.nd.array(images)).asnumpy()
    net.export("digits")
    np.save("images.npy", images)
    return scores


def test_the_demo_through_the_commands(demo, capsys):
    assert main(["info", "digits-symbol.json", "digits-0000.params", "--json"]) == 0
    symbol, params = json.loads(capsys.readouterr().out)
    assert symbol["inputs"] == ["data"]
    assert symbol["parameters"] == params["parameters"] == 53_002

    assert main(["summary", "digits", "--shape", "1,1,8,8", "--json"]) == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert totals["parameters"] == 53_002
    assert totals["multiply_adds"] == 64 * 32 * 9 + 16 * 64 * 32 * 9 + 256 * 128 + 128 * 10

    assert main(["view", "digits", "--shape", "1,1,8,8"]) == 0
    assert Path("digits.html").stat().st_size > 20_000

    assert main(["predict", "digits", "--input", "images.npy", "--output", "scores.npy"]) == 0
    np.testing.assert_allclose(np.load("scores.npy"), demo, rtol=1e-4, atol=1e-5)

    assert main(["check", str(DEMO), "digits-symbol.json"]) == 0
    capsys.readouterr()

    arguments = ["convert", "digits", "--to", "torch", "--shape", "1,1,8,8", "--json"]
    assert main([*arguments, "--input", "images.npy"]) == 0
    (output,) = json.loads(capsys.readouterr().out)["outputs"]
    assert output["relative"] <= 1e-4

    assert main(["convert", "digits", "--to", "int8", "--input", "images.npy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["relative"] <= 0.1
    size = Path("digits-int8-0000.params").stat().st_size
    assert size < 0.3 * Path("digits-0000.params").stat().st_size
    assert main(["predict", "digits-int8", "--input", "images.npy", "--output", "small.npy"]) == 0
    np.testing.assert_allclose(np.load("small.npy"), demo, atol=0.1 * np.abs(demo).max())


@pytest.mark.parametrize(
    ("arguments", "proposal"),
    [
        (["inof"], "info"),
        (["info", "--jsonn"], "--json"),
        (["rec", "inf", "x.rec"], "info"),
        (["convert", "m", "--to", "onx"], "onnx"),
    ],
)
def test_misspelled_arguments_get_a_suggestion(arguments, proposal, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert f"Did you mean '{proposal}'?" in capsys.readouterr().err


def test_help_shows_defaults(capsys):
    with pytest.raises(SystemExit):
        main(["summary", "--help"])
    assert "default: 10" in capsys.readouterr().out


def test_a_reader_of_the_help_may_leave(tmp_path):
    command = f"{sys.executable} -m mxnext_cli --help | head -n 1"
    result = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )
    assert result.stderr == ""


def test_a_second_package_is_found(tmp_path):
    for name in ("mxnet", "mxnext"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "other" / "mxnet").mkdir(parents=True)  # not a package
    twins = doctor.find_twins([str(ROOT), str(tmp_path), str(tmp_path), str(tmp_path / "other")])
    assert [path.name for path, _ in twins] == ["mxnet", "mxnext"]


def test_info_takes_a_prefix(tmp_path, capsys):
    for name in ("dense-symbol.json", "dense-0000.params"):
        shutil.copy(GOLDEN / "gluon" / name, tmp_path)
    assert main(["info", str(tmp_path / "dense")]) == 0
    said = capsys.readouterr().out
    assert "dense-symbol.json" in said
    assert "dense-0000.params" in said


def test_safetensors_needs_no_shape(tmp_path, capsys):
    for name in ("dense-symbol.json", "dense-0000.params"):
        shutil.copy(GOLDEN / "gluon" / name, tmp_path)
    assert main(["convert", str(tmp_path / "dense"), "--to", "safetensors"]) == 0
    assert (tmp_path / "dense.safetensors").is_file()
    assert "arrays" in capsys.readouterr().out


def test_dir_of_convert_shows_functions_for_users():
    assert "to_torch" in dir(mx.convert)
    assert not {"annotations", "torch_rows", "isolated"} & set(dir(mx.convert))
