"""Training steps of small executors, run again as the kernels that torch ran in them."""
