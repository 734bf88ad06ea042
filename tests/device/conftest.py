"""The tests in `cases/` need a device in their process: `test_second_device.py` starts them."""

import os

collect_ignore_glob = [] if os.environ.get("MXNEXT_TEST_DEVICE") else ["cases", "cases/*"]
