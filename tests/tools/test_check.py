"""`mx check` and `mx fix` on programs in the styles of 2015 to 2021, and on what is hostile.

In the files of `old_programs`, a line that must be reported ends in ``#: status``; one that is
reported where a package is not installed ends in ``#? status``. Nothing else may be reported.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mxnext_cli import main
from mxnext_cli.check import look_up
from mxnext_cli.check.finding import Edit, apply_edits
from mxnext_cli.run.scipy_misc import imresize
from tests.golden import HERE as GOLDEN
from tests.programs import run_program

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "old_programs"
MARK = re.compile(r"#([:?]) ([a-z0-9 ]+)$")


def write_corpus(folder):
    """Write the programs and return what is expected of their lines, and the lines that may be."""
    required, allowed = set(), set()
    for file in sorted(PROGRAMS.glob("*.txt")):
        for part in file.read_text(encoding="utf-8").split("=== ")[1:]:
            name, _, source = part.partition("\n")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
            for number, line in enumerate(source.splitlines(), 1):
                if mark := MARK.search(line):
                    expected = required if mark[1] == ":" else allowed
                    expected.add((name, number, mark[2]))
    return required, allowed


def checked(capsys, *paths, code=0, everything=False):
    arguments = ["check", *map(str, paths), "--json", *(["--all"] if everything else [])]
    assert main(arguments) == code
    return json.loads(capsys.readouterr().out)


def lines_of(facts, folder):
    return {
        (str(Path(f["file"]).relative_to(folder)), f["line"], f["status"]) for f in facts["found"]
    }


def test_every_problem_of_old_programs_is_found_and_nothing_else(tmp_path, capsys):
    required, allowed = write_corpus(tmp_path)
    assert len(list(tmp_path.rglob("*.py"))) >= 40
    facts = checked(capsys, tmp_path, code=1)
    reported = lines_of(facts, tmp_path)
    assert required - reported == set(), "missed"
    assert reported - required - allowed == set(), "false alarms"


def test_unknown_names_are_never_to_be_installed(tmp_path, capsys):
    write_corpus(tmp_path)
    facts = checked(capsys, tmp_path, code=1)
    hints = {f["name"]: f["hint"] for f in facts["found"] if f["status"] == "missing package"}
    assert "pip install" not in hints["package_that_nobody_has"]
    assert "SimpleDet" in hints["mxnext"]
    assert "common" not in hints


def test_notes_name_gpus_and_missing_files(tmp_path, capsys):
    write_corpus(tmp_path)
    (tmp_path / "run.sh").write_text("# launch.py\npython ../../tools/launch.py -n 2 python x.py\n")
    facts = checked(capsys, tmp_path, code=1)
    notes = {(Path(n["file"]).name, n["line"]): n["text"] for n in facts["notes"]}
    assert "model/ssd_300-symbol.json" in notes["ssd_evaluate.py", 11]
    assert "mx.gpu()" in notes["ssd_evaluate.py", 8]
    assert "mx launch" in notes["run.sh", 2]
    assert ("run.sh", 1) not in notes


def test_examples_have_no_problem(capsys):
    facts = checked(capsys, ROOT / "examples")
    assert facts["found"] == []
    assert facts["names"] > 10


# -- mx fix ----------------------------------------------------------------------------------------


def test_fixed_programs_have_no_problem_left_that_can_be_fixed(tmp_path, capsys):
    write_corpus(tmp_path)
    assert main(["fix", str(tmp_path), "--apply"]) == 0
    said = capsys.readouterr().out
    facts = checked(capsys, tmp_path, code=1)
    left = [f for f in facts["found"] if f["is_fixed_by_mx_fix"]]
    assert left == []
    left = {"absent", "fork", "missing package", "nd only", "removed", "quotient"}
    assert {f["status"] for f in facts["found"]} <= left
    assert "train_mnist.py:14: Python 2: write print('training')" in said


def test_a_patch_changes_nothing_by_itself_and_can_be_applied(tmp_path, capsys, monkeypatch):
    if shutil.which("patch") is None:
        pytest.skip("the command `patch` is not installed")
    monkeypatch.chdir(tmp_path)
    path = Path("old.py")
    path.write_text("import numpy as np\nprint np.int, 7 / 2\nfor i in xrange(4/2):\n    pass")
    before = path.read_bytes()
    assert main(["fix", "."]) == 0
    patch = capsys.readouterr().out
    assert path.read_bytes() == before
    result = subprocess.run(
        ["patch", "-p1"], input=patch, text=True, capture_output=True, timeout=30, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert path.read_text() == (
        "import numpy as np\nprint(int, 7 // 2)\nfor i in range(4//2):\n    pass"
    )
    assert "7 / 2: write 7 // 2: Python 2 cut the quotient" in patch


FIXES = {
    "import cPickle\n": "import pickle as cPickle\n",
    "import cPickle as pickle, os\n": "import pickle, os\n",
    "from StringIO import StringIO\n": "from io import StringIO\n",
    "from itertools import izip, chain\n": "from builtins import zip as izip\n"
    "from itertools import chain\n",
    "import urllib\nurllib.urlopen('x')\n": "import urllib.request\nimport urllib\n"
    "urllib.request.urlopen('x')\n",
    "'''Text.'''\nfrom __future__ import print_function\nreduce(f, x)\n": "'''Text.'''\n"
    "from __future__ import print_function\nimport functools\nfunctools.reduce(f, x)\n",
    "import numpy as np\nx = np.float(np.int(3))\n": "import numpy as np\nx = float(int(3))\n",
    "d.has_key('a')\r\nd.iteritems()\r\n": "('a' in d)\r\nd.items()\r\n",
    "é = x[len('é')/2]\n": "é = x[len('é')//2]\n",
    "def f():\n    from collections import Mapping, deque\n": "def f():\n"
    "    from collections.abc import Mapping\n    from collections import deque\n",
    "import numpy as np\nx = np.asscalar(a + b) + np.asscalar(np.asscalar(c))\n": "import numpy "
    "as np\nx = (a + b).item() + c.item().item()\n",
    "from numpy import asscalar, exp\nx = asscalar(exp(y))\n": "from numpy import exp\n"
    "x = exp(y).item()\n",
    "import string\nstring.join(a)\nstring.join(a, b + c)\n": "import string\n' '.join(a)\n"
    "(b + c).join(a)\n",
    "import inspect\na, _, _, d = inspect.getargspec(f)\n": "import inspect\n"
    "a, _, _, d = inspect.getfullargspec(f)[:4]\n",
    "from inspect import getargspec\nn = getargspec(f)[0]\n": "import inspect\nimport inspect\n"
    "n = inspect.getfullargspec(f)[0]\n",
    "import numpy as np\nx = np.msort(y)\nz = np.NINF\n": "import numpy as np\n"
    "x = np.sort(y, axis=0)\nz = (-np.inf)\n",
}
# What means something else today is left as it is.
LEFT = (
    "import inspect\nspec = inspect.getargspec(f)\n",
    "import inspect\nprint(inspect.getargspec(f).keywords)\n",
    "import numpy as np\nx = list(map(np.asscalar, y))\n",
    "import string\nstring.join(*words)\n",
)


@pytest.mark.parametrize("old", FIXES)
def test_a_fix(old, tmp_path):
    path = tmp_path / "old.py"
    path.write_bytes(old.encode())
    assert main(["fix", str(path), "--apply"]) == 0
    assert path.read_bytes().decode() == FIXES[old]


@pytest.mark.parametrize("old", LEFT)
def test_fix_reports_what_it_cannot_change(old, tmp_path, capsys):
    path = tmp_path / "old.py"
    path.write_text(old)
    assert main(["fix", str(path), "--apply"]) == 0
    assert path.read_text() == old
    assert "left to you" in capsys.readouterr().out


@pytest.mark.parametrize(
    "old",
    [
        "from scipy.misc import imresize, logsumexp\nimport numpy as np\nresize = imresize\n",
        "import numpy as np\nimport scipy.misc\nresize = scipy.misc.imresize\n",
        "import numpy as np\nfrom scipy import misc\n\n\ndef resize(a, b):\n"
        "    misc.toimage(a, cmin=0.0, cmax=1.0)\n    return misc.imresize(a, b)\n",
    ],
)
def test_functions_of_scipy_misc_come_from_a_module_beside_the_program(old, tmp_path):
    path = tmp_path / "old.py"
    path.write_text(
        f"{old}picture = np.arange(6000).reshape(40, 50, 3) % 251\n"
        "print(resize(picture, (20, 25)).sum(), resize(picture, 50).shape)\n"
    )
    assert main(["fix", str(path), "--apply"]) == 0
    assert len(path.read_text().splitlines()) <= len(old.splitlines()) + 4
    done = run_program(str(path), cwd=tmp_path)
    assert done.returncode == 0, path.read_text() + done.stderr[-2000:]
    again = path.read_text()
    assert main(["fix", str(path), "--apply"]) == 0
    assert path.read_text() == again
    picture = np.arange(6000).reshape(40, 50, 3) % 251
    assert done.stdout.split() == [str(imresize(picture, (20, 25)).sum()), "(20,", "25,", "3)"]


def test_what_is_not_a_program_is_left_alone(tmp_path, capsys):
    path = tmp_path / "x.py"
    path.write_bytes(b"x = (\xff\n")
    assert main(["fix", str(path), "--apply"]) == 1
    assert path.read_bytes() == b"x = (\xff\n"
    assert str(path) in capsys.readouterr().err


def test_edits_that_overlap_are_not_mixed():
    edits = [Edit(1, 0, 1, 6, "x"), Edit(1, 2, 1, 4, "y"), Edit(2, 0, 2, 1, "ü")]
    assert apply_edits("abcdefg\nb\n", edits) == "xg\nü\n"


# -- single rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "x = int(a / 2)",
        "for i in range(int(a / 2)): pass",
        "x = y[int(n / 2)]",
        "x = [0.0] * (n // 2)",
        "lr = 1 / 2",
        "x = mx.nd.ones((1,)) / 2",
        "d = {a / 2: 1}",
        "x = f(a / 2)[0]",
        "nn.Dense(10, weight_initializer=mx.init.Normal(1 / 2))",
        "mx.sym.Dropout(x, p=1 / 2)",
    ],
)
def test_correct_divisions_are_not_reported(line, tmp_path, capsys):
    header = "import mxnet as mx\nfrom mxnet.gluon import nn\n"
    (tmp_path / "x.py").write_text(header + line + "\n")
    assert checked(capsys, tmp_path)["found"] == []


@pytest.mark.parametrize(
    "line",
    [
        "x = y[n / 2]",
        "x = y[:, n / 2:]",
        "x = [0] * (n / 2)",
        "range(1, (n + 1) / 2 - 1)",
        "mx.sym.Convolution(x, kernel=(k / 2, 1), num_filter=3)",
        "nn.Dense(units=n / 2)",
    ],
)
def test_divisions_that_stop_the_program_are_reported(line, tmp_path, capsys):
    header = "import mxnet as mx\nfrom mxnet.gluon import nn\n"
    (tmp_path / "x.py").write_text(header + line + "\n")
    assert [f["status"] for f in checked(capsys, tmp_path, code=1)["found"]] == ["division"]


@pytest.mark.parametrize(
    "text", ["wd=0.00001", "x = 0.0077", "x = 1000", "x = 0o777", "x = '0777'"]
)
def test_numbers_are_not_taken_for_octal_ones(text, tmp_path, capsys):
    (tmp_path / "x.py").write_text(f"import mxnet\n{text}\nprint 'Python 2'\n")
    assert [f["line"] for f in checked(capsys, tmp_path)["found"]] == [3]


def test_a_value_of_none_is_there():
    assert look_up("mxnet.gluon.Block")[0] is not None
    assert look_up("mxnet.nothing")[0] is None


def test_hostile_programs(tmp_path, capsys):
    (tmp_path / "deep.py").write_text("(" * 5000)
    (tmp_path / "null.py").write_bytes(b"\0\xff")
    facts = checked(capsys, tmp_path, code=1)
    assert {n["status"] for n in facts["found"]} == {"syntax"}


def test_model_files_are_checked(tmp_path, capsys):
    for name in ("gluon/dense-symbol.json", "gluon/dense-0000.params", "records/images.rec"):
        shutil.copy(GOLDEN / name, tmp_path)
    (tmp_path / "config.json").write_text("{}")  # not a model
    facts = checked(capsys, tmp_path)
    assert len(facts["files"]) == 3
    (tmp_path / "bad.params").write_bytes(b"\0" * 40)
    facts = checked(capsys, tmp_path, code=1)
    assert [bool(f["problems"]) for f in facts["files"]] == [True, False, False, False]


# -- programs that are whole: they run as they are by `mx run`, and by Python after `mx fix` ------


WHOLE = [
    part.partition("\n")[0]
    for part in (PROGRAMS / "runnable.txt").read_text(encoding="utf-8").split("=== ")[1:]
]
OPTIONAL = {"run/2021_pandas.py": "pandas", "run/2018_yaml_config.py": "yaml"}
# What `mx fix` leaves to the author: nothing of today means the same, which the patch says.
NOT_FIXED = {
    "run/2021_pandas.py": "append",
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_programs_run_unchanged_and_after_mx_fix(name, tmp_path, capsys):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    write_corpus(tmp_path)
    program, folder = tmp_path / name, tmp_path / "results"
    folder.mkdir()
    done = run_program("-m", "mxnext_cli", "run", str(program), cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "\nok" in f"\n{done.stdout}"
    main(["fix", str(program), "--apply"])
    told = capsys.readouterr().out
    compile(program.read_bytes(), name, "exec")  # the fixed program is valid Python 3
    again = run_program(str(program), cwd=folder)
    if name in NOT_FIXED:
        assert NOT_FIXED[name] in again.stderr
        assert any(NOT_FIXED[name] in x for x in told.splitlines() if "left to you" in x)
    else:
        assert again.returncode == 0, again.stderr[-2000:]
        assert again.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]


# -- what was missed, and false alarms -------------------------------------------------------------


def statuses(tmp_path, capsys, source, code=0, name="x.py"):
    (tmp_path / name).write_text(source)
    return [(f["line"], f["status"]) for f in checked(capsys, tmp_path, code=code)["found"]]


def test_no_file_ends_a_check(tmp_path, capsys):
    (tmp_path / "a.py").write_text(
        "from mxnet.base import _LIB\n_LIB.MXSymbolCreateVariable(1)\nimport mxnet.nothing\n"
    )
    (tmp_path / "b.ipynb").write_text("[]")
    (tmp_path / "c.py").write_text("x = " + "-" * 3000 + "1\nimport numpy\n")
    (tmp_path / "d.params").write_bytes(b"\0" * 9)
    (tmp_path / "e.py").write_text("import mxnet as mx\nmx.nd.zeross(1)\n")
    (tmp_path / "f.py").symlink_to(tmp_path / "absent.py")
    facts = checked(capsys, tmp_path, code=1)
    files = {Path(f["file"]).name for f in facts["found"]}
    assert files >= {"a.py", "b.ipynb", "e.py"}
    hints = [f["hint"] for f in facts["found"] if f["name"].startswith("mxnet.base._LIB")]
    assert "C library" in hints[0]


BLOCK = """
from mxnet import gluon
class Net(gluon.HybridBlock):
    def hybrid_forward(self, F, x, i):
        return self.rest(F, {})
    def rest(self, F, x):
        return F.relu(x).clip(0, 1)
