"""Expressions on arrays whose answers are recorded from MXNet 1.9.1.

`SETUP` runs before each expression. Plain text, so that the recorder and the tests evaluate the
same thing.
"""

SETUP = """
a = nd.arange(12).reshape((3, 4))
b = nd.arange(24).reshape((2, 3, 4))
v = nd.array([3, 1, 2])
i = nd.array([1, 2, 3], dtype='int32')
h = nd.array([1.5, -2.5, 0.5], dtype='float16')
"""

READING = """
a[1] a[-1] a[5] a[-4] a[1:1] a[1:] a[:2] a[5:7] a[0:3:2] a[::-1] a[:, ::-2] a[:, 1] a[:, 1:3] a[1, 2]
a[1][2] a[1, 1:3] a[0:2, 1:3] a[...] a[..., 0] a[1, ...] a[None] a[:, None] a[None, 1] a[()] a[:]
a[[0, 2]] a[[0, -1]] a[[0, 5]] a[[0, 1], [1, 2]] a[[0, 1], 1:3] a[1:3, [0, 1]] a[1, [0, 3]]
a[nd.array([0, 2])] a[nd.array([0, 9])] a[nd.array([[0, 1]]), nd.array([[1], [2]])] a[a > 5]
a[np.array([[0, 1], [1, 2]])] a[np.array([True, False, True])] a[[True, False, True]] a[True]
a["x"] a[1.0] a[0, 1, 2] a[np.int64(1)] a[np.int32(1):np.int64(3)] a[1, None, 2] a[::2, ::3]
b[0] b[1, 2] b[1, 2, 3] b[:, 0] b[0, :, 1] b[..., ::-1] b[:, [0, 2]] b[:, [0, 2], [1, 3]]
b[[0, 1], :, [1, 3]] b[1, [0, 2]] b[[[0, 1]], 0] b[0, ..., 1] b[0:1, 1:2, 2:3] b[:, None, 1]
v[0] v[-1] v[0:1] v[3] v[[0, 0]] nd.array(5) nd.array(5)[()] nd.array(5)[0] len(a) len(v)
""".split()

MAKING = [
    "nd.array([1, 2])",
    "nd.array([[1, 2], [3]])",
    "nd.array([])",
    "nd.array(np.ones((2,), dtype='int64'))",
    "nd.array(np.ones((2,), dtype='bool'))",
    "nd.array(i)",
    "nd.array([1.7, -1.7], dtype='int32')",
    "nd.array([True, False])",
    "nd.array('ab')",
    "nd.array([1, 2], dtype='uint8')",
    "nd.array([1, 2], dtype='uint16')",
    "nd.zeros((2, 2))",
    "nd.zeros(3, dtype='int8')",
    "nd.zeros((0, 2))",
    "nd.zeros(())",
    "nd.ones((1, 2), dtype='float64')",
    "nd.full((2,), 3)",
    "nd.full(2, 3, dtype='int32')",
    "nd.arange(5)",
    "nd.arange(2, 8, 2, repeat=2)",
    "nd.arange(0, 1, 0.3)",
    "nd.arange(5, 0, -2)",
    "nd.linspace(0, 1, 3)",
    "nd.linspace(0, 1, 4, endpoint=False)",
    "nd.eye(2)",
    "nd.eye(2, 3, 1)",
    "nd.zeros_like(a)",
    "nd.ones_like(i)",
    "nd.concatenate([a, a])",
    "nd.concatenate([a, a], axis=1)",
    "nd.moveaxis(b, 0, 2)",
    "nd.moveaxis(b, (0, 1), (1, 0))",
    "nd.split_v2(a, 2, axis=1)",
    "nd.split_v2(a, (1, 3), axis=1)",
    "nd.split_v2(a, 2)",
    "nd.histogram(a, bins=3)",
    "nd.histogram(a, bins=3, range=(0, 6))",
    "nd.onehot_encode(nd.array([1, 2]), nd.zeros((2, 4)))",
]

