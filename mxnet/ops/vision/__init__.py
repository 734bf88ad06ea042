"""Detection, regions, sampling and image preprocessing."""

from __future__ import annotations

from . import boxes
from . import correlation
from . import deformable
from . import image
from . import multibox
from . import proposal
from . import roi
from . import spatial_transform