"""


@pytest.mark.parametrize(
    "call",
    ["F.gather_nd(x, i).reshape((-1,))", "F.relu(x)[0].as_in_context(c).asnumpy().sum()"],
)
def test_methods_of_results_are_not_absent(call, tmp_path, capsys):
    assert statuses(tmp_path, capsys, BLOCK.format(call)) == []


def test_functions_of_nd_alone_fail_when_hybridized(tmp_path, capsys):
    (tmp_path / "x.py").write_text(BLOCK.format("F.multiply(x, F.logical_or(x, i))"))
    found = checked(capsys, tmp_path)["found"]
    assert {f["status"] for f in found} == {"nd only"}
    hints = " ".join(f["hint"] for f in found)
    assert "fails when hybridized" in hints
    assert "write F.broadcast_mul" in hints
    assert "write F.broadcast_logical_or" in hints


def test_absent_names_of_helpers_with_f_are_found(tmp_path, capsys):
    source = BLOCK.format("x").replace("F.relu", "F.reluu")
    assert statuses(tmp_path, capsys, source, code=1) == [(7, "absent")]


@pytest.mark.parametrize(
    "code",
    [
        "ctx = mx.gpu() if mx.test_utils.list_gpus() else mx.cpu()",
        "try:\n    ctx = mx.gpu()\nexcept mx.base.MXNetError:\n    ctx = mx.cpu()",
        "if mx.context.num_gpus() > 0:\n    ctx = mx.gpu()",
        "try:\n    loss = mx.sym.contrib.FocalLoss\nexcept AttributeError:\n    pass",
        "if hasattr(mx.nd, 'nothing'):\n    mx.nd.nothing(3)",
    ],
)
def test_guarded_code_is_not_reported(code, tmp_path, capsys):
    (tmp_path / "x.py").write_text(f"import mxnet as mx\n{code}\n")
    facts = checked(capsys, tmp_path)
    assert (facts["found"], facts["notes"]) == ([], [])


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ("n = len(shapes) / 2\nmx.sym.Convolution(num_filter=n * 2, kernel=(1, 1))", "division"),
        ("np.zeros((crop_size_width / stride, 4))", "division"),
        ("nn.Conv2D(channels / 2, 3)", "division"),
        ("epochs = args.num_examples / args.batch_size", "quotient"),
        ("x = len(shapes) / 3", "quotient"),
        ("half = images.shape[0] / 2\nprint(half)", "quotient"),
    ],
)
def test_divisions_of_integers_are_reported(lines, status, tmp_path, capsys):
    header = "import mxnet as mx\nimport numpy as np\nfrom mxnet.gluon import nn\n"
    code = 1 if status == "division" else 0
    assert statuses(tmp_path, capsys, header + lines, code) == [(4, status)]


def test_a_chain_of_quotients_is_one_finding(tmp_path, capsys):
    source = "n = args.num_examples / args.batch_size / kv.num_workers\n"
    (tmp_path / "x.py").write_text(source)
    (tmp_path / "old.py").write_text(source + "print 'n', n\n")
    hints = [f["hint"] for f in checked(capsys, tmp_path)["found"]]
    whole = "args.num_examples // args.batch_size // kv.num_workers"
    assert f"Python 2 gave {whole}" in hints
    assert f"write {whole}: Python 2 cut the quotient" in hints
    assert len([h for h in hints if "//" in h]) == 2
    assert main(["fix", "--apply", str(tmp_path / "old.py")]) == 0
    assert whole in (tmp_path / "old.py").read_text()


LISTS = """
import random
import numpy as np

