"""The rows of export: one file for each domain of operators."""
