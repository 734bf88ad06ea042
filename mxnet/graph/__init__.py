"""Graphs of operators as plain data, and traversals of them, independent of arrays and Symbol."""

from __future__ import annotations

from .graph import Graph, interpret
from .node import Entry, Node, variable

__all__ = ["Entry", "Graph", "Node", "interpret", "variable"]
