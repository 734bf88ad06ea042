"""Image operators of `mx.sym.image`, made from the registry."""
