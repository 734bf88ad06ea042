"""Eager execution: array handles, operator calls, recording and gradients."""
