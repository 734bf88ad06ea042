"""GluonCV 0.7 to 0.10: starts with torch 2 installed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NoReturn


def skip_torch_check(check: ModuleType) -> None:
    """Make ``gluoncv.check._require_pytorch_version`` raise ImportError instead of RuntimeError.

    GluonCV takes an ImportError for "there is no torch" and goes on with MXNet alone; its models
    in torch need the torch 1.x that they were written for.
    """
    if not hasattr(check, "_require_pytorch_version"):
        return

    def _require_pytorch_version(*versions: Any) -> NoReturn:
        raise ImportError("GluonCV's torch models need torch 1.x; its MXNet models run without.")

    check._require_pytorch_version = _require_pytorch_version  # type: ignore[attr-defined]
    package = sys.modules.get("gluoncv")
    if package is not None and hasattr(package, "_require_pytorch_version"):
        # `import gluoncv` came before `import mxnet` and has fetched the function already
        package._require_pytorch_version = _require_pytorch_version  # type: ignore[attr-defined]
