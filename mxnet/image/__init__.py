"""`mx.image`: decoding, augmentation and iterators of images, also for detection.

Images are arrays (height, width, channels) in RGB order. Install the extra `image` to use it.
"""

from __future__ import annotations

from . import detection, image
from . import detection as det
from .detection import *  # noqa: F403 (each says in __all__ what is public)
from .detection import __all__ as _detection
from .image import *  # noqa: F403
from .image import __all__ as _image

__all__ = [*_detection, *_image, "det", "detection", "image"]
