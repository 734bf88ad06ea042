"""Kernels of torch without a public name: they skip the checks of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

import torch

nn: Any = torch._C._nn  # type: ignore[attr-defined]  # not in torch's stubs
