"""Array memory, recording and graph execution.

Users find the features of this installation here.
"""

from __future__ import annotations

from .features import Feature, Features, feature_list

__all__ = ["Feature", "Features", "feature_list"]
