"""Workers of a job."""
