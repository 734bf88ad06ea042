"""Atomic replacement of files."""

from __future__ import annotations

import os
import pathlib
import resource

import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.formats import atomic
from mxnet.formats.atomic import AtomicFile, one_commit, replacing
from mxnet.formats.files import existing_file
from tests.children import exit_code_of

PIECES = [bytes([i]) * 1000 for i in range(50)]


@pytest.fixture(params=["one sync at the end", "early syncs"])
def step(request, monkeypatch):
    if request.param == "early syncs":
        monkeypatch.setattr(atomic._Stream, "STEP", 3000)


def write(path, pieces=PIECES):
    with replacing(path) as file:
        for piece in pieces:
            file.write(piece)


def test_replacing_a_file_writes_content_and_keeps_permissions(tmp_path, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write(path)
    assert path.read_bytes() == b"".join(PIECES)
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_error_while_writing_keeps_the_old_file(tmp_path, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def broken():
        yield from PIECES
        raise KeyError("no more")

    with pytest.raises(KeyError):
        write(path, broken())
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", [1, 2])
def test_errors_of_background_sync_are_raised(tmp_path, monkeypatch, failing):
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


@pytest.mark.parametrize("setting", ["1", "0"])
def test_files_are_synced_only_with_MXNET_SYNC_FILES(tmp_path, monkeypatch, setting):
    monkeypatch.setenv("MXNET_SYNC_FILES", setting)
    monkeypatch.setattr(atomic._Stream, "STEP", 3000)
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    write(tmp_path / "one")
    save(tmp_path, b"new")
    assert bool(synced) == (setting == "1")
    assert (tmp_path / "one").read_bytes() == b"".join(PIECES) and found(tmp_path) == [b"new"] * 3


def test_symbolic_links_are_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink() and target.read_bytes() == b"".join(PIECES)


NAMES = ("net-symbol.json", "net-0001.params", "net-0001.states")


def save(folder, content):
    with one_commit():
        for name in NAMES:
            with replacing(folder / name) as file:
                file.write(content)


def found(folder):
    return [existing_file(folder / name).read_bytes() for name in NAMES]


def dies_at(step, folder, content):
    """Save in a child, killed before its n-th change of the folder; return if it was killed."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(change):
            def call(*args, **kwargs):
                nonlocal count
                count += 1
                if count == step:
                    os._exit(9)
                return change(*args, **kwargs)

            return call

        for name in ("replace", "unlink", "open"):
            setattr(pathlib.Path, name, counted(getattr(pathlib.Path, name)))
        save(folder, content)
        os._exit(0)
    return exit_code_of(child) == 9


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("first_read", range(len(NAMES)))
def test_commit_of_several_files_is_atomic_under_kills(tmp_path, monkeypatch, first_read):
    monkeypatch.setenv("MXNET_SYNC_FILES", "0")  # data in the page cache survives a kill
    seen = set()
    for step in range(1, 100):
        save(tmp_path, b"old")
        if not dies_at(step, tmp_path, b"new"):
            break
        existing_file(tmp_path / NAMES[first_read])  # reading any of the files completes the commit
        raw = {(tmp_path / name).read_bytes() for name in NAMES}
        assert len(raw) == 1, f"killed at step {step}: {raw}"
        seen |= raw
    assert seen == {b"old", b"new"}
    assert found(tmp_path) == [b"new"] * 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_save_removes_leftovers_of_killed_saves(tmp_path):
    for step in (2, 5, 9, 11):
        assert dies_at(step, tmp_path, b"new")
    assert len(list(tmp_path.iterdir())) > 1
    save(tmp_path, b"last")
    save(tmp_path, b"last")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(NAMES)


def test_files_being_written_are_not_removed_as_leftovers(tmp_path):
    target = tmp_path / "x.params"
    first = AtomicFile(target)
    first.stream.write(b"first")
    with replacing(target) as file:
        file.write(b"second")
    first.commit()
    assert target.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [target]


def test_error_in_a_commit_keeps_every_old_file(tmp_path):
    save(tmp_path, b"old")

    def fail_inside():
        with one_commit():
            with replacing(tmp_path / NAMES[0]) as file:
                file.write(b"new")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail_inside()
    assert found(tmp_path) == [b"old"] * 3
    assert len(list(tmp_path.iterdir())) == 3


def test_journal_can_rename_only_its_own_temporary_files(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    part = tmp_path / "part"
    part.write_bytes(b"evil")
    target = tmp_path / "x.params"
    target.write_bytes(b"x")
    evil = tmp_path / ".x.params.00000000.journal"
    evil.write_text(f'[["{part}", "{victim}"]]')
    atomic._marker(target).write_text(str(evil))
    assert existing_file(target) == target
    assert victim.read_bytes() == b"precious" and part.exists()


def test_long_file_names_can_be_saved(tmp_path):
    path = tmp_path / ("名" * 80 + ".params")
    with replacing(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


@pytest.fixture
def small_disk():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def savers(folder):
    net = mx.gluon.nn.Dense(200, in_units=200)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 200)))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
    with mx.autograd.record():
        net(mx.nd.ones((1, 200))).backward()
    trainer.step(1)
    arrays = {"w": mx.nd.ones((200, 200))}

    def write_records(path):
        with mx.recordio.MXRecordIO(path, "w") as file:
            for _ in range(40):
                file.write(b"x" * 100_000)

    return {
        "a.params": lambda p: mx.nd.save(p, arrays),
        "b.params": net.save_parameters,
        "c-0000.params": lambda p: net.export(str(p).removesuffix("-0000.params")),
        "d.states": trainer.save_states,
        "e-model.params": lambda p: net.save(str(p).removesuffix("-model.params")),
        "f-0001.params": lambda p: mx.model.save_checkpoint(
            str(p).removesuffix("-0001.params"), 1, mx.sym.var("x") * 2, arrays, {}
        ),
        "g.rec": write_records,
    }


@pytest.mark.parametrize("name", list(savers(None)))
def test_full_disk_raises_and_keeps_the_old_file(tmp_path, request, name):
    saver = savers(tmp_path)[name]
    path = tmp_path / name
    path.write_bytes(b"old")
    request.getfixturevalue("small_disk")
    with pytest.raises(MXNetError, match=r"Cannot write .*File too large.*file is unchanged") as e:
        saver(str(path))
    assert isinstance(e.value, OSError) and e.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", list(savers(None)))
def test_missing_folder_or_directory_as_target_raises(tmp_path, name):
    saver = savers(tmp_path)[name]
    with pytest.raises(MXNetError, match=r"there is no folder .*none"):
        saver(str(tmp_path / "none" / name))
    (tmp_path / name).mkdir()
    with pytest.raises(MXNetError, match=f"Cannot write .*{name}.*Is a directory"):
        saver(str(tmp_path / name))
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_error_names_a_removed_temporary_file(tmp_path):
    """The folder is there: an error that speaks of a missing folder would mislead."""
    error = pytest.raises(MXNetError, match="its temporary file was removed")
    with error as caught, replacing(tmp_path / "net.params") as file:
        file.write(b"new")
        (part,) = tmp_path.glob(".*.part")
        part.unlink()
    assert not isinstance(caught.value, FileNotFoundError)
    assert list(tmp_path.iterdir()) == []
