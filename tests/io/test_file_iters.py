"""CSVIter, LibSVMIter and MNISTIter, and their errors for damaged files."""

from __future__ import annotations

import gzip
import random
import struct

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import FormatError
from mxnet.formats import sample_files
from mxnet.formats.sample_files import read_idx
from mxnet.io import CSVIter, LibSVMIter, MNISTIter, MXDataIter


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text, name="file"):
    with open(name, "wb") as file:  # noqa: PTH123 (short)
        file.write(text if isinstance(text, bytes) else text.encode())
    return name


def rows_of(it):
    return [row for batch in it for row in batch.data[0].asnumpy().tolist()]


def csv(text, shape=(2,), **more):
    return CSVIter(data_csv=write(text), data_shape=shape, **{"batch_size": 1, **more})


def test_file_iterators_are_instances_of_mxdataiter():
    assert isinstance(csv("1,2\n"), MXDataIter)


def test_csv_number_formats():
    found = rows_of(csv("1,2\r\n\n 5, 6 \n1e3,-2.5e-1\nnan,-inf"))
    assert found[:3] == [[1, 2], [5, 6], [1000, -0.25]]
    assert np.isnan(found[3][0])
    assert found[3][1] == -np.inf
    assert rows_of(csv("1,2,\n3,4,\n")) == [[1, 2], [3, 4]]


def test_options_as_strings():
    it = csv("1,2\n3,4\n5,6\n", "(2,)", batch_size="2", round_batch="False", data_name="x")
    assert it.provide_data[0].name == "x"
    assert [batch.pad for batch in it] == [0, 1]


def test_file_read_in_many_blocks(monkeypatch):
    monkeypatch.setattr(sample_files, "BLOCK_BYTES", 64)
    lines = [f"{i},{-i}" for i in range(500)]
    it = csv("\n".join(lines), batch_size=7)
    assert rows_of(it)[:500] == [[i, -i] for i in range(500)]
    lines[333] = "3,oops"
    with pytest.raises(FormatError, match=r"file, line 334: expected a number .* found 'oops'"):
        rows_of(csv("\n".join(lines), batch_size=7))


def test_reset_in_the_middle_of_an_epoch():
    it = csv("1,1\n2,2\n3,3\n", batch_size=2)
    it.next()
    it.reset()
    assert it.next().data[0].asnumpy().tolist() == [[1, 1], [2, 2]]


def test_debug_skip_load_repeats_the_first_batch():
    it = csv("1,1\n2,2\n")
    it.debug_skip_load()
    assert [it.next().data[0].asnumpy()[0, 0] for _ in range(5)] == [1] * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3\n", r"line 2: expected 2 numbers between commas; found 1: '3'"),
        ("1,2\n\n3,4,5\n", r"line 3: expected 2 numbers between commas; found 3"),
        ("a,b\n1,2\n", r"line 1: expected a number of type float32; found 'a'"),
        ("1,2\n3,\n", r"line 2: expected a number of type float32; found ''"),
        ("1,2\n3;4\n", "line 2"),
        (b"1,2\n3,\xff\n", r"line 2: expected text in UTF-8"),
        ("1,2\n3,0x4\n", "line 2"),
        ("1,2\n3,1_0\n", "line 2"),
    ],
)
def test_damaged_csv_raises(text, message):
    with pytest.raises(FormatError, match="file, " + message):
        rows_of(csv(text))


def test_integer_csv_with_fractions_or_overflow_raises():
    assert csv("1,2\n", dtype="int64").provide_data[0].dtype == np.int64
    with pytest.raises(FormatError, match=r"line 1: expected a number of type int32; found '2.5'"):
        csv("1,2.5\n", dtype="int32")
    with pytest.raises(FormatError, match=r"line 1: .*int32; found '9999999999'"):
        csv("1,9999999999\n", dtype="int32")


