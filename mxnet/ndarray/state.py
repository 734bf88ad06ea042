"""Whether this thread records and trains. `mxnet.autograd` is the public face of it."""

from __future__ import annotations

import threading


class AutogradState(threading.local):
    """Two switches; class attributes are each new thread's defaults."""

    recording = False
    training = False


state = AutogradState()

# How many recording scopes are open in all threads together. While there is none, the hottest
# code need not ask for its thread's own state.
recording_scopes = [0]
