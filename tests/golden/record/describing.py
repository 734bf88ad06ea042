"""Describe values as JSON, equally for MXNet and MXNext."""

import numpy as np


def describe(value):
    """Return lists, numbers and text for an array, a list of arrays, or anything else."""
    if hasattr(value, "asnumpy"):
        host = value.asnumpy()
        return {"shape": list(host.shape), "dtype": str(host.dtype), "values": numbers(host)}
    if isinstance(value, (list, tuple)) and any(hasattr(v, "asnumpy") for v in value):
        return [describe(v) for v in value]
    if isinstance(value, type):
        return {"text": value.__name__}
    if isinstance(value, (bool, int, float, np.generic)):
        return {"number": float(value)}
    return {"text": str(value)}


def numbers(host):
    """Return nested lists with what JSON cannot hold as text."""
    return [v if np.isfinite(v) else str(v) for v in host.astype("float64").ravel().tolist()]
