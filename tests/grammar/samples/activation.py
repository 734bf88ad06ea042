"""Rows of Activation, LeakyReLU and Dropout without randomness."""

from tests.grammar.sampling import each, normal, sample, uniform

for dtype in ("float32", "float64"):
    sample(
        "Activation",
        normal(3, 4, scale=3.0, dtype=dtype),
        act_type=each("relu", "sigmoid", "softrelu", "softsign", "tanh"),
    )
    sample(
        "LeakyReLU",
        normal(3, 4, scale=2.0, dtype=dtype),
        act_type=each("leaky", "elu", "selu", "gelu"),
        slope=each(0.25, 0.1),
    )
    sample(
        "LeakyReLU",
        normal(2, 3, 4, dtype=dtype),
        uniform(0.1, 0.5, 3, dtype=dtype),
        act_type="prelu",
    )

KINKS = [[-100, -1, 0, 1, 30, 100]]
sample(
    "Activation",
    KINKS,
    act_type=each("relu", "sigmoid", "softrelu", "softsign", "tanh"),
    numeric=False,
)
sample("LeakyReLU", KINKS, act_type=each("leaky", "elu", "selu", "gelu"), numeric=False)
sample("LeakyReLU", normal(2, 3, 4), uniform(0.1, 0.5, 1), act_type="prelu")
sample("LeakyReLU", normal(2, 3), uniform(0.1, 0.5, 3), act_type="prelu", train=True)
sample("LeakyReLU", normal(4), uniform(0.1, 0.5, 4), act_type="prelu")
sample("Dropout", normal(3, 4), p=each(0.0, 0.5), mode="training")
sample(
    "Dropout", normal(3, 4), p=0.0, mode=each("training", "always"), axes=each((), (1,)), train=True
)
