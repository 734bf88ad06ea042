"""Run the command `mx` as ``python -m mxnet``."""

import sys

from mxnext_cli import main

if __name__ == "__main__":
    sys.exit(main())
