"""What exists for old programs alone; see README.md."""
