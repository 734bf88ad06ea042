"""Layers and cells that are used less, or were new once."""

from . import cnn, data, estimator, nn, rnn
