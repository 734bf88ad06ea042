"""The commands of `mx`, one module each; their arguments are declared in `mxnext_cli`."""
