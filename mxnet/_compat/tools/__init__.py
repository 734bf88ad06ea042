"""Programs of MXNet's folder ``tools``; the command `mx` is the package `mxnext_cli`."""
