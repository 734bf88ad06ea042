"""`port`: converts a model to readable PyTorch source code."""

from __future__ import annotations

from .comparison.verify import PortReport
from .porting import port

__all__ = ["PortReport", "port"]
