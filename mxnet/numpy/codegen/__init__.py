"""How `mx.np` and `mx.sym.np` are generated from the operators."""
