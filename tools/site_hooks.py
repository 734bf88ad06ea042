"""Hooks of MkDocs: pages that are generated, and links that leave ``docs/``.

The READMEs of packages, CONTRIBUTING and CHANGELOG are pages of the site too, so a link from the
documentation to one of them becomes a link within the site; a link to a source file becomes its
path in the repository.
"""

from __future__ import annotations

import ast
import pathlib
import posixpath
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

REPOSITORY_PAGES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/README.md": "examples.md",
    "mxnet/ops/README.md": "internals/ops.md",
    "mxnet/graph/README.md": "internals/graph.md",
    "mxnet/executor/README.md": "internals/executor.md",
    "mxnet/imperative/README.md": "internals/imperative.md",
    "mxnet/ndarray/README.md": "internals/ndarray.md",
    "mxnet/kvstore/README.md": "internals/kvstore.md",
    "tests/grammar/README.md": "internals/properties.md",
}

EXAMPLES = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "examples").rglob("*.py"))
REPOSITORY_PAGES |= {path: path.removesuffix(".py") + ".md" for path in EXAMPLES}

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the reference and of the packages in the navigation."""
    from tools import reference

    sections = {name: pages for entry in config.nav for name, pages in entry.items()}
    sections["Reference"] += [{page.title: page.path} for page in reference.PAGES]
    listed = str(config.nav)
    pages = [target for source, target in REPOSITORY_PAGES.items() if source not in EXAMPLES]
    sections["Project"] += [path for path in pages if path not in listed]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference and the pages that lie elsewhere in the repository."""
    from mkdocs.structure.files import File

    from tools import reference

    for source, target in REPOSITORY_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source in EXAMPLES:
            text = _render_example(source, text)
        files.append(File.generated(config, target, content=_redirect(text, source, target)))
    for page in reference.PAGES:
        files.append(File.generated(config, page.path, content=reference.render(page)))
    for path, text in reference.function_pages().items():
        files.append(File.generated(config, path, content=text))
    rows = [f"- [{page.title}]({posixpath.basename(page.path)})" for page in reference.PAGES]
    text = "# API reference\n\nAll public names, from their docstrings.\n\n" + "\n".join(rows)
    files.append(File.generated(config, "reference/index.md", content=text + "\n"))
    return files


def _render_example(source: str, text: str) -> str:
    """Return the page of an example: what it shows, how it is started, its code."""
    doc = ast.get_docstring(ast.parse(text)) or ""
    return f"# {source}\n\n{doc}\n\n```\npython {source}\n```\n\n```python\n{text}```\n"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links to files outside ``docs/`` into links that the site has."""
    target = page.file.src_uri
    if page.file.generated_by is not None:
        return markdown
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
        else:
            return f"{label} (`{path}`)" if f"`{path}`" != label else label
        relative = posixpath.relpath(path, posixpath.dirname(target) or ".")
        return f"[{label}]({relative}{anchor or ''})"

    return _LINK.sub(replace, text)
