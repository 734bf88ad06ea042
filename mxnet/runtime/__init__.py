"""Arrays in memory, recording and running graphs; for users, what this installation can do."""

from __future__ import annotations

from .features import Feature, Features, feature_list

__all__ = ["Feature", "Features", "feature_list"]
