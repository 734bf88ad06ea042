"""Captured training steps of small executors, replayed as a list of torch kernels."""
