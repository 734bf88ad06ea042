"""Compatibility with old programs; see README.md."""
