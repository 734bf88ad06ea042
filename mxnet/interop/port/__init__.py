"""`port`: a model as PyTorch source code that people read, edit and train."""

from __future__ import annotations

from .comparison.verify import PortReport
from .porting import port

__all__ = ["PortReport", "port"]
