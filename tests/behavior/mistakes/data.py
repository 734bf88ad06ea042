"""Invalid calls with metrics, data and files. Each function makes one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mxnet as mx
from mxnet import gluon, nd
from mxnet.gluon import nn
from mxnet.gluon.data import ArrayDataset, DataLoader

# -- metrics ---------------------------------------------------------------------------------------


def unknown_metric():
    mx.metric.create("acuracy")


def metric_of_a_number():
    mx.metric.create(5)


def predictions_of_another_batch():
    mx.metric.Accuracy().update(nd.array([0, 1]), nd.ones((3, 2)))


def more_labels_than_predictions():
    mx.metric.Accuracy().update([nd.array([0]), nd.array([1])], [nd.ones((1, 2))])


def f1_of_three_classes():
    mx.metric.F1().update([nd.array([0, 1, 2])], [nd.ones((3, 3))])


def top_one_of_top_k():
    mx.metric.TopKAccuracy(top_k=1)


def metric_function_that_returns_text():
    metric = mx.metric.np(lambda label, pred: "good")
    metric.update([nd.ones((2,))], [nd.ones((2,))])


def loss_metric_without_a_loss():
    mx.metric.MSE().update([nd.ones((2, 3))], [nd.ones((5, 3))])


# -- data ------------------------------------------------------------------------------------------


def loader_without_batch_size():
    DataLoader(ArrayDataset(nd.ones((4, 2))))


def loader_with_two_orders():
    data = ArrayDataset(nd.ones((4, 2)))
    DataLoader(data, 2, shuffle=True, sampler=gluon.data.SequentialSampler(4))


def loader_with_an_unknown_last_batch():
    list(DataLoader(ArrayDataset(nd.ones((5, 2))), 2, last_batch="drop"))


def columns_of_two_lengths():
    ArrayDataset(nd.ones((4, 2)), nd.ones((3,)))


def samples_of_two_lengths():
    data = gluon.data.SimpleDataset([nd.ones((2,)), nd.ones((3,))])
    next(iter(DataLoader(data, 2)))


def sample_beyond_the_end():
    ArrayDataset(nd.ones((4, 2)))[4]


def transform_that_fails():
    data = ArrayDataset(nd.ones((4, 2))).transform(lambda x: x.reshape((7,)))
    next(iter(DataLoader(data, 2)))


def transform_with_another_signature():
    data = ArrayDataset(nd.ones((4, 2)), nd.ones((4,))).transform(lambda x: x)
    next(iter(DataLoader(data, 2)))


def iterator_with_too_few_labels():
    mx.io.NDArrayIter(np.ones((4, 2)), np.ones(3), batch_size=2)


def iterator_without_data():
    mx.io.NDArrayIter(None, batch_size=2)


def missing_records():
    mx.io.ImageRecordIter(path_imgrec="train.rec", data_shape=(3, 8, 8), batch_size=2)


def records_without_a_shape():
    mx.io.ImageRecordIter(path_imgrec="train.rec", batch_size=2)


def missing_csv_file():
    mx.io.CSVIter(data_csv="train.csv", data_shape=(3,), batch_size=2)


def table_of_another_width():
    Path("train.csv").write_text("1,2,3\n4,5,6\n")
    mx.io.CSVIter(data_csv="train.csv", data_shape=(2,), batch_size=1).next()


def missing_folder_of_images():
    gluon.data.vision.ImageFolderDataset("pictures")


def missing_image_file():
    mx.image.imread("cat.jpg")


def file_that_is_not_an_image():
    mx.image.imdecode(b"not a picture")


# -- files -----------------------------------------------------------------------------------------


def saved():
    net = nn.Dense(3, in_units=4, prefix="dense_")
    net.initialize(mx.init.One())
    net.save_parameters("net.params")


def missing_parameter_file():
    nn.Dense(3).load_parameters("net.params")


def parameters_of_another_shape():
    saved()
    nn.Dense(3, in_units=5, prefix="dense_").load_parameters("net.params")


def parameters_of_another_network():
    saved()
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(3, in_units=4, prefix="dense_"))
    net.load_parameters("net.params")


def parameters_cut_short():
    saved()
    path = Path("net.params")
    path.write_bytes(path.read_bytes()[:-20])
    nn.Dense(3, in_units=4).load_parameters("net.params")


def parameters_that_are_text():
    Path("net.params").write_text("hello, this is not a file of parameters")
    nd.load("net.params")


def save_into_a_missing_folder():
    nd.save("nowhere/x.nd", nd.ones((2,)))


def save_of_numpy():
    nd.save("x.nd", {"x": np.ones((2,))})


def checkpoint_of_an_absent_epoch():
    mx.model.load_checkpoint("model", 7)


def missing_symbol_file():
    mx.sym.load("model-symbol.json")


def symbol_that_is_not_json():
    Path("model-symbol.json").write_text("not json")
    mx.sym.load("model-symbol.json")


def symbol_with_an_unknown_operator():
    node = '{"op": "Convolutionn", "name": "c", "inputs": []}'
    mx.sym.load_json(f'{{"nodes": [{node}], "arg_nodes": [], "heads": [[0, 0, 0]]}}')


def imports_without_parameters():
    mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc").save("net-symbol.json")
    net = gluon.SymbolBlock.imports("net-symbol.json", ["data"])
    net(nd.ones((1, 3)))


def missing_record_file():
    mx.recordio.MXRecordIO("train.rec", "r")


def file_that_is_not_a_record_file():
    Path("train.rec").write_bytes(b"this is not a record file at all")
    mx.recordio.MXRecordIO("train.rec", "r").read()


def missing_record():
    with mx.recordio.MXIndexedRecordIO("train.idx", "train.rec", "w") as file:
        file.write_idx(0, b"first")
    mx.recordio.MXIndexedRecordIO("train.idx", "train.rec", "r").read_idx(5)


def training_state_of_another_network():
    net = nn.Dense(3, in_units=4, prefix="dense_")
    net.initialize()
    mx.checkpoint.save("states", 1, net=net)
    other = nn.Dense(2, in_units=4, prefix="dense_")
    other.initialize()
    mx.checkpoint.load("states", net=other)


def training_state_of_a_plain_loader():
    data = DataLoader(ArrayDataset(nd.ones((4, 2))), 2)
    mx.checkpoint.save("states", 1, data=data)
