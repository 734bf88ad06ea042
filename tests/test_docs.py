"""Documentation: generated pages, links, and programs."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import math
import pathlib
import re
import runpy
import threading
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.results import ENGINES, OWN, Result
from mxnet.ops import registry
from tests.batches import check_each
from tests.programs import run_program
from tests.visualization.chromium import PROGRAM as CHROMIUM
from tests.visualization.chromium import Browser
from tools import compatibility, notebooks, performance, run_page
from tools.tables import NAMES, PAGE, VARIABLES_PAGE, absent_names, differing, page, with_variables

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIDES = (OWN, ENGINES)
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "mxnet/**/README.md", "tests/**/README.md")
    for path in ROOT.glob(pattern)
)


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # it, or a parent package, is absent
        return False


def test_table_of_variables_is_up_to_date() -> None:
    page = VARIABLES_PAGE.read_text(encoding="utf-8")
    assert with_variables(page) == page, "run: python -m tools.tables"


def test_names_documented_as_absent_are_absent() -> None:
    """If you implement one of these, remove it from the list."""
    text = VARIABLES_PAGE.read_text(encoding="utf-8")
    part = text.partition("<!-- absent -->")[2].partition("<!-- end -->")[0]
    spelt = re.findall(r"`mx\.([\w.]+)`", part)
    assert spelt
    long = {"np": "numpy", "npx": "numpy_extension"}
    assert [n for n in spelt if _is_there(f"mxnet.{long.get(n, n)}")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_are_valid(page: pathlib.Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_file_paths_in_documentation_exist(page: pathlib.Path) -> None:
    """Paths in backticks that begin with a folder of the project."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:mxnet|tests|tools|docs|examples|benchmarks)/[\w./-]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_tour_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """`docs/tour.py` trains its network, and the files it names exist."""
    program = ROOT / "docs" / "tour.py"
    runpy.run_path(str(program), run_name="__main__")
    assert "loss by the graph" in capsys.readouterr().out
    named = re.findall(r"\bmxnet/[\w./-]+\w/?", program.read_text(encoding="utf-8"))
    assert named and [name for name in named if not (ROOT / name).exists()] == []


PROGRAMS = [
    page
    for page in PAGES
    if page.parent in (ROOT, *ROOT.glob("docs/**"))
    and "```python" in page.read_text(encoding="utf-8")
]


@pytest.fixture(scope="module")
def plots(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder for the plots of pages, which the site shows."""
    return tmp_path_factory.mktemp("plots")


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_programs_of_a_page_print_the_documented_output(
    page: pathlib.Path, plots: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The Python blocks of a page are one program, run in a subprocess."""
    docs = ROOT / "docs"
    prefix = plots / page.relative_to(docs if page.is_relative_to(docs) else ROOT).with_suffix("")
    prefix.parent.mkdir(parents=True, exist_ok=True)
    option = f"--plots={prefix}"
    done = run_program("-m", "tools.run_page", str(page), option, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_page_with_wrong_output_fails(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n```output\n3\n```\n")
    done = run_program("-m", "tools.run_page", str(page), cwd=tmp_path)
    assert done.returncode == 1
    assert "page.md, line 4: printed\n2" in done.stderr
    done = run_program("-c", "import sys; print(sys.argv); sys.exit(3)", "a", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "['-c', 'a']\n")


@pytest.fixture(scope="module")
def site(plots: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The built site; the build fails for unlisted pages and dead links."""
    pytest.importorskip("mkdocs")
    code = (
        "import os, sys; os.environ['NO_MKDOCS_2_WARNING'] = '1'\n"
        "os.environ['MXNEXT_PAGE_PLOTS'] = sys.argv[2]\n"
        "from mkdocs.__main__ import cli\n"
        "cli(['build', '--site-dir', sys.argv[1]])"
    )
    folder = tmp_path_factory.mktemp("site")
    done = run_program("-c", code, str(folder), str(plots), cwd=ROOT, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_site_builds_without_warnings(site: pathlib.Path) -> None:
    sizes = {path.relative_to(site): path.stat().st_size for path in site.rglob("*.html")}
    assert sizes[pathlib.Path("reference/ndarray/index.html")]
    assert {path: size for path, size in sizes.items() if size > 200_000} == {}
    for name in notebooks.PAGES:
        assert (site / notebooks.notebook_path(name)).exists()
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for number, _ in enumerate(run_page.PLOT.findall(text)):
            picture = site / f"{name.removesuffix('.md')}-{number}.svg"
            assert "<svg" in picture.read_text(encoding="utf-8")
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert re.fullmatch(index["config"]["separator"], "\u200b")  # between Chinese words
    assert any("自定义" in entry["text"].split("\u200b") for entry in index["docs"])


SEARCHES = {
    "batchnorm momentum": "/reference/operators/BatchNorm/",
    "save parameters": "/tutorial/networks/",
    "multi gpu": "/how-to/devices/",
    "rec file": "/how-to/data/",
    "onnx": "/conversion/",
    "读取数据": "/zh/tutorial/",
    "自定义算子": "/zh/notes/custom-operators/",
    "custom operator": "/how-to/custom-operator/",
    "learning rate schedule": "/tutorial/training/",
    "resume training": "/how-to/training-runs/",
}
FIRST_RESULT = """
(() => {
  const link = document.querySelector('.md-search-result__item > a');
  return link ? new URL(link.href).pathname : '';
})()
"""


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _search(page: Browser, address: str, query: str) -> str:
    """Return the path of the first answer."""
    page.call("Page.navigate", url="about:blank")
    page.call("Page.navigate", url=f"{address}?q={urllib.parse.quote(query)}")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = page.call("Runtime.evaluate", expression=FIRST_RESULT, returnByValue=True)
        if path := answer["result"].get("value"):
            return path
        time.sleep(0.1)
    return ""


@pytest.mark.skipif(CHROMIUM is None, reason="the program chromium is not installed")
def test_search_ranks_the_expected_page_first(site: pathlib.Path, tmp_path: pathlib.Path) -> None:
    handler = functools.partial(_Files, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser(tmp_path) as page:
            address = f"http://127.0.0.1:{server.server_port}/"
            answers = {query: _search(page, address, query) for query in SEARCHES}
        server.shutdown()
    assert answers == SEARCHES


@pytest.fixture(scope="module")
def jupyter() -> Iterator[Any]:
    """A client of one kernel, which imports the package for all notebooks."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    client = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=240, startup_timeout=240)
    with client.setup_kernel():
        yield client


def _execute(notebook: Any, client: Any, folder: pathlib.Path) -> None:
    """Run the cells of a notebook in a folder; names of earlier notebooks are cleared."""
    import nbformat

    start = nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folder}\nassert 'mx' not in dir()")
    client.nb = nbformat.v4.new_notebook(cells=[start, *notebook.cells])
    client.reset_execution_trackers()
    for number, cell in enumerate(client.nb.cells):
        client.execute_cell(cell, number)


@pytest.mark.slow
@pytest.mark.parametrize("page", notebooks.PAGES)
def test_notebooks_of_the_tutorials_run(page: str, jupyter: Any, tmp_path: pathlib.Path) -> None:
    """A downloaded notebook runs completely and shows its plots."""
    import nbformat

    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    notebook = nbformat.reads(notebooks.make_notebook(text), as_version=4)
    nbformat.validate(notebook)
    _execute(notebook, jupyter, tmp_path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == len(run_page.PLOT.findall(text))
    printed = "".join(
        output.get("text", "") for output in outputs if output.get("name") == "stdout"
    )
    shown = [match for match in run_page.BLOCK.finditer(text) if match[1] == "output"]
    assert len(printed.split()) >= len(" ".join(match[4] for match in shown).split())


def test_page_with_a_missing_plot_fails(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n<!--plot: A curve-->\n")
    with pytest.raises(AssertionError, match=r"page\.md, line 4: nothing was drawn"):
        run_page.run(page)
    drawing = "import matplotlib.pyplot as plt; plt.plot([1, 2])"
    page.write_text(f"```python\n{drawing}\n```\n<!--plot: A curve-->\n")
    (picture,) = run_page.run(page)
    assert "<svg" in picture


def test_compatibility_page_is_up_to_date() -> None:
    shown = compatibility.PAGE.read_text(encoding="utf-8")
    assert shown == compatibility.page(), "run: python -m tools.compatibility"


def test_incompatible_parameters_are_not_accepted() -> None:
    recorded = "data, axis=-1, *args, **kwargs"
    assert compatibility.is_accepted(recorded, "data, axis=-1, out=None")
    assert not compatibility.is_accepted("data, axis=-1", "axis=-1, data=None")
    assert not compatibility.is_accepted("data, axis=-1", "data")
    assert not compatibility.is_accepted("shape=(1, 2)", "shape=(1, 3)")


def test_performance_page_separates_own_kernels_and_engines() -> None:
    pytest.importorskip("matplotlib")
    text, plots = performance.render()
    assert all("<svg" in plot for plot in plots.values())
    assert [path for path in plots if f"]({path})" not in text] == []
    results = {"ResNet-18 b1": Result("", {OWN: [3.0], ENGINES: [1.0], "openvino": [2.0]})}
    engine = {side: performance.list_ratios(results, side, "openvino".__eq__) for side in SIDES}
    assert engine == {OWN: {"ResNet-18 b1": 1.5}, ENGINES: {"ResNet-18 b1": 0.5}}


# -- the page of operators, and declarations of operators ---------------------------------------


RECORDED = json.loads(NAMES.read_text(encoding="utf-8"))
IN_USE = RECORDED["in_use"]
# MXNet 1.9.1 accepts these attributes, though its own tables do not list them.
UNLISTED = {"_linalg_potrf": {"lower": "True"}, "_linalg_potri": {"lower": "True"}}


def _same(given: Any, wanted: Any) -> bool:
    """Compare defaults; MXNet stored floating-point ones in single precision."""
    if isinstance(given, tuple) and isinstance(wanted, tuple):
        return len(given) == len(wanted) and all(map(_same, given, wanted))
    if isinstance(given, float) and isinstance(wanted, float):
        return math.isclose(given, wanted, rel_tol=1e-6)
    return given == wanted


def test_operator_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.tables"


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "CHANGELOG.md"])
def test_documented_operator_counts_are_correct(page: str) -> None:
    known = {name for first, others in RECORDED["aliases"].items() for name in (first, *others)}
    names = set(registry.names())
    counts = [len(list(registry.operators())), len(names)]
    if page != "CHANGELOG.md":
        counts += [len(names & known), len(known)]
    text = (ROOT / page).read_text(encoding="utf-8")
    (line,) = re.findall(r".*\d+ (?:operators under|个算子，).*", text)
    assert [str(count) for count in counts if not re.search(rf"\b{count}\b", line)] == []


def test_documented_differences_name_registered_operators() -> None:
    assert differing()
    unknown = [name for name in differing() if registry.find(name) is None]
    assert not unknown


def test_operator_names_are_those_of_mxnet() -> None:
    """A model file with an unknown name could not be loaded by MXNet."""
    known = {name for first, others in RECORDED["aliases"].items() for name in (first, *others)}
    folders = ("fused", "interchange")  # created by graph passes, and by imports of other formats
    own = {
        op.name
        for op in registry.operators()
        if op.function.__module__.split(".")[2] in folders or op.name.startswith("_fused_int8_")
    }
    assert set(registry.names()) - own <= known
    assert not known & set(absent_names()) & set(registry.names())


def test_operator_declarations_match_mxnet() -> None:
    """All names, and all attributes in order with equal defaults (None: required)."""
    check_each({name: name for name in IN_USE}, _check_declaration)


def _check_declaration(name: str) -> None:
    op = registry.get(name)
    for alias in RECORDED["aliases"][name]:
        assert registry.find(alias) is op, f"{alias} is another operator"
    wanted = {k: v for k, v in IN_USE[name].items() if k != op.count} | UNLISTED.get(name, {})
    assert [a for a in op.attributes if a != op.count] == list(wanted)
    for key, text in wanted.items():
        attribute = op.attributes[key]
        assert attribute.required == (text is None), key
        if text is not None:
            assert _same(attribute.default, attribute.parse(text, name)), key
