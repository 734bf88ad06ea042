"""im2rec: the lists and records that MXNet's tool makes of the same folder."""

from __future__ import annotations

import base64
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.formats.recordio_file import RecordReader
from mxnet.tools import im2rec
from tests.golden import image_cases as cases

pytest.importorskip("cv2")
ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "im2rec.json").read_text())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    cases.write_folder(tmp_path / "root")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("options", "said", "made"), GOLDEN["lists"])
def test_lists_are_mxnets(folder, capsys, options, said, made):
    assert im2rec.main(["p", "root", "--list", *options]) == 0
    assert capsys.readouterr().out == said
    assert {p.name: p.read_text() for p in folder.glob("*.lst")} == made


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("options", "record", "index"), GOLDEN["records"])
def test_records_are_mxnets(folder, options, record, index, threads):
    (folder / "p.lst").write_text(cases.LIST)
    assert im2rec.main([*options, "--num-thread", str(threads), "p", "root"]) == 0
    made, wanted = (folder / "p.rec").read_bytes(), base64.b64decode(record)
    if "--pass-through" in options:
        assert made == wanted
        assert (folder / "p.idx").read_text() == index
    # Encoders of other versions may compress otherwise; the pictures are the same.
    pairs = zip(
        RecordReader(made).whole_records(), RecordReader(wanted).whole_records(), strict=True
    )
    for (_, ours), (_, theirs) in pairs:
        header, picture = mx.recordio.unpack_img(ours)
        wanted_header, wanted_picture = mx.recordio.unpack_img(theirs)
        assert str(header) == str(wanted_header)
        assert np.abs(picture.astype(int) - wanted_picture).max() <= 1


def test_what_cannot_be_packed_is_left_out_and_told(folder, capsys):
    lines = [
        "0\t1\tcat/a.jpg",
        "bad line",
        "3\t1\tmissing.jpg",
        "4\t1\tnone/bad.jpg",
        "5\t2\troot.jpg",
    ]
    (folder / "p.lst").write_text("\n".join(lines))
    (folder / "root/none/bad.jpg").write_bytes(b"no picture")
    assert im2rec.main(["p", "root"]) == 1
    said = capsys.readouterr().err
    assert "missing.jpg" in said
    assert "bad.jpg" in said
    assert "3 lines or images were left out" in said
    file = mx.recordio.MXIndexedRecordIO("p.idx", "p.rec", "r")
    assert file.keys == [0, 5]


def test_a_folder_means_all_its_lists(folder):
    for name in ("a", "b"):
        (folder / f"{name}.lst").write_text("0\t1\troot.jpg\n")
    assert im2rec.main([".", "root"]) == 0
    assert (folder / "a.rec").exists() and (folder / "b.rec").exists()
    assert im2rec.main(["a", "nowhere"]) == 2


def test_options_of_old(folder):
    assert im2rec.main(["p", "--root", "root", "--list", "--recursive", "--shuffle", "False"]) == 0
    names = [line.split("\t")[2] for line in (folder / "p.lst").read_text().splitlines()]
    assert names[0] == "root.jpg"
    assert len(names) == 7


@pytest.mark.parametrize("how", [["-m", "mxnet.tools.im2rec"], [im2rec.__file__]])
def test_it_runs_as_a_program(folder, how):
    command = [sys.executable, *how, "--list", "--recursive", "p", str(folder / "root")]
    environment = {"PYTHONPATH": str(ROOT)} if how[0] == "-m" else {}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (folder / "p.lst").read_text().count("\n") == 7


@pytest.fixture
def packed(folder):
    (folder / "p.lst").write_text(cases.LIST)
    assert im2rec.main(["p", "root"]) == 0
    return {p: p.read_bytes() for p in (folder / "p.rec", folder / "p.idx")}


def unchanged(packed):
    return all(path.read_bytes() == content for path, content in packed.items())


def test_without_opencv_older_records_stay(packed, monkeypatch, capsys):
    from mxnet.formats import image_codec

    def missing():
        raise image_codec.MissingLibrary("OpenCV is not installed")

    monkeypatch.setattr(image_codec, "opencv", missing)
    assert im2rec.main(["p", "root"]) == 1
    assert "OpenCV is not installed" in capsys.readouterr().err
    assert unchanged(packed)


def test_an_empty_result_is_an_error(folder, packed, capsys):
    (folder / "p.lst").write_text("0\t1\tnone.jpg\n")
    assert im2rec.main(["p", "root"]) == 1
    assert "no image to pack" in capsys.readouterr().err
    assert unchanged(packed)


def test_an_interrupted_run_keeps_older_records(packed, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(im2rec.Packing, "packed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        im2rec.main(["p", "root"])
    assert unchanged(packed)
    assert not [p for p in pathlib.Path().iterdir() if p.suffix == ".part"]


def test_without_a_list_it_makes_list_and_records(folder, capsys):
    assert im2rec.main(["--no-shuffle", "p", "root"]) in (0, 1)  # some images cannot be decoded
    said = capsys.readouterr().err
    assert "there is no list p*.lst, so it is made" in said
    assert (folder / "p.lst").exists()
    assert (folder / "p.rec").exists()
    labels = {line.split("\t")[1] for line in (folder / "p.lst").read_text().splitlines()}
    assert len(labels) == len({p.parent for p in (folder / "root").rglob("*.[jp]*g")})


def test_the_prefix_may_be_the_name_of_the_folder(folder):
    assert im2rec.main(["root", "root/"]) == 0
    keys = mx.recordio.MXIndexedRecordIO("root.idx", "root.rec", "r").keys
    assert sorted(keys) == list(range(7))


def test_lists_explain_what_they_hold(folder, capsys):
    (folder / "empty").mkdir()
    assert im2rec.main(["p", "empty", "--list"]) == 1
    assert "empty has no images (.jpeg .jpg .png)" in capsys.readouterr().err
    (folder / "below/cat").mkdir(parents=True)
    (folder / "below/cat/a.jpg").touch()
    assert im2rec.main(["p", "below", "--list"]) == 1
    assert "use --recursive" in capsys.readouterr().err
    assert not list(folder.glob("*.lst"))
    assert im2rec.main(["p", "below", "--list", "--recursive"]) == 0
    assert "all images are in one" in capsys.readouterr().err
    assert im2rec.main(["p", "below/cat", "--list"]) == 0
    assert "without --recursive all have the label 0" in capsys.readouterr().err
