"""Values and gradients of unary and binary operators at NaN, infinities, zeros and ties."""

# ruff: noqa: SIM905 (a question a line, names in a row)

NUMPY = True

SETUP = """
import numpy as onp
inf, nan = onp.inf, onp.nan
POINTS = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1e30, -1e30, 1e-30]

def both(function, *operands):
    for operand in operands:
        operand.attach_grad()
    with mx.autograd.record():
        result = function(*operands)
    result.backward()
    return [result, *(operand.grad for operand in operands)]

def unary(module, name, **attrs):
    return both(lambda x: getattr(module, name)(x, **attrs), array(module, POINTS))

def binary(module, name):
    left, right = onp.meshgrid(POINTS[:7] + [0.5, 2.0], POINTS[:7] + [0.5, 2.0])
    return both(getattr(module, name), array(module, left.ravel()), array(module, right.ravel()))

def scalar(module, name, number):
    return both(lambda x: getattr(module, name)(x, number), array(module, POINTS))

def array(module, numbers):
    if module in (np, npx):
        return np.array(numbers, dtype="float32")
    return mx.nd.array(numbers, dtype="float32")
"""

ND_UNARY = """
abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees digamma erf erfinv exp
expm1 fix floor gamma gammaln hard_sigmoid identity log log10 log1p log2 logical_not negative
radians rcbrt reciprocal relu rint round rsqrt sigmoid sign sin sinh smooth_l1 softsign sqrt square
tan tanh trunc ones_like zeros_like make_loss stop_gradient
""".split()
NP_UNARY = """
abs absolute arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 fix
fabs floor invert isfinite isinf isnan isneginf isposinf log log10 log1p log2 logical_not
nan_to_num negative radians reciprocal rint sign sin sinh sqrt square tan tanh trunc
""".split()
NPX_UNARY = "relu sigmoid erf erfinv gammaln digamma gamma log_softmax softmax smooth_l1".split()
ND_BINARY = """
broadcast_add broadcast_sub broadcast_mul broadcast_div broadcast_mod broadcast_power
broadcast_maximum broadcast_minimum broadcast_hypot elemwise_add elemwise_sub elemwise_mul
elemwise_div broadcast_equal broadcast_not_equal broadcast_greater broadcast_lesser
broadcast_greater_equal broadcast_lesser_equal broadcast_logical_and broadcast_logical_or
broadcast_logical_xor
""".split()
NP_BINARY = """
add subtract multiply divide true_divide mod fmod remainder power maximum minimum fmax fmin hypot
arctan2 copysign ldexp equal not_equal greater less greater_equal less_equal logical_and logical_or
logical_xor
""".split()
SCALARS = "maximum minimum power modulo hypot equal lesser greater_equal logical_and".split()
NP_SCALARS = "maximum minimum power mod hypot copysign arctan2 true_divide fmod".split()
NUMBERS = "0 1 -1 0.5 2 -2.0 inf nan".split()
ATTRIBUTES = """
unary(mx.nd, 'LeakyReLU', act_type='leaky', slope=0.25)
unary(mx.nd, 'LeakyReLU', act_type='elu', slope=0.25)
unary(mx.nd, 'LeakyReLU', act_type='selu')
both(lambda x: mx.nd.LeakyReLU(x, act_type='gelu'), array(mx.nd, POINTS[3:]))
unary(mx.nd, 'Activation', act_type='relu')
unary(mx.nd, 'Activation', act_type='sigmoid')
unary(mx.nd, 'Activation', act_type='tanh')
unary(mx.nd, 'Activation', act_type='softrelu')
unary(mx.nd, 'Activation', act_type='softsign')
unary(mx.nd, 'clip', a_min=-1, a_max=1)
unary(mx.nd, 'clip', a_min=0, a_max=0.5)
unary(mx.nd, 'smooth_l1', scalar=2)
unary(mx.nd, 'hard_sigmoid', alpha=0.5, beta=0.25)
unary(np, 'clip', a_min=-1, a_max=1)
unary(np, 'around', decimals=1)
unary(np, 'cumsum', axis=0)
unary(mx.nd, 'sum')
unary(mx.nd, 'max')
unary(mx.nd, 'min')
unary(mx.nd, 'prod')
unary(mx.nd, 'nansum')
unary(mx.nd, 'nanprod')
unary(mx.nd, 'mean')
unary(mx.nd, 'norm')
unary(mx.nd, 'softmax')
unary(mx.nd, 'log_softmax')
unary(mx.nd, 'softmin')
unary(mx.nd, 'sort')
unary(mx.nd, 'topk', k=3, ret_typ='value')
unary(np, 'max')
unary(np, 'min')
unary(np, 'sum')
unary(np, 'mean')
unary(np, 'prod')
unary(np, 'std')
unary(np, 'var')
""".strip().split("\n")

EXPRESSIONS = [
    *(f"unary(mx.nd, '{name}')" for name in ND_UNARY),
    *(f"unary(np, '{name}')" for name in NP_UNARY),
    *(f"unary(npx, '{name}')" for name in NPX_UNARY),
    *(f"binary(mx.nd, '{name}')" for name in ND_BINARY),
    *(f"binary(np, '{name}')" for name in NP_BINARY),
    *(f"scalar(mx.nd, '{name}', {number})" for name in SCALARS for number in NUMBERS),
    *(f"scalar(np, '{name}', {number})" for name in NP_SCALARS for number in NUMBERS),
    *ATTRIBUTES,
]
# Gradients at NaN, of powers at 0 and of sorted or infinite values; see docs/differences.md.
ON_PURPOSE = (
    r".*'(broadcast_)?(maximum|minimum|power)'.*",
    r".*'arctan2'(, 0)?\)",
    r"binary\(np, 'copysign'\)",
    r".*'(log_)?softmax'\)",
    r".*act_type='(relu|softsign|elu|leaky)'.*",
    r".*'(relu|softsign|rsqrt|std|var)'\)",
)
