"""Record files: `mx im2rec` makes what MXNet's tool makes; `mx rec` says what is in them."""

from __future__ import annotations

import base64
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.formats.recordio_file import RecordReader
from mxnet.io import im2rec
from mxnext_cli import main
from tests.golden import HERE
from tests.golden.record import image_cases as cases

pytest.importorskip("cv2")
ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = json.loads((HERE / "im2rec.json").read_text())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    cases.write_folder(tmp_path / "root")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("options", "said", "lists"), GOLDEN["lists"])
def test_lists_are_mxnets(folder, capsys, options, said, lists):
    assert im2rec.main(["p", "root", "--list", *options]) == 0
    assert capsys.readouterr().out == said
    assert {p.name: p.read_text() for p in folder.glob("*.lst")} == lists


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("options", "record", "index"), GOLDEN["records"])
def test_records_are_mxnets(folder, options, record, index, threads):
    (folder / "p.lst").write_text(cases.LIST)
    assert im2rec.main([*options, "--num-thread", str(threads), "p", "root"]) == 0
    content, expected = (folder / "p.rec").read_bytes(), base64.b64decode(record)
    if "--pass-through" in options:
        assert content == expected
        assert (folder / "p.idx").read_text() == index
    # Encoders of other versions may compress otherwise; the pictures are the same.
    pairs = zip(
        RecordReader(content).whole_records(), RecordReader(expected).whole_records(), strict=True
    )
    for (_, ours), (_, theirs) in pairs:
        header, picture = mx.recordio.unpack_img(ours)
        wanted_header, wanted_picture = mx.recordio.unpack_img(theirs)
        assert str(header) == str(wanted_header)
        assert np.abs(picture.astype(int) - wanted_picture).max() <= 1


def test_im2rec_skips_and_reports_unreadable_entries(folder, capsys):
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

    monkeypatch.setattr(im2rec.Packing, "pack", interrupt)
    with pytest.raises(KeyboardInterrupt):
        im2rec.main(["p", "root"])
    assert unchanged(packed)
    assert not [p for p in pathlib.Path().iterdir() if p.suffix == ".part"]


def test_without_a_list_it_makes_list_and_records(folder, capsys):
    assert im2rec.main(["--no-shuffle", "p", "root"]) in (0, 1)  # some images cannot be decoded
    said = capsys.readouterr().err
    assert "im2rec: writing p.lst, the list of images in" in said
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


RECORDS = HERE / "records"


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


def test_an_index_is_not_replaced_without_force(images, capsys):
    said(capsys, "rec", "index", images, "--force")
    assert "mx rec: " in (error := said(capsys, "rec", "index", images, code=1).err)
    assert "--force replaces it" in error


def test_a_reader_may_stop_early(images):
    """``mx rec cat train.rec | head -1``."""
    command = [sys.executable, "-m", "mxnext_cli", "rec", "cat", str(images)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_lists_are_written_into_new_folders(tmp_path, capsys):
    (tmp_path / "images").mkdir()
    (tmp_path / "images/a.png").write_bytes(b"only its name is read")
    said(capsys, "im2rec", "--list", tmp_path / "data/train", tmp_path / "images")
    assert (tmp_path / "data/train.lst").is_file()


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


def test_an_index_of_a_damaged_file(damaged, capsys):
    index = damaged.with_suffix(".idx")
    before = index.read_bytes() if index.exists() else None
    assert main(["rec", "index", str(damaged), "--force"]) == 1
    told = capsys.readouterr().err
    assert "Left out: bytes" in told
    assert "--skip-damaged" in told
    assert (index.read_bytes() if index.exists() else None) == before
    assert main(["rec", "index", str(damaged), "--force", "--skip-damaged"]) == 0
    told = capsys.readouterr()
    assert "Left out: bytes" in told.err
    lines = index.read_text().splitlines()
    assert f"{len(lines)} records in" in told.out
    reader = mx.recordio.MXIndexedRecordIO(str(index), str(damaged), "r")
    for line in lines:
        key = int(line.split()[0])
        assert mx.recordio.unpack(reader.read_idx(key))[0].id == key


def test_missing_files_are_named(tmp_path, capsys):
    assert "No such file" in said(capsys, "rec", "info", tmp_path / "a.rec", code=1).err


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
