"""`mx run` restores removed names only for old programs; `mx check` reports missing names."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from mxnext_cli import main
from mxnext_cli.run import removed

# Programs in the style of 2016 to 2020. Lines that use removed names end in ``# old``.
PROGRAMS = {
    "module_training": """
import mxnet as mx
import numpy as np

data = np.random.rand(20, 4).astype(np.float)  # old
label = (data.sum(1) > 2).astype(np.int)  # old
train = mx.io.NDArrayIter(data.astype('float32'), label.astype('float32'), batch_size=5)
net = mx.sym.Variable('data')
net = mx.sym.FullyConnected(net, num_hidden=2, name='fc')
net = mx.sym.SoftmaxOutput(net, name='softmax')
mod = mx.mod.Module(net)
mod.fit(train, num_epoch=1, optimizer_params={'learning_rate': 0.1})
args, _ = mod.get_params()
print('parameters', sum(np.product(v.shape) for v in args.values()))  # old
""",
    "gluon_loop": """
import time
import collections
import mxnet as mx
from mxnet import gluon, nd, autograd
import numpy as np

def as_list(x):
    return list(x) if isinstance(x, collections.Iterable) else [x]  # old

net = gluon.nn.Dense(1)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': .01})
tic = time.clock()  # old
for batch in as_list([nd.ones((2, 3))]):
    with autograd.record():
        loss = (net(batch) ** 2).mean()
    loss.backward()
    trainer.step(2)
print('loss', np.asscalar(loss.asnumpy()) >= 0, time.clock() >= tic)  # old
""",
    "thumbnails": """
from PIL import Image
import numpy as np

im = Image.fromarray(np.zeros((8, 8, 3), np.uint8))
small = im.resize((4, 4), Image.ANTIALIAS)  # old
pixels = np.asarray(small, dtype=np.object)  # old
print(pixels.shape)
""",
    "configuration": """
import ConfigParser  # old
import cPickle as pickle  # old
from StringIO import StringIO  # old

parser = ConfigParser.ConfigParser()
parser.read_string(u'[net]\\nlayers = 3\\n')
text = pickle.dumps(parser.getint('net', 'layers'))
print(pickle.loads(text), StringIO('x').read())
""",
    "vocabulary": """
import collections
from itertools import izip  # old

class Vocabulary(collections.Mapping):  # old
    def __init__(self, words):
        self._index = {w: i for w, i in izip(words, xrange(len(words)))}  # old
    def __getitem__(self, word):
        assert isinstance(word, basestring)  # old
        return self._index[word]
    def __iter__(self):
        return iter(self._index)
    def __len__(self):
        return len(self._index)

def total(numbers):
    return reduce(lambda a, b: a + b, numbers, long(0))  # old

vocabulary = Vocabulary([unicode('a'), u'b'])  # old
print(vocabulary['b'], total(vocabulary[w] for w in vocabulary))
""",
    "arguments": """
import argparse
import inspect
import string
import sys

def layer(data, units=10):
    return data

print(inspect.getargspec(layer).args)  # old since 3.11
print(string.letters[:3], sys.maxint > 5)  # old
parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=1)
print(parser.parse_args().epochs)
if parser.parse_args().epochs > 100:
    print(string.uppercase)  # old
""",
    "pictures": """
import numpy as np
import scipy
from scipy import signal
import scipy.misc

x = scipy.array([1., 2., 3.])  # old
print(scipy.misc.logsumexp(x) > 3)  # old
print(scipy.misc.imresize(np.zeros((4, 4), np.uint8), (2, 2)).shape)  # old
print(signal.hann(3)[1])  # old
""",
    "splitting": """
from sklearn.cross_validation import train_test_split  # old
import numpy as np

a, b = train_test_split(np.arange(10), test_size=0.2)
print(len(a), len(b), np.product(a.shape))  # old
""",
    "anchors": """
import numpy as np
from numpy import product, Inf  # old

