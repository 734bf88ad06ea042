"""Hooks of MkDocs: pages, notebooks and plots that are generated, and links that leave ``docs/``.

The READMEs of packages, CONTRIBUTING and CHANGELOG are pages of the site too, so a link from the
documentation to one of them becomes a link within the site; a link to a source file becomes its
path in the repository.
"""

from __future__ import annotations

import ast
import html
import os
import pathlib
import posixpath
import re
import sys
import tempfile
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

REPOSITORY_PAGES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/README.md": "examples.md",
    "mxnet/ops/README.md": "internals/ops.md",
    "mxnet/graph/README.md": "internals/graph.md",
    "mxnet/runtime/README.md": "internals/runtime.md",
    "mxnet/ndarray/README.md": "internals/ndarray.md",
    "mxnet/kvstore/README.md": "internals/kvstore.md",
    "tests/grammar/README.md": "internals/properties.md",
}

EXAMPLES = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "examples").rglob("*.py"))
REPOSITORY_PAGES |= {path: path.removesuffix(".py") + ".md" for path in EXAMPLES}

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the reference and of the packages in the navigation."""
    from tools import api_pages

    sections = {name: pages for entry in config.nav for name, pages in entry.items()}
    sections["Reference"] += api_pages.navigation()
    listed = str(config.nav)
    pages = [target for source, target in REPOSITORY_PAGES.items() if source not in EXAMPLES]
    sections["Project"] += [path for path in pages if path not in listed]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference and the pages that lie elsewhere in the repository."""
    from mkdocs.structure.files import File

    from tools import api_pages, notebooks, performance

    for source, target in REPOSITORY_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source in EXAMPLES:
            text, picture = _render_example(source, text)
            path = _picture_path(target, picture)
            content = picture.read_bytes() if picture else _draw_output(source)
            files.append(File.generated(config, path, content=content))
        text = _redirect(text, source, target)
        if source == "examples/README.md":
            text = _render_gallery(text)
        files.append(File.generated(config, target, content=text))
    for page in api_pages.PAGES:
        files.append(File.generated(config, page.path, content=api_pages.render(page)))
    for path, text in api_pages.function_pages().items():
        files.append(File.generated(config, path, content=text))
    text, plots = performance.render()
    text = _redirect(text, f"docs/{performance.PATH}", performance.PATH)
    files.append(File.generated(config, performance.PATH, content=text))
    for path, picture in plots.items():
        files.append(File.generated(config, path, content=picture))
    for page in notebooks.PAGES:
        text = notebooks.make_notebook((DOCS / page).read_text(encoding="utf-8"))
        files.append(File.generated(config, notebooks.notebook_path(page), content=text))
    for page in DOCS.rglob("*.md"):
        for path, picture in _draw_plots(page.relative_to(DOCS).as_posix()).items():
            files.append(File.generated(config, path, content=picture))
    files.append(File.generated(config, "reference/index.md", content=api_pages.render_index()))
    return files


def _draw_plots(page: str) -> dict[str, str]:
    """Run a page that shows plots; return them as SVG by the paths that `_show_plots` links to.

    Plots in the folder `MXNEXT_PAGE_PLOTS`, which `tools.run_page` wrote, are not drawn again.
    """
    from tools import run_page

    path = DOCS / page
    count = len(run_page.PLOT.findall(path.read_text(encoding="utf-8")))
    if not count:
        return {}
    if folder := os.environ.get("MXNEXT_PAGE_PLOTS"):
        files = {name: pathlib.Path(folder, name) for name in _plot_paths(page, count)}
        if all(file.exists() for file in files.values()):
            return {name: file.read_text(encoding="utf-8") for name, file in files.items()}
    start = pathlib.Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # pages write files
        try:
            plots = run_page.run(path)
        finally:
            os.chdir(start)
    return dict(zip(_plot_paths(page, count), plots, strict=True))


def _plot_paths(page: str, count: int) -> list[str]:
    return [f"{page.removesuffix('.md')}-{number}.svg" for number in range(count)]


def _show_plots(text: str, page: str) -> str:
    """Put pictures where the page says that there is a plot."""
    from tools import run_page

    matches = list(run_page.PLOT.finditer(text))
    for match, path in zip(matches, _plot_paths(page, len(matches)), strict=True):
        picture = f"![{match.group(1)}]({posixpath.basename(path)})"
        text = text.replace(match.group(0), picture, 1)
    return run_page.OUTPUT_OPTION.sub("```output", text)


