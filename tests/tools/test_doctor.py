"""`mx doctor` reports the installation and finds what is wrong with it."""

from __future__ import annotations

import collections
import importlib.metadata
import json
import shutil

import pytest
import torch

from mxnext_cli import doctor, main

Usage = collections.namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def healthy(monkeypatch, tmp_path):
    """Whatever machine this is: room on its disks, a home, a core per thread, no idle driver."""
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 1 << 40))
    monkeypatch.setattr(doctor, "_device_problems", list)


def test_a_healthy_installation(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "MXNext" in said
    assert importlib.metadata.version("torch") in said
    assert "No problems found." in said


def test_facts_as_json(capsys):
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["libraries"]["torch"] == importlib.metadata.version("torch")
    assert "cpu" in facts["devices"]
    assert facts["problems"] == []


def test_an_old_mxnet_beside_this_one(monkeypatch, capsys):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda n: "1.9.1" if n == "mxnet" else real(n))
    assert main(["doctor"]) == 1
    assert "pip uninstall mxnet" in capsys.readouterr().out


def test_a_setting_that_cannot_be_read(monkeypatch, capsys):
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "many")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "problem: Environment variable MXNET_OPTIMIZER_AGGREGATION_SIZE='many'" in said


def test_full_disks(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 1 << 10))
    assert any("1.0 KiB free" in problem for problem in doctor.find_problems())


def test_more_threads_than_cores(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 10_000)
    assert any("OMP_NUM_THREADS" in problem for problem in doctor.find_problems())


def test_a_home_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "models"))
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    assert any("set MXNET_HOME" in problem for problem in doctor.find_problems())


def test_kernels_that_compute_nonsense(monkeypatch):
    monkeypatch.setattr(doctor.nd, "dot", lambda a, b: a)
    assert any("matrix product is wrong" in problem for problem in doctor.find_problems())