scores = np.array([1, -Inf], dtype=np.float_)  # old
boxes = np.vstack([scores, scores])
best = np.where(np.alltrue(boxes == boxes, axis=0))[0]  # old
print(product(boxes.shape), best.tolist(), np.NaN != np.NaN)  # old
print(np.cumproduct([1, 2, 3]).tolist(), np.sometrue([0, 1]))  # old
""",
    "prefetching": """
import Queue  # old
import threading

results = Queue.Queue()
worker = threading.Thread(target=lambda: results.put(1))
worker.start()
worker.join()
print(results.get(timeout=10), worker.isAlive())  # old
""",
}

GONE_IN_312 = """
import imp  # old
from distutils.version import LooseVersion  # old
from distutils.util import strtobool  # old
import os

print(LooseVersion('1.10.1') > LooseVersion('1.9'), strtobool('yes'))
helper = imp.load_source('helper', os.path.join(os.path.dirname(__file__), 'helper.py'))
print(helper.VALUE)
"""

PYTHON_2 = """\
import sys
print 'epoch', 1
try:
    raise ValueError, 'x'
except ValueError, e:
    print >> sys.stderr, 'error:', e
from old_helper import halves
total = 5
total /= 2.0
print halves(7), total, map(int, '12')
"""


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


@pytest.fixture(params=PROGRAMS)
def path(request, tmp_path):
    for module in NEEDED.get(request.param, []):
        pytest.importorskip(module)
    return write(tmp_path, PROGRAMS[request.param])


@pytest.mark.filterwarnings("ignore")  # the programs may use what is deprecated
def test_old_programs_run_and_every_line_is_named(path, tmp_path, capsys):
    report = reported(tmp_path, path)
    said = capsys.readouterr()
    assert said.out
    lines = {row["line"] for row in report["restored_names"]}
    assert lines == set(old_lines(path)), said.err
    assert all(f"old.py:{line}" in said.err for line in lines)


@pytest.mark.filterwarnings("ignore")
def test_without_mx_run_they_fail(path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(path)])
    with pytest.raises((AttributeError, ImportError, NameError)):
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python has these modules before 3.12")
def test_modules_that_python_dropped(tmp_path, capsys):
    write(tmp_path, "VALUE = 7", "helper.py")
    report = reported(tmp_path, write(tmp_path, GONE_IN_312))
    has_setuptools = importlib.util.find_spec("distutils") is not None  # it brings its own
    assert {row["line"] for row in report["restored_names"]} >= (
        {2} if has_setuptools else {2, 3, 4}
    )
    assert capsys.readouterr().out.replace("True 1", "True True").split() == ["True", "True", "7"]


def test_modules_of_the_program_are_covered(tmp_path, capsys):
    write(tmp_path, "import numpy as np\ndef f():\n    return np.product([2, 3])\n", "model.py")
    write(tmp_path, "COUNT = [i for i in xrange(2)]\n", "counting.py")
    path = write(tmp_path, "import model, counting\nprint(model.f(), counting.COUNT)\n")
    report = reported(tmp_path, path)
    assert capsys.readouterr().out == "6 [0, 1]\n"
    lines = {(row["file"].rpartition("/")[2], row["line"]) for row in report["restored_names"]}
    assert lines == {("model.py", 3), ("counting.py", 1)}


def test_libraries_do_not_see_restored_names(tmp_path, capsys):
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
    assert not hasattr(np, "product")  # the name is removed after the run


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
    report = reported(tmp_path, path, code=1)
    said = capsys.readouterr().err
    assert said.count("File ") == 2
    assert "mxnext_cli" not in said
    assert "hint: dict.iteritems() became dict.items()" in said
    assert "AttributeError" in report["error"]


def test_ctrl_c_ends_a_program_with_a_line(tmp_path, capsys):
    path = write(tmp_path, "x = 1\nraise KeyboardInterrupt")
    assert main(["run", str(path)]) == 130
    assert capsys.readouterr().err == f"\nInterrupted at {path}, line 2.\n"
    training = """
    from mxnet._process.interrupts import explain_interrupt
    with explain_interrupt(lambda: "Interrupted. Epoch 3 is saved."):
        raise KeyboardInterrupt
    """
    path = write(tmp_path, textwrap.dedent(training))
    assert main(["run", str(path)]) == 130
    assert capsys.readouterr().err == "\nInterrupted. Epoch 3 is saved.\n"


def test_python_2_runs_as_python_2_did(tmp_path, capsys):
    path = write(tmp_path, PYTHON_2)
    write(tmp_path, "def halves(n):\n    print 'half of', n\n    return n / 2\n", "old_helper.py")
    reported(tmp_path, path)
    said = capsys.readouterr()
    assert said.out == "epoch 1\nhalf of 7\n3 2.5 [1, 2]\n"
    assert "error: x" in said.err
    assert "old.py, " in said.err
    assert "old_helper.py are Python 2 and were translated for this run" in said.err
    assert not list(tmp_path.rglob("*.pyc")), "Python itself must not take the translation"


def test_file_that_is_not_valid_python_2_or_3_raises(tmp_path, capsys):
    reported(tmp_path, write(tmp_path, "print 'a' )\n"), code=1)
    assert "SyntaxError" in capsys.readouterr().err


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
    assert removed.LooseVersion("1.10") > "1.9"
    assert removed.LooseVersion("1.2b1") != "1.2"
    assert [removed.strtobool(t) for t in ("yes", "0")] == [1, 0]
    assert removed.msort([[2, 1], [1, 2]]).tolist() == [[1, 1], [2, 2]]
    assert removed.cmp(1, 2) == -1
    assert removed.asfarray([1, 2]).dtype == np.float64
    low_high = removed.random_integers(1, 2, size=50)
    assert set(low_high.tolist()) == {1, 2}


def test_pandas_renames(tmp_path, capsys):
    pytest.importorskip("pandas")
    source = """
        import pandas as pd
        frame = pd.DataFrame({"a": [1, 2]})
        print(len(frame.append(frame)), frame.as_matrix().shape, frame.ix[0]["a"])
        print(pd.rolling_mean(frame["a"], 2).iloc[1], dict(frame.iteritems())["a"].sum())
        """
    report = reported(tmp_path, write(tmp_path, textwrap.dedent(source)))
    assert capsys.readouterr().out == "4 (2, 1) 1\n1.5 3\n"
    assert {row["line"] for row in report["restored_names"]} == {4, 5}


def test_adjusted_packages_can_be_imported(tmp_path):
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


ROOT = Path(__file__).parents[2]

ABSENT = """
import mxnet as mx
from mxnet import nd, gluon
from mxnet.gluon import nn, rnn as recurrent
from mxnet.gluon.nn import Dens  # absent
import mxnet.nothing.here  # absent

