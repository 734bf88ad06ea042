"""Errors and warnings for user mistakes name the cause and the fix."""

import warnings

import pytest

import mxnet as mx
from mxnet import gluon, nd
from mxnet.gluon import nn, rnn

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("is_hybrid", [False, True])
@pytest.mark.parametrize("kind", [rnn.LSTM, rnn.GRU, rnn.RNN])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"bidirectional": True}])
def test_recurrent_layer_error_names_the_expected_input_size(kind, options, is_hybrid):
    layer = kind(5, input_size=4, **options)
    layer.initialize()
    if is_hybrid:
        layer.hybridize()
    with pytest.raises(mx.MXNetError, match=r"has 6 features .* are for 4: .* input_size=6"):
        layer(nd.ones((3, 2, 6)))


def test_rnn_parameters_for_a_different_state_size_raise():
    packed = nd.ones((221,))
    with pytest.raises(mx.MXNetError, match="another state_size"):
        nd.RNN(nd.ones((3, 2, 4)), packed, nd.ones((1, 2, 5)), nd.ones((1, 2, 5)),
               state_size=5, num_layers=1, mode="lstm")  # fmt: skip


def test_bind_error_names_all_missing_arrays_and_shapes():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    with pytest.raises(ValueError, match=r"fc_weight \(3, 7\), fc_bias \(3,\)\. simple_bind"):
        net.bind(mx.cpu(), {"data": nd.ones((2, 7))})


class Broken(gluon.data.Dataset):
    def __init__(self, error):
        self._error = error

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index == 7:
            raise self._error
        return nd.ones((1,))


@pytest.mark.parametrize(
    "options", [{}, {"num_workers": 1}, {"num_workers": 1, "thread_pool": True}]
)
@pytest.mark.parametrize("error", [ValueError("bad image"), mx.MXNetError("bad image")])
def test_dataset_error_names_the_sample(error, options):
    with pytest.raises(type(error), match="bad image") as raised:
        for _ in gluon.data.DataLoader(Broken(error), 2, **options):
            pass
    notes = [str(raised.value), *getattr(raised.value, "__notes__", ["In sample 7 of Broken."])]
    assert "In sample 7 of Broken." in "\n".join(notes)


@pytest.mark.filterwarnings("error")  # the settings ignore these warnings elsewhere
@pytest.mark.parametrize("is_hybrid", [False, True])
@pytest.mark.parametrize("labels", [[1, 3], [-1, 0]])
def test_out_of_range_labels_warn_once(labels, is_hybrid):
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    if is_hybrid:
        loss.hybridize()
    with pytest.warns(
        UserWarning, match=r"SoftmaxCrossEntropyLoss: the labels go from .* 3 classes"
    ):
        loss(nd.ones((2, 3)), nd.array(labels))
    loss(nd.ones((2, 3)), nd.array(labels))


@pytest.mark.filterwarnings("error")  # the settings ignore these warnings elsewhere
def test_valid_labels_masked_labels_and_probabilities_do_not_warn():
    loss = gluon.loss.SoftmaxCrossEntropyLoss
    loss()(nd.ones((2, 3)), nd.array([0, 2]))
    loss()(nd.ones((2, 3)), nd.array([0, -1]), nd.array([[1], [0]]))
    loss(sparse_label=False)(nd.ones((2, 3)), nd.array([[9, 0, 0], [0, -1, 0]]))
    loss(axis=1)(nd.ones((2, 3, 4)), nd.full((2, 4), 2))


def test_out_of_range_embedding_indices_warn_and_are_clipped():
    layer = nn.Embedding(3, 2)
    layer.initialize()
    layer(nd.array([-1, 2]))  # padding
    with pytest.warns(UserWarning, match="Embedding: the indices go from 0 to 5, but there are 3"):
        out = layer(nd.array([0, 5]))
    assert (out[1] == layer.weight.data()[2]).asnumpy().all()


def module_with_labels(labels, classes=3, **attrs):
    """Train a module on a batch with these labels."""
    data = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=classes)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(data, name="softmax", **attrs))
    batch = mx.io.DataBatch([nd.ones((len(labels), 4))], [nd.array(labels)])
    module.bind([("data", (len(labels), 4))], [("softmax_label", (len(labels),))])
    module.init_params()
    module.forward(batch)
    return module, batch


def test_module_warns_of_out_of_range_labels():
    expected = "SoftmaxOutput 'softmax': the labels go from 1 to 7, but there are 3 classes"
    with pytest.warns(UserWarning, match=expected):
        module, batch = module_with_labels([1, 7])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.forward(batch)  # warns only once
        module_with_labels([0, 2])
        module_with_labels([0, -1])  # padding
        module_with_labels([0, 255], use_ignore=True, ignore_label=255)
        module, batch = module_with_labels([0, 2])
        batch.label = [nd.array([9, 9])]
        module.forward(batch, is_train=False)


def test_module_warns_of_out_of_range_embedding_indices():
    words = mx.sym.Embedding(mx.sym.var("data"), input_dim=5, output_dim=2, name="words")
    net = mx.sym.SoftmaxOutput(mx.sym.flatten(words), name="softmax")
    module = mx.mod.Module(net)
    module.bind([("data", (2, 3))], [("softmax_label", (2,))])
    module.init_params()
    good, bad = (mx.io.DataBatch([nd.full((2, 3), n)], [nd.zeros(2)]) for n in (4, 5))
    module.forward(good)
    with pytest.warns(UserWarning, match="Embedding 'words': the indices go from 5 to 5, but .* 5"):
        module.forward(bad)


@pytest.mark.filterwarnings("error")  # the settings ignore these warnings elsewhere
def test_only_labels_of_the_first_batches_are_checked(monkeypatch):
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(2):
        loss(nd.ones((2, 3)), nd.array([0, 1]))
    loss(nd.ones((2, 3)), nd.array([0, 7]))
    monkeypatch.setenv("MXNET_CHECK_LABELS", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gluon.loss.SoftmaxCrossEntropyLoss()(nd.ones((2, 3)), nd.array([0, 7]))
