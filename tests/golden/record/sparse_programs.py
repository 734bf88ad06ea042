"""Small programs on sparse arrays: the same text runs on MXNet 1.9.1 and on MXNext.

An expression is evaluated; a text that sets `res` is executed and leaves its answer there.
"""

from __future__ import annotations

import itertools

SETUP = """
a = np.array([[0, 1.5, 0], [0, 0, 0], [2.5, 0, -3]], 'float32')
b = np.array([[0, 2, 1], [0, 0, 0], [0, 0, 4]], 'float32')
nd, sp, ag = mx.nd, mx.nd.sparse, mx.autograd
d, d2 = nd.array(a), nd.array(b)
csr, csr2 = d.tostype('csr'), d2.tostype('csr')
rsp, rsp2 = d.tostype('row_sparse'), d2.tostype('row_sparse')
row, col, v = nd.array([[1, 2, 3]]), nd.array([[1], [2], [3]]), nd.array([1, 2, 3])
w = nd.array([[1, 2], [3, 4], [5, 6]])
wr = nd.array([[1, 2], [0, 0], [5, 6]]).tostype('row_sparse')
wc = wr.tostype('default').tostype('csr')
r1 = sp.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(4, 2))
r2 = sp.row_sparse_array(([[5, 6], [7, 8]], [1, 2]), shape=(4, 2))
c1 = sp.csr_matrix(([1., 2.], [0, 2], [0, 1, 2]), shape=(2, 4))
c1 = c1.astype('float32')
e = nd.array([[1, 2], [0, 0], [3, 4]])
"""

UNARY = [
    "abs",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "expm1",
    "fix",
    "floor",
    "gamma",
    "gammaln",
    "log",
    "log10",
    "log1p",
    "log2",
    "make_loss",
    "negative",
    "radians",
    "relu",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stop_gradient",
    "tan",
    "tanh",
    "trunc",
    "zeros_like",
    "_contrib_round_ste",
    "_contrib_sign_ste",
]
PAIRS = ["csr,csr2", "rsp,rsp2", "csr,d2", "d,csr2", "rsp,d2", "d,rsp2", "csr,rsp2", "rsp,csr2"]
STYPE = {"csr": "csr", "rsp": "row_sparse"}


def unary():
    for name, s in itertools.product(UNARY, STYPE):
        yield f"sp.{name}({s})"
    for s in STYPE:
        yield f"-{s}"
        yield f"abs({s})"
        yield f"{s}.T"
        for name in ("reciprocal", "erf", "Flatten", "max", "identity", "ones_like", "softsign"):
            yield f"nd.{name}({s})"
        for limits in ("-1, 1", "0, 2", "1, 2"):
            yield f"sp.clip({s}, {limits})"


def binary():
    for op, pair in itertools.product(("add", "sub", "mul", "div"), PAIRS):
        yield f"sp.elemwise_{op}({pair})"
        yield f"sp.broadcast_{op}({pair})"
    for op, s, other in itertools.product(("add", "sub", "mul", "div"), STYPE, ("row", "col")):
        yield f"sp.broadcast_{op}({s}, {other})"
        yield f"sp.broadcast_{op}({other}, {s})"
    pairs = [
        "csr,csr2",
        "rsp,rsp2",
        "csr,d2",
        "d,csr2",
        "rsp,d2",
        "d,rsp2",
        "csr,2",
        "csr,0",
        "rsp,2",
        "rsp,0",
        "csr,row",
    ]
    for op, pair in itertools.product(("add", "subtract", "multiply", "divide"), pairs):
        yield f"sp.{op}({pair})"
    for op, pair in itertools.product("+-*/", [*pairs, "2,csr", "2,rsp", "csr,rsp2", "rsp,row"]):
        left, right = pair.split(",")
        yield f"{left} {op} {right}"
    for op in ("**", "%", "==", "!=", ">", ">=", "<", "<="):
        for s, number in itertools.product(STYPE, (0, 1, -1)):
            yield f"{s} {op} {number}"
    for op, s in itertools.product(("==", "<"), STYPE):
        yield f"{s} {op} {s}2"
        yield f"d {op} {s}2"
    for op in ("r1 * r2", "r1 + r2", "r1 - r2", "r1 / r2", "nd.add_n(r1, r2)"):
        yield op
    for s in STYPE:
        yield f"sp.add_n({s}, {s}2)"
        yield f"sp.add_n({s}, d)"
        yield f"sp.add_n({s}, {s}2, {s})"
        yield f"sp.elemwise_add({s}, nd.ones((2, 3)))"
        yield f"nd.maximum({s}, 0)"
        yield f"nd._internal._scatter_plus_scalar({s}, scalar=2)"
        yield f"nd._internal._scatter_minus_scalar({s}, scalar=2)"
    yield "nd._internal._scatter_elemwise_div(rsp, d2)"
    yield "nd._internal._scatter_elemwise_div(csr, d2)"
    yield "nd._internal._scatter_elemwise_div(r1, r2)"
    yield "sp.where(csr, d, d2)"
    yield "sp.where(rsp, d, d2)"
    yield "nd.where(csr, csr2, csr)"


