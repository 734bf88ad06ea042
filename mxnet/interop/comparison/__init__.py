"""Comparison of converted files with the model, and the processes in which they run."""
