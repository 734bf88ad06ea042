"""MXNet's place of `export_model`, which programs import it from."""

from __future__ import annotations

from ..export import export_model, get_operator_support

__all__ = ["export_model", "get_operator_support"]
