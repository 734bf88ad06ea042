"""Make Jupyter notebooks of the tutorials: ``python -m tools.notebooks FOLDER``.

A notebook has the text and the code of its page and no output, which running it makes. The site
offers them for download (`tools/site_hooks.py`), a test executes them.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

from tools.run_page import BLOCK

__all__ = ["PAGES", "make_notebook", "notebook_path"]

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = tuple(
    path.relative_to(DOCS).as_posix()
    for path in (*sorted(DOCS.glob("tutorial/*.md")), DOCS / "zh" / "tutorial.md")
)
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+://)[^)]*\)")


def notebook_path(page: str) -> str:
    """Return where the notebook of a page lies in the site.

    >>> notebook_path("tutorial/arrays.md")
    'tutorial/arrays.ipynb'
    """
    return page.removesuffix(".md") + ".ipynb"


def make_notebook(text: str) -> str:
    r"""Return the notebook of a Markdown page: text and code in turns.

    >>> cells = json.loads(make_notebook("# Hi\n```python\n1 + 1\n```\n"))["cells"]
    >>> [(cell["cell_type"], *cell["source"]) for cell in cells]
    [('markdown', '# Hi'), ('code', '1 + 1')]
    """
    cells: list[dict[str, Any]] = []
    end = 0
    for match in BLOCK.finditer(text):
        _add_text(cells, text[end : match.start()])
        kind, _, hidden, block, _ = match.groups()
        if kind == "python" or hidden:
            cells.append(_make_cell("code", block, execution_count=None, outputs=[], cells=cells))
        end = match.end()
    _add_text(cells, text[end:])
    notebook = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _add_text(cells: list[dict[str, Any]], text: str) -> None:
    if text.strip():  # links lead to other pages of the site, which are not here
        cells.append(_make_cell("markdown", _LINK.sub(r"\1", text), cells=cells))


def _make_cell(kind: str, text: str, cells: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    source = text.strip().splitlines(keepends=True)
    cell = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": source}
    return {**cell, **fields}


def main() -> None:
    """Write all notebooks into a folder."""
    folder = pathlib.Path(sys.argv[1])
    for page in PAGES:
        path = folder / notebook_path(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (DOCS / page).read_text(encoding="utf-8")
        path.write_text(make_notebook(text), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
