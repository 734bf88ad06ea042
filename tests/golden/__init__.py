"""Recorded results of MXNet 1.9.1 (`data`), and the programs that recorded them (`record`)."""

import pathlib

HERE = pathlib.Path(__file__).parent / "data"
