"""Process-wide effects of ``import mxnet``, and what all modules share; see README.md."""
