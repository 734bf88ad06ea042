"""The comparison of a ported file with MXNet."""
