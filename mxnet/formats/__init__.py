"""File formats: bytes to tensors and back. They depend on torch and NumPy only."""