def in_place():
    for s in STYPE:
        for text in ("+= d2", f"+= {s}2", "*= 2", "/= 2", "-= 1", "*= d2", f"-= {s}2"):
            yield f"res = {s}.copy()\nres {text}"
        for value in ("b", "d2", f"{s}2", "1", "2.5", "nd.ones((2, 2))", "[1]"):
            yield f"res = {s}.copy()\nres[:] = {value}"
        yield f"res = {s}.copy()\nres[0:1] = 1"
        yield f"res = d.copy()\nres += {s}2"
        yield f"res = nd.elemwise_add({s}, {s}2, out=nd.zeros((3, 3)))"
        yield f"res = {s}.copy()\nnd.elemwise_add({s}, d2, out=res)"
        yield f"res = {s}.copy()\nnd.square(d, out=res)"
        yield f"res = {s}.copy()\nnd.square({s}2, out=res)"
        yield f"res = nd.square({s}, out=nd.zeros((3, 3)))"
        yield f"res = {s}.copy()\nnd.exp({s}, out=res)"
        yield f"res = {s}.copy()\nnd.zeros_like(d, out=res)"
        yield f"res = {s}.copyto(nd.zeros((3, 3)))"
        yield f"res = {s}.copyto(sp.zeros('{STYPE[s]}', (3, 3)))"
        yield f"res = d.copyto(sp.zeros('{STYPE[s]}', (3, 3)))"
    yield "res = csr.copyto(sp.zeros('row_sparse', (3, 3)))"


def reductions():
    axes = ("axis=0", "axis=1", "axis=(0, 1)", "", "axis=0, keepdims=True", "axis=(1,)")
    for name, s, axis in itertools.product(("sum", "mean", "norm"), STYPE, axes):
        yield f"sp.{name}({s}, {axis})"
    for s in STYPE:
        yield f"sp.norm({s}, ord=1)"
        yield f"sp.sum({s}, axis=(0,), exclude=True)"
        for axis in ("axis=0", "axis=1", "", "axis=1, keepdims=True", "axis=0, keepdims=True"):
            yield f"nd._internal._square_sum({s}, {axis})"
        for axis in ("", "axis=0", "axis=1"):
            yield f"nd.contrib.getnnz({s}, {axis})"
    yield "nd.array([[1, 2], [3, 4]], dtype='int32').tostype('csr').sum(axis=0)"


def selection():
    for s in STYPE:
        for key in ("0:2", "1", ":", "-1", "-2:", "0:3:2", "0, 1", "5", "2:1"):
            yield f"{s}[{key}]"
        for cut in ("begin=(1,), end=(3,)", "begin=(0, 1), end=(3, 3)", "begin=(-2,), end=(-1,)"):
            yield f"sp.slice({s}, {cut})"
        yield f"sp.slice({s}, begin=(None, 1), end=(None, None))"
        yield f"sp.slice({s}, begin=(0, 1), end=(3, 3), step=(1, 2))"
        yield f"nd.slice_axis({s}, axis=0, begin=1, end=3)"
        yield f"sp.concat({s}, {s}2, dim=0)"
        yield f"sp.concat({s}, {s}2, dim=1)"
        yield f"sp.concat({s}, d2, dim=0)"
        yield f"nd.concat({s}, {s}2, {s}, dim=0)"
        yield f"nd.take({s}, nd.array([2, 0, 2]))"
        yield f"nd.take({s}, nd.array([5, -1]))"
        yield f"nd.take({s}, nd.array([4, -1]), mode='wrap')"
        yield f"nd.take({s}, nd.array([0]), axis=1)"
        yield f"sp.retain({s}, nd.array([0, 2]))"
    yield "sp.retain(rsp, nd.array([2, 0]))"
    yield "sp.retain(rsp, nd.array([0, 1, 2]))"
    yield "sp.retain(r1, nd.array([2, 3]))"


