"""The operators: torch in, torch out. `README.md` shows how to add one."""

from __future__ import annotations

from . import fused, interchange, linalg, nn, numpy, quantization, random, tensor, training, vision

from . import sparse  # isort: skip (its rules are about the operators above)
