"""MXNet's name of the module that exports."""

from __future__ import annotations

from .export import export_model, get_operator_support

__all__ = ["export_model", "get_operator_support"]
