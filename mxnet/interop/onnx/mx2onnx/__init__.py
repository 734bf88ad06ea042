"""MXNet's name of the package that exports."""

from __future__ import annotations

from ._export_model import export_model, get_operator_support

__all__ = ["export_model", "get_operator_support"]