def test_label_file_with_fewer_rows_raises():
    write("0\n", "labels")
    with pytest.raises(FormatError, match="label file has 1 rows, fewer than the data file"):
        rows_of(csv("1,2\n3,4\n", label_csv="labels"))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: csv(""), mx.MXNetError, "no batch of 1"),
        (lambda: csv("1,2\n", batch_size=5), mx.MXNetError, "must be bigger than batch size"),
        (lambda: csv("1,2\n", batch_size=0), ValueError, "at least 1"),
        (lambda: csv("1,2\n", dtype="float64"), mx.MXNetError, "float64 is not supported"),
        (lambda: csv("1,2\n", shape="x"), ValueError, "Invalid Parameter format for data_shape"),
        (lambda: CSVIter(data_csv="f", batch_size=1), mx.MXNetError, "Required parameter data_sh"),
        (lambda: CSVIter(data_csv="none", data_shape=2, batch_size=1), OSError, "No such file"),
    ],
)
def test_invalid_arguments_of_file_iterators_raise(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_unknown_options_warn():
    with pytest.warns(UserWarning, match="CSVIter ignores buffer"):
        csv("1,2\n", buffer=3)


SVM = "1.0 0:0.5 2:1.2\n-2.0\n-3.0 0:0.6 1:2.4 2:1.2\n4 2:-1.2\n5 1:1\n"
DENSE = [[0.5, 0, 1.2], [0, 0, 0], [0.6, 2.4, 1.2], [0, 0, -1.2], [0, 1, 0]]
SVM_LABELS = [1, -2, -3, 4, 5]


def svm(text=SVM, **more):
    arguments = {"data_shape": (3,), "batch_size": 1, **more}
    return LibSVMIter(data_libsvm=write(text), **arguments)


def test_libsvm_batches_match_mxnet():
    it = svm(batch_size=3)
    epochs = []
    for _ in range(3):
        epochs.append([(b.index.tolist(), b.pad) for b in it])
        it.reset()
    # As in MXNet 1.9.1: each epoch starts where the last batch of the previous one ended.
    assert epochs == [
        [([0, 1, 2], 0), ([3, 4, 0], 1)],
        [([1, 2, 3], 0), ([4, 0, 1], 2)],
        [([2, 3, 4], 0)],
    ]


def test_libsvm_returns_csr_data_and_dense_labels():
    batches = list(svm(batch_size=2))
    assert {b.data[0].stype for b in batches} == {"csr"}
    rows = [i for b in batches for i in b.index.astype(int)]
    data = np.concatenate([b.data[0].asnumpy() for b in batches])
    assert data == pytest.approx(np.array(DENSE)[rows])
    assert [x for b in batches for x in b.label[0].asnumpy()] == [SVM_LABELS[i] for i in rows]


def test_libsvm_labels_from_a_separate_file():
    write("0 0:1\n0 1:2\n0 0:3\n0\n0 1:5\n", "labels")
    it = svm(batch_size=5, label_libsvm="labels", label_shape=(2,))
    label = it.next().label[0]
    assert label.stype == "csr"
    assert label.asnumpy().tolist() == [[1, 0], [0, 2], [3, 0], [0, 0], [0, 5]]


def test_libsvm_num_parts_and_part_index():
    found = [[b.label[0].asscalar() for b in svm(num_parts=2, part_index=i)] for i in (0, 1)]
    assert found == [[1, -2], [-3, 4, 5]]


def test_libsvm_comments_queries_and_empty_lines():
    it = svm("# header\n1 0:0.5 # here\n\n2 qid:7 1:1\n+3 2:.5e1\n")
    found = [(b.label[0].asscalar(), b.data[0].asnumpy().tolist()[0]) for b in it]
    assert found == [(1, [0.5, 0, 0]), (2, [0, 1, 0]), (3, [0, 0, 5])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0:1\n2 7:1\n", "line 2: expected indices from 0 to 2; found 7"),
        ("1 0:x\n", "line 1: expected index:value, .* found '0:x'"),
        ("1 0:1 word\n", "line 1: expected index:value, .* found 'word'"),
        ("1 0:1 2\n", "line 1: expected index:value, .* found '2'"),
        ("1 -1:1\n", "line 1: expected index:value, .* found '-1:1'"),
        ("1,2 0:1\n", "line 1: expected one number as the label; found '1,2'"),
        ("1 0:1\n\nx 0:1\n", "line 3: expected one number as the label; found 'x'"),
        ("1 99999999999999999999:1\n", "line 1"),
        (b"1 0:1\n\xfe\n", "line 2: expected text in UTF-8"),
    ],
)
def test_damaged_libsvm_raises(text, message):
    with pytest.raises(FormatError, match="file, " + message):
        rows_of(svm(text))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data_shape": (3, 2)}, "dimension of data_shape"),
        ({"label_shape": (2,)}, r"expected to be \(1,\) when label_libsvm is NULL"),
        ({"round_batch": False}, "round_batch"),
        ({"dtype": "float64"}, "not supported"),
        ({"num_parts": 2, "part_index": 2}, "part_index must be from 0 to 1"),
    ],
)
def test_invalid_libsvm_arguments_raise(arguments, message):
    with pytest.raises((mx.MXNetError, ValueError), match=message):
        svm(**arguments)


