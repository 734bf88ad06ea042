"""Expressions on arrays of `mx.np` whose results are recorded from MXNet 1.9.1.

`SETUP` runs before each expression, under `npx.set_np()`. Plain text, so that the recorder and
the tests evaluate the same thing.
"""

# ruff: noqa: E501 (a program a line)

SETUP = """
a = np.arange(12).reshape(3, 4)
b = np.arange(24).reshape(2, 3, 4)
v = np.array([3, 1, 2])
i = np.array([1, 2, 3], dtype='int32')
l = np.array([1, -2, 3], dtype='int64')
u = np.array([1, 2, 250], dtype='uint8')
h = np.array([1.5, -2.5, 0.5], dtype='float16')
d = np.array([1.5, -2.5, 0.5], dtype='float64')
m = np.array([True, False, True], dtype='bool')
z = np.array(3.0)
e = np.zeros((0, 3))
"""

READING = """
a[1]; a[-1]; a[1:]; a[:2]; a[5:7]; a[0:3:2]; a[::-1]; a[:, ::-2]; a[:, 1]; a[:, 1:3]; a[1, 2]
a[1][2]; a[1, 1:3]; a[0:2, 1:3]; a[...]; a[..., 0]; a[1, ...]; a[None]; a[:, None]; a[None, 1]
a[..., None]; a[[0, 2]]; a[[0, 2], [1, 3]]; a[[[0, 1], [1, 2]]]; a[:, [0, 3]]; a[1, [0, 3]]
a[i - 1]; a[l]; a[np.array([0, 2])]; a[np.array(1, dtype='int32')]; a[onp.array([0, 1])]
a[onp.int64(2)]; a[m]; a[m, 1]; a[m, 1:3]; a[:, np.array([1, 0, 1, 0], dtype='bool')]
a[a > 5]; a[a > 50]; a[m][:, 0]; a[[True, False, True]]; a[onp.array([True, False, True])]
a[True]; a[False]; b[0]; b[:, 1]; b[..., 1]; b[1, :, 2]; b[:, :, None, 0]; b[[0, 1], :, [1, 2]]
b[0, [0, 1], [2, 3]]; b[[1], 1:, ::2]; b[:, [2, 0]]; b[:, [2, 0], 1]; b[1][1][1]
b[np.array([[True, False, True], [False, True, False]], dtype='bool')]; b[:, m]; b[:, m, 1]
z[()]; e[()]; e.sum(); e.sum(axis=0); e[:, 1]; a[()]; a[3]; a[-4]; a[0, 9]; a[[0, 5]]; a[1.0]
z[0]; b[0, 0, 0, 0]; a[::0]
"""

MAKING = """
np.array([1, 2]); np.array([[1, 2], [3, 4]], dtype='int32'); np.array(5); np.array([]); np.array([True])
np.array(onp.arange(3)); np.array(onp.float64(3)); np.array(onp.ones(2, 'float32')); np.array(onp.array([True]))
np.array([np.array(1), np.array(2)]); np.array((1, 2)); np.array(a); np.array(a, dtype='int8')
np.zeros(3); np.zeros((2, 0)); np.zeros(()); np.zeros((2,), dtype='bool'); np.zeros(2, dtype=None)
np.ones((2, 2), dtype='int64'); np.full((2,), 7); np.full((2,), True); np.full(2, 1.5, dtype='int32')
np.eye(3); np.eye(2, 3, 1); np.identity(2); np.arange(5); np.arange(1, 4); np.arange(1, 4, 2, dtype='int64')
np.arange(0); np.arange(2.5); np.linspace(0, 1, 5); np.linspace(0, 1, 5, endpoint=False)
np.linspace(0, 10, 3, dtype='int32'); np.linspace(0, 1, 3, retstep=True)[1]; np.logspace(0, 2, 3)
np.zeros_like(i); np.ones_like(a, dtype='int32'); np.full_like(i, 4); np.indices((2, 2)); np.tril(np.ones((3, 3)))
np.hanning(4); np.hamming(4); np.blackman(4); np.zeros(3, order='F'); np.array('abc')
np.meshgrid(np.arange(2), np.arange(3)); np.meshgrid(np.arange(2), np.arange(3), indexing='ij')[0]
"""

