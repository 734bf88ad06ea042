"""Rows of operators on batches of sequences."""

import numpy as np

from tests.grammar.sampling import each, normal, sample

sample("SequenceMask", normal(3, 2, 2))
sample(
    "SequenceMask",
    normal(3, 2, 2),
    [1, 3],
    use_sequence_length=True,
    value=each(0, -1),
    numeric=False,
)
sample(
    "SequenceMask", normal(2, 3), [1, 3], use_sequence_length=True, axis=1, value=0.5, numeric=False
)
sample("SequenceMask", normal(3, 2), np.array([0, 2], dtype="int32"), use_sequence_length=True)
sample("SequenceMask", normal(3, 2), [1.9, 2], use_sequence_length=True, numeric=False)
# Backward without lengths ends the process in MXNet 1.9.1.
sample("SequenceLast", normal(3, 2, 2), axis=each(0, 1), grad=False)
sample("SequenceLast", normal(3, 2, 2), [1, 3], use_sequence_length=True, numeric=False)
sample("SequenceLast", normal(2, 3, 2), [1, 3], use_sequence_length=True, axis=1, numeric=False)
sample("SequenceLast", normal(3, 2), np.array([2, 1], dtype="int32"), use_sequence_length=True)
sample("SequenceReverse", normal(3, 2, 2))
sample("SequenceReverse", normal(3, 2, 2), [1, 3], use_sequence_length=True, numeric=False)
sample("SequenceReverse", normal(3, 2), np.array([2, 0], dtype="int32"), use_sequence_length=True)
