"""`port`: a model as PyTorch source code that people read, edit and train."""

from __future__ import annotations

from .porting import port
from .verify import PortReport

__all__ = ["PortReport", "port"]
