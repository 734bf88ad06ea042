"""Groups of cases; each module has `CASES`."""
