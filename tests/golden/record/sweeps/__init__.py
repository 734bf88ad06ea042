"""Sweeps: families of expressions whose results are recorded from MXNet 1.9.1.

Each module has `SETUP`, lines that run before each expression (under `npx.set_np()` if `NUMPY`),
and `EXPRESSIONS`. Run ``python -m tests.golden.record.record_sweeps`` inside an MXNet 1.9.1
environment.
"""
