"""Rows of output layers with a loss, and of losses."""

import numpy as np

from tests.grammar.sampling import each, integers, normal, sample, uniform


def output(*inputs, **options):
    """Add rows for a layer whose gradient is not its derivative."""
    sample(*inputs, numeric=False, **options)


SCALES = each(1.0, 0.5)
WAYS = each("null", "batch", "valid")

for dtype in ("float32", "float64"):
    output(
        "SoftmaxOutput",
        normal(4, 5, dtype=dtype),
        integers(-1, 5, 4, dtype=dtype),
        normalization=WAYS,
        use_ignore=each(False, True),
        grad_scale=SCALES,
        smooth_alpha=each(0.0, 0.3),
    )
    for op in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"):
        output(op, normal(3, 4, dtype=dtype), uniform(0, 1, 3, 4, dtype=dtype), grad_scale=SCALES)

for shape in ((4, 3), (2, 3, 4), (2, 3, 2, 2)):
    for label in {
        (shape[0], int(np.prod(shape[2:]))),
        (shape[0], *shape[2:]),
        (shape[0], 1, *shape[2:]),
    }:
        output(
            "SoftmaxOutput",
            normal(*shape),
            integers(-1, 3, *label),
            multi_output=True,
            normalization=WAYS,
            use_ignore=each(False, True),
        )
for options in ({"multi_output": True}, {"preserve_shape": True}, {}):
    output(
        "SoftmaxOutput",
        normal(2, 3, 4),
        uniform(0, 1, 2, 3, 4),
        normalization=WAYS,
        grad_scale=SCALES,
        smooth_alpha=each(0.0, 0.3),
        **options,
    )
    output(
        "SoftmaxOutput",
        normal(2, 3),
        uniform(0, 1, 2, 3),
        use_ignore=True,
        out_grad=each(False, True),
        **options,
    )
output(
    "SoftmaxOutput",
    normal(2, 3, 4),
    integers(-1, 4, 2, 3),
    preserve_shape=each(True, False),
    normalization=WAYS,
    use_ignore=each(False, True),
    smooth_alpha=each(0.0, 0.2),
)
output(
    "SoftmaxOutput", normal(2, 3, 3), integers(0, 3, 2, 3), preserve_shape=True, multi_output=True
)
output(
    "SoftmaxOutput",
    normal(3, 4),
    integers(0, 4, 3),
    out_grad=True,
    use_ignore=True,
    ignore_label=2,
    grad_scale=2.0,
    normalization=WAYS,
)
output(
    "SoftmaxOutput",
    normal(2, 3, 4),
    integers(0, 3, 2, 4),
    out_grad=True,
    multi_output=True,
    smooth_alpha=0.2,
)
output("SoftmaxOutput", normal(3, 4), [2, 4, 9], normalization=WAYS)
output("SoftmaxOutput", normal(3, 4), [-1, -1, -1], normalization=WAYS, use_ignore=True)

for op in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"):
    output(op, normal(3, 1), integers(0, 2, 3))
    output(op, normal(3), integers(0, 2, 3))
    output(op, normal(2, 3, 4), normal(2, 3, 4), grad_scale=2.0)
    output(op, normal(2, 3, 1), normal(2, 3))
    output(op, [[1, 2]], [[1, 3]])

output(
    "SVMOutput",
    normal(5, 4),
    integers(0, 4, 5),
    margin=each(1.0, 0.5),
    regularization_coefficient=each(1.0, 2.0),
    use_linear=each(False, True),
)
output("SVMOutput", normal(2, 3, 4), integers(0, 4, 2, 3), use_linear=each(False, True))
output(
    "MakeLoss",
    normal(3, 4),
    grad_scale=SCALES,
    normalization=WAYS,
    valid_thresh=each(0.0, 0.5, 100.0),
)
output("MakeLoss", normal(3, 4, dtype="float64"), normalization=WAYS)
output("MakeLoss", normal(3))

sample("CTCLoss", normal(6, 3, 5), np.array([[1, 2, 0], [3, 0, 0], [2, 2, 4]], dtype="int32"))
sample("CTCLoss", normal(6, 3, 5), [[1, 2, 0], [3, 0, 0], [2, 2, 4]])
sample("CTCLoss", normal(6, 2, 5), [[1, 0, 2], [0, 1, 2]])
sample(
    "CTCLoss",
    normal(6, 3, 5),
    np.array([[0, 1, -1], [3, -1, -1], [2, 2, 1]], dtype="int32"),
    blank_label="last",
)
sample(
    "CTCLoss",
    normal(6, 3, 5),
    np.array([[1, 2, 0], [3, 0, 0], [2, 2, 4]], dtype="float32"),
    np.array([4, 5, 6], dtype="float32"),
    use_data_lengths=True,
)
sample(
    "CTCLoss",
    normal(6, 3, 5),
    np.array([[1, 2, 3], [3, 1, 1], [2, 2, 4]], dtype="float32"),
    np.array([2, 1, 3], dtype="float32"),
    use_label_lengths=True,
)
sample(
    "CTCLoss",
    normal(6, 3, 5),
    np.array([[0, 1, 3], [3, 1, 1], [2, 2, 1]], dtype="float32"),
    np.array([4, 5, 6], dtype="float32"),
    np.array([2, 1, 3], dtype="float32"),
    use_data_lengths=True,
    use_label_lengths=True,
    blank_label="last",
)
# MXNet refuses a gradient for the label here, so only the values are recorded.
sample("softmax_cross_entropy", normal(4, 5), integers(0, 5, 4), grad=False)
sample("softmax_cross_entropy", normal(3, 4), [0, 2, 9], grad=False)
output("MakeLoss", normal(3), normalization=WAYS)
output("MakeLoss", normal(2, 3, 2), normalization=WAYS)
