"""Rows of Pooling and Pooling_v1."""

import functools

from tests.grammar.sampling import distinct, each, normal, uniform
from tests.grammar.sampling import sample as sample_row

# MXNet stores the positions of maxima, which backward needs, only in training mode.
sample = functools.partial(sample_row, train=True)

KINDS = each("max", "avg", "sum")

for dtype in ("float32", "float64"):
    image = distinct(2, 2, 7, 6, dtype=dtype)
    sample(
        "Pooling",
        image,
        kernel=(3, 2),
        pool_type=KINDS,
        stride=each((), (2, 3)),
        pad=each((), (1, 1)),
        pooling_convention=each("valid", "full"),
    )
    sample("Pooling", image, global_pool=True, pool_type=KINDS)

for convention, with_pad in (("valid", True), ("valid", False), ("full", True), ("full", False)):
    sample(
        "Pooling",
        distinct(1, 2, 7, 6),
        kernel=(3, 3),
        pool_type="avg",
        stride=each((1, 1), (2, 2), (3, 3)),
        pad=each((0, 0), (1, 1)),
        pooling_convention=convention,
        count_include_pad=with_pad,
        # MXNet's backward divides border windows by the full kernel size, unlike its forward.
        grad=not (convention == "full" and with_pad),
    )
sample(
    "Pooling",
    distinct(1, 1, 5, 5),
    kernel=(3, 3),
    pool_type=KINDS,
    stride=(3, 3),
    pad=(1, 1),
    pooling_convention="full",
    numeric=False,
)
sample(
    "Pooling",
    distinct(1, 1, 5, 5),
    kernel=(3, 3),
    pool_type=KINDS,
    stride=each((1, 1), (2, 2)),
    pad=(2, 2),
    pooling_convention=each("valid", "full"),
    count_include_pad=each(None, False),
    numeric=False,
)
sample(
    "Pooling",
    normal(2, 2, 5, 5),
    kernel=(2, 2),
    pool_type="lp",
    p_value=each(1, 2, 3),
    stride=each((1, 1), (2, 2)),
    pooling_convention=each("valid", "full"),
    numeric=False,
)
sample(
    "Pooling",
    normal(2, 2, 3, 4),
    global_pool=True,
    pool_type="lp",
    p_value=each(1, 2, 3),
    numeric=False,
)
sample(
    "Pooling",
    distinct(1, 2, 3, 4),
    global_pool=True,
    kernel=(2, 2),
    pad=(1, 1),
    stride=(2, 2),
    pool_type=KINDS,
)
sample(
    "Pooling",
    distinct(2, 3, 9),
    kernel=(3,),
    pool_type=KINDS,
    stride=each((), (2,)),
    pad=each((), (1,)),
    pooling_convention=each("valid", "full"),
)
sample("Pooling", distinct(2, 3, 9), global_pool=True, pool_type=KINDS)
sample(
    "Pooling",
    distinct(1, 2, 4, 5, 4),
    kernel=(2, 3, 2),
    pool_type=KINDS,
    stride=each((), (2, 2, 2)),
    pad=each((), (1, 1, 1)),
    pooling_convention=each("valid", "full"),
)
sample("Pooling", distinct(1, 2, 4, 5, 4), global_pool=True, pool_type=KINDS)
sample(
    "Pooling", distinct(2, 7, 6, 3), kernel=(2, 2), stride=(2, 2), layout="NHWC", pool_type=KINDS
)
sample("Pooling", distinct(2, 7, 6, 3), global_pool=True, layout="NHWC", pool_type=KINDS)
sample("Pooling", distinct(2, 7, 3), kernel=(2,), layout="NWC", pool_type=KINDS)
sample("Pooling", distinct(2, 3, 4, 5, 2), kernel=(2, 2, 2), layout="NDHWC", pool_type=KINDS)
sample("Pooling", [[[[1, 1, 2], [1, 1, 2], [0, 0, 0]]]], kernel=(2, 2), numeric=False)

sample(
    "Pooling_v1",
    distinct(2, 2, 7, 6),
    kernel=(3, 2),
    pool_type=KINDS,
    stride=each((), (2, 3)),
    pad=each((), (1, 1)),
    pooling_convention=each("valid", "full"),
    numeric=False,
)
sample("Pooling_v1", normal(2, 2, 5, 5), kernel=(2, 2), pad=(1, 1), numeric=False)
sample("Pooling_v1", distinct(2, 2, 7, 6), kernel=(2, 2), global_pool=True, pool_type=KINDS)
sample(
    "Pooling_v1",
    uniform(-2, -1, 1, 2, 5, 5),
    kernel=(2, 2),
    stride=each((2, 2), (3, 3)),
    pad=each((), (1, 1)),
    pool_type=KINDS,
    pooling_convention="full",
    numeric=False,
)
