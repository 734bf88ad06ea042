"""Run the command `mx` as ``python -m mxnet``."""

import sys

from mxnext_cli import main

sys.exit(main())