ARITHMETIC = [
    f"{x} {sign} {y}"
    for x, y in (("a", "a"), ("a", "v.reshape((3, 1))"), ("a", "2"), ("3", "a"), ("i", "2"), ("7", "i"),
                 ("i", "1.5"), ("h", "2"), ("a", "v"), ("v", "i"))
    for sign in ("+", "-", "*", "/", "%", "**", "==", "!=", ">", ">=", "<", "<=")
] + [
    "-a", "abs(-a)", "-i", "a + None", "a == None", "a + 'x'", "a + np.float32(2)", "np.float32(2) + a",
    "a * True", "nd.add(1, 2)", "nd.add(a, 1)", "nd.power(2, a)", "nd.power(a, 2)", "nd.maximum(a, 3)",
    "nd.maximum(3, 4)", "nd.minimum(4, a)", "nd.true_divide(a, 2)", "nd.modulo(a, 3)", "nd.equal(a, 3)",
    "nd.greater(3, a)", "nd.lesser_equal(3, a)", "nd.logical_and(a, 1)", "nd.subtract(1, a)",
    "nd.array([1, 2, 3], dtype='uint8') - 5", "nd.array([5.0, -5.0]) % 3", "7 % nd.array([5.0, -5.0])",
    "nd.array([5.0, -5.0]) % 0", "bool(nd.array([0]))", "bool(a)", "bool(nd.array([]))", "int(v)",
    "float(nd.ones(1))", "a // 2", "a @ a",
]  # fmt: skip

METHODS = """
a.shape a.size a.ndim a.dtype a.stype a.context a.T v.T b.T a.asscalar() nd.array([7]).asscalar()
a.reshape(4,3) a.reshape((2,-1)) a.reshape(-1) a.reshape((0,-1)) a.reshape((-1,0),reverse=True)
a.reshape(shape=(4,3)) a.reshape((2,3)) a.reshape(5,-1) b.reshape((-3,0)) b.reshape((-4,1,2,-2))
b.reshape((0,-3)) a.reshape() a.reshape((3,4),foo=1) a.expand_dims(0) a.expand_dims(axis=-1)
a.flatten() b.flatten() a.squeeze() nd.ones((1,2,1)).squeeze() nd.ones((1,2,1)).squeeze(axis=0)
a.transpose() a.transpose((1,0)) b.transpose((2,0,1)) a.swapaxes(0,1) a.split(2) a.split(num_outputs=3,axis=0)
a.broadcast_to((2,3,4)) v.broadcast_to((2,3)) a.tile((2,1)) a.tile(2) a.repeat(2) a.repeat(2,axis=0)
a.sum() a.sum(axis=0) a.sum(0) a.sum(axis=(0,1)) a.sum(axis=1,keepdims=True) a.sum(axis=0,exclude=True)
a.mean() a.max((0,1)) a.min(axis=1) a.prod(axis=1) a.norm() a.norm(ord=1,axis=1) a.nansum() a.nanprod()
a.clip(2,5) a.astype('int32') a.astype(np.int32,copy=False) h.astype('float32') h.astype(int)
a.astype('uint16') a.slice(begin=(0,1),end=(2,3)) a.slice_axis(axis=1,begin=0,end=2)
a.slice_axis(axis=1,begin=1,end=None) a.slice_like(nd.zeros((2,2))) a.take(nd.array([0,2]))
a.take(nd.array([0,9]),mode='wrap') a.pick(nd.array([0,1,2])) a.topk(k=2) a.topk(k=2,ret_typ='both')
a.topk(axis=0,k=1,ret_typ='mask') a.argmax(axis=1) a.argmax() a.argmin(axis=0) a.argsort(is_ascend=False)
a.sort(is_ascend=False) a.one_hot(3) a.diag() a.round() h.round() h.rint() h.fix() h.floor() h.ceil()
h.trunc() h.abs() h.sign() a.relu() a.sigmoid() a.exp() a.log1p() a.sqrt() a.square() a.cbrt() a.rsqrt()
a.log_softmax(axis=1) a.softmax() a.softmin() a.flip(axis=0) a.shape_array() a.size_array() a.zeros_like()
a.ones_like() a.broadcast_like(nd.zeros((3,4))) a.reshape_like(nd.zeros((4,3))) a.argmax_channel()
a.as_in_context(mx.cpu(1)).context a.copyto(mx.cpu(2)).context a.copy() a.detach() a.wait_to_read()
a.tostype('default') a.degrees() a.sinh() a.arctan() a.expm1() a.reciprocal() a.split_v2(2,axis=1)
repr(a) repr(i) repr(h) repr(nd.array([])) repr(nd.array(5)) repr(b[0]) repr(a.as_in_context(mx.cpu(1)))
""".split()

