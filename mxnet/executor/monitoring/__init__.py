"""What monitors see of a run: every result, and the gradients of backward."""
