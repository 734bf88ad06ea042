"""``python -m mxnet.launch``."""

import sys

from mxnet.error import MXNetError
from mxnet.parallel.launch import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except MXNetError as error:
        sys.exit(f"mx launch: {error}")
