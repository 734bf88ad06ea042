"""The importer under MXNet's module name.

As in MXNet, `import_model` and `import_to_gluon` are modules here, with functions of their names.
"""

from __future__ import annotations

from . import import_model, import_onnx, import_to_gluon

__all__ = ["import_model", "import_onnx", "import_to_gluon"]
