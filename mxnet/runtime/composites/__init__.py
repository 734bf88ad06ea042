"""Functions that are more than one operator, written once for arrays and symbols.

A composite takes the operator namespace ``F`` as its first parameter and calls operators as
``F.name(...)``. `bind` fills it in: `mx.nd.split_v2` and `mx.sym.split_v2` are one function.
"""
