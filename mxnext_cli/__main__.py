"""Run `mx` as ``python -m mxnext_cli``."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
