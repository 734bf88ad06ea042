"""Tests of the operators that files of other frameworks need."""
