"""Record `.params` files that MXNet 1.9.1 wrote. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_params.py

Each file has a twin `.npz` with the same values as NumPy sees them, so that reading is checked too.
"""

from __future__ import annotations

import pathlib

import numpy as np

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "params"
DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")


def counting(dtype, shape=(2, 3)):
    """Return small values that every type can hold."""
    size = int(np.prod(shape))
    return mx.nd.array(
        np.arange(size).reshape(shape) % 2 if dtype == "bool" else np.arange(size).reshape(shape),
        dtype=dtype,
    )


def bfloat16_bits():
    """Return bfloat16 values 1, 2, -3 made through a file, since 1.9.1 cannot name the type."""
    header = np.array([0x112, 0, 1], "<u8").tobytes()
    record = np.array([0xF993FAC9, 0, 1], "<u4").tobytes() + np.array([3], "<i8").tobytes()
    record += (
        np.array([1, 0, 12], "<i4").tobytes() + np.array([0x3F80, 0x4000, 0xC040], "<u2").tobytes()
    )
    path = DATA / "bfloat16.tmp"
    path.write_bytes(header + record + np.array([0], "<u8").tobytes())
    array = mx.nd.load(str(path))[0]
    path.unlink()
    return array


def row_sparse(dtype="float32"):
    """Return rows 0 and 2 of a 4 x 2 array."""
    return mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(4, 2), dtype=dtype)


def csr(dtype="float32"):
    """Return a 3 x 4 matrix with an empty row."""
    return mx.nd.sparse.csr_matrix(([1, 2, 3], [0, 3, 1], [0, 2, 2, 3]), shape=(3, 4), dtype=dtype)


CASES = {
    "list_float32": lambda: [counting("float32")],
    "dtypes": lambda: {d: counting(d) for d in DTYPES},
    "dtypes_list": lambda: [counting(d, (3,)) for d in DTYPES],
    "bfloat16": lambda: [bfloat16_bits()],
    "empty_list": list,
    "empty_dict": dict,
    "no_elements": lambda: {"none": mx.nd.array([])},
    "unsorted_names": lambda: {
        "z": counting("int32"),
        "a": counting("int8"),
        "é中": counting("uint8"),
    },
    "checkpoint": lambda: {
        "arg:fc_weight": counting("float32", (5, 7)),
        "arg:fc_bias": counting("float32", (5,)),
        "aux:bn_moving_mean": counting("float32", (5,)),
    },
    "ranks": lambda: [counting("float32", (1,) * n + (2,)) for n in range(8)],
    "row_sparse": lambda: {"w": row_sparse(), "h": row_sparse("float16"), "i": row_sparse("int64")},
    "csr": lambda: {"w": csr(), "d": csr("float64"), "i": csr("int32")},
    "sparse_zeros": lambda: [
        mx.nd.sparse.zeros("row_sparse", (4, 2)),
        mx.nd.sparse.zeros("csr", (4, 2)),
    ],
    "mixed": lambda: {
        "dense": counting("float32"),
        "rows": row_sparse(),
        "matrix": csr(),
        "b": counting("bool"),
    },
    "scalar_legacy": lambda: [mx.nd.array(5)],
    "big": lambda: [mx.nd.array(np.random.RandomState(0).randn(40, 80), dtype="float32")],
}
NP_CASES = {
    "np_scalar": lambda: [mx.nd.array(5), mx.nd.zeros((0, 2)), counting("int8")],
    "np_dict": lambda: {"s": mx.nd.array(3, dtype="float64"), "x": counting("float32")},
}


def parts(array):
    """Return the arrays that make up one saved array."""
    if array.stype == "row_sparse":
        return {"indices": array.indices.asnumpy(), "values": array.data.asnumpy()}
    if array.stype == "csr":
        return {
            "indptr": array.indptr.asnumpy(),
            "indices": array.indices.asnumpy(),
            "values": array.data.asnumpy(),
        }
    values = array.asnumpy()
    return {"dense": values.view(np.uint16) if values.dtype.names else values}


def record(name, arrays):
    """Write the file of one case and its twin."""
    mx.nd.save(str(DATA / (name + ".params")), arrays)
    pairs = arrays.items() if isinstance(arrays, dict) else enumerate(arrays)
    twin = {}
    for i, (_, array) in enumerate(pairs):
        twin[f"{i}/shape"] = np.array(array.shape, dtype=np.int64)
        for part, values in parts(array).items():
            twin[f"{i}/{part}"] = values
    twin["names"] = np.array(list(arrays) if isinstance(arrays, dict) else [], dtype=str)
    np.savez_compressed(DATA / (name + ".npz"), **twin)


def main():
    """Write all cases."""
    DATA.mkdir(exist_ok=True)
    for name, make in CASES.items():
        record(name, make())
    with mx.util.np_shape(True):
        for name, make in NP_CASES.items():
            record(name, make())


if __name__ == "__main__":
    main()