class Iter(object):
    def __init__(self, n):
        self.order = range(n)  # list
        self.rest = range(n)

    def reset(self):
        random.shuffle(self.order)
        return self.rest[0]

def names(d):
    keys = d.keys()  # list
    keys.sort()
    values = d.values()
    values = sorted(values)
    return keys[:2], values[0], len(d.keys())

def transpose(data):
    if len(data) > 1:
        data = zip(*data)
        return [sum(x) for x in data]
    return data[0]

def epochs(n):
    begins = range(0, n, 2)  # list
    return begins[1:] + [n]

class Sorted(object):
    def __init__(self):
        self.keys = None

    def fit(self, pairs):
        self.keys = map(max, pairs)  # list
        first, rest = 0, map(min, pairs)  # list
        return self.keys[-1] + len(rest) + iter(pairs).next()[0]

d = {'a': 1, 'b': 2}
n = len(filter(None, [1, 0]))  # list
parts = map(int, '123')  # list
parts += [4]
first = d.items()[0] + zip('x', 'y')[0]  # list
mean = float(np.mean(d.values()))  # list
mean += int(np.array(map(int, '12'))[1])  # list
for pair in zip('ab', d.items()):
    n += 1
it = Iter(3)
it.reset()
print (str([names(d), n, parts, first, mean, sorted(it.order)]))
print ('%s %s' % (epochs(5), Sorted().fit([(1, 2), (3, 4)])))
"""


def lines_marked(source, mark):
    return {i for i, line in enumerate(source.splitlines(), 1) if line.endswith(mark)}


def test_results_that_are_lists_only_in_python_2_are_reported(tmp_path, capsys):
    path = tmp_path / "x.py"
    path.write_text(LISTS)
    found = checked(capsys, path)["found"]
    assert {f["line"] for f in found} == lines_marked(LISTS, "# list")
    assert {f["status"] for f in found} == {"python 2"}
    assert main(["run", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == (
        "[(['a', 'b'], 1, 2), 3, [1, 2, 3, 4], ('a', 1, 'x', 'y'), 3.5, [0, 1, 2]]\n[2, 4, 5] 7\n"
    )
    assert "list(keys(...))" in captured.err
    assert "next(x)" in captured.err
    assert main(["fix", "--apply", str(path)]) == 0
    path.write_text(path.read_text().replace("iter(pairs).next()", "next(iter(pairs))"))
    assert run_program(str(path), cwd=tmp_path).stdout == captured.out


PICKLES = """
import cPickle as pickle
import numpy as np

