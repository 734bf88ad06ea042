# `mxnet.distributed` is another name of `mxnet.parallel`, as type checkers and editors see it.
from .parallel import *  # noqa: F403
from .parallel import DistributedTrainer as DistributedTrainer
