"""Process-wide effects of ``import mxnet``, and shared helpers; see README.md."""
