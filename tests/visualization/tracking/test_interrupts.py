"""Progress output on a real terminal, resuming, and Ctrl-C."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pytest

PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs begin with it ignored
import mxnet as mx
mx.random.seed(0)
epochs, wait, api = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
x = mx.nd.random.uniform(shape=(400, 10))
y = (x.sum(axis=1) > 5)
if api == "module":
    data = mx.io.NDArrayIter(x, y, 20)
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    mod.fit(data, data, num_epoch=epochs, resume="run", resume_every=4,
            batch_end_callback=lambda param: time.sleep(wait))
else:
    from mxnet import gluon
    from mxnet.gluon.contrib.estimator import BatchEnd, Estimator
    class Wait(BatchEnd):
        def batch_end(self, *args, **kwargs):
            time.sleep(wait)
    net = gluon.nn.Dense(2)
    net.initialize()
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), 20)
    est = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy())
    est.logger.handlers.clear()
    est.logger.setLevel("WARNING")
    est.fit(data, epochs=epochs, resume="run", resume_every=4, event_handlers=[Wait()])
"""
COLUMNS = 110
LIMIT = 180  # seconds for a child; it takes a few


class Child:
    """A program on a pseudo-terminal."""

    def __init__(self, folder, *arguments):
        (folder / "train.py").write_text(PROGRAM)
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        root = str(Path(__file__).resolve().parents[3])
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        environment["PYTHONPATH"] = root
        self.process = subprocess.Popen(
            [sys.executable, "train.py", *map(str, arguments)],
            cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=environment,
        )  # fmt: skip
        os.close(slave)
        self.text = ""

    def read_until(self, pattern):
        """Read the output until a pattern appears, or to the end."""
        end = time.monotonic() + LIMIT
        while pattern is None or not re.search(pattern, self.text):
            if time.monotonic() > end:
                self.process.kill()
                pytest.fail(f"{pattern} did not appear in: {self.text[-2000:]}")
            if not select.select([self._master], [], [], 1.0)[0]:
                continue
            try:
                part = os.read(self._master, 65536)
            except OSError:  # the other side is closed
                part = b""
            if not part:
                break
            self.text += part.decode(errors="replace")
        return self.text

    def finish(self):
        self.read_until(None)
        return self.process.wait(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("api", ["module", "estimator"])
def test_interrupted_training_prints_how_to_resume_and_resumes(api, tmp_path):
    child = Child(tmp_path, 3, 0.1, api)
    child.read_until(r" [6-9]/\d+ \[| 1\d/20 \[")
    child.process.send_signal(signal.SIGINT)
    assert child.finish() == -signal.SIGINT  # 130 in a shell
    last = child.text.replace("\r", "\n").strip().splitlines()[-1]
    assert re.fullmatch(
        r"Interrupted\. The same program continues from epoch \d, batch \d+ \(.*\)\.", last
    )
    assert "Traceback" not in child.text

    child = Child(tmp_path, 2, 0.0, api)
    assert child.finish() == 0
    position = re.search(r"from (epoch \d, batch \d+)", last)[1]
    assert f"Resumed from {position} (" in child.text
    bars = [line for line in re.split(r"[\r\n]", child.text) if line.startswith("Epoch[1]")]
    assert bars
    assert all(len(re.sub(r"\x1b\[\w", "", bar)) <= COLUMNS for bar in bars)
    assert re.search(r"\|.{10}\| 20/20 \[.*train_accuracy=0\.\d+", bars[-1])
    if api == "module":
        assert "val_accuracy=" in bars[-1]
