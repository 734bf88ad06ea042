"""What the parameters of composites mean, where all of them agree."""

from __future__ import annotations

from ..ops.documentation import FOLDERS

_OF_SAMPLES = " An array gives samples for each of its elements."

GLOSSARY = {
    **FOLDERS["training"],
    # distributions
    "low": f"Lower bound.{_OF_SAMPLES}",
    "high": f"Upper bound, which is left out.{_OF_SAMPLES}",
    "loc": f"Mean of the distribution.{_OF_SAMPLES}",
    "scale": f"Standard deviation of the distribution.{_OF_SAMPLES}",
    "mu": f"Mean of the distribution.{_OF_SAMPLES}",
    "alpha": f"Shape of the distribution.{_OF_SAMPLES}",
    "beta": f"Scale of the distribution.{_OF_SAMPLES}",
    "lam": f"Mean of the distribution.{_OF_SAMPLES}",
    "k": f"Number of successes to wait for.{_OF_SAMPLES}",
    "p": f"Probability of a success.{_OF_SAMPLES}",
    "shape": "Shape of the result, or of the samples for each element of array parameters.",
    "*shape": "Sizes of the result, one by one; none means one sample.",
    "dtype": "Data type of the samples; float32 by default.",
    "ctx": "Device of the samples; by default the current one.",
    "out": "Array that receives the result; its shape and data type count.",
    "name": "Name of the node, for symbols.",
    "get_prob": "Whether to return the logarithm of the drawn probabilities too.",
    # candidate sampling
    "true_classes": "Classes of the samples.",
    "num_sampled": "Number of classes to draw.",
    "range_max": "Number of classes.",
    # splits
    "ary": "The array to split.",
    "indices_or_sections": "Number of equal parts, or the indices that the parts begin at.",
    # updates of many weights
    "weights": "The weights.",
    "grads": "Their gradients.",
    "weights32": "The 32-bit copies of the weights, updated in place.",
    "size": "Number of weights; by default all that are given.",
}
