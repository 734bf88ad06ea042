"""JSON becomes arrays as NumPy reads it, and what cannot be an array is refused early."""

from __future__ import annotations

import json

import numpy as np
import pytest

msgspec = pytest.importorskip("msgspec")

from mxnext_cli.serve import decoding  # noqa: E402
from mxnext_cli.serve.decoding import PIECE, parse_json, read_json_array  # noqa: E402

FLOAT = np.dtype("float64")
LARGE = 2 * PIECE


def read(text: str, dtype=FLOAT, limit: int = 10**6) -> np.ndarray:
    return read_json_array(parse_json(text.encode(), msgspec.Raw), dtype, limit)


def test_arrays_are_those_of_numpy():
    random = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(random.integers(1, 5, random.integers(0, 6)))
        values = random.standard_normal(shape) * 10.0 ** random.integers(-300, 300)
        text = json.dumps(values.tolist(), indent=random.choice([None, 1]))
        np.testing.assert_array_equal(read(text), values)


def test_long_texts_are_read_in_pieces():
    values = np.random.default_rng(0).standard_normal((7, 50_000))
    np.testing.assert_array_equal(read(json.dumps(values.tolist())), values)


def test_the_last_number_may_lie_across_the_end_of_a_piece():
    for length in range(20):
        text = "[" + "1," * (PIECE // 2 - 4) + "1" * length + "2]"
        assert read(text)[-1] == float("1" * length + "2")


def test_long_texts_are_json_if_the_json_module_says_so():
    """The reader agrees with `json` on long arrays with one changed character."""
    random = np.random.default_rng(3)
    original = json.dumps(random.integers(0, 9, (30, 2000)).tolist())
    read_count = 0
    for _ in range(300):
        position = int(random.integers(len(original)))
        character = str(random.choice(list('[],: 0-.e"tn')))
        text = original[:position] + character + original[position + 1 :]
        try:
            array = np.array(json.loads(text), float)
        except ValueError:
            array = None
        try:
            result = read(text)
        except ValueError:
            assert array is None, (position, character)
        else:
            read_count += 1
            np.testing.assert_array_equal(result, array)
    assert 20 < read_count < 280


@pytest.mark.parametrize(
    "text, message",
    [
        ("[" + "1," * LARGE + "1],[1]", "malformed|trailing"),
        ("[" + "1," * LARGE + "1]]", "malformed|trailing"),
        ("[[" + "1," * LARGE + "1]", "truncated"),
        ("[" * 50 + "1," * LARGE + "1" + "]" * 50, "50 deep"),
        ("[" + "1," * LARGE + "1", "truncated"),
    ],
)
def test_malformed_long_arrays_raise(text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


def test_numbers_are_read_in_short_pieces(monkeypatch):
    """A long list of Python numbers would take much memory, and hold up everybody."""
    sizes = []
    decode = decoding._decode_numbers

    def watch(text):
        sizes.append(len(text))
        return decode(text)

    monkeypatch.setattr(decoding, "_decode_numbers", watch)
    count = 20 * PIECE
    assert read("[[" + "1," * (count - 1) + "1]]", limit=count).sum() == count
    assert max(sizes) < 1.1 * PIECE
    assert sum(sizes) > 2 * count * 0.9


def test_integers_keep_all_digits():
    assert read("[9007199254740993, -1]", np.dtype("int64")).tolist() == [9007199254740993, -1]
    assert read("[true, false]", np.dtype("bool")).tolist() == [True, False]
    assert read("[1.9, 1e2]", np.dtype("uint8")).tolist() == [1, 100]


def random_lists(random: np.random.Generator, depth: int) -> object:
    if depth == 0 or random.random() < 0.2:
        return int(random.integers(10))
    return [random_lists(random, depth - 1) for _ in range(random.integers(0, 4))]


def test_irregular_lists_are_refused_as_numpy_refuses_them():
    random = np.random.default_rng(1)
    regular = 0
    for _ in range(2000):
        lists = random_lists(random, int(random.integers(1, 4)))
        try:
            array = np.array(lists, dtype=float)
        except ValueError:
            array = None
        try:
            result = read(json.dumps(lists))
        except ValueError:
            assert array is None or array.size == 0, lists
        else:
            regular += 1
            assert array is not None, lists
            np.testing.assert_array_equal(result, array)
    assert regular > 100


@pytest.mark.parametrize(
    "text, message",
    [
        ("[1, 2", "malformed|truncated"),
        ("[NaN]", "malformed"),
        ("[01]", "malformed"),
        ('["a"]', "not a number"),
        ("[null]", "not a number"),
        ("[{}]", "not a number"),
        ("[[], []]", "empty list"),
        ("[1e999]", "range"),
        ("[" * 40 + "1" + "]" * 40, "40 deep"),
        ("[" * 3000 + "]" * 3000, "deep|empty"),
        ("[" + "1" * 200_000 + "]", "1024 characters"),
        ("[" + "1," * 100 + "1]", "101 numbers"),
    ],
)
def test_invalid_json_arrays_raise(text, message):
    with pytest.raises(ValueError, match=message):
        read(text, limit=100)


def test_numbers_outside_of_the_type():
    for text, dtype in (("[300]", "uint8"), ("[-1]", "uint8"), ("[1" + "0" * 400 + "]", "float32")):
        with pytest.raises(ValueError, match="not within"):
            read(text, np.dtype(dtype))


def test_texts_of_too_many_names_are_refused_before_they_are_parsed():
    """The texts are malformed JSON too, but the number of names is checked first."""
    for text in (b'"' * 100_000, b"{" * 100_000):
        with pytest.raises(ValueError, match="too many names"):
            parse_json(text, msgspec.Raw)
