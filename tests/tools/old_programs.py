"""Programs in the style of 2016 to 2020. Lines that use removed names end in ``# old``."""

PROGRAMS = {
    "module_training": """
import mxnet as mx
import numpy as np

data = np.random.rand(20, 4).astype(np.float)  # old
label = (data.sum(1) > 2).astype(np.int)  # old
train = mx.io.NDArrayIter(data.astype('float32'), label.astype('float32'), batch_size=5)
net = mx.sym.Variable('data')
net = mx.sym.FullyConnected(net, num_hidden=2, name='fc')
net = mx.sym.SoftmaxOutput(net, name='softmax')
mod = mx.mod.Module(net)
mod.fit(train, num_epoch=1, optimizer_params={'learning_rate': 0.1})
args, _ = mod.get_params()
print('parameters', sum(np.product(v.shape) for v in args.values()))  # old
""",
    "gluon_loop": """
import time
import collections
import mxnet as mx
from mxnet import gluon, nd, autograd
import numpy as np

def as_list(x):
    return list(x) if isinstance(x, collections.Iterable) else [x]  # old

net = gluon.nn.Dense(1)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': .01})
tic = time.clock()  # old
for batch in as_list([nd.ones((2, 3))]):
    with autograd.record():
        loss = (net(batch) ** 2).mean()
    loss.backward()
    trainer.step(2)
print('loss', np.asscalar(loss.asnumpy()) >= 0, time.clock() >= tic)  # old
""",
    "thumbnails": """
from PIL import Image
import numpy as np

im = Image.fromarray(np.zeros((8, 8, 3), np.uint8))
small = im.resize((4, 4), Image.ANTIALIAS)  # old
pixels = np.asarray(small, dtype=np.object)  # old
print(pixels.shape)
""",
    "configuration": """
import ConfigParser  # old
import cPickle as pickle  # old
from StringIO import StringIO  # old

parser = ConfigParser.ConfigParser()
parser.read_string(u'[net]\\nlayers = 3\\n')
text = pickle.dumps(parser.getint('net', 'layers'))
print(pickle.loads(text), StringIO('x').read())
""",
    "vocabulary": """
import collections
from itertools import izip  # old

class Vocabulary(collections.Mapping):  # old
    def __init__(self, words):
        self._index = {w: i for w, i in izip(words, xrange(len(words)))}  # old
    def __getitem__(self, word):
        assert isinstance(word, basestring)  # old
        return self._index[word]
    def __iter__(self):
        return iter(self._index)
    def __len__(self):
        return len(self._index)

def total(numbers):
    return reduce(lambda a, b: a + b, numbers, long(0))  # old

vocabulary = Vocabulary([unicode('a'), u'b'])  # old
print(vocabulary['b'], total(vocabulary[w] for w in vocabulary))
""",
    "arguments": """
import argparse
import inspect
import string
import sys

def layer(data, units=10):
    return data

print(inspect.getargspec(layer).args)  # old since 3.11
print(string.letters[:3], sys.maxint > 5)  # old
parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=1)
print(parser.parse_args().epochs)
if parser.parse_args().epochs > 100:
    print(string.uppercase)  # old
""",
    "pictures": """
import numpy as np
import scipy
from scipy import signal
import scipy.misc

x = scipy.array([1., 2., 3.])  # old
print(scipy.misc.logsumexp(x) > 3)  # old
print(scipy.misc.imresize(np.zeros((4, 4), np.uint8), (2, 2)).shape)  # old
print(signal.hann(3)[1])  # old
""",
    "splitting": """
from sklearn.cross_validation import train_test_split  # old
import numpy as np

a, b = train_test_split(np.arange(10), test_size=0.2)
print(len(a), len(b), np.product(a.shape))  # old
""",
    "anchors": """
import numpy as np
from numpy import product, Inf  # old

scores = np.array([1, -Inf], dtype=np.float_)  # old
boxes = np.vstack([scores, scores])
best = np.where(np.alltrue(boxes == boxes, axis=0))[0]  # old
print(product(boxes.shape), best.tolist(), np.NaN != np.NaN)  # old
print(np.cumproduct([1, 2, 3]).tolist(), np.sometrue([0, 1]))  # old
""",
    "prefetching": """
import Queue  # old
import threading

results = Queue.Queue()
worker = threading.Thread(target=lambda: results.put(1))
worker.start()
worker.join()
print(results.get(timeout=10), worker.isAlive())  # old
""",
}

GONE_IN_312 = """
import imp  # old
from distutils.version import LooseVersion  # old
from distutils.util import strtobool  # old
import os

print(LooseVersion('1.10.1') > LooseVersion('1.9'), strtobool('yes'))
helper = imp.load_source('helper', os.path.join(os.path.dirname(__file__), 'helper.py'))
print(helper.VALUE)
"""

PYTHON_2 = """\
import mxnet as mx
print 'epoch', 1
try:
    raise ValueError, 'x'
except ValueError, e:
    print >> out, e
"""
