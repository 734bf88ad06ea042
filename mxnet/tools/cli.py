"""The command `mx`, under the name that imports torch first; see the package `mxnext_cli`."""

from __future__ import annotations

import sys

from mxnext_cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
