"""Run `mx` as ``python -m mxnext_cli``."""

import sys

from . import main

sys.exit(main())
