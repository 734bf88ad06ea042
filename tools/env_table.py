"""Write the table of environment variables into `docs/coming-from-mxnet.md`, from `mxnet.env`.

Run ``python -m tools.env_table``.
"""

from __future__ import annotations

from pathlib import Path

from mxnet import env

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coming-from-mxnet.md"
BEGIN = "<!-- made by tools/env_table.py -->"
END = "<!-- end -->"


def shown(variable: env.Variable) -> str:
    """Return a default as one writes it in a shell."""
    if variable.kind is bool:
        return f"`{int(variable.default)}`"
    text = str(variable.default).replace("\\", "/")  # the same page on every system
    return f"`{text}`" if text else ""


def table() -> str:
    """Return the table in Markdown."""
    lines = ["Variable | Type | Default | Meaning", "---|---|---|---"]
    for v in sorted(env.VARIABLES.values()):
        lines.append(f"`{v.name}` | {v.kind.__name__} | {shown(v)} | {v.meaning}")
    return "\n".join(lines)


def with_table(page: str) -> str:
    """Return the page with the part between the marks rewritten."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
