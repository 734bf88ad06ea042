"""Stochastic variance reduced gradients (SVRG)."""

from . import svrg_module, svrg_optimizer
