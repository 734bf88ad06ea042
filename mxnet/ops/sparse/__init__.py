"""What operators do with sparse arrays: the storage types of their results and gradients."""

from . import storage_rules
