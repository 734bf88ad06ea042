"""What ``import mxnet`` does to the process, and what all modules share; see README.md."""
