"""`mx rec` and `mx info`: what is in record files, what is wrong with them."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

import mxnet as mx
from mxnext_cli import main

pytest.importorskip("cv2")
RECORDS = pathlib.Path(__file__).parents[1] / "golden" / "records"


@pytest.fixture
def images(tmp_path):
    for suffix in (".rec", ".idx"):
        shutil.copy(RECORDS / f"images{suffix}", tmp_path)
    return tmp_path / "images.rec"


@pytest.fixture
def damaged(images):
    raw = bytearray(images.read_bytes())
    at = [int(x.split("\t")[1]) for x in images.with_suffix(".idx").read_text().splitlines()][3]
    raw[at] ^= 1
    images.write_bytes(raw)
    return images


def said(capsys, *arguments, code=0):
    assert main([str(a) for a in arguments]) == code
    return capsys.readouterr()


def test_info_counts(images, capsys):
    out = said(capsys, "rec", "info", images).out
    assert "7 records" in out
    assert "7 .png" in out
    assert "labels: 1 in 7" in out


def test_cat_has_a_line_for_each_record(images, capsys):
    out = said(capsys, "rec", "cat", images).out.splitlines()
    assert len(out) == 7
    assert out[2].split("\t")[2:4] == ["id 20", "label 2"]


def test_cat_writes_one_picture(images, capfdbinary):
    assert main(["rec", "cat", str(images), "3"]) == 0
    record = mx.recordio.MXIndexedRecordIO(images.with_suffix(".idx"), images, "r").read_idx(3)
    assert capfdbinary.readouterr().out == mx.recordio.unpack(record)[1]


def test_cat_of_a_missing_record(images, capsys):
    assert "no record 9" in said(capsys, "rec", "cat", images, "9", code=1).err


def test_extract_and_pack_again(images, tmp_path, capsys):
    folder = tmp_path / "out"
    said(capsys, "rec", "extract", images, folder)
    assert sorted(p.name for p in folder.iterdir())[:2] == ["0.png", "10.png"]
    said(capsys, "im2rec", "--pass-through", folder / "images", folder)
    assert (folder / "images.rec").read_bytes() == images.read_bytes()


def test_check_finds_nothing_in_a_good_file(images, capsys):
    out = said(capsys, "rec", "check", "--decode", images).out
    assert "7 whole records, 0 problems" in out


def test_check_names_damage_and_stale_index(damaged, capsys):
    out = said(capsys, "rec", "check", damaged, code=1).out
    assert "expected the magic" in out
    assert "key 3 points to byte" in out
    assert "6 whole records, 2 problems" in out
    assert "damaged parts: 1" in said(capsys, "rec", "info", damaged).out


def test_check_decodes(tmp_path, capsys):
    path = tmp_path / "a.rec"
    with mx.recordio.MXRecordIO(path, "w") as file:
        file.write(mx.recordio.pack(mx.recordio.IRHeader(0, 1.0, 5, 0), b"no picture"))
    said(capsys, "rec", "check", path)
    assert "id 5 at byte 0" in said(capsys, "rec", "check", "--decode", path, code=1).out


def test_index_is_made_again(images, capsys):
    index = images.with_suffix(".idx")
    by_count = index.read_text()
    assert "--force" in said(capsys, "rec", "index", images, code=1).err
    said(capsys, "rec", "index", "--count", "--force", images)
    assert index.read_text() == by_count
    said(capsys, "rec", "index", "--out", images.parent / "b.idx", images)
    keys = [line.split("\t")[0] for line in (images.parent / "b.idx").read_text().splitlines()]
    assert keys == [str(10 * n) for n in range(7)]


def test_missing_files_are_named(tmp_path, capsys):
    assert "no such file" in said(capsys, "rec", "info", tmp_path / "a.rec", code=1).err


def test_info_of_the_program(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))  # a home that cannot be written is a problem
    out = said(capsys, "info").out
    assert out.startswith("MXNext ")
    assert "features" in out


def test_help_tells_the_commands(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("im2rec", "rec", "info"))


def test_an_empty_file_does_not_pass_the_check(tmp_path, capsys):
    (tmp_path / "a.rec").touch()
    assert main(["rec", "check", str(tmp_path / "a.rec")]) == 1
    assert "the file is empty" in capsys.readouterr().out


def test_info_of_what_is_no_record_file(tmp_path, capsys):
    (tmp_path / "photo.jpg").write_bytes(bytes.fromhex("ffd8ffe0") * 20)
    assert "not a record file" in said(capsys, "rec", "info", tmp_path / "photo.jpg", code=1).err


def test_info_as_json(images, capsys):
    facts = json.loads(said(capsys, "rec", "info", "--json", images).out)
    assert (facts["records"], facts["contents"]) == (7, {".png": 7})
