"""Rows of batch, layer, group, instance and other normalization."""

from tests.grammar.sampling import each, normal, sample, uniform

for dtype in ("float32", "float64"):
    channels = [
        uniform(0.5, 2, 3, dtype=dtype),
        normal(3, dtype=dtype),
        normal(3, dtype=dtype),
        uniform(0.5, 2, 3, dtype=dtype),
    ]
    image = normal(4, 3, 2, 3, dtype=dtype)
    for train in (False, True):
        sample(
            "BatchNorm",
            image,
            *channels,
            fix_gamma=each(True, False),
            use_global_stats=each(False, True),
            train=train,
            numeric=False,
        )
        sample(
            "BatchNorm",
            normal(4, 2, 5, 3, dtype=dtype),
            *channels,
            axis=each(-1, 3),
            train=train,
            numeric=False,
        )
    sample(
        "LayerNorm",
        image,
        uniform(0.5, 2, 3, dtype=dtype),
        normal(3, dtype=dtype),
        axis=each(-1, 1, 3),
        eps=each(1e-5, 0.1),
    )
    sample(
        "GroupNorm",
        normal(3, 6, 2, 3, dtype=dtype),
        uniform(0.5, 2, 2, dtype=dtype),
        normal(2, dtype=dtype),
        num_groups=2,
        eps=each(1e-5, 0.1),
    )
    sample(
        "L2Normalization",
        normal(2, 3, 4, dtype=dtype),
        mode=each("instance", "channel", "spatial"),
        eps=each(1e-10, 0.1),
    )

sample(
    "BatchNorm",
    normal(6, 3),
    *[uniform(0.5, 2, 3)] * 4,
    fix_gamma=False,
    eps=0.1,
    momentum=0.5,
    train=True,
    numeric=False,
)
sample(
    "BatchNorm",
    normal(4, 3, 5),
    *[uniform(0.5, 2, 3)] * 4,
    fix_gamma=False,
    train=True,
    numeric=False,
)
sample(
    "BatchNorm",
    normal(2, 3, 2, 2, 3),
    *[uniform(0.5, 2, 3)] * 4,
    fix_gamma=False,
    train=True,
    numeric=False,
)
sample(
    "BatchNorm",
    normal(4, 3, 2, 2),
    *[uniform(0.5, 2, 3)] * 4,
    output_mean_var=True,
    use_global_stats=each(False, True),
    train=True,
    numeric=False,
)
for train in (False, True):
    sample(
        "_contrib_BatchNormWithReLU",
        normal(4, 3, 2, 3),
        *[uniform(0.5, 2, 3)] * 4,
        fix_gamma=each(True, False),
        use_global_stats=each(False, True),
        train=train,
        grad=train,  # MXNet's gradient needs values that only training mode stores
        numeric=False,
    )
sample(
    "_contrib_SyncBatchNorm",
    normal(4, 3, 2, 2),
    *[uniform(0.5, 2, 3)] * 4,
    key="sync",
    fix_gamma=each(True, False),
    output_mean_var=each(True, False),
    train=True,
    numeric=False,
)
sample(
    "LayerNorm",
    normal(2, 3, 4),
    uniform(0.5, 2, 3),
    normal(3),
    axis=1,
    output_mean_var=True,
    numeric=False,
)
sample(
    "LayerNorm", normal(2, 4), uniform(0.5, 2, 4), normal(4), output_mean_var=True, numeric=False
)
sample(
    "GroupNorm",
    normal(2, 6, 4),
    uniform(0.5, 2, 3),
    normal(3),
    num_groups=3,
    output_mean_var=True,
    numeric=False,
)
sample("GroupNorm", normal(2, 4, 3), uniform(0.5, 2, 1), normal(1))
sample("InstanceNorm", normal(2, 3, 4, 3), uniform(0.5, 2, 3), normal(3), eps=each(1e-3, 0.1))
sample("InstanceNorm", normal(2, 3, 5), uniform(0.5, 2, 3), normal(3))
sample("InstanceNorm", normal(2, 3, 2, 2, 3), uniform(0.5, 2, 3), normal(3))
sample("L2Normalization", normal(2, 3, 4, 5), mode=each("instance", "channel", "spatial"))
sample("L2Normalization", normal(3, 4))
sample(
    "LRN",
    normal(2, 6, 3, 2),
    nsize=each(1, 3, 5),
    alpha=each(1e-4, 0.5),
    beta=each(0.75, 0.5),
    knorm=each(2.0, 1.0),
)
sample("LRN", normal(1, 5, 2, 2), nsize=each(2, 4), alpha=0.5)