# Statements, and the expression that shows what they did.
WRITING = [
    ("a[1] = 9", "a"),
    ("a[:] = 1", "a"),
    ("a[:] = nd.zeros((3, 4))", "a"),
    ("a[:] = np.arange(4)", "a"),
    ("a[:] = nd.ones((2, 2))", "a"),
    ("a[1:3] = [[1], [2]]", "a"),
    ("a[:, 1] = v", "a"),
    ("a[:, 1:3] = 5", "a"),
    ("a[0, 0] = nd.array([5])", "a"),
    ("a[::2] = -1", "a"),
    ("a[::-1] = nd.arange(12).reshape((3, 4))", "a"),
    ("a[[0, 2]] = 7", "a"),
    ("a[[0, 2], [1, 3]] = nd.array([5, 6])", "a"),
    ("a[nd.array([0, 2])] = nd.zeros((2, 4))", "a"),
    ("a[5] = 1", "a"),
    ("a[...] = 3", "a"),
    ("a[1, 1:3] = nd.array([8, 9])", "a"),
    ("b[:, 1] = 0", "b"),
    ("b[0, :, 1] = [1, 2, 3]", "b"),
    ("b[1, [0, 2]] = 4", "b"),
    ("i[1] = 2.7", "i"),
    ("a[1] = 'x'", "a"),
    ("a += 1", "a"),
    ("a -= v.reshape((3, 1))", "a"),
    ("a *= a", "a"),
    ("a /= 2", "a"),
    ("a %= 5", "a"),
    ("i += 1.9", "i"),
    ("a += i", "a"),
    ("v += a", "v"),
    # views: what shares memory
    ("x = a[1]; x[:] = 9", "a"),
    ("x = a[0:2]; x[:] = 9", "a"),
    ("x = a[1, 1:3]; x[:] = 9", "a"),
    ("x = a[:, 1]; x[:] = 9", "a"),
    ("x = a[:, 1:3]; x[:] = 9", "a"),
    ("x = a[::2]; x[:] = 9", "a"),
    ("x = a[[0, 1]]; x[:] = 9", "a"),
    ("x = a.reshape((4, 3)); x[:] = 9", "a"),
    ("x = nd.reshape(a, shape=(4, 3)); x[:] = 9", "a"),
    ("x = a.T; x[:] = 9", "a"),
    ("x = a.expand_dims(0); x[:] = 9", "a"),
    ("x = a.expand_dims(0, inplace=True); x[:] = 9", "a"),
    ("x = a.flatten(); x[:] = 9", "a"),
    ("x = a.detach(); x[:] = 9", "a"),
    ("x = a.as_in_context(mx.cpu(0)); x[:] = 9", "a"),
    ("x = a.astype('float32'); x[:] = 9", "a"),
    ("x = a.astype('float32', copy=False); x[:] = 9", "a"),
    ("x = a.copy(); x[:] = 9", "a"),
    ("x = a[:]; x[:] = 9", "a"),
    ("x = nd.identity(a); x[:] = 9", "a"),
    ("x = nd.transpose(a); x[:] = 9", "a"),
    ("x = nd.squeeze(nd.array([[1, 2]])); x[:] = 9", "x"),
    ("a.copyto(b)", "b"),
    ("a[1].copyto(a[0])", "a"),
    ("nd.relu(-a, out=a)", "a"),
    ("nd.relu(a, out=b)", "b"),
    ("nd.relu(a, out=i)", "i"),
    ("nd.broadcast_add(a, a, a)", "a"),
]

EXPRESSIONS = [*READING, *MAKING, *ARITHMETIC, *METHODS]
