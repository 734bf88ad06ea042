"""Objects of the program's own classes in optimizer states, and what files must not hold."""

from __future__ import annotations

import json
import pickle
import subprocess
import tempfile
import zlib
from collections import deque
from pathlib import Path

import pytest

import mxnet as mx
from mxnet.error import FormatError
from mxnet.optimizer.states_file import FOOTER, MAGIC, dump_states, read_states


def described(nodes, root):
    """Return a file of states with this description."""
    text = json.dumps({"root": root, "nodes": nodes}).encode()
    return text + FOOTER.pack(len(text), zlib.crc32(text), MAGIC)


class Settings:
    """What a program may give to its scheduler."""

    def __init__(self, steps):
        self.steps = steps

    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked for")


class Ended(Settings):
    def __del__(self):
        Path(self.steps).unlink()


class Reduced(Settings):
    def __reduce__(self):
        return Reduced, (self.steps,)


class Own(mx.lr_scheduler.LRScheduler):
    def __init__(self, *held):
        super().__init__()
        self.held = list(held)

    def __call__(self, num_update):
        return self.base_lr


def with_scheduler(*held):
    return mx.optimizer.get_updater(mx.optimizer.create("sgd", lr_scheduler=Own(*held)))


def test_objects_of_the_programs_classes_come_back():
    settings = Settings({"warm": (3, Settings(2))})
    updater = with_scheduler(settings, settings)
    written = updater.get_states(True)
    for data in (written, pickle.dumps((updater.states, updater.optimizer), protocol=2)):
        again = with_scheduler()
        again.set_states(data)
        first, second = again.optimizer.lr_scheduler.held
        assert type(first) is Settings and first is second and first is not settings
        assert first.steps["warm"][0] == 3 and first.steps["warm"][1].steps == 2


@pytest.mark.parametrize("kind", [Ended, Reduced, subprocess.Popen, tempfile.TemporaryDirectory])
def test_files_make_no_objects_whose_classes_run_code(kind, tmp_path):
    """Not even of the program's own: a file must not choose what they delete."""
    victim = tmp_path / "precious"
    victim.write_text("x")
    fields = {"steps": str(victim), "name": str(victim), "returncode": 1, "pid": 1}
    name = [kind.__module__, kind.__qualname__, fields]
    with pytest.raises(FormatError, match="may not hold"):
        read_states(described([{"object": name}, {"dict": [[0, {"ref": 0}]]}], {"ref": 1}))
    assert victim.exists()


def test_what_files_do_not_hold_comes_from_the_program():
    """Functions by their names; others keep what the program gave them, which is told."""
    data = with_scheduler(decay, deque([1, 2])).get_states(True)
    again = with_scheduler(decay, deque([3]))
    with pytest.warns(UserWarning, match=r"lr_scheduler\.held\[1\] keeps .* collections\.deque"):
        again.set_states(data)
    assert again.optimizer.lr_scheduler.held == [decay, deque([3])]
    for other in (with_scheduler(), with_scheduler(described, deque())):
        with pytest.raises(FormatError, match=r"held\[0\] was .*decay.* the same lr_scheduler"):
            other.set_states(data)


def decay(step):
    return 0.1 / step


def test_what_holds_itself_says_so():
    scheduler = Own()
    scheduler.held.append(scheduler)
    with pytest.raises(mx.MXNetError, match="inside itself"):
        dump_states(({}, mx.optimizer.SGD(lr_scheduler=scheduler)))
