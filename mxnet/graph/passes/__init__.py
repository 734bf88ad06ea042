"""Passes over graphs, one file each."""
