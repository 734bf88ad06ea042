"""Small programs whose printed text, log lines and warnings people read, here and in MXNet 1.9.1.

Each is run by `run` in names of its own; plain text, so that the recorder and the tests run the
same thing. What differs from run to run (times, rates, addresses, paths) is masked.
"""

# ruff: noqa: E501 (a program a line)

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings

SETUP = """
import logging
from mxnet import autograd, callback, gluon, init, io, lr_scheduler, metric, monitor, nd, sym
from mxnet import optimizer as opt
from mxnet.gluon import nn, rnn, loss
from mxnet.gluon.contrib import nn as cnn, rnn as crnn, cnn as ccnn

def mlp():
    x = sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc1")
    x = sym.Activation(x, act_type="relu", name="relu1")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=2, name="fc2"), name="softmax")

def data(count=12, batch=4, **kwargs):
    return io.NDArrayIter(np.zeros((count, 3), "float32"), np.zeros(count, "float32"), batch, **kwargs)

def fit(**kwargs):
    module = mx.mod.Module(mlp(), context=mx.cpu())
    module.fit(data(), num_epoch=kwargs.pop("num_epoch", 2), initializer=init.Zero(), **kwargs)
    return module

def dense(*units):
    net = nn.Sequential()
    net.add(*[nn.Dense(u) for u in units])
    return net

def param(batches=3, nbatch=2, epoch=1, values=(("accuracy", 0.5),)):
    class Fixed:
        def get_name_value(self): return list(values)
        def get_global_name_value(self): return list(values)
        def reset(self): print("reset")
        def reset_local(self): print("reset_local")
    return mx.model.BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=Fixed(), locals=None)

def estimator(**kwargs):
    from mxnet.gluon.contrib.estimator import Estimator
    net = nn.Dense(2, prefix="net_")
    net.initialize(init.Zero())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.0})
    return Estimator(net, loss.SoftmaxCrossEntropyLoss(prefix="loss_"), trainer=trainer, **kwargs)

def batches(count=8, batch=4):
    set_ = gluon.data.ArrayDataset(nd.zeros((count, 3)), nd.zeros((count,)))
    return gluon.data.DataLoader(set_, batch)

def show(*values):
    for value in values:
        print(value)
"""

MASKS = [
    (r"0x[0-9a-f]{6,}", "<address>"),
    (r"(Time cost=)[0-9.]+", r"\1<time>"),
    (r"(Speed: )[0-9.infa]+( samples/sec)", r"\1<rate>\2"),
    (r"(time/\w+: |finished in |using total |in |time )[0-9.]+(s| ?seconds)", r"\1<time>\2"),
    (r"\[\d\d:\d\d:\d\d\] \S+:\d+: ", "<source>: "),
    (r"\x1b\[\d+m", ""),
    (r"(semantics has been activated in your code\.).*", r"\1"),
    (r"(Initialized \w+ as ).*", r"\1<values>"),
]


