"""Sparse operators of `mx.sym.sparse`, made from the registry."""
