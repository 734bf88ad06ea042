"""Programs that MXNet kept in its folder of tools; the command `mx` is the package `mxnext_cli`."""
