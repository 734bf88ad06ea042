"""Record which names ``from mxnet.X import *`` brings. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_star_names.py
"""

from __future__ import annotations

import json
import pathlib

NAMES = """
attribute autograd base callback context contrib.autograd engine executor executor_manager gluon
gluon.block gluon.data gluon.data.vision.transforms gluon.loss gluon.nn gluon.parameter gluon.rnn
gluon.trainer gluon.utils image image.detection image.image initializer io kvstore libinfo
lr_scheduler metric model module module.base_module module.module monitor name operator
optimizer optimizer.optimizer profiler random recordio registry rnn rnn.io rnn.rnn_cell rtc runtime
test_utils util visualization
"""


def names(module: str) -> list[str]:
    """Return the public names that a star import of a module brings."""
    found: dict = {}
    exec(f"from mxnet.{module} import *", found)
    return sorted(name for name in found if not name.startswith("_"))


if __name__ == "__main__":
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "star_names.json"
    path.write_text(json.dumps({m: " ".join(names(m)) for m in NAMES.split()}, indent=0) + "\n")
