"""A flipped bit in a file of ours is found when it is read, with the name of the array."""

from __future__ import annotations

import random

import pytest
import torch

import mxnet as mx
from mxnet.error import FormatError
from mxnet.formats import params_file, tree_file

ARRAYS = {
    "weight": torch.arange(12.0).reshape(3, 4),
    "mask": torch.tensor([True, False, True]),
    "large": torch.arange(200_000),
}


def test_a_flipped_bit_names_the_array(tmp_path):
    path = tmp_path / "x.params"
    params_file.write(path, ARRAYS)
    raw = bytearray(path.read_bytes())
    at = raw.index(ARRAYS["large"].numpy().tobytes()) + 1_000_000
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"x\.params: the file is damaged: 1 of 3.*: 'large'"):
        mx.nd.load(str(path))


def test_no_flipped_bit_goes_unnoticed(tmp_path):
    path = tmp_path / "x.params"
    params_file.write(path, {k: v for k, v in ARRAYS.items() if k != "large"})
    good, chance = path.read_bytes(), random.Random(3)
    for _ in range(400):
        raw = bytearray(good)
        at = chance.randrange(len(raw))
        raw[at] ^= 1 << chance.randrange(8)
        if 8 <= at < 16:  # a reserved word that nobody reads
            continue
        path.write_bytes(raw)
        with pytest.raises(FormatError):
            mx.nd.load(str(path))


def test_files_of_mxnet_have_no_checksums_and_load(tmp_path):
    path = tmp_path / "x.params"
    path.write_bytes(params_file.dumps(ARRAYS))
    assert mx.nd.load(str(path)).keys() == ARRAYS.keys()
    assert params_file.read_info(path) == {}


def test_a_training_state_is_checked(tmp_path):
    path = tmp_path / "run-resume.params"
    tree_file.write(path, {"epoch": 3, "weight": torch.ones(1000)})
    raw = bytearray(path.read_bytes())
    raw[2000] ^= 64
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="the file is damaged"):
        tree_file.read(path)


def test_a_checkpoint_whose_symbol_was_replaced_warns(tmp_path):
    prefix = str(tmp_path / "net")
    x = mx.sym.var("x")
    params = {"w": mx.nd.ones(2)}
    mx.model.save_checkpoint(prefix, 1, x * 2, params, {})
    mx.model.load_checkpoint(prefix, 1)
    (x * 3).save(f"{prefix}-symbol.json")
    with pytest.warns(UserWarning, match="was saved with another symbol"):
        mx.model.load_checkpoint(prefix, 1)
