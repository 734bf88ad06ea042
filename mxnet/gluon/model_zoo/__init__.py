"""Known networks, ready to build and, with their files at hand, trained."""

from . import model_store, vision