def save(path, value):
    pickle.dump(value, open(path, 'w'))  # text

def load(path):
    with open(path) as f:  # text
        return pickle.load(f)

def load_again(path):
    f = open(path, 'r')  # text
    return pickle.load(f)

def load_right(path):
    with open(path, 'rb') as f:
        return pickle.load(f)

save('x.pkl', {'x': np.ones(2)})
for read in (load, load_again, load_right):
    print 'sum', read('x.pkl')['x'].sum()
"""


@pytest.mark.filterwarnings("ignore")  # the program does not close its files
def test_pickles_in_files_of_text(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.py"
    path.write_text(PICKLES)
    found = [f for f in checked(capsys, path)["found"] if "pickles are bytes" in f["hint"]]
    assert {f["line"] for f in found} == lines_marked(PICKLES, "# text")
    assert main(["run", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == "sum 2.0\n" * 3
    assert "open(path, 'rb')" in captured.err
    assert main(["fix", "--apply", str(path)]) == 0
    assert run_program(str(path), cwd=tmp_path).stdout == captured.out


COMPARISONS = """
pairs = [(1, 'b'), (2, 'a')]
print 'first', sorted(pairs, lambda a, b: cmp(a[1], b[1]))[0]
pairs.sort(cmp=lambda a, b: cmp(b[0], a[0]))
print 'last', pairs[0]
"""


def test_sorts_by_comparisons(tmp_path, capsys):
    path = tmp_path / "x.py"
    path.write_text(COMPARISONS)
    names = [(f["line"], f["name"]) for f in checked(capsys, path)["found"]]
    assert {(3, "sort(cmp)"), (3, "cmp"), (4, "sort(cmp)"), (4, "cmp")} <= set(names)
    assert main(["run", str(path)]) == 0
    said = capsys.readouterr().out
    assert said == "first (2, 'a')\nlast (2, 'a')\n"
    assert main(["fix", "--apply", str(path)]) == 0
    assert run_program(str(path), cwd=tmp_path).stdout == said


def test_a_comparison_of_the_program_is_its_own(tmp_path, capsys):
    path = tmp_path / "x.py"
    path.write_text("def cmp(a, b):\n    return a - b\nx = cmp(1, 2)\n")
    assert checked(capsys, path)["found"] == []


@pytest.mark.parametrize(
    "line",
    [
        "acc = num_correct / num_examples",
        "n = int(num_examples / batch_size)",
        "step = 1 / num_examples",
        "x = 1.0 * num_examples / batch_size",
        "x = num_examples / float(batch_size)",
        "x = f'{num_examples / batch_size}'",
        "x = 10 / 2",
    ],
)
def test_intended_true_division_is_not_reported(line, tmp_path, capsys):
    assert statuses(tmp_path, capsys, line + "\n") == []


def test_projects_that_require_python_3_mean_fractions(tmp_path, capsys):
    (tmp_path / "setup.py").write_text("setup(name='x', python_requires='>=3.5')\n")
    source = "step = num_examples / batch_size\nx = y[n / 2]\n"
    assert statuses(tmp_path, capsys, source, code=1) == [(2, "division")]


@pytest.fixture
def package(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__init__.py").write_text("")
    (tmp_path / "net" / "sizes.py").write_text("SIZE = 3\n")
    (tmp_path / "net" / "layers.py").write_text("from sizes import SIZE\nimport sizes as s\n")
    (tmp_path / "train.py").write_text("from net.layers import SIZE\nprint(SIZE)\n")
    return tmp_path


def test_implicit_relative_imports_are_listed_and_fixed(package, capsys):
    found = checked(capsys, package)["found"]
    assert [(f["line"], f["status"]) for f in found] == [(1, "relative import")] * 1 + [
        (2, "relative import")
    ]
    assert main(["fix", str(package), "--apply"]) == 0
    text = (package / "net" / "layers.py").read_text()
    assert text == "from .sizes import SIZE\nfrom . import sizes as s\n"
    done = run_program(str(package / "train.py"), cwd=package)
    assert done.stdout == "3\n", done.stderr


def test_modules_beside_a_script_are_no_relative_imports(package, capsys):
    (package / "net" / "main.py").write_text("import layers\nif __name__ == '__main__':\n    0\n")
    assert checked(capsys, package)["found"] == []
    (package / "net" / "main.py").unlink()
    (package / "train.py").write_text("import sys\nsys.path.append('net')\nimport net.layers\n")
    assert checked(capsys, package)["found"] == []


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("i = int(np.where(a == 1)[0])", "i = int(np.where(a == 1)[0].item())"),
        ("p = int(out.asnumpy()[0])", "p = int(out.asnumpy()[0].item())"),
        (
            "p = out.asnumpy()[1:2]\nprint(float(p))",
            "p = out.asnumpy()[1:2]\nprint(float(p.item()))",
        ),
    ],
)
def test_conversions_of_arrays_are_reported_and_fixed(line, new, tmp_path, capsys):
    source = f"import numpy as np\n{line}\n"
    (status,) = [status for _, status in statuses(tmp_path, capsys, source)]
    assert status in ("removed", "conversion")
    assert main(["fix", str(tmp_path), "--apply"]) == 0
    assert (tmp_path / "x.py").read_text() == f"import numpy as np\n{new}\n"


@pytest.mark.parametrize(
    "line",
    ["x = float(loss.asnumpy()[0])", "x = int(y.mean().asnumpy()[0])", "x = float(y.asnumpy())"],
)
def test_conversions_that_work_are_not_reported(line, tmp_path, capsys):
    assert statuses(tmp_path, capsys, line + "\n") == []


@pytest.mark.parametrize(
    ("call", "fork"),
    [
        ("mx.gluon.nn.QConv2D(3)", "BMXNet"),
        ("mx.sym.QFullyConnected(x)", "BMXNet"),
        ("mx.symbol.WarpCTC(x)", "WarpCTC"),
        ("mx.symbol.CaffeOp(x)", "Caffe"),
        ("mx.sym.Quantization_int8(x)", "8 bits"),
        ("mx.sym.contrib.Proposal_v2(x)", "SimpleDet"),
    ],
)
def test_forks_are_named_and_nothing_else_is_proposed(call, fork, tmp_path, capsys):
    (tmp_path / "x.py").write_text(f"import mxnet as mx\n{call}\n")
    (row,) = checked(capsys, tmp_path, code=1)["found"]
    assert row["status"] == "fork"
    assert fork in row["hint"]
    assert "Did you mean" not in row["hint"]


@pytest.mark.parametrize("name", ["Conv9D", "Densed2", "Pooling3", "batch_ned"])
def test_names_that_merely_look_alike_are_not_proposed(name, tmp_path, capsys):
    (tmp_path / "x.py").write_text(f"import mxnet as mx\nmx.gluon.nn.{name}\n")
    (row,) = checked(capsys, tmp_path, code=1)["found"]
    assert row["hint"] == ""


def test_unicode_literals_are_not_python_2(tmp_path, capsys):
    source = "print 'a'\nx = u'b'\ny = [u'c', u\"d\"]\n"
    assert statuses(tmp_path, capsys, source) == [(1, "python 2")]


def test_equal_findings_are_one_line_with_a_count(tmp_path, capsys):
    (tmp_path / "x.py").write_text("import mxnet as mx\n" + "print 'a', mx.gpu()\n" * 20)
    (tmp_path / "y.py").write_text("import package_that_nobody_has\nmx = 1 / len([])\n")
    (tmp_path / "z.py").write_text("import package_that_nobody_has, mxnet\nmxnet.nd.zeross\n")
    assert main(["check", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.count("print statement (20 times)") == 1
    assert said.count("package_that_nobody_has (2 times)") == 1
    assert said.count("note: mx.gpu()") == 1
    assert "(20 places)" in said
    assert said.index("zeross") < said.index("print statement")
    assert said.splitlines()[-1] == "Next: replace the absent names, then mx check again."
    assert main(["check", str(tmp_path), "--all"]) == 1
    assert capsys.readouterr().out.count("write print('a', mx.gpu())") == 20


@pytest.mark.parametrize(
    ("source", "step"),
    [
        ("import mxnet\nprint 1\n", "mx run {}"),
        (
            "import mxboard, lmdb, gluonnlp\n",
            "pip install gluonnlp==0.10.0 lmdb mxboard 'protobuf<3.21'",
        ),
        ("import lmdb_of_nobody\n", "install the missing packages, or copy them into the project."),
        ("x = y[len(y) / 2]\n", "mx fix --apply writes //; then mx run the program."),
    ],
)
def test_the_last_line_says_what_to_do_next(source, step, tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(source)
    main(["check", str(path)])
    assert capsys.readouterr().out.splitlines()[-1] == f"Next: {step.format(path)}"


NETWORKS = """
import mxnet as mx
from mxnet.gluon import nn

