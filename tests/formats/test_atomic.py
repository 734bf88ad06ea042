"""Files are replaced whole or not at all."""

from __future__ import annotations

import os

import pytest

from mxnet.formats import atomic
from mxnet.formats.atomic import replacing

PIECES = [bytes([i]) * 1000 for i in range(50)]


@pytest.fixture(params=["one sync at the end", "early syncs"])
def step(request, monkeypatch):
    if request.param == "early syncs":
        monkeypatch.setattr(atomic._Stream, "STEP", 3000)


def write(path, pieces=PIECES):
    with replacing(path) as file:
        for piece in pieces:
            file.write(piece)


def test_the_content_arrives(tmp_path, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write(path)
    assert path.read_bytes() == b"".join(PIECES)
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file(tmp_path, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def broken():
        yield from PIECES
        raise KeyError("no more")

    with pytest.raises(KeyError):
        write(path, broken())
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", [1, 2])
def test_no_early_sync_fails_unheard(tmp_path, monkeypatch, failing):
    monkeypatch.setattr(atomic._Stream, "STEP", 3000)
    calls, sync = [], os.fsync

    def fsync(handle):
        calls.append(handle)
        if len(calls) == failing:
            raise OSError(5, "the disk is broken")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="the disk is broken"):
        write(tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink() and target.read_bytes() == b"".join(PIECES)
