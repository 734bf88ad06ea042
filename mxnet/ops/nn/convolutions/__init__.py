"""Layers that slide a window: convolution, its transpose, pooling."""
