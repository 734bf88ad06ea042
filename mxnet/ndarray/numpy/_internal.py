"""Operators of `mx.nd.np` by their names without prefix. `mxnet.numpy` fills it."""
