"""``python -m mxnet.launch``."""

import sys

from ..error import MXNetError
from . import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except MXNetError as error:
        sys.exit(f"mx launch: {error}")