sym = mx.sym

class Net(gluon.HybridBlock):
    def hybrid_forward(self, F, x, weight):
        y = F.FullyConected(x, weight)  # absent
        return F.contrib.boxnms(F.relu(y))  # absent

net = nn.Dense(3)
net.initialise()
x = nd.zeross((2, 3))  # absent
y = sym.Convolutio(sym.var('x'))  # absent
z = recurrent.LSTMM(3)  # absent
w = mx.nd.NDArray.asnumpyy  # absent
ok = mx.nd.NDArray.asnumpy, mx.cpu().device_type, recurrent.LSTM, nd.relu
"""


def checked(capsys, *paths, code=0, everything=False):
    arguments = ["check", *map(str, paths), "--json", *(["--all"] if everything else [])]
    assert main(arguments) == code
    return json.loads(capsys.readouterr().out)


def test_absent_names_are_all_found_with_their_lines(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(ABSENT)
    names = checked(capsys, path, code=1)["found"]
    marked = [i for i, x in enumerate(ABSENT.splitlines(), 1) if x.endswith("# absent")]
    assert [n["line"] for n in names] == marked
    assert {n["status"] for n in names} == {"absent"}
    hints = {n["name"]: n["hint"] for n in names}
    assert hints["mxnet.nd.zeross"] == "Did you mean 'zeros'?"
    assert hints["F.FullyConected"] == "Did you mean 'FullyConnected'?"


def test_operators_are_counted(tmp_path, capsys):
    path = tmp_path / "x.py"
    path.write_text("import mxnet as mx\nmx.nd.relu(mx.nd.zeros((1,)))\nmx.sym.Convolution()\n")
    facts = checked(capsys, path, everything=True)
    assert [n["name"] for n in facts["found"] if n["is_operator"]] == [
        "mxnet.nd.relu",
        "mxnet.sym.Convolution",
    ]


def test_old_programs_have_removed_names_but_nothing_absent(tmp_path, capsys):
    for name, source in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(source)
    facts = checked(capsys, tmp_path)
    assert facts["absent"] == 0
    assert facts["removed"] >= 10


def test_python_2_is_reported(tmp_path, capsys):
    (tmp_path / "old.py").write_text(PYTHON_2)
    write(tmp_path, "", "old_helper.py")
    names = checked(capsys, tmp_path)["found"]
    assert [n["line"] for n in names] == [2, 4, 5, 6, 10]
    assert {n["status"] for n in names} == {"python 2"}


def test_notebooks(tmp_path, capsys):
    cells = [
        {"cell_type": "markdown", "source": ["# not ( python"]},
        {"cell_type": "code", "source": ["!pip install x\n", "%matplotlib inline\n"]},
        {"cell_type": "code", "source": ["import mxnet as mx\n", "mx.nd.zeross((1,))"]},
    ]
    (tmp_path / "x.ipynb").write_text(json.dumps({"cells": cells}))
    names = checked(capsys, tmp_path, code=1)["found"]
    assert [n["name"] for n in names] == ["mxnet.nd.zeross"]


def test_missing_packages_are_named(tmp_path, capsys):
    (tmp_path / "helper_of_mine.py").write_text("")
    (tmp_path / "x.py").write_text("import package_that_nobody_has, helper_of_mine\n")
    (name,) = checked(capsys, tmp_path)["found"]
    assert name["status"] == "missing package"
    assert name["name"] == "package_that_nobody_has"


def test_printed_report(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(ABSENT)
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"{path}:17" in said
    assert "8 absent" in said


@pytest.mark.parametrize("path", ["absent", "."])
def test_nothing_to_check(path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["check", path]) == 1
    assert path in capsys.readouterr().err


# -- what Python 2 and older NumPy computed --------------------------------------------------------


def test_inexact_quotients_of_integers_are_logged_once_per_line(tmp_path, capsys):
    source = "for i in range(3):\n    n = 7 / 2\nm = 8 / 2\nk = 5\nk /= 2\nx = 7 / 2.0\n"
    report = reported(tmp_path, write(tmp_path, source + "print(n + k)\n"))
    said = capsys.readouterr()
    assert said.out == "6.0\n"
    assert said.err.count("7 / 2 is 3.5; Python 2 gave 3") == 1
    assert [row["line"] for row in report["quotients"]] == [2, 5]


@pytest.mark.parametrize("header", ["from __future__ import division", "name = f'{1}'"])
def test_quotients_of_python_3_are_not_logged(header, tmp_path, capsys):
    reported(tmp_path, write(tmp_path, f"{header}\nprint(7 / 2)\n"))
    assert capsys.readouterr() == ("3.5\n", "")


def test_pickles_of_python_2_are_read(tmp_path, capsys):
    content = b"(dp0\nS'name'\np1\nS'caf\\xe9'\np2\ns."  # {'name': 'caf\xe9'} by Python 2
    (tmp_path / "x.pkl").write_bytes(content * 2)
    source = f"""