def conversion():
    for s in STYPE:
        for stype in ("csr", "row_sparse", "default", "foo"):
            yield f"{s}.tostype('{stype}')"
            yield f"sp.cast_storage({s}, '{stype}')"
        for dtype in ("float64", "float16", "int32"):
            yield f"{s}.astype('{dtype}')"
        yield f"{s}.astype('float32', copy=False) is {s}"
        yield f"nd.cast({s}, dtype='float16')"
        yield f"{s}.copy()"
        yield f"{s}.as_in_context(mx.cpu(0)) is {s}"
        yield f"repr({s})"
        yield f"({s}.ndim, len({s}), {s}.shape, {s}.stype, {s}.context)"
        yield f"{s}.data"
        yield f"{s}.indices"
        yield f"{s}.reshape((9,))"
        yield f"{s}.detach()"
        yield f"__import__('pickle').loads(__import__('pickle').dumps({s}))"
        yield f"bool({s})"
    yield "csr.indptr"
    yield "d.tostype('csr')"
    yield "nd.ones((2, 2, 2)).tostype('row_sparse')"
    yield "nd.ones((2,)).tostype('row_sparse')"
    yield "nd.ones((2, 2, 2)).tostype('csr')"


def creation():
    parts = "[1, 2, 3], [1, 0, 2], [0, 1, 1, 3]"
    yield from (
        f"sp.csr_matrix({text})"
        for text in (
            "(2, 3)",
            "(2, 3), dtype='int32'",
            f"({parts}), shape=(3, 3)",
            f"({parts})",
            "([1, 2, 3], ([0, 2, 2], [1, 0, 2]))",
            "([1, 2, 3], ([2, 0, 2], [1, 0, 1])), shape=(4, 4)",
            "a",
            "a.tolist()",
            "d",
            "csr",
            "rsp",
            "np.eye(2)",
            "np.eye(2, dtype='int32')",
            "a, dtype='float16'",
            "5",
            "([1, 2],)",
            "a, shape=(3, 3)",
            "a, shape=(2, 2)",
            "([1, 2, 3], [0, 1], [0, 1, 1, 3]), shape=(3, 3)",
            "np.ones((2, 2, 2))",
            "([], [], [0, 0]), shape=(1, 2)",
            "np.zeros((2, 2))",
            "([1, 2, 3], [2, 1, 0], [0, 0, 3, 3]), shape=(3, 3)",
        )
    )
    yield from (
        f"sp.row_sparse_array({text})"
        for text in (
            "(2, 3)",
            "(2,)",
            "(2, 3, 4), dtype='int32'",
            "([[1, 2], [3, 4]], [1, 3]), shape=(5, 2)",
            "([[1, 2], [3, 4]], [1, 3])",
            "([[1, 2], [3, 4]], [3, 1]), shape=(5, 2)",
            "a",
            "d",
            "rsp",
            "csr",
            "(d, nd.array([0, 2, 4])), shape=(6, 3)",
            "(a, [0, 2]), shape=(6, 3)",
            "5",
            "a.tolist()",
            "a, shape=(2, 2)",
            "([1, 2], [0, 2]), shape=(3,)",
            "np.zeros((2, 2))",
            "(np.ones((1, 2)), [1]), shape=(3, 2)",
        )
    )
    yield from (f"sp.array({text})" for text in ("csr", "rsp", "csr, dtype='float64'", "a"))
    yield "nd.array(csr)"
    yield "nd.array(rsp, dtype='float16')"
    for stype, shape in itertools.product(("csr", "row_sparse", "foo"), ("(2, 2)",)):
        yield f"sp.zeros('{stype}', {shape}, dtype='float64')"
        yield f"sp.empty('{stype}', {shape})"
    yield "sp.zeros('default', (2, 2))"
    yield "nd.zeros((2, 2), stype='csr')"
    yield "nd.empty((2, 2), stype='row_sparse')"
    yield "nd.zeros((2, 2), stype='row_sparse').data.shape"
    for text in (
        "[2, 1, 0], [0, 0, 3, 3]",
        "[0, 1, 5], [0, 1, 1, 3]",
        "[0, 1, 2], [0, 2, 1, 3]",
        "[0, 1, -1], [0, 1, 1, 3]",
        "[0, 1, 2], [0, 1, 2, 3]",
    ):
        yield f"sp.csr_matrix(([1, 2, 3], {text}), shape=(3, 3)).check_format()"
    for text in ("[3, 1]", "[3, 9]", "[1, 1]", "[1, 3]"):
        yield f"sp.row_sparse_array(([[1, 2], [3, 4]], {text}), shape=(5, 2)).check_format()"


