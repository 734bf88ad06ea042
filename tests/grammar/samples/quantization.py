"""Rows of the operators that go between real and 8-bit numbers."""

from __future__ import annotations

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform

LOW, HIGH = [-1.5], [2.0]
SPREAD = np.array([-1000, -2.0, -1.25, -0.6, -0.01, 0, 0.004, 0.5, 1.1, 2.0, 3.3], "float32")
RAW8 = np.array([-128, -127, -3, 0, 1, 64, 127], "int8")
RAW32 = np.array([-(2**30), -5_000_000, -70_000, 0, 3, 900_000, 2**30], "int32")

for kind in ("int8", "uint8"):
    for data in (SPREAD, normal(3, 4)):
        sample("_contrib_quantize", data, LOW, HIGH, out_type=kind, grad=False)
    sample("_contrib_quantize", uniform(0, 3, 6), [0.0], [3.0], out_type=kind, grad=False)
    sample("_contrib_quantize", normal(6), [-3.0], [1.0], out_type=kind, grad=False)
for data in (SPREAD, normal(3, 4), uniform(0, 3, 6)):
    sample("_contrib_quantize_v2", data, out_type=each("int8", "uint8", "auto"), grad=False)
    sample(
        "_contrib_quantize_v2",
        data,
        out_type=each("int8", "uint8", "auto"),
        min_calib_range=each(-1.0, 0.0),
        max_calib_range=1.5,
        grad=False,
    )
for low, high in ((LOW, HIGH), ([-3.0], [1.0]), ([0.0], [2.0])):
    sample("_contrib_dequantize", RAW8, low, high, grad=False)
    sample("_contrib_dequantize", integers(0, 256, 9, dtype="uint8"), low, high, grad=False)
    for data in (RAW32, integers(-90_000, 80_000, 9, dtype="int32")):
        sample("_contrib_requantize", data, low, high, grad=False)
        sample(
            "_contrib_requantize",
            data,
            low,
            high,
            out_type=each("int8", "uint8", "auto"),
            min_calib_range=each(-0.0005, 0.0),
            max_calib_range=0.002,
            grad=False,
        )

ENDS = [([-2.0], [2.0]), ([-1.0], [1.0])]
BYTES = integers(0, 256, 2, 3, dtype="uint8")
SIGNED = [integers(-128, 128, 2, 3, dtype="int8"), integers(-90, 128, 2, 3, dtype="int8")]
IMAGE8 = integers(-128, 128, 1, 2, 5, 5, dtype="int8")
BYTES4 = integers(0, 256, 1, 2, 5, 5, dtype="uint8")

sample("_contrib_quantized_elemwise_add", *SIGNED, *ENDS[0], *ENDS[1], grad=False)
sample("_contrib_quantized_elemwise_add", BYTES, BYTES, [0.0], [2.0], [0.0], [1.0], grad=False)
sample(
    "_contrib_quantized_elemwise_add",
    *SIGNED,
    *ENDS[0],
    *ENDS[1],
    min_calib_range=-2.5,
    max_calib_range=2.5,
    grad=False,
    atol=1.01,  # halves round differently
)
for ends in (ENDS, [([-3.0], [2.0]), ([-1.0], [4.0])]):
    sample(
        "_contrib_quantized_concat", *SIGNED, *ends[0], *ends[1], num_args=2, dim=each(0, 1),
        grad=False,
    )  # fmt: skip
sample(
    "_contrib_quantized_concat", BYTES, BYTES, [0.0], [2.0], [0.0], [1.0], num_args=2, grad=False
)
sample(
    "_contrib_quantized_concat", BYTES, SIGNED[0], [0.0], [2.0], *ENDS[1], num_args=2, grad=False
)
sample(
    "_contrib_quantized_embedding",
    np.array([0, 3, 1, 9], "float32"),
    integers(-128, 128, 4, 2, dtype="int8"),
    *ENDS[0],
    input_dim=4,
    output_dim=2,
    grad=False,
)
sample("_contrib_quantized_flatten", IMAGE8, *ENDS[0], grad=False)
sample("_contrib_quantized_act", IMAGE8, *ENDS[0], act_type="relu", grad=False)
for image, ends in ((IMAGE8, ENDS[0]), (BYTES4, ([0.0], [2.0]))):
    sample(
        "_contrib_quantized_pooling",
        image,
        *ends,
        kernel=(2, 2),
        stride=each((1, 1), (2, 2)),
        pool_type=each("max", "avg"),
        grad=False,
    )
    sample(
        "_contrib_quantized_pooling",
        image,
        *ends,
        kernel=(2, 2),
        stride=(2, 2),
        pooling_convention="full",
        grad=False,
    )
    sample(
        "_contrib_quantized_pooling",
        image,
        *ends,
        kernel=(3, 3),
        pad=(1, 1),
        pool_type=each("max", "avg"),
        count_include_pad=each(True, False),
        grad=False,
    )
    sample(
        "_contrib_quantized_batch_norm",
        image,
        np.array([1.0, 2.0], "float32"),
        np.array([0.5, -0.5], "float32"),
        np.array([0.1, 0.2], "float32"),
        np.array([1.0, 4.0], "float32"),
        *ends,
        fix_gamma=False,
        min_calib_range=-3.0,
        max_calib_range=3.0,
        grad=False,
        atol=1.01,  # unsigned data is rounded to 7 bits first in MXNet
    )
for data, ends in ((BYTES, ([0.0], [2.0])), (SIGNED[0], ENDS[0])):
    sample(
        "_contrib_quantized_fully_connected",
        data,
        integers(-127, 128, 4, 3, dtype="int8"),
        integers(-127, 128, 4, dtype="int8"),
        *ends,
        *ENDS[1],
        *ENDS[1],
        num_hidden=4,
        grad=False,
        atol=1.01,  # the bias is rounded to steps of the sums
    )
HISTOGRAM = np.histogram(np.random.RandomState(0).normal(size=5000), bins=601, range=(-4, 4))
TAILS = np.histogram(np.random.RandomState(1).standard_t(3, 3000), bins=401, range=(-20, 20))
for counts, edges in (HISTOGRAM, TAILS):
    sample(
        "_contrib_calibrate_entropy",
        counts.astype("float32"),
        edges.astype("float32"),
        num_quantized_bins=each(255, 127),
        grad=False,
    )


def _lstm_parameters(features: int, size: int, directions: int) -> np.ndarray:
    """Return weights of one layer; every other one is 0, so that MXNet's sums cannot overflow."""
    rng = np.random.RandomState(size + directions)
    matrices = [rng.uniform(-0.5, 0.5, (4 * size, n)) for n in (features, size) * directions]
    for matrix in matrices:
        matrix[:, 1::2] = 0
    biases = rng.uniform(-0.5, 0.5, 8 * size * directions)
    return np.concatenate([*(m.ravel() for m in matrices), biases]).astype("float32")


for directions in (1, 2):
    sample(
        "_contrib_quantized_rnn",
        integers(0, 256, 3, 2, 8, dtype="uint8"),
        _lstm_parameters(8, 6, directions),
        uniform(-1.5, 1.5, directions, 2, 6),
        uniform(-1, 1, directions, 2, 6),
        [127.5],
        [126.3],
        state_size=6,
        num_layers=1,
        bidirectional=directions == 2,
        state_outputs=each(False, True),
        mode="lstm",
        grad=False,
    )
