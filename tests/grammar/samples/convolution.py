"""Rows of Convolution and Deconvolution."""

from tests.grammar.sampling import each, normal, sample

for dtype in ("float32", "float64"):
    image = normal(2, 4, 7, 6, dtype=dtype)
    weight, grouped, bias = (
        normal(6, 4, 3, 2, dtype=dtype),
        normal(6, 2, 3, 2, dtype=dtype),
        normal(6, dtype=dtype),
    )
    options = {"kernel": (3, 2), "num_filter": 6}
    sample("Convolution", image, weight, bias, **options)
    sample(
        "Convolution",
        image,
        weight,
        no_bias=True,
        stride=each((1, 1), (2, 1)),
        pad=each((0, 0), (1, 2)),
        dilate=each((1, 1), (2, 1)),
        **options,
    )
    sample("Convolution", image, grouped, bias, num_group=2, pad=(1, 0), **options)
    for stride, dilate in (((1, 1), (1, 1)), ((2, 3), (1, 1)), ((1, 1), (2, 1)), ((2, 3), (2, 1))):
        if dtype == "float64" and stride != (1, 1) != dilate:
            continue  # MXNet's float64 and float32 kernels differ; the latter is correct
        sample(
            "Deconvolution",
            normal(2, 6, 4, 5, dtype=dtype),
            normal(6, 4, 3, 2, dtype=dtype),
            kernel=(3, 2),
            num_filter=4,
            stride=stride,
            pad=each((0, 0), (1, 1)),
            dilate=dilate,
        )

sample(
    "Convolution", normal(2, 3, 5, 5), normal(4, 3, 1, 1), normal(4), kernel=(1, 1), num_filter=4
)
sample(
    "Convolution",
    normal(2, 4, 5, 5),
    normal(4, 1, 3, 3),
    no_bias=True,
    kernel=(3, 3),
    num_filter=4,
    num_group=4,
    layout="NCHW",
)
sample(
    "Convolution",
    normal(2, 4, 8),
    normal(3, 4, 3),
    normal(3),
    kernel=(3,),
    num_filter=3,
    stride=each((), (2,)),
    pad=each((), (1,)),
    dilate=each((), (2,)),
)
sample(
    "Convolution",
    normal(2, 4, 8),
    normal(6, 2, 3),
    no_bias=True,
    kernel=(3,),
    num_filter=6,
    num_group=2,
    layout="NCW",
)
sample(
    "Convolution",
    normal(1, 2, 4, 5, 4),
    normal(3, 2, 2, 3, 2),
    normal(3),
    kernel=(2, 3, 2),
    num_filter=3,
    stride=each((), (2, 1, 1)),
    pad=each((), (1, 1, 0)),
    layout=each(None, "NCDHW"),
)
sample(
    "Convolution",
    normal(1, 4, 4, 4, 4),
    normal(4, 2, 2, 2, 2),
    no_bias=True,
    kernel=(2, 2, 2),
    num_filter=4,
    num_group=2,
    dilate=(1, 2, 1),
)
sample(
    "Convolution_v1",
    normal(2, 4, 5, 5),
    normal(4, 2, 3, 3),
    normal(4),
    kernel=(3, 3),
    num_filter=4,
    num_group=2,
    stride=each((), (2, 2)),
    pad=each((), (1, 1)),
)

sample(
    "Deconvolution",
    normal(2, 4, 3, 3),
    normal(4, 3, 3, 3),
    normal(6),
    kernel=(3, 3),
    num_filter=6,
    num_group=2,
    no_bias=False,
    stride=(2, 2),
    adj=each((), (1, 0), (1, 1)),
)
sample(
    "Deconvolution",
    normal(1, 2, 3, 4, dtype="float64"),
    normal(2, 3, 4, 4, dtype="float64"),
    kernel=(4, 4),
    num_filter=3,
    stride=(2, 2),
    target_shape=each((6, 8), (7, 9), (5, 8)),
    pad=each((), (3, 3)),
)
sample(
    "Deconvolution",
    normal(2, 2, 5),
    normal(2, 3, 3),
    normal(3),
    kernel=(3,),
    num_filter=3,
    no_bias=False,
    stride=each((), (2,)),
    pad=each((), (1,)),
)
sample(
    "Deconvolution",
    normal(1, 2, 3, 2, 3),
    normal(2, 3, 2, 3, 2),
    kernel=(2, 3, 2),
    num_filter=3,
    stride=each((), (2, 2, 1)),
    pad=each((), (1, 1, 0)),
)