def products():
    turned = {"w": "d2", "wr": "rsp2", "wc": "csr2"}
    flags = ("", "transpose_a=True", "transpose_b=True", "transpose_a=True, transpose_b=True")
    stypes = ("", "forward_stype='default'", "forward_stype='csr'", "forward_stype='row_sparse'")
    for left, right, flag, stype in itertools.product(("csr", "rsp", "d"), turned, flags, stypes):
        if left == "d" and right == "w":
            continue
        right = turned[right] if "transpose_b" in flag else right
        yield f"sp.dot({left}, {right}, {', '.join(f for f in (flag, stype) if f)})"
    yield "sp.dot(csr, v)"
    yield "sp.dot(csr, nd.ones((4, 2)))"
    yield "sp.dot(csr, nd.ones((3, 2), dtype='float64'))"
    yield "sp.dot(sp.zeros('csr', (2, 3)), w)"
    yield "sp.dot(sp.zeros('csr', (3, 2)), w, transpose_a=True)"
    yield "sp.dot(csr, sp.zeros('row_sparse', (3, 2)))"
    yield "sp.dot(e, c1)"
    yield "sp.dot(e, c1, forward_stype='default')"
    yield "sp.dot(nd.ones((3, 4)), c1, transpose_b=True)"
    yield "sp.dot(c1, nd.ones((2, 3)), transpose_a=True)"
    yield "nd.Embedding(nd.array([0, 1, 2]), r1, input_dim=4, output_dim=2)"
    yield "nd.FullyConnected(csr, d2, num_hidden=3, no_bias=True)"
    yield "nd.LinearRegressionOutput(d, csr)"


def recorded(before, line, *after):
    return "\n".join([before, "with ag.record():", f"    y = {line}", "y.backward()", *after])


def gradients():
    rows = "W = nd.ones((5, 2)); W.attach_grad(stype='row_sparse')"
    sizes = "input_dim=5, output_dim=2"
    one = f"nd.Embedding(nd.array([1, 3, 1]), W, {sizes}, sparse_grad=True)"
    yield recorded(rows, one, "res = W.grad")
    yield recorded(
        "W = nd.ones((5, 2)).tostype('row_sparse'); W.attach_grad()", one, "res = [W.grad, y]"
    )
    yield recorded(rows, f"{one} + {one} * 2", "res = W.grad")
    yield recorded(rows, f"{one} + nd.Embedding(nd.array([0, 0, 1]), W, {sizes})", "res = W.grad")
    yield recorded(
        rows, f"nd.contrib.SparseEmbedding(nd.array([1, 3]), W, {sizes})", "res = W.grad"
    )
    yield recorded(rows, "W * 2", "res = W.grad")
    yield recorded(rows, "nd.take(W, nd.array([1, 3]))", "res = W.grad")
    yield f"{rows}\nwith ag.record():\n    y = {one}\nres = ag.grad(y, [W])"
    for stype in ("row_sparse", "default"):
        leaf = f"W = nd.ones((3, 2)); W.attach_grad(stype='{stype}')"
        yield recorded(leaf, "sp.dot(csr, W)", "res = [W.grad, y]")
    yield recorded(
        "W = nd.ones((3, 2)); W.attach_grad()",
        "sp.dot(csr, W, transpose_a=True)",
        "res = [W.grad, y]",
    )
    yield recorded("W = nd.ones((2, 3)); W.attach_grad()", "sp.dot(W, csr)", "res = [W.grad, y]")
    yield recorded(
        "W = nd.ones((2, 3)); W.attach_grad()",
        "sp.dot(W, csr, forward_stype='default')",
        "res = [W.grad, y]",
    )
    yield recorded(
        "W = nd.ones((3, 2)).tostype('row_sparse'); W.attach_grad()",
        "sp.dot(csr, W)",
        "res = [W.grad, y]",
    )
    for s in STYPE:
        leaf = f"c = {s}.copy(); c.attach_grad()"
        for line in (
            "sp.square(c)",
            "sp.sum(c, axis=0)",
            "c * 3",
            f"sp.elemwise_add(c, {s}2)",
            "(c * d2).sum()",
            "c.tostype('default') * 2",
            "sp.sqrt(sp.square(c) * 4)",
        ):
            yield recorded(leaf, line, "res = [c.grad, y]")
    leaf = "c = rsp.copy(); c.attach_grad()"
    yield recorded(leaf, "sp.retain(c, nd.array([0]))", "res = [c.grad, y]")
    yield recorded(leaf, "nd._internal._square_sum(c, axis=1)", "res = [c.grad, y]")
    yield recorded(
        "c = d.copy(); c.attach_grad()", "sp.square(c.tostype('csr'))", "res = [c.grad, y]"
    )
    yield recorded("c = nd.ones((3, 2)); c.attach_grad(stype='csr')", "c * 2", "res = c.grad")