import cPickle
file = open({str(tmp_path / "x.pkl")!r}, 'rb')
print(cPickle.load(file)['name'], cPickle.load(file)['name'])
file.close()
print(cPickle.loads({content!r})['name'])
"""
    facts = reported(tmp_path, write(tmp_path, source))
    assert capsys.readouterr().out == "café café\ncafé\n"
    assert any("encoding='latin1'" in row["instead"] for row in facts["restored_names"])


def test_integer_arrays_divide_as_in_python_2(tmp_path, capsys):
    source = "import numpy as np\nprint (np.int64(7) / 2), (np.array([7, 9]) / 2).tolist()\n"
    reported(tmp_path, write(tmp_path, source + "print 7 / np.array([2.0])[0]\n"))
    assert capsys.readouterr().out == "3 [3, 4]\n3.5\n"


CONVERSIONS = """
import math
import numpy as np
x = np.ones((2, 1))
y = np.zeros(2)
print(int(x[0]))
print(float(x[0]), complex(x[0]))
print(round(x[0]))
print(math.sqrt(x[0]))
print('%d %s' % (x[0], x[0]))
y[1] = x[0]
print(y.tolist())
"""


def test_arrays_of_one_element_convert_to_numbers(tmp_path, capsys):
    report = reported(tmp_path, write(tmp_path, CONVERSIONS))
    assert capsys.readouterr().out.split("\n") == [
        "1", "1.0 (1+0j)", "1", "1.0", "1 [1.]", "[0.0, 1.0]", "",
    ]  # fmt: skip
    assert [row["line"] for row in report["restored_names"]] == [6, 7, 8, 9, 10, 11]
    assert {row["instead"] for row in report["restored_names"]} == {"array.item()"}


@pytest.mark.parametrize("line", ["int(np.ones(2))", "'%d' % np.ones(2)", "y[0] = np.ones(2)"])
def test_larger_arrays_do_not_convert(line, tmp_path, capsys):
    source = f"import numpy as np\ny = np.zeros(2)\n{line}\n"
    report = reported(tmp_path, write(tmp_path, source), code=1)
    assert "Error" in report["error"]
    assert "arithmetic.py" not in capsys.readouterr().err


def test_functions_for_a_compiler_are_left_as_they_are(tmp_path, capsys):
    source = (
        "def njit(f):\n    return sorted(f.__code__.co_names)\n"
        "@njit\ndef f(a):\n    return int(a) / 2\n"
        "def g(a):\n    return int(a) / 2\n"
        "print(f)\nprint(g(4))\n"
    )
    reported(tmp_path, write(tmp_path, source))
    assert capsys.readouterr().out == "['int']\n2.0\n"


def test_functions_of_the_program_named_int_are_its_own(tmp_path, capsys):
    source = "def int(x):\n    return 'own'\nprint(int(3))\n"
    reported(tmp_path, write(tmp_path, source))
    assert capsys.readouterr().out == "own\n"


@pytest.mark.parametrize("is_python_2", [True, False])
def test_implicit_relative_imports(is_python_2, tmp_path, capsys):
    package = tmp_path / "net"
    package.mkdir()
    write(package, "", "__init__.py")
    write(package, "SIZE = 3\n", "sizes.py")
    old = "print 'old'\n" if is_python_2 else ""
    lines = "from sizes import SIZE\nimport sizes as s, os\nimport sizes\n"
    write(package, f"{lines}{old}ALL = (SIZE, s.SIZE, sizes.SIZE, os.sep)\n", "layers.py")
    path = write(tmp_path, "from net import layers\nprint(layers.ALL)\n")
    reported(tmp_path, path)
    assert capsys.readouterr().out.splitlines()[-1] == "(3, 3, 3, '/')"


def test_python_3_imports_the_top_level_module_first(tmp_path, capsys):
    package = tmp_path / "net"
    package.mkdir()
    write(tmp_path, "SIZE = 'top'\n", "sizes.py")
    write(package, "", "__init__.py")
    write(package, "SIZE = 'sibling'\n", "sizes.py")
    write(package, "import sizes\n", "new.py")
    write(package, "import sizes\nprint 'old'\n", "old2.py")
    path = write(tmp_path, "from net import new, old2\nprint(new.sizes.SIZE, old2.sizes.SIZE)\n")
    reported(tmp_path, path)
    assert capsys.readouterr().out == "old\ntop sibling\n"


def test_tracebacks_hide_the_frames_of_the_package(tmp_path, capfd):
    source = "import mxnet as mx\nx = mx.nd.ones((2, 3))\nmx.nd.dot(x, x)\n"
    done = subprocess.run(
        [sys.executable, "-m", "mxnext_cli", "run", str(write(tmp_path, source))],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr.count("File ") == 1
    assert "old.py" in done.stderr
