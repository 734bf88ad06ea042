"""Whether this thread records and trains. `mxnet.autograd` is the public face of it."""

from __future__ import annotations

import threading


class AutogradState(threading.local):
    """Two switches; class attributes are each new thread's defaults."""

    recording = False
    training = False


state = AutogradState()