class _Lines(logging.Handler):
    """Keeps what is logged: name of the logger, level, message."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")


def mask(text):
    """Return text without what differs from run to run."""
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text)
    return text


def run(mx, np, code):
    """Run a program and return what it printed, logged and warned of, and how it failed."""
    space = {"mx": mx, "np": np}
    exec(SETUP, space)
    handler, out = _Lines(), io.StringIO()
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    error = None
    try:
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
            warnings.simplefilter("always")
            with mx.name.NameManager(), mx.attribute.AttrScope():
                mx.random.seed(0)
                np.random.seed(0)
                try:
                    exec(code, space)
                except Exception as failure:
                    error = [type(failure).__name__, str(failure)]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    answer = {"out": mask(out.getvalue()).splitlines(), "log": [mask(x) for x in handler.lines]}
    answer["warn"] = [
        f"{w.category.__name__}: {mask(str(w.message))}"
        for w in caught
        if not issubclass(w.category, (DeprecationWarning, ResourceWarning))
        or "mxnet" in str(w.message).lower()
    ]
    answer["error"] = error
    return answer


# -- what is printed ------------------------------------------------------------------------

LAYERS = {
    "Dense": "nn.Dense(3)|nn.Dense(3, in_units=4, activation='relu')|nn.Dense(3, use_bias=False, flatten=False, dtype='float16')",
    "Dropout": "nn.Dropout(0.5)|nn.Dropout(0.3, axes=(1,))",
    "Embedding": "nn.Embedding(10, 3)|nn.Embedding(10, 3, sparse_grad=True)",
    "norm": "nn.BatchNorm()|nn.BatchNorm(in_channels=3, scale=False, momentum=.8)|nn.InstanceNorm()|nn.LayerNorm(in_channels=3)|nn.GroupNorm(2)|nn.BatchNormReLU()",
    "Lambda": "nn.Lambda('relu')|nn.HybridLambda('tanh')|nn.Lambda(lambda x: x)|nn.HybridLambda(lambda F, x: F.relu(x))",
    "activations": "nn.Activation('relu')|nn.LeakyReLU(.1)|nn.PReLU()|nn.ELU()|nn.SELU()|nn.Swish()|nn.GELU()|nn.SiLU()|nn.Flatten()",
    "conv": "nn.Conv1D(3, 2)|nn.Conv2D(3, 2, strides=2, padding=1)|nn.Conv3D(3, (1, 2, 3), groups=3, in_channels=3)|nn.Conv2D(3, (2, 3), dilation=2, use_bias=False, activation='relu', in_channels=1)|nn.Conv2DTranspose(3, 2, output_padding=1, strides=2)|nn.Conv1DTranspose(2, 3)|nn.Conv3DTranspose(2, 3, in_channels=4)",
    "pool": "nn.MaxPool1D()|nn.MaxPool2D((2, 3), ceil_mode=True)|nn.MaxPool3D()|nn.AvgPool1D()|nn.AvgPool2D(3, 1, 1, count_include_pad=False)|nn.AvgPool3D()|nn.GlobalMaxPool1D()|nn.GlobalMaxPool2D()|nn.GlobalMaxPool3D()|nn.GlobalAvgPool1D()|nn.GlobalAvgPool2D()|nn.GlobalAvgPool3D()|nn.ReflectionPad2D(2)",
    "containers": "nn.Sequential()|nn.HybridSequential()|dense(2, 3)|gluon.Block()|gluon.HybridBlock()",
    "recurrent": "rnn.RNN(3)|rnn.LSTM(3, 2, 'NTC', .5, True)|rnn.GRU(3, input_size=4)|rnn.LSTM(3, projection_size=2)|rnn.RNN(3, activation='tanh')",
    "cells": "rnn.RNNCell(3)|rnn.LSTMCell(3, input_size=2)|rnn.GRUCell(3)|rnn.SequentialRNNCell()|rnn.DropoutCell(.5)|rnn.ZoneoutCell(rnn.RNNCell(2), .1, .2)|rnn.ResidualCell(rnn.GRUCell(2))|rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(2))|rnn.HybridSequentialRNNCell()",
    "losses": "loss.L2Loss()|loss.L1Loss(weight=2)|loss.SoftmaxCrossEntropyLoss()|loss.SigmoidBCELoss()|loss.KLDivLoss()|loss.CTCLoss()|loss.HuberLoss()|loss.HingeLoss()|loss.SquaredHingeLoss()|loss.LogisticLoss()|loss.TripletLoss()|loss.PoissonNLLLoss()|loss.CosineEmbeddingLoss()|loss.SDMLLoss()",
    "contrib": "cnn.Concurrent()|cnn.HybridConcurrent(axis=1)|cnn.Identity()|cnn.SparseEmbedding(3, 2)|cnn.SyncBatchNorm()|cnn.PixelShuffle1D(2)|cnn.PixelShuffle2D((2, 3))|cnn.PixelShuffle3D(2)|ccnn.DeformableConvolution(3, (2, 2))|ccnn.ModulatedDeformableConvolution(3, (2, 2))|crnn.VariationalDropoutCell(rnn.RNNCell(2), .1)|crnn.LSTMPCell(3, 2)|crnn.Conv2DRNNCell((2, 4, 4), 3, 3, 3)|crnn.Conv1DLSTMCell((2, 4), 3, 3, 3)|crnn.Conv3DGRUCell((2, 4, 4, 4), 3, 3, 3)",
    "transforms": "gluon.data.vision.transforms.Compose([gluon.data.vision.transforms.ToTensor(), gluon.data.vision.transforms.Resize(4)])|gluon.data.vision.transforms.Normalize(0, 1)|gluon.data.vision.transforms.RandomFlipLeftRight()|gluon.data.vision.transforms.Cast('float16')|gluon.data.vision.transforms.CenterCrop(3)|gluon.data.vision.transforms.RandomResizedCrop(3)",
}
ZOO = "alexnet resnet18_v1 resnet50_v2 vgg11 vgg11_bn squeezenet1.0 densenet121 inceptionv3 mobilenet0.25 mobilenetv2_0.25"
OPTIMIZERS = "SGD NAG Adam AdaGrad AdaDelta RMSProp Ftrl FTML Adamax Nadam Signum SGLD DCASGD LARS LAMB LBSGD LANS AdaBelief GroupAdaGrad Test"
METRICS = "Accuracy() TopKAccuracy(3) F1() MCC() PCC() Perplexity(None) MAE() MSE() RMSE() CrossEntropy() NegativeLogLikelihood() PearsonCorrelation() Loss() Torch() Caffe() CustomMetric(len) CompositeEvalMetric(['acc','mse'])"
INITS = "Zero() One() Constant(3) Uniform() Normal(.1) Xavier() Xavier('gaussian','in',2) MSRAPrelu() Orthogonal() Bilinear() LSTMBias(2.0) Mixed(['.*'],[mx.init.Zero()]) FusedRNN(mx.init.Zero(),3,2,'lstm') Load({})"

PROGRAMS = {
    f"layer {k} {i}": f"print({e})" for k, v in LAYERS.items() for i, e in enumerate(v.split("|"))
}
PROGRAMS.update(
    {
        f"layer {k} repr {i}": f"print(repr({e}))"
        for k, v in LAYERS.items()
        for i, e in enumerate(v.split("|"))
        if i == 0
    }
)
PROGRAMS.update(
    {f"zoo {n}": f"print(gluon.model_zoo.vision.get_model('{n}', classes=10))" for n in ZOO.split()}
)
PROGRAMS.update(
    {
        f"optimizer {n}": f"o = opt.{n}(); print(type(o).__name__, repr(o)[:30]); print(opt.create('{n.lower()}').__class__.__name__)"
        for n in OPTIMIZERS.split()
    }
)
PROGRAMS.update(
    {
        f"metric {n}": f"m = mx.metric.{n}; show(m, repr(m), m.get_config(), m.name, m.get())"
        for n in METRICS.split()
        if not n.startswith("Custom")
    }
)
PROGRAMS.update(
    {
        f"init {n}": f"i = mx.init.{n}; show(repr(i)[:60], i.dumps() if hasattr(i, 'dumps') else '')"
        for n in INITS.split()
    }
)
PROGRAMS.update(
    {
        "metric custom": "m = mx.metric.np(lambda a, b: 1.0); show(m, m.name, m.get()); m = mx.metric.CustomMetric(len); show(m, m.name)",
        "metric accuracy value": "m = mx.metric.Accuracy(); m.update(nd.array([0, 1]), nd.array([[.3, .7], [.2, .8]])); show(m, m.get(), m.get_name_value(), m.get_global())",
        "scheduler": "show(*[type(s).__name__ for s in (lr_scheduler.FactorScheduler(2), lr_scheduler.MultiFactorScheduler([2]), lr_scheduler.PolyScheduler(2), lr_scheduler.CosineScheduler(2))])",
        "scheduler factor logs": "s = lr_scheduler.FactorScheduler(2, .5, base_lr=1, stop_factor_lr=.2); print([s(i) for i in range(1, 12)])",
        "scheduler multi logs": "s = lr_scheduler.MultiFactorScheduler([2, 4], .5, base_lr=1); print([s(i) for i in range(1, 8)])",
        "scheduler poly": "s = lr_scheduler.PolyScheduler(4, 1); print([s(i) for i in range(6)])",
        "context": "show(mx.cpu(), mx.gpu(1), mx.cpu_pinned(), mx.cpu_shared(2), repr(mx.cpu(3)), mx.current_context(), mx.cpu() == mx.cpu(0), [mx.cpu(0), mx.cpu(1)], str(mx.Context('cpu', 2)))",
        "ndarray": "x = nd.arange(6).reshape((2, 3)); show(x, repr(x), x[0], x[0, 1], nd.array([]), x.astype('int32'), x > 2)",
        "ndarray large": "show(nd.arange(2000).reshape((2, 1000)), nd.zeros((50, 50)), nd.array([1.5, 2e10, -3e-7]), nd.ones((1, 2, 1)))",
        "ndarray sparse": "show(nd.ones((2, 3)).tostype('csr'), nd.ones((2, 3)).tostype('row_sparse'), repr(nd.sparse.zeros('csr', (2, 2))))",
        "np array": "mx.npx.set_np(); a = mx.np.arange(6).reshape(2, 3); show(a, repr(a), a[0], a[0, 1], repr(a[0, 1]), mx.np.array(3), repr(mx.np.zeros((2, 0))), a.astype('int32'), repr(a > 2), [a[0]]); mx.npx.reset_np()",
        "np array large": "mx.npx.set_np(); show(repr(mx.np.arange(2000)), repr(mx.np.ones((3, 3), dtype='float64')), repr(mx.np.array([1, 2], dtype='int8')), repr(mx.np.array([True]))); mx.npx.reset_np()",
        "symbol": "x = sym.var('data'); show(x, repr(x), x + 1, mlp(), sym.Group([x, x + 1]), x[0], mlp().get_internals(), sym.split(x, num_outputs=2, name='s'), sym.split(x, num_outputs=2, name='s')[1], sym.relu(x, name='r'))",
        "symbol np": "mx.npx.set_np(); x = sym.var('data').as_np_ndarray(); show(x, repr(x), x + 1, mx.sym.np.exp(x), mx.sym.np.split(x, 2), sym.var('data')); mx.npx.reset_np()",
        "symbol np var": "mx.npx.set_np(); x = mx.sym.var('data'); print(type(x).__name__, x); y = mx.sym.np.sum(x.as_np_ndarray()); print(type(y).__name__, y); mx.npx.reset_np()",
        "symbol debug_str": "print(mlp().debug_str())",
        "symbol attr": "x = sym.var('a', attr={'mood': 'angry'}, lr_mult=2, shape=(1, 2)); show(sorted(x.list_attr().items()), sorted(x.attr_dict()['a'].items()), sorted(mlp().attr_dict())); print(x.tojson().count('nodes'))",
        "symbol listing": "s = mlp(); show(s.list_arguments(), s.list_outputs(), s.list_auxiliary_states(), s.name, s.get_internals().list_outputs(), s.infer_shape(data=(2, 3)), s.infer_type(data='float32'))",
        "executor": "e = mlp().simple_bind(mx.cpu(), data=(2, 3)); print(e.debug_str().split(chr(10))[0]); print(sorted(e.arg_dict), e.outputs[0].shape, e.output_dict.keys())",
        "parameter": "p = gluon.Parameter('w', shape=(2, 0)); show(p, repr(p), gluon.Parameter('w'), gluon.Parameter('w', shape=(2, 3), dtype='float16', grad_req='null'), gluon.Constant('c', [[1, 2]]))",
        "parameter dict": "n = dense(2, 3); show(n.collect_params(), repr(n.collect_params()), n.params, gluon.ParameterDict('p_'), gluon.ParameterDict()); d = gluon.ParameterDict('a_'); d.get('w', shape=(1,)); show(d)",
        "parameter dict select": "n = dense(2, 3); n.initialize(); n(nd.ones((1, 4))); show(n.collect_params(), n.collect_params('.*weight'))",
        "trainer": "n = dense(2); n.initialize(); t = gluon.Trainer(n.collect_params(), 'sgd', {'learning_rate': .1}); print(repr(t)[:40]); show(t.learning_rate, type(t.optimizer).__name__)",
        "block names": "n = dense(2, 3); show(n.name, n.prefix, [c.name for c in n._children.values()], list(n.collect_params()), n[0].weight.name, n[0].weight)",
        "block scope": "n = nn.HybridSequential(prefix='model_')\nwith n.name_scope():\n    n.add(nn.Dense(2), nn.Dense(3), nn.BatchNorm())\nshow(n, list(n.collect_params()), n.name)",
        "block own": "class Net(gluon.HybridBlock):\n    def __init__(self, **kw):\n        super().__init__(**kw)\n        with self.name_scope():\n            self.a = nn.Dense(2); self.b = nn.HybridSequential(); self.b.add(nn.Dropout(.1)); self.w = self.params.get('w', shape=(2, 3))\nn = Net(); show(n, n.collect_params(), repr(n))",
        "symbol block": "b = gluon.SymbolBlock(mlp(), [sym.var('data'), sym.var('softmax_label')]); show(b, list(b.collect_params()))",
        "hybrid after call": "n = nn.Dense(2); n.initialize(); n.hybridize(); n(nd.ones((1, 3))); show(n, n.collect_params())",
        "iterators": "i = data(); show(i.provide_data, i.provide_label, i.batch_size, next(i)); show(io.DataDesc('data', (2, 3)), repr(io.DataDesc('x', (1,), 'float16', 'N')), io.DataBatch([nd.ones((2, 3))], [nd.ones(2)]), io.DataBatch([nd.ones((2, 3))]))",
        "iterators resize": "i = io.ResizeIter(data(), 2); show(i.provide_data, len(list(i))); p = io.PrefetchingIter(data()); show(p.provide_data, next(p))",
        "recordio": "r = mx.recordio.IRHeader(0, 1.0, 2, 3); show(r, mx.recordio.unpack(mx.recordio.pack(r, b'abc')))",
        "datasets": "d = gluon.data.ArrayDataset([1, 2, 3], [4, 5, 6]); show(d[0], len(d)); show(list(gluon.data.BatchSampler(gluon.data.SequentialSampler(5), 2, 'keep')))",
        "kvstore": "k = mx.kv.create('local'); show(k.type, k.rank, k.num_workers, repr(k)[:30])",
        "print_summary": "mx.viz.print_summary(mlp(), shape={'data': (2, 3)})",
        "print_summary alone": "mx.viz.print_summary(mlp())",
        "block summary": "n = dense(2, 3); n.initialize(); n.summary(nd.ones((1, 4)))",
        "block summary conv": "n = nn.HybridSequential(); n.add(nn.Conv2D(2, 3), nn.BatchNorm(), nn.Activation('relu'), nn.Flatten(), nn.Dense(2)); n.initialize(); n.summary(nd.ones((1, 1, 5, 5)))",
        "block summary shared": "a = nn.Dense(4, in_units=4); b = nn.Dense(4, in_units=4, params=a.params); n = nn.Sequential(); n.add(a, b); n.initialize(); n.summary(nd.ones((1, 4)))",
        "block summary lstm": "n = rnn.LSTM(3); n.initialize(); n.summary(nd.ones((2, 1, 4)))",
        "attr scope": "\nwith mx.AttrScope(ctx_group='dev1'):\n    x = sym.var('x')\nshow(x.attr('ctx_group'), x.list_attr())",
        "name prefix": "\nwith mx.name.Prefix('net_'):\n    x = sym.FullyConnected(sym.var('data'), num_hidden=2)\nshow(x, x.list_arguments())",
        "gradient repr": "x = nd.ones((2,)); x.attach_grad(); show(x.grad)\nwith autograd.record():\n    y = (x * 2).sum()\ny.backward(); show(x.grad, y)",
        "bucketing": "m = mx.mod.BucketingModule(lambda k: (mlp(), ['data'], ['softmax_label']), 10); print(type(m).__name__)",
        "rnn legacy": "c = mx.rnn.LSTMCell(3, prefix='l_'); show(c.state_info, c.unroll(2, sym.var('data'))[0], repr(c)[:20])",
    }
)

# -- what is logged -------------------------------------------------------------------------

PROGRAMS.update(
    {
        "fit": "fit()",
        "fit eval": "fit(eval_data=data(), eval_metric=['acc', 'ce'])",
        "fit speedometer": "fit(batch_end_callback=callback.Speedometer(4, 2))",
        "fit speedometer no reset": "fit(batch_end_callback=callback.Speedometer(4, 1, auto_reset=False))",
        "fit epoch callbacks": "fit(eval_data=data(), epoch_end_callback=lambda *a: logging.info('epoch %s', a[0]), eval_end_callback=callback.LogValidationMetricsCallback())",
        "fit progress": "fit(batch_end_callback=callback.ProgressBar(3))",
        "fit train metric": "fit(batch_end_callback=callback.log_train_metric(2))",
        "fit monitor": "fit(monitor=mx.mon.Monitor(1, lambda x: nd.array([1.0]), pattern='fc.*', sort=True), num_epoch=1)",
        "fit checkpoint": "fit(epoch_end_callback=callback.do_checkpoint('out', 1))",
        "module checkpoint": "m = fit(num_epoch=1); m.save_checkpoint('model', 3, True)",
        "fit score": "m = fit(num_epoch=1); print(m.score(data(), 'acc', score_end_callback=lambda p: logging.info('%s', p.eval_metric.get())))",
        "feed forward": "m = mx.model.FeedForward(mlp(), num_epoch=2, initializer=init.Zero()); m.fit(data())",
        "feed forward eval": "m = mx.model.FeedForward(mlp(), num_epoch=1, initializer=init.Zero(), learning_rate=.1); m.fit(data(), eval_data=data(), batch_end_callback=callback.Speedometer(4, 1))",
        "feed forward create": "m = mx.model.FeedForward.create(mlp(), data(), num_epoch=1, initializer=init.Zero()); m.save('ff', 1); print(type(mx.model.FeedForward.load('ff', 1)).__name__)",
        "speedometer": "s = callback.Speedometer(4, 2)\nfor i in range(5): s(param(nbatch=i))",
        "speedometer no metric": "s = callback.Speedometer(4, 1)\nfor i in range(3): s(mx.model.BatchEndParam(0, i, None, None))",
        "speedometer metrics": "s = callback.Speedometer(4, 1, auto_reset=False)\nfor i in range(3): s(param(nbatch=i, values=(('accuracy', .25), ('mse', 1.5))))",
        "log_train_metric": "f = callback.log_train_metric(2, auto_reset=True)\nfor i in range(5): f(param(nbatch=i))",
        "validation metrics": "callback.LogValidationMetricsCallback()(param()); callback.LogValidationMetricsCallback()(mx.model.BatchEndParam(0, 0, None, None))",
        "progress bar": "b = callback.ProgressBar(4, 20)\nfor i in range(5): b(param(nbatch=i))",
        "monitor": "e = mlp().simple_bind(mx.cpu(), data=(2, 3)); m = mx.mon.Monitor(1, lambda x: nd.array([1.5]), '.*', True); m.install(e); m.tic(); e.forward(); m.toc_print()",
        "monitor lists": "e = mlp().simple_bind(mx.cpu(), data=(2, 3)); m = mx.mon.Monitor(2, lambda x: [nd.array([1.5]), nd.array([2])], 'fc1.*'); m.install(e)\nfor i in range(3):\n    m.tic(); e.forward(); print([(n, k) for n, k, v in m.toc()])",
        "install monitor": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(init.One()); mon = mx.mon.Monitor(1); m.install_monitor(mon); mon.tic(); m.forward(io.DataBatch([nd.ones((2, 3))], [nd.zeros(2)])); mon.toc_print()",
        "estimator": "estimator(train_metrics=metric.Accuracy()).fit(batches(), epochs=2)",
        "estimator validation": "estimator(train_metrics=metric.Accuracy(), val_metrics=metric.Accuracy()).fit(batches(), batches(), epochs=1)",
        "estimator batches": "estimator(train_metrics=metric.Accuracy()).fit(batches(), batches=1)",
        "estimator interval": "from mxnet.gluon.contrib.estimator import LoggingHandler\nestimator(train_metrics=metric.Accuracy()).fit(batches(), epochs=1, event_handlers=[LoggingHandler(log_interval=1)])",
        "estimator early": "from mxnet.gluon.contrib.estimator import EarlyStoppingHandler\nm = metric.Accuracy(); e = estimator(train_metrics=m); e.fit(batches(), epochs=3, event_handlers=[EarlyStoppingHandler(e.train_metrics[0], patience=1, mode='max')])",
        "estimator checkpoint": "from mxnet.gluon.contrib.estimator import CheckpointHandler\nestimator(train_metrics=metric.Accuracy()).fit(batches(), epochs=2, event_handlers=[CheckpointHandler('folder', 'net', epoch_period=1, verbose=1)])",
        "estimator evaluate": "e = estimator(val_metrics=metric.Accuracy()); e.evaluate(batches())",
        "get_logger": "l = mx.log.get_logger('some', level=mx.log.INFO); l.info('hello %d', 3); print(l.level)",
        "initializer verbose": "mx.mod.Module(mlp())\nm = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(init.Xavier(magnitude=2).set_verbosity(True) or init.Xavier())",
        "initializer verbose gluon": "n = nn.Dense(2, in_units=2); n.initialize(init.Xavier(), verbose=True)",
        "load epoch": "m = fit(num_epoch=1); mx.model.save_checkpoint('ck', 7, m.symbol, *m.get_params()); print([type(x).__name__ for x in mx.model.load_checkpoint('ck', 7)])",
        "kvstore init": "m = mx.mod.Module(mlp(), context=[mx.cpu(0), mx.cpu(1)]); m.fit(data(), num_epoch=1, kvstore='device', initializer=init.Zero())",
        "sequential module": "s = mx.mod.SequentialModule(); s.add(mx.mod.Module(mlp()), take_labels=True); s.fit(data(), num_epoch=1, initializer=init.Zero())",
        "bucketing fit": "m = mx.mod.BucketingModule(lambda k: (mlp(), ['data'], ['softmax_label']), 3)\nit = data(); it.default_bucket_key = 3\nm.bind(it.provide_data, it.provide_label); m.init_params(init.Zero()); m.init_optimizer(); print(m.binded, m.params_initialized, m.optimizer_initialized)",
    }
)

# -- what is warned of ----------------------------------------------------------------------

PROGRAMS.update(
    {
        "warn rescale": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(); m.init_optimizer(optimizer=opt.SGD(rescale_grad=1.0))",
        "warn twice": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(); m.init_params(); m.init_optimizer(); m.init_optimizer()",
        "warn label": "m = mx.mod.Module(mlp(), label_names=['other_label'])",
        "warn data names": "m = mx.mod.Module(mlp(), data_names=['x'])",
        "warn init again": "n = nn.Dense(2, in_units=2); n.initialize(); n.initialize()",
        "warn stale": "n = dense(2, 3); n.initialize(); t = gluon.Trainer(n.collect_params(), 'sgd'); n(nd.ones((1, 2)))\nwith autograd.record():\n    y = n[0](nd.ones((1, 2)))\ny.backward(); t.step(1)",
        "warn stale ignored": "n = dense(2, 3); n.initialize(); t = gluon.Trainer(n.collect_params(), 'sgd'); n(nd.ones((1, 2)))\nwith autograd.record():\n    y = n[0](nd.ones((1, 2)))\ny.backward(); t.step(1, ignore_stale_grad=True); print('ok')",
        "warn save_params": "n = nn.Dense(2, in_units=2); n.initialize(); n.save_params('p'); n.load_params('p', mx.cpu())",
        "warn hybridize twice": "n = nn.Sequential(); n.add(nn.HybridSequential()); n.hybridize()",
        "warn sequential hybrid": "n = nn.Sequential(); n.add(nn.Dense(2), nn.Dense(3)); n.hybridize()",
        "warn unused input": "class N(gluon.HybridBlock):\n    def hybrid_forward(self, F, x, y): return x\nn = N(); n.hybridize(); n(nd.ones(1), nd.ones(1))",
        "warn infer shape": "sym.FullyConnected(sym.var('data'), num_hidden=2, name='fc').infer_shape(data=(0, 3))",
        "warn infer shape partial": "print(mlp().infer_shape())",
        "warn constant grad": "c = gluon.Constant('c', [1]); c.grad_req = 'write'; print(c.grad_req)",
        "warn attr key": "sym.var('x', __mood__='a'); sym.var('x', attr={'mood': 'b'})",
        "warn nms": "x = sym.var('x'); y = sym.var('x'); print(sym.Group([x, y]).list_arguments())",
        "warn bind unused": "e = mlp().simple_bind(mx.cpu(), data=(2, 3), foo=(1,))",
        "warn ndarrayiter": "print(len(list(io.NDArrayIter(np.zeros((5, 2)), batch_size=2, last_batch_handle='discard'))))",
        "warn optimizer name": "opt.Optimizer.register(type('SGD', (opt.Optimizer,), {})); opt.Optimizer.register(opt.SGD)",
        "warn metric register": "\n@mx.metric.register\nclass Accuracy(mx.metric.EvalMetric):\n    pass\nmx.metric.register(mx.metric.Accuracy)",
        "warn init register": "\n@mx.init.register\nclass Zero(mx.init.Initializer):\n    pass\nmx.init.register(mx.init.Zero)",
        "warn load extra": "n = nn.Dense(2, in_units=2); n.initialize(); n.save_parameters('q'); d = nn.Dense(2, in_units=2, use_bias=False); d.load_parameters('q', ignore_extra=True); print('ok')",
        "warn module load missing": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(arg_params={'fc1_weight': nd.ones((4, 3))}, allow_missing=True, initializer=init.Zero())",
        "warn crop": "mx.nd.crop(nd.ones((2, 2)), begin=(0, 0), end=(1, 1))",
        "warn seed": "mx.random.seed(3, ctx=mx.cpu()); print('ok')",
        "warn np arange": "mx.npx.set_np(); mx.npx.reset_np(); print(mx.util.is_np_array(), mx.util.is_np_shape())",
        "warn contrib autograd": "\nfrom mxnet.contrib import autograd as a\nwith a.train_section():\n    y = nd.ones(1)\nprint(a.is_training() if hasattr(a, 'is_training') else '')",
        "warn kv": "k = mx.kv.create('local'); k.init(3, nd.ones(2)); k.push(3, nd.ones(2)); o = nd.zeros(2); k.pull(3, o); print(o)",
        "warn csv": "open('d.csv', 'w').write('1,2\\n3,4\\n'); i = io.CSVIter(data_csv='d.csv', data_shape=(2,), batch_size=1); show(i.provide_data, i.provide_label, next(i).data[0])",
    }
)

# -- what people grep for -------------------------------------------------------------------
# A program that fails, and phrases of which those in MXNet's message must be in ours.

PHRASES = [
    "Error in operator",
    "Shape inconsistent",
    "Cannot find argument",
    "inconsistent",
    "has not been initialized",
    "already been initialized",
    "stale",
    "Stale",
    "not initialized because initialization was deferred",
    "Actual initialization happens during the first forward pass",
    "Please set correct shape for the parameter",
    "missing in file",
    "which is not present",
    "Invalid Input",
    "valid values are",
    "Invalid Parameter format",
    "expect",
    "Required parameter",
    "is not presented",
    "must be",
    "Cannot decide",
    "unknown",
    "not supported",
    "not implemented",
    "does not match",
    "failed loading",
    "Failed loading",
    "loading Parameter",
    "saved",
    "found in",
    "No such file",
    "Unknown",
    "not found",
    "differentiate",
    "computational graph",
    "retain_graph",
    "recorded",
    "not in list",
    "out of bound",
    "out of range",
    "index",
    "Cannot",
    "Duplicate",
    "duplicate",
    "Ambiguous",
    "unexpected keyword argument",
    "takes",
    "required",
    "set_np",
    "deferred",
    "initialize",
    "reset_ctx",
    "shape mismatch",
    "Incompatible",
    "incompatible",
    "operands",
    "broadcast",
    "The truth value",
    "scalar",
    "must have the same",
    "name is required",
    "not registered",
    "unregistered",
    "mismatch",
    "Expected",
    "grad_req",
]
FAILURES = {
    "uninitialized": "nn.Dense(2)(nd.ones((1, 2)))",
    "uninitialized data": "gluon.Parameter('w', shape=(2,)).data()",
    "deferred data": "n = nn.Dense(2); n.initialize(); n.weight.data()",
    "deferred grad": "n = nn.Dense(2); n.initialize(); n.weight.grad()",
    "null grad": "n = nn.Dense(2, in_units=2); n.initialize(); n.weight.grad_req = 'null'; n.weight.grad()",
    "other context": "n = nn.Dense(2, in_units=2); n.initialize(ctx=mx.cpu(0)); n.weight.data(mx.cpu(3))",
    "input of other size": "n = nn.Dense(2, in_units=3); n.initialize(); n(nd.ones((1, 2))).asnumpy()",
    "hybrid other size": "n = nn.Dense(2, in_units=3); n.initialize(); n.hybridize(); n(nd.ones((1, 2))).asnumpy()",
    "second shape": "n = nn.Dense(2); n.initialize(); n(nd.ones((1, 3))); n(nd.ones((1, 2))).asnumpy()",
    "dot": "nd.dot(nd.ones((2, 3)), nd.ones((2, 3))).asnumpy()",
    "add": "(nd.ones((2, 3)) + nd.ones((2, 2))).asnumpy()",
    "elemwise": "nd.elemwise_add(nd.ones((2, 3)), nd.ones((2, 2))).asnumpy()",
    "concat": "nd.concat(nd.ones((2, 3)), nd.ones((3, 2)), dim=0).asnumpy()",
    "unknown argument": "nd.relu(nd.ones(2), foo=3)",
    "unknown argument fc": "nd.FullyConnected(nd.ones((1, 2)), nd.ones((2, 2)), nd.ones(2), num_hidden=2, foo=1)",
    "unknown argument sym": "sym.FullyConnected(sym.var('x'), num_hidden=2, foo=1)",
    "bad enum": "nd.Activation(nd.ones(2), act_type='foo')",
    "bad int": "sym.FullyConnected(sym.var('x'), num_hidden='a')",
    "missing argument": "sym.FullyConnected(sym.var('x'))",
    "missing kernel": "nd.Convolution(nd.ones((1, 1, 2, 2)), nd.ones((1, 1, 1, 1)), no_bias=True)",
    "infer shape": "mlp().infer_shape(data=(2, 3), fc1_weight=(4, 4))",
    "infer type": "sym.elemwise_add(sym.var('a'), sym.var('b')).infer_type(a='float32', b='float64')",
    "bind missing": "mlp().bind(mx.cpu(), {'data': nd.ones((2, 3))})",
    "simple bind missing": "mlp().simple_bind(mx.cpu())",
    "compose": "sym.relu(sym.var('x'))(foo=sym.var('y'))",
    "duplicate": "sym.Group([sym.var('x'), sym.var('x')]).bind(mx.cpu(), {'x': nd.ones(1)})",
    "backward twice": "x = nd.ones(1); x.attach_grad()\nwith autograd.record(): y = x * x\ny.backward(); y.backward()",
    "backward unrecorded": "nd.ones(1).backward()",
    "write while recording": "x = nd.ones(2); x.attach_grad()\nwith autograd.record():\n    y = x * 2\n    y[0] = 1",
    "inplace recording": "x = nd.ones(2); x.attach_grad()\nwith autograd.record():\n    y = x * 2\n    y += 1\ny.backward()",
    "grad of unmarked": "x = nd.ones(1)\nwith autograd.record(): y = x * 2\nautograd.grad(y, [x])",
    "stale": "n = dense(2, 3); n.initialize(); n(nd.ones((1, 2))); t = gluon.Trainer(n.collect_params(), 'sgd')\nwith autograd.record(): y = n[0](nd.ones((1, 2)))\ny.backward(); t.step(1)",
    "trainer params": "gluon.Trainer([1], 'sgd')",
    "trainer optimizer": "n = nn.Dense(2, in_units=2); n.initialize(); gluon.Trainer(n.collect_params(), 'foo')",
    "trainer lr": "n = nn.Dense(2, in_units=2); n.initialize(); gluon.Trainer(n.collect_params(), 'sgd', {'foo': 3})",
    "optimizer": "opt.create('foo')",
    "initializer": "n = nn.Dense(2, in_units=2); n.initialize('foo')",
    "metric": "metric.create('foo')",
    "metric shapes": "metric.Accuracy().update([nd.ones(2)], [nd.ones(2), nd.ones(2)])",
    "metric label shape": "metric.check_label_shapes(nd.ones((2, 3)), nd.ones(3), shape=True)",
    "load missing file": "nn.Dense(2).load_parameters('no.params')",
    "nd load missing": "nd.load('no.params')",
    "sym load missing": "sym.load('no.json')",
    "load missing parameter": "n = nn.Dense(2, in_units=2, use_bias=False); n.initialize(); n.save_parameters('f'); nn.Dense(2, in_units=2).load_parameters('f')",
    "load extra parameter": "n = nn.Dense(2, in_units=2); n.initialize(); n.save_parameters('f'); nn.Dense(2, in_units=2, use_bias=False).load_parameters('f')",
    "load other shape": "n = nn.Dense(2, in_units=2); n.initialize(); n.save_parameters('f'); nn.Dense(2, in_units=3).load_parameters('f')",
    "load dict prefix": "n = nn.Dense(2, in_units=2); n.initialize(); n.collect_params().save('g'); nn.Dense(3, in_units=2).collect_params().load('g', mx.cpu())",
    "save uninitialized": "nn.Dense(2, in_units=2).save_parameters('h')",
    "set_data shape": "p = gluon.Parameter('w', shape=(2,)); p.initialize(); p.set_data(nd.ones(3))",
    "parameter shape": "p = gluon.Parameter('w', shape=(2,)); p.shape = (3,)",
    "parameter no shape": "gluon.Parameter('w').initialize()",
    "params get other": "d = gluon.ParameterDict('a_'); d.get('w', shape=(1,)); d.get('w', shape=(2,))",
    "params update": "d = gluon.ParameterDict('a_'); d.get('w'); e = gluon.ParameterDict('a_'); e.get('w'); d.update(e)",
    "module not bound": "mx.mod.Module(mlp()).forward(io.DataBatch([nd.ones((2, 3))]))",
    "module not init": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.forward(io.DataBatch([nd.ones((2, 3))]))",
    "module no optimizer": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(); m.update()",
    "module names": "m = mx.mod.Module(mlp(), data_names=['x'])",
    "module bind names": "m = mx.mod.Module(mlp()); m.bind([('x', (2, 3))], [('softmax_label', (2,))])",
    "module set missing": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(None, {'fc1_weight': nd.ones((4, 3)), 'fc1_bias': nd.ones(4), 'fc2_weight': nd.ones((2, 4))}, {})",
    "module fixed": "mx.mod.Module(mlp(), fixed_param_names=['foo'])",
    "module set extra": "m = mx.mod.Module(mlp()); m.bind([('data', (2, 3))], [('softmax_label', (2,))]); m.init_params(); m.set_params({'foo': nd.ones(1)}, {}, allow_missing=True)",
    "fit without epochs": "mx.mod.Module(mlp()).fit(data())",
    "kv twice": "k = mx.kv.create('local'); k.init(1, nd.ones(1)); k.init(1, nd.ones(1))",
    "kv unknown": "mx.kv.create('foo')",
    "kv pull": "mx.kv.create('local').pull(3, nd.ones(1))",
    "reshape": "nd.ones((2, 3)).reshape((4, 2)).asnumpy()",
    "reshape one": "nd.ones((2, 3)).reshape((-1, -1))",
    "index": "nd.ones((2, 3))[5]",
    "index axis": "nd.ones((2, 3))[0, 0, 0]",
    "index kind": "nd.ones((2, 3))['a']",
    "set shape": "x = nd.ones((2, 3)); x[:] = nd.ones((3, 3))",
    "asscalar": "nd.ones((2, 3)).asscalar()",
    "truth": "bool(nd.ones((2, 3)))",
    "axis": "nd.sum(nd.ones((2, 3)), axis=5).asnumpy()",
    "expand_dims": "nd.expand_dims(nd.ones(2), axis=5).asnumpy()",
    "split": "nd.split(nd.ones((3, 2)), num_outputs=2, axis=0)",
    "pick dtype": "nd.ones(2, dtype='foo')",
    "context": "nd.ones(2, ctx=mx.Context('foo', 0))",
    "np mixed": "mx.npx.set_np()\ntry:\n    mx.np.ones(2) + nd.ones(2)\nfinally:\n    mx.npx.reset_np()",
    "np truth": "bool(mx.np.ones(3))",
    "np broadcast": "(mx.np.ones((2, 3)) + mx.np.ones((2, 2))).asnumpy()",
    "custom": "nd.Custom(nd.ones(1), op_type='nope')",
    "conv channels": "nd.Convolution(nd.ones((1, 2, 4, 4)), nd.ones((3, 3, 2, 2)), nd.ones(3), kernel=(2, 2), num_filter=3).asnumpy()",
    "batch norm": "nd.BatchNorm(nd.ones((2, 3)), nd.ones(2), nd.ones(2), nd.ones(2), nd.ones(2)).asnumpy()",
    "embedding": "nd.Embedding(nd.ones(2), nd.ones((3, 2)), input_dim=4, output_dim=2).asnumpy()",
    "slice": "nd.slice_axis(nd.ones((2, 3)), axis=1, begin=0, end=9).asnumpy()",
    "hybrid without": "class N(gluon.HybridBlock):\n    pass\nn = N(); n(nd.ones(1))",
    "hybrid child": "n = nn.HybridSequential(); n.add(nn.Lambda(lambda x: x))",
    "block attribute": "n = nn.Dense(2); n.weight = 3",
    "export early": "n = nn.Dense(2); n.hybridize(); n.export('x')",
    "optimize_for": "n = nn.Dense(2, in_units=2); n.initialize(); n.hybridize(backend='foo'); n(nd.ones((1, 2)))",
    "split_data": "gluon.utils.split_data(nd.ones((3, 2)), 2)",
    "rnn state": "rnn.LSTM(3)(nd.ones((2, 3)))",
    "rnn layout": "rnn.LSTM(3, layout='foo')",
    "cell unroll": "c = rnn.RNNCell(3); c.initialize(); c.unroll(3, nd.ones((1, 2, 3)))",
    "loss shapes": "loss.L2Loss()(nd.ones((2, 3)), nd.ones((2, 4))).asnumpy()",
    "zoo name": "gluon.model_zoo.vision.get_model('foo')",
    "dataset lengths": "gluon.data.ArrayDataset([1, 2], [1])",
    "loader batch": "gluon.data.DataLoader([1, 2])",
    "iter shapes": "io.NDArrayIter(np.zeros((3, 2)), np.zeros(2), 1)",
    "iter batch": "io.NDArrayIter(np.zeros((3, 2)), np.zeros(3), 5)",
    "record": "mx.recordio.MXRecordIO('no.rec', 'r')",
    "image": "mx.image.imread('no.jpg')",
    "monitor": "mx.mon.Monitor('a').tic()",
    "symbol index": "mlp()['foo']",
    "symbol json": "sym.load_json('{}')",
    "symbol eval": "mlp().eval(data=nd.ones((2, 3)))",
    "executor forward": "e = mlp().simple_bind(mx.cpu(), data=(2, 3)); e.forward(foo=nd.ones(1))",
    "executor copy": "e = mlp().simple_bind(mx.cpu(), data=(2, 3)); e.copy_params_from({'foo': nd.ones(1)})",
    "executor shape": "e = mlp().simple_bind(mx.cpu(), data=(2, 3)); e.copy_params_from({'fc1_weight': nd.ones((1, 1))})",
    "schedulers": "lr_scheduler.FactorScheduler(0)",
    "schedulers multi": "lr_scheduler.MultiFactorScheduler([3, 2])",
    "attribute": "sym.var('x', attr={'a': 3})",
    "attr scope": "mx.AttrScope(a=3)",
    "var name": "sym.var(3)",
    "grad_req": "gluon.Parameter('w', grad_req='foo')",
    "attach": "nd.ones(1).attach_grad('foo')",
}
PROGRAMS.update({f"error {key}": code for key, code in FAILURES.items()})
