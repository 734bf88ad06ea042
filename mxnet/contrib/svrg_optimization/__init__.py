"""Training with gradients of smaller variance (SVRG)."""

from . import svrg_module, svrg_optimizer
