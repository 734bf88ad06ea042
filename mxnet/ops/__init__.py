"""The operators: torch in, torch out. `README.md` tells how to add one."""

from __future__ import annotations

from . import fused, nn, numpy, tensor, training, vision