ARITHMETIC = """
a + a; a + 1; 1 + a; a - 1; 1 - a; a * 2; a / 2; 2 / (a + 1); a % 3; 5 % (a + 1); a ** 2; 2 ** a; -a; abs(-a)
a + v.reshape(3, 1); v + z; z + z; e + 1; e * e; a @ a.T; v @ v; a.T @ v
i + 1; i + 1.5; i * 2.5; i - 0.5; 1 - i; 1.5 - i; i / 2; i / i; 2 / i; i % 2; i ** 2; i ** -1; 2 ** i; -i; i + True
m + 1; m + 1.5; m + m; m * 2; m / 2; 1 - m; -m; m * v; m - 1; u + 10; u * 2; u + u; h + 1; d + 1; h * 0.1
i + l; i + v; v + d; v + h; l + h; m + i; u + i; i * m; d * i; h + d; l / i; i / v; u / u
a > 3; 3 > a; a >= 3; a < 3; a <= 3; a == 3; a != 3; v > i; i == l; i == 1.5; i > 1.5; m == True; m == m; a == None
~i; ~m; i & 1; i | 4; i ^ 3; m & m; m | False; m ^ True; i & l; v & v; a // 2; a << 1
a + 'x'; a + onp.ones((3, 4)); a + mx.nd.ones((3, 4)); v + a; bool(z); bool(e); bool(a); bool(z > 5)
float(z); int(v[0]); float(a); complex(z); len(a); len(z); a.item(); z.item(); a.item(3); a.item(1, 2); a.tolist(); z.tolist()
round(np.array(2.567), 2); '%.1f' % z; f'{z:.2f}'; str(a); repr(a); repr(i); repr(m); repr(z); repr(e); repr(d); repr(h); repr(np.array([1e10, 2]))
list(v); [x.shape for x in b]; a.shape; z.shape; z.ndim; a.size; a.dtype; m.dtype; a.T.shape; a.context; a.stype
"""

METHODS = """
a.sum(); a.sum(axis=0); a.sum(axis=(0, 1)); a.sum(axis=1, keepdims=True); a.sum(dtype='float64'); i.sum(); m.sum(); u.sum(); h.sum()
a.mean(); a.mean(axis=1); i.mean(); m.mean(); i.mean(dtype='float64'); a.prod(axis=1); i.prod(); a.max(); a.max(axis=0); a.min(axis=1)
i.max(); a.std(); a.std(axis=0, ddof=1); a.var(axis=1); i.var(); a.argmax(); a.argmax(axis=1); a.argmin(axis=0); a.any(); a.all(); m.all()
a.cumsum(); a.cumsum(axis=1); i.cumsum(); a.clip(2, 5); a.clip(max=3); a.round(); d.round(1); a.reshape(4, 3); a.reshape((2, -1)); a.reshape(-1)
a.reshape(5, 5); a.flatten(); a.transpose(); b.transpose(2, 0, 1); b.transpose((1, 0, 2)); a.T; b.swapaxes(0, 2); a.squeeze(); np.ones((1, 2, 1)).squeeze()
np.ones((1, 2, 1)).squeeze(0); a.repeat(2); a.repeat(2, axis=0); a.take(np.array([0, 5])); a.take(np.array([0, 2]), axis=0); a.take(np.array([0, 99]), mode='clip')
a.argsort(axis=0); v.argsort(); a.nonzero(); v.dot(v); a.dot(a.T); v.broadcast_to((2, 3)); a.astype('int32'); a.astype('bool'); d.astype('int32'); a.copy()
a.copy(order='F'); a.astype('int32', order='F'); a.flatten(order='F'); a.as_nd_ndarray().shape; a.as_np_ndarray(); mx.nd.ones((2,)).as_np_ndarray(); a.asnumpy().dtype
"""

