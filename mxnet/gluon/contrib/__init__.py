"""Contributed layers and cells."""

from . import cnn, data, estimator, nn, rnn
