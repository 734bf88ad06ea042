"""NumPy semantics as operators: the ``_np_``, ``_npi_`` and ``_npx_`` names of MXNet."""

from . import arithmetic, creation, editing, extension, linalg, random, reduce, selecting, shaping
