"""Which precision operators want, by what they compute; aliases come from the registry."""

from __future__ import annotations

from collections.abc import Iterable

from ....ops import registry

# Matrix products of weights, fast and safe in 16 bits.
FLOAT16 = "Convolution Deconvolution FullyConnected RNN"
BFLOAT16 = "Convolution FullyConnected"

# Large values, long sums, differences of close numbers: these overflow or lose digits.
FULL = {
    "exponents and logarithms": "exp expm1 log log10 log2 log1p erfinv gamma gammaln",
    "angles": "arccos arcsin arctanh cosh sinh tan",
    "powers": """broadcast_power _power _power_scalar _rpower_scalar square reciprocal
        _rdiv_scalar rsqrt rcbrt _hypot _hypot_scalar broadcast_hypot""",
    "sums": "sum nansum prod nanprod mean norm moments khatri_rao _square_sum",
    "softmax": "softmax softmin log_softmax SoftmaxActivation",
    "norms": "InstanceNorm LayerNorm GroupNorm L2Normalization LRN _contrib_SyncBatchNorm",
    "losses": """SoftmaxOutput LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput
        SVMOutput softmax_cross_entropy smooth_l1 MakeLoss make_loss CTCLoss _contrib_hawkesll
        IdentityAttachKLSparseReg""",
    "linear algebra": """_linalg_gelqf _linalg_gemm _linalg_gemm2 _linalg_potrf _linalg_potri
        _linalg_sumlogdiag _linalg_syevd _linalg_syrk _linalg_trmm _linalg_trsm _linalg_makediag
        _linalg_extractdiag _linalg_maketrian _linalg_extracttrian _linalg_inverse _linalg_det
        _linalg_slogdet""",
    "order": "argsort topk",
    "boxes": "_contrib_MultiBoxDetection _contrib_MultiBoxPrior _contrib_MultiBoxTarget",
    "others": """Custom _contrib_count_sketch _contrib_fft _contrib_DeformableConvolution
        _contrib_DeformablePSROIPooling""",
}

# Several arrays that must agree.
WIDEST = {
    "arithmetic": """elemwise_add elemwise_sub elemwise_mul elemwise_div _mod _maximum _minimum
        broadcast_add broadcast_sub broadcast_mul broadcast_div broadcast_mod broadcast_maximum
        broadcast_minimum add_n _scatter_elemwise_div""",
    "comparison": """_equal _not_equal _greater _greater_equal _lesser _lesser_equal _logical_and
        _logical_or _logical_xor broadcast_equal broadcast_not_equal broadcast_greater
        broadcast_greater_equal broadcast_lesser broadcast_lesser_equal broadcast_logical_and
        broadcast_logical_or broadcast_logical_xor""",
    "joining and choosing": "Concat stack where",
    "products": """dot batch_dot Correlation _contrib_interleaved_matmul_selfatt_qk
        _contrib_interleaved_matmul_selfatt_valatt _contrib_interleaved_matmul_encdec_qk
        _contrib_interleaved_matmul_encdec_valatt""",
    "regions": """_contrib_MultiProposal _contrib_Proposal _contrib_PSROIPooling _contrib_ROIAlign
        _contrib_box_iou _contrib_box_nms""",
    "densities": """_random_pdf_uniform _random_pdf_normal _random_pdf_gamma
        _random_pdf_exponential _random_pdf_poisson _random_pdf_negative_binomial
        _random_pdf_generalized_negative_binomial _random_pdf_dirichlet""",
}

# In bfloat16 only these pass its values on as they are; everything else wants 32 bits.
EITHER_BFLOAT16 = "abs BatchNorm BatchNormWithReLU clip LRN Pooling relu _shuffle sqrt square tanh"

LOSS_OUTPUTS = "SoftmaxOutput LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput"
CONDITIONAL = [
    ("Activation", "act_type", ["softrelu"]),
    ("LeakyReLU", "act_type", ["elu", "selu"]),
]
BATCH_NORM_PARAMETERS = ["", "gamma", "beta", "moving_mean", "moving_var"]


def spellings(*groups: str) -> list[str]:
    """Return the names in the texts, and all other names of the same operators.

    >>> sorted(spellings("Concat"))
    ['Concat', '_sparse_concat', 'concat']
    """
    wanted = {id(registry.find(name)) for group in groups for name in group.split()}
    wanted.discard(id(None))
    return [name for name in _legacy_names() if id(registry.find(name)) in wanted]


def others(*lists: Iterable[str]) -> list[str]:
    """Return all names of operators that are in none of the lists."""
    taken = {name for names in lists for name in names}
    return [name for name in _legacy_names() if name not in taken]


def _legacy_names() -> list[str]:
    """Return the names of `mx.nd` and `mx.sym`; the NumPy operators take no part."""
    return [name for name in registry.names() if not name.startswith(("_np", "_npi", "_npx"))]


def is_neutral(name: str) -> bool:
    """Tell whether an operator has types of its own: a cast, or an update of weights."""
    return name.endswith("_update") or name in _CASTS


_CASTS = frozenset(
    ["amp_cast", "amp_multicast", "Cast", "cast", "cast_storage", "_sparse_cast_storage", "_copyto"]
)
