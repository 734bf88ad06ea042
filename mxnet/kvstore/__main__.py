"""``python -m mxnet.kvstore``: a server or scheduler of the job in the environment variables."""

import sys

from .kvstore_server import run_role

if __name__ == "__main__":
    sys.exit(run_role())
