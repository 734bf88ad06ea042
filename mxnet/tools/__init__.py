"""Programs: `mx im2rec`, `mx rec`, `mx info`; also run as ``python -m mxnet.tools.im2rec``."""
