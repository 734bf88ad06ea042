"""Well-known networks, optionally with trained parameters."""

from . import model_store, vision
