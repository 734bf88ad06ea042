"""Optimized symbols with merged nodes, float16 running sums, and draws in hybridized blocks."""

# ruff: noqa: E501 (a question a line, names in a row)

NUMPY = True

SETUP = """
import os
import re
import numpy as onp
os.environ['MXNET_ELIMINATE_COMMON_EXPR'] = '1'
sym = mx.sym
x, y, w = sym.var('x'), sym.var('y'), sym.var('w')

def optimized(symbol, **shapes):
    exe = symbol.simple_bind(mx.cpu(), **(shapes or {n: (2, 2) for n in symbol.list_inputs() if n in 'xy'}))
    names = exe.get_optimized_symbol().get_internals().list_outputs()
    return [re.sub(r'^(_[a-z]+)\\d+', r'\\1', name) for name in names]

def drawn(dtype, size, batch=(), hybridize=False):
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, mean, cov):
            return F.np.random.multivariate_normal(mean, cov, size=size)
    net = Net()
    if hybridize:
        net.hybridize()
    cov = onp.broadcast_to(onp.eye(2), (*batch, 2, 2))
    out = net(np.zeros((*batch, 2), dtype=dtype), np.array(cov, dtype=dtype))
    return str(out.shape) + out.dtype.name

HALVES = onp.random.RandomState(0).rand(3, 40) * 100

def running(dtype, axis, out=None):
    a = np.array(HALVES, dtype=dtype)
    a.attach_grad()
    with mx.autograd.record():
        sums = np.cumsum(a, axis=axis, dtype=out)
    sums.backward()
    return [sums[..., ::7], a.grad[..., ::7]]
"""

MERGED = """
optimized(sym.Group([sym.exp(x, name='e1'), sym.exp(x, name='e2'), sym.exp(x, name='e3')]))
optimized(sym.sin(sym.exp(x, name='e1'), name='s1') * sym.sin(sym.exp(x, name='e2'), name='s2'))
optimized(sym.sum(x, axis=0, name='a') + sym.sum(x, axis=0, name='b') + sym.sum(x, axis=1, name='c'))
optimized(sym.Dropout(x, name='a') + sym.Dropout(x, name='b'))
optimized(sym.random.uniform(shape=(2, 2), name='a') + sym.random.uniform(shape=(2, 2), name='b'))
optimized(sym.zeros((2, 2), name='a') + sym.zeros((2, 2), name='b'))
optimized(sym.elemwise_add(x, y, name='a') * sym.elemwise_add(y, x, name='b'))
optimized((x + 1) * (x + 1))
optimized(sym.Activation(x, act_type='relu', name='a') + sym.Activation(x, act_type='relu', name='b'))
optimized(sym.exp(x, name='a', attr={'mood': 'a'}) + sym.exp(x, name='b', attr={'mood': 'b'}))
optimized(sym.FullyConnected(x, w, no_bias=True, num_hidden=2, name='a') + sym.FullyConnected(x, w, no_bias=True, num_hidden=2, name='b'))
optimized(sym.concat(x, x, name='a') + sym.concat(x, x, name='b'))
optimized(sym.softmax(x, name='a') + sym.softmax(x, name='b'))
optimized(sym.sample_normal(x, x, name='a') + sym.sample_normal(x, x, name='b'))
""".strip().split("\n")

EXPRESSIONS = [
    *MERGED,
    *(
        f"drawn('{dtype}', {size}, {batch}, {hybridize})"
        for dtype in ("float16", "float32", "float64")
        for size in ("None", "3", "(4, 2)", "()")
        for batch in ("()", "(3,)")
        for hybridize in (False, True)
        if batch == "()" or size in ("None", "()")
    ),
    *(
        f"running('{dtype}', {axis}, {out})"
        for dtype in ("float16", "float32")
        for axis in ("None", "0", "1", "-1")
        for out in ("None", "'float16'", "'float32'")
    ),
]
ON_PURPOSE = ()
