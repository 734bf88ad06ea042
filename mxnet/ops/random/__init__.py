"""Random numbers: distributions, choices and densities."""

from . import densities, distributions
