"""RecordIO: MXNet's files byte for byte; damage raises or is skipped."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import struct

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.formats.recordio_file import MAGIC_BYTES, RecordReader, encode
from mxnet.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO
from tests.golden import HERE

GOLDEN = HERE / "records"
FACTS = json.loads((GOLDEN / "headers.json").read_text())
PAYLOADS = [bytes.fromhex(p) for p in FACTS["payloads"]]


@pytest.fixture
def damaged(tmp_path):
    """Ten records; the magic number of the sixth is damaged."""
    records = [encode(bytes([65 + n]) * (3 * n)) for n in range(10)]
    raw = b"".join(records)
    at = sum(map(len, records[:5]))
    path = tmp_path / "damaged.rec"
    path.write_bytes(raw[:at] + b"????" + raw[at + 4 :])
    return path, at


def write_indexed(folder, keys=(0, 1, 2)):
    idx, rec = folder / "a.idx", folder / "a.rec"
    with MXIndexedRecordIO(idx, rec, "w") as file:
        for key in keys:
            file.write_idx(key, b"record %d" % key)
    return idx, rec


def test_written_files_equal_those_of_mxnet_byte_for_byte(tmp_path):
    with MXRecordIO(tmp_path / "plain.rec", "w") as file:
        for payload in PAYLOADS:
            file.write(payload)
    idx, rec = tmp_path / "indexed.idx", tmp_path / "indexed.rec"
    with MXIndexedRecordIO(str(idx), str(rec), "w") as file:
        for number, payload in enumerate(PAYLOADS):
            file.write_idx(3 * number + 1, payload)
    for name in ("plain.rec", "indexed.rec", "indexed.idx"):
        assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes(), name


def test_files_of_mxnet_are_read():
    assert list(MXRecordIO(GOLDEN / "plain.rec", "r")) == PAYLOADS
    assert list(MXRecordIO(GOLDEN / "plain.rec", "r", on_error="skip")) == PAYLOADS
    file = MXIndexedRecordIO(GOLDEN / "indexed.idx", GOLDEN / "indexed.rec", "r")
    assert [file.read_idx(key) for key in file.keys] == PAYLOADS
    assert file.keys[:3] == [1, 4, 7]


@pytest.mark.parametrize(("flag", "label", "id_", "id2", "packed", "found"), FACTS["headers"])
def test_headers_match_mxnet(flag, label, id_, id2, packed, found):
    made = mx.recordio.pack(IRHeader(flag, label, id_, id2), b"content")
    assert made.hex() == packed
    header, content = mx.recordio.unpack(made)
    assert [header.flag, np.asarray(header.label).tolist(), header.id, header.id2] == found
    assert content == b"content"


def test_header_repr_and_pickle_match_mxnet():
    header = IRHeader(0, 14.0, 20129312, 0)
    assert repr(header) == "HEADER(flag=0, label=14.0, id=20129312, id2=0)"
    assert pickle.loads(pickle.dumps(header)) == header


def test_read_returns_none_at_the_end_and_reset_restarts(tmp_path):
    _, rec = write_indexed(tmp_path)
    file = MXRecordIO(rec, "r")
    assert [file.read() for _ in range(5)] == [b"record 0", b"record 1", b"record 2", None, None]
    file.reset()
    assert file.read() == b"record 0"


def test_resetting_a_writer_truncates_the_file(tmp_path):
    file = MXRecordIO(tmp_path / "a.rec", "w")
    file.write(b"lost")
    file.reset()
    file.write(b"kept")
    file.close()
    assert list(MXRecordIO(tmp_path / "a.rec", "r")) == [b"kept"]


def test_indexed_reading_uses_the_last_of_duplicate_keys(tmp_path):
    idx, rec = tmp_path / "a.idx", tmp_path / "a.rec"
    file = MXIndexedRecordIO(idx, rec, "w", key_type=str)
    assert file.tell() == 0
    for key, payload in [("x", b"1"), ("y", b"22"), ("x", b"333")]:
        file.write_idx(key, payload)
    assert file.tell() == 36
    file.close()
    assert idx.read_bytes() == b"x\t0\ny\t12\nx\t24\n"
    file = MXIndexedRecordIO(idx, rec, "r", key_type=str)
    assert file.keys == ["x", "y", "x"]
    assert file.read_idx("x") == b"333"
    file.seek("y")
    assert file.read() == b"22"
    with pytest.raises(KeyError, match="no record 'z'"):
        file.read_idx("z")
    file.close()
    assert file.read_idx("y") == b"22"  # seeking reopens it


def test_invalid_use_raises(tmp_path):
    idx, rec = write_indexed(tmp_path)
    with pytest.raises(ValueError, match="Invalid flag a"):
        MXRecordIO(rec, "a")
    with pytest.raises(MXNetError, match="No such file"):
        MXRecordIO(tmp_path / "none.rec", "r")
    with pytest.raises(MXNetError, match="No such file"):
        MXIndexedRecordIO(tmp_path / "none.idx", rec, "r")
    reader, writer = MXIndexedRecordIO(idx, rec, "r"), MXRecordIO(tmp_path / "b.rec", "w")
    for forbidden in (
        writer.read,
        reader.tell,
        lambda: reader.write(b""),
        lambda: reader.write_idx(1, b""),
    ):
        with pytest.raises(AssertionError, match="was opened for"):
            forbidden()
    with pytest.raises(TypeError, match="bytes, not str"):
        writer.write("text")
    writer.close()
    with pytest.raises(MXNetError, match="closed"):
        writer.write(b"")


def test_pickled_readers_restart_and_pickling_writers_raises(tmp_path):
    idx, rec = write_indexed(tmp_path)
    reader = MXIndexedRecordIO(idx, rec, "r")
    reader.read()
    again = pickle.loads(pickle.dumps(reader))
    assert again.read() == b"record 0"
    assert again.read_idx(2) == b"record 2"
    writer = MXRecordIO(tmp_path / "b.rec", "w")
    with pytest.raises(MXNetError, match="cannot be pickled"):
        pickle.dumps(writer)
    writer.close()
    assert not pickle.loads(pickle.dumps(writer)).is_open


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_readers_and_writers_survive_a_fork(tmp_path):
    idx, rec = write_indexed(tmp_path)
    reader = MXIndexedRecordIO(idx, rec, "r")
    assert reader.read() == b"record 0"
    writer = MXIndexedRecordIO(tmp_path / "b.idx", tmp_path / "b.rec", "w")
    writer.write_idx(0, b"parent")
    fork = multiprocessing.get_context("fork")
    answers = fork.SimpleQueue()

    def child():
        found = [reader.read(), reader.read_idx(0)]
        try:
            writer.write_idx(1, b"child")
        except MXNetError as error:
            found.append(str(error))
        writer.close()
        answers.put(found)

    process = fork.Process(target=child, daemon=True)
    process.start()
    process.join(120)
    assert process.exitcode == 0  # otherwise no answer would arrive
    found = answers.get()
    assert found[:2] == [b"record 1", b"record 0"]
    assert "multiple processes" in found[2]
    assert reader.read() == b"record 1"  # the child moved only its own position
    writer.write_idx(5, b"more")
    writer.close()
    assert list(MXRecordIO(tmp_path / "b.rec", "r")) == [b"parent", b"more"]
    assert (tmp_path / "b.idx").read_text() == "0\t0\n5\t16\n"


def test_damage_raises_with_its_position(damaged):
    path, at = damaged
    file = MXRecordIO(path, "r")
    for _ in range(5):
        file.read()
    with pytest.raises(
        FormatError, match=f"damaged.rec: at byte {at} expected the magic .* found 3f"
    ):
        file.read()


def test_on_error_skip_skips_damaged_records(damaged):
    path, at = damaged
    file = MXRecordIO(path, "r", on_error="skip")
    assert [r[:1] for r in file] == [b"", *(bytes([65 + n]) for n in (1, 2, 3, 4, 6, 7, 8, 9))]
    assert file.skipped == 1
    assert file.damage[0][:2] == (at, at + 8 + 16)
    file.reset()
    assert file.skipped == 0


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (MAGIC_BYTES, "8 bytes of a record's head, found 4 bytes"),
        (encode(b"abcdefgh")[:-5], "8 bytes of content, found 3 bytes"),
        (MAGIC_BYTES + struct.pack("<I", 7 << 29), "flag 0, 1, 2 or 3, found flag 7"),
        (MAGIC_BYTES + struct.pack("<I", 3 << 29), "the beginning of a record, found a later part"),
        (MAGIC_BYTES + struct.pack("<I", 1 << 29) + encode(b"a"), "the next part .* found flag 0"),
    ],
)
def test_every_kind_of_damage_raises(raw, said):
    with pytest.raises(FormatError, match=said):
        RecordReader(raw).read(0)
    assert not [x for _, x in RecordReader(raw).whole_records() if x == b"abcdefgh"]


def test_missing_byte_loses_only_one_record():
    records = [encode(b"record %02d" % n) for n in range(6)]
    raw = b"".join(records[:2]) + records[2][:9] + records[2][10:] + b"".join(records[3:])
    found = [x for _, x in RecordReader(raw).whole_records() if isinstance(x, bytes)]
    assert found == [b"record %02d" % n for n in (0, 1, 3, 4, 5)]


def test_growing_file_can_be_read(tmp_path):
    path = tmp_path / "a.rec"
    path.write_bytes(encode(b"one"))
    file = MXRecordIO(path, "r")
    assert file.read() == b"one"
    assert file.read() is None
    with path.open("ab") as more:
        more.write(encode(b"two"))
    assert file.read() == b"two"


@pytest.mark.parametrize("line", ["5", "x\t3", "5\t-1", "5\tmany", "\t"])
def test_invalid_index_lines_raise_or_are_skipped(tmp_path, line):
    _, rec = write_indexed(tmp_path)
    idx = tmp_path / "bad.idx"
    idx.write_text(f"0\t0\n{line}\n2\t32\n" if line.strip() else "0\t0\n\n2\t32\n")
    if line.strip():
        with pytest.raises(FormatError, match="in line 2 expected a key"):
            MXIndexedRecordIO(idx, rec, "r")
    file = MXIndexedRecordIO(idx, rec, "r", on_error="skip")
    assert file.keys == [0, 2]
    assert file.skipped_lines == bool(line.strip())


def test_index_offsets_outside_the_file_raise(tmp_path):
    _, rec = write_indexed(tmp_path)
    idx = tmp_path / "bad.idx"
    idx.write_text("0\t4\n1\t99999\n")
    file = MXIndexedRecordIO(idx, rec, "r")
    with pytest.raises(FormatError, match="at byte 4 expected the magic"):
        file.read_idx(0)
    with pytest.raises(FormatError, match="found the end of the file"):
        file.read_idx(1)


def test_truncated_image_records_raise():
    with pytest.raises(FormatError, match="begins with 24 bytes, this has 5"):
        mx.recordio.unpack(b"short")
    with pytest.raises(FormatError, match="9 labels"):
        mx.recordio.unpack(struct.pack("<IfQQ", 9, 0, 0, 0) + b"123")


def test_oversized_records_raise(monkeypatch):
    monkeypatch.setattr("mxnet.formats.recordio_file.MAX_RECORD_BYTES", 10)
    with pytest.raises(FormatError, match="up to 10 bytes"):
        encode(b"12345678901")


@pytest.mark.parametrize(("kind", "quality", "tolerance"), [(".png", 3, 0), (".jpg", 95, 12)])
def test_pack_img_and_unpack_img_roundtrip(kind, quality, tolerance):
    pytest.importorskip("cv2")
    ramp = np.arange(0, 240, 5, dtype=np.uint8)
    picture = np.stack([np.add.outer(ramp[:20], ramp // 3)] * 3, axis=2)
    packed = mx.recordio.pack_img(IRHeader(0, 2.0, 1, 0), picture, quality, kind)
    header, found = mx.recordio.unpack_img(packed)
    assert header.label == 2.0
    assert np.abs(found.astype(int) - picture).max() <= tolerance
    assert mx.recordio.unpack_img(packed, 0)[1].ndim == 2
    assert mx.recordio.unpack_img(mx.recordio.pack(header, b"no picture"))[1] is None
    with pytest.raises(MXNetError, match=r"'\.xyz'"):
        mx.recordio.pack_img(header, picture, img_fmt=".xyz")


@pytest.mark.parametrize(
    ("kind", "beyond", "end"), [(".png", 95, 9), (".png", -1, 0), (".jpg", 200, 100)]
)
def test_out_of_range_image_quality_is_clamped(capfd, kind, beyond, end):
    picture = np.arange(8 * 8 * 3, dtype="uint8").reshape(8, 8, 3)
    header = IRHeader(0, 1.0, 1, 0)
    packed = mx.recordio.pack_img(header, picture, beyond, kind)
    assert packed == mx.recordio.pack_img(header, picture, end, kind)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("label", "kept"), [(1e40, np.inf), (-1e40, -np.inf), (3e38, 3e38)])
def test_labels_outside_float32_range_become_infinite(label, kept):
    header, _ = mx.recordio.unpack(mx.recordio.pack(IRHeader(0, label, 1, 0), b""))
    assert header.label == pytest.approx(kept)


def rewritten(path, content):
    """Rewrite a file in place while it is open for reading."""
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(content)


@pytest.mark.parametrize("content", [b"", b"x", b"?" * 60])
def test_file_rewritten_while_being_read_raises(tmp_path, content):
    _, rec = write_indexed(tmp_path, range(500))
    plain, skipping = MXRecordIO(rec, "r"), MXRecordIO(rec, "r", on_error="skip")
    indexed = MXIndexedRecordIO(tmp_path / "a.idx", rec, "r")
    for file in (plain, skipping, indexed):
        file.read()
    rewritten(rec, content)
    with pytest.raises(FormatError, match="at byte 16 expected"):
        plain.read()
    with pytest.raises(FormatError):
        list(skipping)
    with pytest.raises(FormatError):
        indexed.read_idx(499)


def test_image_record_iter_raises_if_its_file_is_rewritten(tmp_path):
    pytest.importorskip("cv2")
    rec = tmp_path / "a.rec"
    with MXIndexedRecordIO(tmp_path / "a.idx", rec, "w") as file:
        for key in range(40):
            picture = np.full((8, 8, 3), key, np.uint8)
            file.write_idx(key, mx.recordio.pack_img(IRHeader(0, key, key, 0), picture))
    batches = mx.io.ImageRecordIter(
        path_imgrec=str(rec), data_shape=(3, 8, 8), batch_size=2, preprocess_threads=2
    )
    next(batches)
    rewritten(rec, b"")
    with pytest.raises(MXNetError):
        for _ in range(100):
            next(batches)


def test_existing_file_is_replaced_only_on_close(tmp_path):
    idx, rec = write_indexed(tmp_path)
    before = rec.read_bytes(), idx.read_bytes()
    file = MXIndexedRecordIO(idx, rec, "w")
    file.write_idx(7, b"new")
    assert (rec.read_bytes(), idx.read_bytes()) == before
    file.close()
    assert MXIndexedRecordIO(idx, rec, "r").read_idx(7) == b"new"


def test_exception_in_a_with_block_keeps_the_existing_file(tmp_path):
    idx, rec = write_indexed(tmp_path)
    before = rec.read_bytes(), idx.read_bytes()

    def fail():
        with MXIndexedRecordIO(idx, rec, "w") as file:
            file.write_idx(7, b"new")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert (rec.read_bytes(), idx.read_bytes()) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.idx", "a.rec"]
