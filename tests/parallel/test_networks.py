"""Failures of networks, machines and disks are reported or tolerated; nothing hangs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mxnet as mx
from tests.parallel import networks
from tests.parallel.networks import Network, on_machine
from tests.parallel.starts import environment
from tests.parallel.workers import free_port, run_forked, succeeded

pytestmark = pytest.mark.slow
REASON = networks.why_not() if sys.platform == "linux" else "namespaces are Linux's"
with_namespaces = pytest.mark.skipif(bool(REASON), reason=REASON)
LIMIT = 100.0  # seconds; a few on an idle machine
SILENCE = 4.0  # a busy machine can pause for two seconds
SETTINGS = {"MXNET_KVSTORE_HEARTBEAT": SILENCE, "MXNET_JOB_SECRET": "of this job"}
LOST = r"was killed, crashed or is frozen, or its network is cut: it has been silent for \d"
GONE = r"It has not answered for \d+\.\d s"
DOING = r"was in (the sum of key \w+|its own work) .*for \d+\.\d s\."


KUBERNETES = {"MACHINE_VARIABLES": "JOB_COMPLETION_INDEX WORLD_SIZE"}
SLURM = {"MACHINE_VARIABLES": "SLURM_PROCID SLURM_NTASKS"}


def run_on_machines(folder, fault, size=3, is_survived=False, **settings):
    """Push on some machines, and inject a fault when all of them do; return the outcome."""
    with Network(size) as network, ThreadPoolExecutor(1) as pool:
        address = {"MASTER_ADDR": network.address(0), "MASTER_PORT": free_port()}
        arguments = (on_machine, size, network.name, push_until_told, str(folder))
        everything = {**SETTINGS, **address, **settings}
        job = pool.submit(run_forked, *arguments, timeout=LIMIT, **everything)
        pids = await_files(folder, [f"pid-{rank}" for rank in range(size)])
        fault(network, [int(pid) for pid in pids])
        if is_survived:
            (folder / "enough").touch()
        return job.result()


def await_files(folder, names, seconds=LIMIT):
    """Return the contents of files, after waiting for them."""
    end, paths = time.monotonic() + seconds, [folder / name for name in names]
    while not all(path.exists() and path.read_text() for path in paths):
        assert time.monotonic() < end, f"{names} did not come"
        time.sleep(0.02)
    return [path.read_text() for path in paths]


def push_until_told(folder):
    """Push ones until a file appears; print how often, and the sum."""
    folder = Path(folder)
    store = mx.kvstore.create("dist_sync")
    store.init("w", mx.nd.zeros(1000))
    store.init("stop", mx.nd.zeros(1))
    out, stop, number = mx.nd.zeros(1000), mx.nd.zeros(1), 0
    while stop.asscalar() < store.num_workers:
        store.push("w", mx.nd.ones(1000) * (store.rank + 1))
        store.pull("w", out=out)
        store.push("stop", mx.nd.array([float((folder / "enough").exists())]))
        store.pull("stop", out=stop)
        number += 1
        if number == 3:
            (folder / f"pid-{store.rank}").write_text(str(os.getpid()))
    assert set(out.asnumpy().tolist()) == {store.num_workers * (store.num_workers + 1) / 2}
    print("DONE", number)


def failed(process):
    """Return the last line of a process that ended with a worker failure."""
    assert process.status == 1 and process.seconds < LIMIT, (process.status, process.err)
    (line,) = re.findall(r"^.*\bmxnet\S*WorkerFailed: .*$", process.err, re.M)[-1:]
    assert re.search(rf"Rank {process.role} on node{process.role} {DOING}", line), line
    return line


@with_namespaces
def test_cut_link_is_reported_on_both_sides(tmp_path):
    ended = run_on_machines(tmp_path, lambda network, _: network.cut(2))
    for process in ended[:2]:
        assert re.search(rf"Rank 2 on node2 \(pid \d+\) {LOST}", failed(process))
    assert re.search(rf"lost rank 0 on node0 at 10\.77\.0\.1:\d+: .*{GONE}", failed(ended[2]))


@with_namespaces
def test_one_way_packet_loss_is_reported_on_both_sides(tmp_path):
    ended = run_on_machines(tmp_path, lambda network, _: network.lose_from(1, 0), 2)
    assert re.search(rf"Rank 1 on node1 \(pid \d+\) {LOST}", failed(ended[0]))
    assert re.search(rf"lost rank 0 on node0 at .*{GONE}", failed(ended[1]))


@with_namespaces
def test_cut_link_between_two_workers_other_than_rank_0(tmp_path):
    def fault(network, _):
        network.lose_from(1, 2)
        network.lose_from(2, 1)

    for process in run_on_machines(tmp_path, fault, MXNET_KVSTORE_TIMEOUT=4):
        text = (
            "The job cannot finish .* within 4 s .*, although nobody is late: rank [012] has been"
        )
        assert re.search(text, failed(process)), process.err
        assert "network between some of rank 0 on node0, rank 1 on node1, rank 2" in process.err


@with_namespaces
def test_short_interruption_and_slow_link_are_tolerated(tmp_path):
    def fault(network, _):
        network.cut(1)
        time.sleep(0.7)
        network.mend(1)
        network.slow(1, "1mbit")
        time.sleep(1)

    settings = {"MXNET_KVSTORE_HEARTBEAT": 20, **KUBERNETES}
    ended = succeeded(run_on_machines(tmp_path, fault, 2, True, **settings))
    assert ended[0].out == ended[1].out and "DONE" in ended[0].out


@with_namespaces
def test_two_machines_failing_simultaneously_are_reported(tmp_path):
    def fault(_, pids):
        for pid in (pids[1], pids[2]):
            os.kill(pid, signal.SIGKILL)

    ended = run_on_machines(tmp_path, fault, 4)
    assert [process.status for process in ended] == [1, -9, -9, 1]
    for process in (ended[0], ended[3]):
        assert re.search(rf"Rank [12] on node[12] \(pid \d+\) {LOST}", failed(process))


@with_namespaces
def test_failure_of_rank_0_is_reported(tmp_path):
    ended = run_on_machines(tmp_path, lambda _, pids: os.kill(pids[0], signal.SIGKILL), **SLURM)
    assert ended[0].status == -9
    for process in ended[1:]:
        assert re.search(rf"lost rank 0 on node0 at .*{GONE}", failed(process))


@with_namespaces
def test_suspended_worker_is_awaited_or_reported(tmp_path):
    def stop_for(seconds):
        def fault(_, pids):
            os.kill(pids[1], signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pids[1], signal.SIGCONT)

        return fault

    for folder in ("short", "long"):
        (tmp_path / folder).mkdir()
    succeeded(run_on_machines(tmp_path / "short", stop_for(1), 2, True, MXNET_KVSTORE_HEARTBEAT=20))
    ended = run_on_machines(tmp_path / "long", stop_for(SILENCE + 3), 2)
    assert re.search(rf"Rank 1 on node1 \(pid \d+\) {LOST}", failed(ended[0]))
    failed(ended[1])  # it continues after the job has ended, and exits


def test_full_disk_during_a_checkpoint_is_reported(tmp_path):
    mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)]
    result = subprocess.run(mounted, capture_output=True, text=True, timeout=20)
    if result.returncode:
        pytest.skip(f"no small file system can be mounted: {result.stderr.strip()}")
    try:
        folders = [str(tmp_path.parent), str(tmp_path)]
        ended = run_forked(save_until_full, 2, folders, timeout=LIMIT, **SETTINGS)
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True, timeout=20)
    other, full = ended
    assert (other.status, full.status) == (1, 1), (other.err, full.err)
    error = rf"UnwritableFile: Cannot write '{tmp_path}/\S+': No space left on device"
    assert re.search(error, full.err) and "MissingFolder" not in full.err
    assert re.search(rf"Rank 1 on \S+ \(pid \d+\) raised {error}", other.err), other.err


def save_until_full(folders):
    """Save checkpoints that grow until the disk of rank 1 is full."""
    store = mx.kvstore.create("dist_sync")
    folder = folders[store.rank]
    for step in range(1, 200):
        net = mx.gluon.nn.Dense(step * 10, in_units=10)
        net.initialize()
        mx.checkpoint.save(folder, step, net=net)
        store.barrier()


def test_workers_end_when_their_launcher_is_killed(tmp_path):
    program = f"from tests.parallel.test_networks import *; push_until_told({str(tmp_path)!r})"
    command = [sys.executable, "-m", "mxnet.launch", "-n", "2", "--log-dir", str(tmp_path / "logs")]
    settings = {k: str(v) for k, v in SETTINGS.items()}
    launcher = subprocess.Popen(
        [*command, sys.executable, "-c", program],
        env=environment(**settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        pids = [int(pid) for pid in await_files(tmp_path, ["pid-0", "pid-1"], 300)]
    finally:
        launcher.kill()
        launcher.wait(20)
    end = time.monotonic() + LIMIT
    while any(map(is_running, pids)):
        assert time.monotonic() < end, "a worker goes on without its launcher"
        time.sleep(0.1)


def is_running(pid):
    """Return whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
