"""Deformable convolutions."""

from . import conv_layers
from .conv_layers import DeformableConvolution, ModulatedDeformableConvolution
