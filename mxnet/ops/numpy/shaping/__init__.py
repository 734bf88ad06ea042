"""NumPy's operators that change shapes, join arrays or edit their parts."""
