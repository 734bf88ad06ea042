"""Operators of `mx.sym.np` by their names without prefix. `mxnet.numpy` fills it."""
