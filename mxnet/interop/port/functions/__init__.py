"""Functions and modules of torch that ported files include as they stand here."""
