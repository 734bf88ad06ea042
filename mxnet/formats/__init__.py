"""Files: bytes to tensors and back. Of the outside world they know torch and NumPy only."""