UPDATES = (
    ("nd.sgd_update", 0, True, "wd=.1"),
    ("nd.sgd_mom_update", 1, True, "wd=.1, momentum=.9"),
    ("nd.adam_update", 2, True, "wd=.1"),
    ("nd.ftrl_update", 2, False, "wd=.1"),
    ("sp.adagrad_update", 1, False, ""),
    ("nd.contrib.group_adagrad_update", 1, False, ""),
    ("nd.signsgd_update", 0, False, ""),
    ("nd.nag_mom_update", 1, False, "momentum=.9"),
)


def updates():
    kinds = ("default", "row_sparse")
    for (name, count, lazy, more), weight, state in itertools.product(UPDATES, kinds, kinds):
        if not count and state != "default":
            continue
        width = 1 if "group" in name else 2
        for flag in ("", ", lazy_update=False") if lazy else ("",):
            states = [f"s{i}" for i in range(count)]
            lines = [
                f"W = nd.array([[.5, .7], [.6, .5], [.4, .6], [.4, .9]]).tostype('{weight}')",
                "g = nd.array([[1, -2], [0, 0], [.5, 3], [0, 0]]).tostype('row_sparse')",
                *(
                    f"{s} = nd.full((4, {width}), {(i + 1) / 4}).tostype('{state}')"
                    for i, s in enumerate(states)
                ),
                f"{name}({', '.join(['W', 'g', *states])}, out=W, lr=.1, rescale_grad=.5, "
                f"clip_gradient=.6, {more}{flag})".replace(", )", ")").replace(", ,", ","),
                f"res = [{', '.join(['W', *states])}]",
            ]
            yield "\n".join(lines)


GROUPS = {
    f.__name__: list(dict.fromkeys(f()))
    for f in (
        unary,
        binary,
        in_place,
        reductions,
        selection,
        conversion,
        creation,
        products,
        gradients,
        updates,
    )
}


def described(value, np):
    """Return an answer as plain data: for sparse arrays the dense values and what is stored."""
    if isinstance(value, (list, tuple)):
        return [described(v, np) for v in value]
    stype = getattr(value, "stype", None)
    if stype is None:
        return {"text": str(value)}
    made = {"stype": stype, "shape": list(value.shape), "dtype": str(np.dtype(value.dtype))}
    made["values"] = value.asnumpy().astype("float64").ravel().tolist()
    if stype == "row_sparse":
        made["stored"] = value.indices.asnumpy().tolist()
    elif stype == "csr":
        ends = value.indptr.asnumpy()
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        columns = value.indices.asnumpy()[: ends[-1]]  # what lies behind is left over
        made["stored"] = sorted((rows * value.shape[1] + columns).tolist())
    return made


def answer(text, mx, np):
    """Run one program and return what it leaves."""
    names = {"mx": mx, "np": np}
    exec(SETUP, names)
    if "\n" in text or text.startswith("res = "):
        exec(text, names)
        return described(names["res"], np)
    return described(eval(text, names), np)