def idx_files(count=7, pack=lambda x: x):
    pixels = (np.arange(count * 6) * 9 % 256).astype("uint8").tobytes()
    write(pack(struct.pack(">iiii", 2051, count, 3, 2) + pixels), "images")
    write(pack(struct.pack(">ii", 2049, count) + bytes(range(count))), "labels")
    return {"image": "images", "label": "labels"}


def test_mnist_reads_gzipped_files():
    files = idx_files(pack=gzip.compress)
    batch = MNISTIter(**files, batch_size=7, shuffle=False).next()
    assert batch.data[0].shape == (7, 1, 3, 2)
    assert batch.data[0].asnumpy().reshape(-1)[:3].tolist() == [0, 9 / 256, 18 / 256]


def test_mnist_shuffling_is_reproducible_with_a_seed():
    files = idx_files()

    def order(seed):
        return MNISTIter(**files, batch_size=7, seed=seed).next().label[0].asnumpy().tolist()

    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == list(range(7))


def test_mnist_logs_number_and_shape_of_images(caplog):
    caplog.set_level("INFO")
    MNISTIter(**idx_files(), batch_size=3, shuffle=False)
    assert caplog.messages == ["MNISTIter: load 7 images, shuffle=0, shape=(3, 1, 3, 2)"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "at byte 0: expected a header of 16 bytes"),
        (b"\0\0\x08\x03\0", "at byte 5: expected a header"),
        (struct.pack(">iiii", 2049, 1, 1, 1) + b"x", "at byte 0: expected the magic number 2051"),
        (struct.pack(">iiii", 2051, 2, 2, 1) + b"xxx", r"at byte 19: expected 4 bytes .* only 3"),
        (struct.pack(">iIII", 2051, 2**32 - 1, 2**32 - 1, 2**32 - 1) + b"x", "only 1"),
        (struct.pack(">iiii", 2051, 1, 1, 1) + b"xx", "at byte 17: expected the end"),
        (
            gzip.compress(struct.pack(">iiii", 2051, 2, 2, 1) + b"xxxx", mtime=0)[:-9],
            "gzip data is damaged",
        ),
    ],
)
def test_damaged_idx_files_raise(content, message):
    with pytest.raises(FormatError, match="file: .*" + message):
        read_idx(write(content), 3)


def test_different_numbers_of_images_and_labels_raise():
    idx_files(7)
    write(struct.pack(">ii", 2049, 2) + b"ab", "labels")
    with pytest.raises(ValueError, match="images has 7 images, and labels has 2 labels"):
        MNISTIter(image="images", label="labels")


def test_fewer_images_than_a_batch_raise():
    with pytest.raises(mx.MXNetError, match="no batch of 8"):
        MNISTIter(**idx_files(), batch_size=8)


READERS = {
    "csv": (SVM.replace(" ", ","), lambda f: list(sample_files.read_csv(f, 2, np.float32))),
    "libsvm": (SVM, lambda f: list(sample_files.read_libsvm(f, 3))),
    "idx": (struct.pack(">iiii", 2051, 2, 2, 2) + bytes(8), lambda f: read_idx(f, 3)),
    "idx.gz": (
        gzip.compress(struct.pack(">iiii", 2051, 2, 2, 2) + bytes(8)),
        lambda f: read_idx(f, 3),
    ),
}


@pytest.mark.parametrize("kind", READERS)
def test_damaged_files_are_read_or_raise_format_errors(kind):
    content, read = READERS[kind]
    whole = content if isinstance(content, bytes) else content.encode()
    dice = random.Random(5)
    for _ in range(300):
        broken = bytearray(whole[: dice.randrange(len(whole)) + 1])
        for _ in range(dice.randrange(4)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        try:
            read(write(bytes(broken)))
        except FormatError as error:
            assert "file" in str(error)


def test_integer_csv_accepts_values_with_a_decimal_point(tmp_path):
    (tmp_path / "x.csv").write_text("0.0,1.0\n2.0,3.0\n")
    batches = mx.io.CSVIter(
        data_csv=str(tmp_path / "x.csv"), data_shape=(2,), batch_size=2, dtype="int32"
    )
    assert next(batches).data[0].asnumpy().tolist() == [[0, 1], [2, 3]]
