"""Functions of `mx.np` beyond single operators, each written once for arrays and symbols."""