FUNCTIONS = """
np.exp(v); np.exp(2.0); np.log(i); np.sqrt(i); np.sqrt(u); np.sin(h); np.sign(d); np.floor(d); np.ceil(d); np.trunc(d); np.rint(d); np.fix(d)
np.absolute(l); np.fabs(d); np.negative(m); np.square(i); np.cbrt(v); np.reciprocal(v); np.reciprocal(i); np.degrees(v); np.rad2deg(v); np.deg2rad(v)
np.isnan(a); np.isinf(i); np.isfinite(d); np.logical_not(v); np.invert(i); np.bitwise_not(m); np.exp(m); np.tanh(d)
np.add(1, 2); np.add(a, 1); np.add(i, v); np.subtract(2, v); np.multiply(v, 3); np.divide(i, 2); np.true_divide(1, v); np.mod(v, 2); np.remainder(5, v)
np.power(v, 2); np.power(2, v); np.maximum(v, 2); np.maximum(i, 1.5); np.minimum(2, v); np.maximum(v, i); np.hypot(v, 4); np.arctan2(v, 1); np.arctan2(1, v); np.copysign(v, -1)
np.lcm(i, 4); np.ldexp(v, 2); np.bitwise_and(i, 2); np.equal(v, 2); np.less(2, v); np.greater_equal(v, i); np.not_equal(1, 1); np.matmul(a, a.T)
np.add(a, a, where=False); np.exp(a, dtype='float64'); np.exp(a, foo=1); np.exp('x'); np.exp(onp.ones(2)); np.exp(mx.nd.ones(2))
np.sum(b, axis=(0, 2)); np.mean(b, axis=-1); np.max(b, axis=(1, 2)); np.amin(b); np.prod(v); np.std(b, axis=0); np.var(b); np.average(v); np.average(v, weights=v)
np.average(v, weights=v, returned=True); np.all(b > 0); np.any(b > 0, axis=0); np.argmax(b, axis=1); np.cumsum(b, axis=2); np.percentile(v, 50); np.percentile(a, np.array([25., 75.]), axis=0)
np.quantile(v, 0.5); np.bincount(i); np.bincount(i, weights=v); np.trace(a); np.reshape(a, (2, 6)); np.ravel(a); np.transpose(b, (2, 1, 0)); np.moveaxis(b, 0, -1); np.swapaxes(b, 0, 1)
np.expand_dims(v, 0); np.expand_dims(v, -1); np.squeeze(np.ones((1, 3))); np.broadcast_to(v, (2, 3)); np.broadcast_arrays(v, a[:, :3]); np.flip(a); np.flip(a, 0); np.fliplr(a); np.flipud(a)
np.roll(v, 1); np.roll(a, 1, axis=1); np.rot90(a); np.rot90(a, 2); np.repeat(v, 2); np.repeat(a, 2, axis=1); np.tile(v, 2); np.tile(v, (2, 1)); np.resize(v, (2, 2)); np.diag(v); np.diag(a); np.diagonal(a); np.diagflat(v)
np.atleast_1d(z); np.atleast_2d(v); np.atleast_3d(v); np.pad(v, ((1, 2),)); np.pad(a, ((1, 0), (0, 1)), mode='edge'); np.pad(v, ((1, 1),), constant_values=7); np.pad(a, ((1, 1), (1, 1)), mode='reflect')
np.concatenate([v, v]); np.concatenate([a, a], axis=1); np.concatenate([a, a], axis=None); np.concatenate((v, i)); np.append(v, v); np.stack([v, v]); np.stack([v, v], axis=1); np.vstack([v, v]); np.hstack([a, a]); np.dstack([v, v]); np.column_stack([v, v])
np.split(v, 3); np.split(a, [1, 3], axis=1); np.split(v, 2); np.array_split(v, 2); np.hsplit(a, 2); np.vsplit(a, 3); np.dsplit(b, 2); np.delete(v, 1); np.delete(a, 1, axis=0); np.insert(v, 1, 9.); np.insert(a, 1, 5., axis=1)
np.clip(a, 2, 4); np.clip(a, None, 4); np.around(d, 1); np.round(d); np.nan_to_num(np.array([np.nan, np.inf])); np.sort(v); np.sort(a, axis=0); np.argsort(-a); np.take(v, np.array([0, 2])); np.take(a, np.array([1]), axis=1); np.take(v, np.array([5]))
np.where(m, v, -v); np.where(m, 1.0, v); np.where(m, v, 0.0); np.where(m, 1, 2); np.where(v > 1); np.nonzero(v); np.unique(np.array([2., 1, 2])); np.unique(np.array([2., 1, 2]), return_counts=True); np.diff(v); np.diff(a, n=2, axis=0); np.ediff1d(v)
np.ediff1d(v, to_begin=0.0); np.histogram(v, bins=3, range=(0, 3)); np.polyval(v, v); np.unravel_index(i, (2, 3)); np.diag_indices_from(np.ones((2, 2))); np.shape(a); np.shares_memory(a, a[0]); np.may_share_memory(a, v)
np.dot(a, v[[0, 0, 1, 2]]); np.dot(v, v); np.dot(a, 2); np.inner(v, v); np.outer(v, v); np.vdot(v, v); np.tensordot(a, a, axes=([0, 1], [0, 1])); np.tensordot(a, a.T, 1); np.einsum('ij,kj->ik', a, a); np.einsum('ii', np.eye(3)); np.einsum('i,i->', v, v)
np.linalg.norm(a); np.linalg.norm(a, axis=1); np.linalg.norm(v, ord=1); np.linalg.norm(a, ord='fro'); np.linalg.norm(v, ord=np.inf); np.linalg.inv(np.array([[2., 0], [0, 4]])); np.linalg.det(np.array([[2., 0], [0, 4]])); np.linalg.slogdet(np.eye(2)); np.linalg.cholesky(np.array([[4., 0], [0, 9]]))
np.linalg.solve(np.array([[2., 0], [0, 4]]), np.array([2., 4])); np.linalg.eigvalsh(np.array([[2., 0], [0, 4]])); np.linalg.pinv(np.array([[2., 0], [0, 4]])); np.linalg.svd(np.array([[2., 0], [0, 4]]))[1]
np.interp(np.array([1.5]), np.array([1., 2]), np.array([3., 4])); np.isclose(v, v); np.allclose(v, v + 1); np.array_equal(v, v); np.ptp(v); np.cov(a); np.in1d(v, v); np.count_nonzero(v); np.median(v); np.searchsorted(np.sort(v), v); np.nanmax(v)
onp.mean(a); onp.exp(v); onp.add(v, 1); onp.concatenate([v, v]); onp.sum(a, axis=0); onp.linalg.norm(v); onp.median(v); onp.where(m, v, v); onp.add(v, onp.ones(3)); onp.stack([v, v]); onp.maximum(v, 2); onp.isnan(v)
npx.relu(v - 2); npx.sigmoid(v); npx.softmax(a); npx.log_softmax(a, axis=0); npx.one_hot(v, 4); npx.pick(a, v); npx.topk(v, k=2, ret_typ='value'); npx.reshape(b, (-2, -1)); npx.reshape(b, (-5, -2)); npx.reshape(b, (-4,)); npx.reshape(b, (-2, -6, 1, -1, -2)); npx.reshape(np.ones((1, 2)), (-3, -2))
npx.nonzero(v - 1); npx.batch_dot(b, b.swapaxes(1, 2)); npx.batch_flatten(b); npx.erf(v); npx.gamma(v); npx.gammaln(v); npx.smooth_l1(v, scalar=1.0); npx.gather_nd(a, np.array([[0, 1], [1, 2]])); npx.arange_like(v); npx.shape_array(b); npx.cast(v, 'int32'); npx.leaky_relu(v - 2)
npx.sequence_mask(a, np.array([1, 2, 3, 1]), use_sequence_length=True); npx.embedding(v, np.ones((4, 2)), input_dim=4, output_dim=2); npx.fully_connected(a, np.ones((2, 4)), num_hidden=2, no_bias=True); npx.activation(v, act_type='tanh'); npx.layer_norm(a, np.ones(4), np.zeros(4)); npx.slice(a, (0, 1), (2, 3))
npx.constraint_check(m, 'no'); npx.index_update(a, v, v); npx.is_np_array(); npx.is_np_shape(); npx.num_gpus(); npx.cpu(0); npx.current_context()
"""