def _offer_notebook(text: str, page: str) -> str:
    """Put a link to the notebook of a page under its title."""
    from tools import notebooks

    if page not in notebooks.PAGES:
        return text
    label = "下载本页的 Jupyter 笔记本" if page.startswith("zh/") else "This page as a notebook"
    link = posixpath.basename(notebooks.notebook_path(page))
    title, _, rest = text.partition("\n")
    return f"{title}\n\n[{label}]({link}){{ download }}\n{rest}"


def _render_example(source: str, text: str) -> tuple[str, pathlib.Path | None]:
    """Return the page of an example, and its picture.

    The page has what the example shows, how it is started, its result and its code.
    """
    from tools import example_output

    tree = ast.parse(text)
    doc = ast.get_docstring(tree) or ""
    name = source.removeprefix("examples/").removesuffix(".py")
    command = example_output.make_command(name)
    shown = "" if f"python {source}" in doc else f"```\n{command}\n```\n\n"
    if doc:  # it is the text of the page
        text = "".join(text.splitlines(keepends=True)[tree.body[0].end_lineno :]).lstrip("\n")
    printed, picture = example_output.find_output(name)
    image = f"![What it draws]({posixpath.basename(name)}.png)\n\n" if picture else ""
    output = f"## Output\n\n{image}```\n$ {command}\n{printed}```\n\n" if printed else ""
    up = posixpath.relpath("examples/README.md", posixpath.dirname(source))
    head = f"# {source}\n\n[Examples]({up}) › {name}\n\n{doc}\n\n"
    return f"{head}{shown}{output}## Code\n\n```python\n{text}```\n", picture


def _picture_path(page: str, picture: pathlib.Path | None) -> str:
    return page.removesuffix(".md") + (".png" if picture else ".svg")


_TABLE_ROW = re.compile(r"\[([^\]]+)\.py\]\(examples/([^)]+)\.md\) \| (.+)")


def _render_gallery(text: str) -> str:
    """Return the page of the examples with a card for each row of its table."""
    from tools import example_output

    head = text.partition("\nExample | Shows")[0]
    cards = []
    for name, path, sentence in _TABLE_ROW.findall(text):
        picture = _picture_path(f"examples/{path}.md", example_output.find_output(path)[1])
        cards.append(
            f"<div markdown>\n\n[![What {name} prints or draws]({picture})](examples/{path}.md)\n\n"
            f"**[{name}](examples/{path}.md)**: {sentence}\n\n</div>"
        )
    return f'{head}\n<div class="gallery" markdown>\n\n' + "\n\n".join(cards) + "\n\n</div>\n"


def _draw_output(source: str) -> bytes:
    """Return the last lines that an example prints as a picture, for those that draw nothing."""
    from tools import example_output

    name = source.removeprefix("examples/").removesuffix(".py")
    text = example_output.find_output(name)[0].rstrip()
    lines = [row for line in text.splitlines() for row in textwrap.wrap(line, 54) or [""]][-12:]
    rows = "".join(
        f'<text x="16" y="{28 + 20 * i}" xml:space="preserve">{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    style = "font-family: monospace; font-size: 13px; fill: #d8dee9"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 270">'
        '<rect width="480" height="270" rx="8" fill="#1e2430"/>'
        f'<g style="{style}">{rows}</g></svg>'
    ).encode()


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links to files outside ``docs/`` into links that the site has."""
    target = page.file.src_uri
    if target == "index.md":
        page.meta["hide"] = ["navigation", "toc"]  # the cards lead on
    if target.startswith("notes/"):  # found after the pages that say how to do something
        page.meta["search"] = {"boost": 0.5}
    if page.file.generated_by is not None:
        return markdown
    markdown = _offer_notebook(_show_plots(markdown, target), target)
    return _redirect(markdown, f"docs/{target}", target)


def _redirect(text: str, source: str, target: str) -> str:
    """Rewrite the links of a page that lies at `source` in the repository."""

    def replace(match: re.Match[str]) -> str:
        label, link, anchor = match.groups()
        if "://" in link:
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        if path.startswith("docs/"):
            path = path.removeprefix("docs/")
        elif path in REPOSITORY_PAGES:
            path = REPOSITORY_PAGES[path]
        elif pathlib.PurePosixPath(path).suffix in (".ipynb", ".svg"):
            return match.group(0)  # made beside the page
        else:
            return f"{label} (`{path}`)" if f"`{path}`" != label else label
        relative = posixpath.relpath(path, posixpath.dirname(target) or ".")
        return f"[{label}]({relative}{anchor or ''})"

    return _LINK.sub(replace, text)
