"""Programs and cases, and the scripts that record their results in MXNet 1.9.1."""