def get_symbol(num_classes=4):
    net = mx.sym.Convolution(mx.sym.var('data'), num_filter=2, kernel=(3, 3), name='c')
    net = mx.sym.FullyConnected(net, num_hidden=num_classes)
    return mx.sym.SoftmaxOutput(net, name='softmax')

def get_broken():
    net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2)
    return mx.sym.reshape(net, shape=(7, 13))

def get_needed(classes):
    return nn.Dense(classes)

class Net(nn.HybridBlock):
    def __init__(self, **kwargs):
        super(Net, self).__init__(**kwargs)
        self.dense = nn.Dense(3)
    def hybrid_forward(self, F, x):
        return self.dense(x)
"""


def test_networks_run_forward_and_backward(tmp_path, capsys):
    (tmp_path / "net.py").write_text(NETWORKS)
    (tmp_path / "train.py").write_text("import net\nraise SystemExit(net.get_symbol())\n")
    shutil.copy(GOLDEN / "gluon/dense-symbol.json", tmp_path)
    assert main(["check", "--run", "--json", str(tmp_path)]) == 1
    facts = json.loads(capsys.readouterr().out)
    problems = {n["network"].rpartition("/")[2]: n["problems"] for n in facts["networks"]}
    assert problems.keys() == {
        "dense-symbol.json", "net.py:get_symbol", "net.py:get_broken", "net.py:Net",
    }  # fmt: skip
    assert [name for name, found in problems.items() if found] == ["net.py:get_broken"]
    target = f"{tmp_path / 'net.py'}:get_symbol"
    assert main(["check", "--network", target, "--shape", "2,3,8,8", str(tmp_path)]) == 0
    assert "1 of 1 network ran forward and backward" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_what_the_readme_shows_is_what_is_printed(page, tmp_path, capsys, monkeypatch):
    pytest.importorskip("sklearn")
    root = Path(__file__).parents[2]
    program = (root / "tests" / "tools" / "readme_train.txt").read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "."]) == 0
    checked = capsys.readouterr().out
    assert main(["run", "train.py"]) == 0
    trained = capsys.readouterr().out
    shown = f"$ mx check .\n{checked}\n$ mx run train.py\n{trained}"
    assert shown in (root / page).read_text(encoding="utf-8")


def test_the_next_step_names_the_program_that_can_be_started(tmp_path, capsys):
    (tmp_path / "layers.py").write_text("import mxnet as mx\n")
    (tmp_path / "bucketing.py").write_text("if __name__ == '__main__':\n    print(1)\n")
    assert main(["check", str(tmp_path)]) == 0
    assert f"Next: mx run {tmp_path / 'bucketing.py'}" in capsys.readouterr().out


def test_an_unreadable_model_is_reported_once(tmp_path, capsys):
    graph = {"nodes": [{"op": "NoSuchOp", "name": "x", "inputs": []}], "heads": [[0, 0, 0]]}
    path = tmp_path / "model-symbol.json"
    path.write_text(json.dumps({**graph, "arg_nodes": []}))
    assert main(["check", "--run", str(tmp_path)]) == 1
    assert capsys.readouterr().out.count(str(path)) == 1
