"""Generation of `mx.np` and `mx.sym.np` from the operators."""
