"""Checkpoints of a training run: the complete state, to resume it bit for bit.

One file holds the network, the Trainer with its optimizer, scheduler and loss scaler, the position
in the data, metrics and the random generators. It is written atomically and verified when it is
read.

>>> import tempfile
>>> folder = tempfile.mkdtemp()
>>> net = mx.gluon.nn.Dense(2, in_units=3)
>>> net.initialize()
>>> trainer = mx.gluon.Trainer(net.collect_params(), "adam")
>>> _ = mx.checkpoint.save(folder, 10, net=net, trainer=trainer, extra={"epoch": 1})
>>> found = mx.checkpoint.load(folder, net=net, trainer=trainer)
>>> found.step, found.extra
(10, {'epoch': 1})
"""

from .background import wait
from .files import latest
from .state import TrackedData, track
from .training import Checkpoint, load, save

__all__ = ["Checkpoint", "TrackedData", "latest", "load", "save", "track", "wait"]
