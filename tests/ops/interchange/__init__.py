"""Tests of operators for files of other frameworks."""
