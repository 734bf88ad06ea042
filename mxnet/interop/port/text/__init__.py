"""The text of ported files."""
