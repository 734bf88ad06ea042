"""Answers recorded from MXNet 1.9.1, and the scripts that recorded them."""

import pathlib

HERE = pathlib.Path(__file__).parent
