"""``python -m mxnet.launch``."""

import sys

from ..error import MXNetError
from . import main

try:
    sys.exit(main())
except MXNetError as error:
    sys.exit(f"mx launch: {error}")
