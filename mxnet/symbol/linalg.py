"""Linear algebra operators of `mx.sym.linalg`, made from the registry."""