# statement -> what to look at afterwards
WRITING = [
    ("a[0] = 9", "a"),
    ("a[:, 1] = 9", "a"),
    ("a[1, 2] = 9", "a"),
    ("a[:] = 1", "a"),
    ("a[...] = v.reshape(3, 1)", "a"),
    ("a[1:3, ::2] = 7", "a"),
    ("a[::-1] = np.arange(3).reshape(3, 1)", "a"),
    ("a[[0, 2]] = 5", "a"),
    ("a[[0, 2], [1, 3]] = np.array([7, 8])", "a"),
    ("a[m] = 0", "a"),
    ("a[a > 5] = 0", "a"),
    ("a[a > 5] = np.arange(6)", "a"),
    ("a[m, 1] = 5", "a"),
    ("a[:, [0, 1]] = np.array([7, 8])", "a"),
    ("a[0] = [4, 3, 2, 1]", "a"),
    ("a[0] = onp.ones(4)", "a"),
    ("a[None, 0] = 5", "a"),
    ("i[0] = 2.7", "i"),
    ("m[1] = True", "m"),
    ("z[()] = 5", "z"),
    ("z[...] = 5", "z"),
    ("b[:, m] = 0", "b"),
    ("b[0, [0, 1], [2, 3]] = -1", "b"),
    ("a[5] = 1", "a"),
    ("a[0] = np.ones(3)", "a"),
    ("a += 1", "a"),
    ("a -= v.reshape(3, 1)", "a"),
    ("a *= a", "a"),
    ("a /= 2", "a"),
    ("a %= 5", "a"),
    ("i += 1", "i"),
    ("a += i.reshape(3, 1)", "a"),
    ("v += a", "v"),
    ("np.exp(v, out=v)", "v"),
    ("np.add(v, 1, out=v)", "v"),
    ("v.sum(out=z)", "z"),
    ("np.concatenate([v, v], out=np.zeros(3))", "v"),
    ("x = a[1]; x[:] = 9", "a"),
    ("x = a[0:2]; x[:] = 9", "a"),
    ("x = a[1, 1:3]; x[:] = 9", "a"),
    ("x = a[:, 1]; x[:] = 9", "a"),
    ("x = a[::2]; x[:] = 9", "a"),
    ("x = a[None]; x[:] = 9", "a"),
    ("x = a[[0, 1]]; x[:] = 9", "a"),
    ("x = a[1, 1]; x[()] = 9", "a"),
    ("x = a.reshape(4, 3); x[:] = 9", "a"),
    ("x = a.reshape_view(4, 3); x[:] = 9", "a"),
    ("x = a.T; x[:] = 9", "a"),
    ("x = np.expand_dims(a, 0); x[:] = 9", "a"),
    ("x = a.flatten(); x[:] = 9", "a"),
    ("x = np.ravel(a); x[:] = 9", "a"),
    ("x = a.squeeze(); x[:] = 9", "a"),
    ("x = a.detach(); x[:] = 9", "a"),
    ("x = a.as_nd_ndarray(); x[:] = 9", "a"),
    ("x = a.as_in_ctx(mx.cpu(0)); x[:] = 9", "a"),
    ("x = a.astype('float32'); x[:] = 9", "a"),
    ("x = a.astype('float32', copy=False); x[:] = 9", "a"),
    ("x = a.copy(); x[:] = 9", "a"),
    ("x = a[:]; x[:] = 9", "a"),
    ("a.copyto(x := np.zeros((3, 4)))", "x"),
]


def _split(text):
    return [part.strip() for line in text.strip().splitlines() for part in line.split("; ")]


EXPRESSIONS = [
    e for part in (READING, MAKING, ARITHMETIC, METHODS, FUNCTIONS) for e in _split(part)
]
