"""Faults: many seeded attempts to break the package, counted.

Every attempt runs in a process of its own kind of trouble (damaged files, kills, full disks, little
memory, many threads), so that a crash is seen and counted. ``MXNEXT_FAULTS=20 pytest tests/faults``
makes twenty times as many attempts as CI does.
"""
