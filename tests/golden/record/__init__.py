"""Programs and cases, and the scripts that record what MXNet 1.9.1 answers to them."""
