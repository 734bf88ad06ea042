"""`mx launch`: workers, output, exit status, restarts, hosts, other launchers."""

from __future__ import annotations

import re
import signal
import sys

import pytest
from mxnet.launch import main, parse_assignments

import mxnet as mx
from mxnet.parallel.launch.workers import read_hosts
from tests.parallel.workers import launch, run_forked

SHOW = """
import os
names = "RANK WORLD_SIZE LOCAL_RANK DMLC_ROLE DMLC_NUM_WORKER GIVEN".split()
assert len(os.environ["MXNET_JOB_SECRET"]) == 64 and os.environ["MXNET_JOB_SECRET"].strip()
print(*(os.environ.get(n) for n in names))
"""
FAIL_ONCE = """
import os, sys, time
print("attempt", os.environ["MXNET_LAUNCH_ATTEMPT"], "of", os.environ["WORLD_SIZE"])
if os.environ["RANK"] == "1" and os.environ["MXNET_LAUNCH_ATTEMPT"] == "0":
    sys.exit(7)
if os.environ["MXNET_LAUNCH_ATTEMPT"] == "0":
    time.sleep(60)
"""
INTERRUPT = """
import os, signal, time
if os.environ["RANK"] == "0":
    os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


def launched(*arguments, **settings):
    (ended,) = run_forked(launch, 1, list(arguments), timeout=150, **settings)
    return ended


def test_launch_sets_ranks_and_prefixes_output_lines():
    ended = launched("-n", "2", "--env-worker", "GIVEN=yes", sys.executable, "-c", SHOW)
    assert ended.status == 0, ended.err
    assert sorted(ended.out.splitlines()) == [
        "[rank 0] 0 2 0 worker 2 yes",
        "[rank 1] 1 2 1 worker 2 yes",
    ]


def test_failed_worker_ends_the_job_with_its_exit_status():
    ended = launched("-n", "2", sys.executable, "-c", FAIL_ONCE)
    assert ended.status == 7 and ended.seconds < 100
    assert re.search(r"mx launch: Rank 1 on \S+ ended with status 7\n", ended.err), ended.err


def test_max_restarts_and_min_workers():
    ended = launched("-n", "2", "--max-restarts", "1", sys.executable, "-c", FAIL_ONCE)
    assert ended.status == 0 and ended.out.count("attempt 1 of 2") == 2, ended.err
    assert "restart 1 of 1" in ended.err
    options = ("-n", "2", "--max-restarts", "1", "--min-workers", "1")
    ended = launched(*options, sys.executable, "-c", FAIL_ONCE)
    assert ended.status == 0 and ended.out.count("attempt 1 of 1") == 1, ended.err


def test_ssh_launcher(tmp_path):
    # This ssh runs the command here: host and options come before it.
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost  # this machine\n127.0.0.1\n")
    options = ("-n", "3", "-H", str(hosts), "--launcher", "ssh", "--env", "GIVEN=a b")
    ended = launched(*options, sys.executable, "-c", SHOW, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert ended.status == 0, ended.err
    assert sorted(ended.out.splitlines()) == [
        "[rank 0] 0 3 0 worker 3 a b",
        "[rank 1] 1 3 0 worker 3 a b",
        "[rank 2] 2 3 1 worker 3 a b",
    ]


def test_dry_run_prints_mpi_slurm_and_ssh_commands(tmp_path, capsys):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:2\n")
    assert main(["-n", "2", "--launcher", "mpi", "--dry-run", "python", "t.py"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("mpirun -n 2 -x ") and shown.endswith("python t.py\n")
    assert main(["-n", "2", "--launcher", "slurm", "--dry-run", "python", "t.py"]) == 0
    assert capsys.readouterr().out.startswith("srun -n 2 --kill-on-bad-exit=1 ")
    options = ["-n", "1", "--launcher", "ssh", "-H", str(hosts), "--sync-dst-dir", "/tmp/job"]
    assert main([*options, "--dry-run", "python", "t.py"]) == 0
    shown = capsys.readouterr().out
    assert "StrictHostKeyChecking" not in shown and "BatchMode=yes" in shown
    assert "rsync -az" in shown and "localhost:/tmp/job/" in shown and "cd /tmp/job && " in shown


def test_invalid_launch_options_raise(tmp_path):
    with pytest.raises(mx.MXNetError, match="the program to start is missing"):
        main(["-n", "2"])
    with pytest.raises(mx.MXNetError, match="-n must be at least 1"):
        main(["-n", "0", "python"])
    with pytest.raises(mx.MXNetError, match="needs -H"):
        main(["-n", "1", "--launcher", "ssh", "python"])
    hosts = tmp_path / "hosts"
    hosts.write_text("a slots=2\n\n# none\nb\n")
    assert read_hosts(str(hosts)) == ["a", "a", "b"]
    assert parse_assignments(["NOT_SET"], {}) == {}


def test_interrupted_launcher_terminates_its_workers():
    ended = launched("-n", "2", sys.executable, "-c", INTERRUPT)
    assert ended.status == 128 + signal.SIGTERM, ended.err
    assert ended.seconds < 100


def test_job_secret_is_not_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MXNET_JOB_SECRET", "5ecret")
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:2\n")
    for launcher in ("ssh", "mpi", "slurm"):
        assert main(["-n", "2", "-H", str(hosts), "--launcher", launcher, "--dry-run", "p"]) == 0
        assert "5ecret" not in capsys.readouterr().out


def test_invalid_host_names_raise(tmp_path):
    hosts = tmp_path / "hosts"
    for line in ("-oProxyCommand=touch x", "a;b", "$(x)"):
        hosts.write_text(f"good\n{line}\n")
        with pytest.raises(mx.MXNetError, match=r"Line 2 of .* is not the name of a host"):
            read_hosts(str(hosts))


def test_heartbeat_timeout_environment_variables(monkeypatch):
    from mxnet.parallel.heartbeat import silence_limit

    assert silence_limit() == 20
    monkeypatch.setenv("PS_HEARTBEAT_TIMEOUT", "7")
    assert silence_limit() == 7
    monkeypatch.setenv("MXNET_KVSTORE_HEARTBEAT", "5")
    assert silence_limit() == 5
