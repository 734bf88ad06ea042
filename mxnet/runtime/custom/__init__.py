"""Operators that users write in Python; `mx.operator` is the public interface."""
