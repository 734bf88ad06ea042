"""Write the version of a release into the files that state it: ``tools/set_version.py 0.2.0``.

The release job calls it with its tag, so that the tag is the version. A version whose changes are
not told in CHANGELOG.md is refused.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
# Where the version stands: everything up to it, in a group.
PLACES = {"pyproject.toml": r'^(version = )".*"$', "CITATION.cff": r'^(version: )"?[^"\n]*"?$'}


def set_version(version: str, root: Path = ROOT) -> None:
    """Write a version, or raise if it is none or has no section of changes."""
    if not VERSION.fullmatch(version):
        raise SystemExit(f"{version!r} is no version such as 0.2.0 or 0.2.0rc1.")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)}\b", changes, re.M):
        raise SystemExit(f"CHANGELOG.md has no section '## {version}'.")
    for name, pattern in PLACES.items():
        path = root / name
        text, count = re.subn(
            pattern, rf'\g<1>"{version}"', path.read_text(encoding="utf-8"), flags=re.M
        )
        if count != 1:
            raise SystemExit(f"{name} states its version {count} times, not once.")
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    set_version(sys.argv[1])
