"""Trees of plain things and tensors in one file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from mxnet.error import FormatError
from mxnet.formats import params_file, tree_file


def test_a_tree_comes_back_as_it_was(tmp_path):
    tree = {
        "numbers": [1, -2.5, True, None, "text", float("inf")],
        3: (1, ("a", [2])),
        "bytes": b"\x00\xff",
        "empty": [b"", [], {}, ()],
        "tensor": torch.arange(6).reshape(2, 3),
        "numpy": np.arange(4, dtype=">u2").reshape(2, 2),
        "scalar": np.float64(0.1),
    }
    tree_file.write(tmp_path / "t", tree)
    back = tree_file.read(tmp_path / "t")
    assert torch.equal(back.pop("tensor"), tree.pop("tensor"))
    array, wanted = back.pop("numpy"), tree.pop("numpy")
    assert array.dtype == wanted.dtype
    assert array.tolist() == wanted.tolist()
    assert back == tree


def test_other_objects_are_refused(tmp_path):
    with pytest.raises(TypeError, match="cannot hold object"):
        tree_file.write(tmp_path / "t", {"x": object()})
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "tree",
    [
        "{",
        '{"tensor":"9"}',
        '{"what":1}',
        '{"numpy":["0","|O",[1]]}',
        '{"a":1,"b":2}',
        '{"dict":1}',
    ],
)
def test_a_damaged_tree_is_refused(tmp_path, tree):
    text = torch.frombuffer(bytearray(tree.encode()), dtype=torch.uint8)
    params_file.write(tmp_path / "t", {"0": torch.zeros(8), "tree": text})
    with pytest.raises(FormatError, match="damaged"):
        tree_file.read(tmp_path / "t")
    assert json.dumps(tree)
