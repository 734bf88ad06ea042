"""Random numbers: distributions, choices and densities."""

from . import choices, densities, distributions
