"""Networks built by MXNet 1.9.1 and kept as its own files: `NAME-symbol.json`, parameters, answers.

Each function returns (symbol, input values). Parameters are filled by a formula from their names,
so that no large files are needed.
"""

import zlib

import numpy as np


def filling(name, shape):
    """Return a parameter's values: small, different for each name, the same everywhere."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    if name.endswith(("gamma", "moving_var", "running_var")):
        return rng.uniform(0.5, 1.5, shape).astype("float32")
    scale = (
        0.1 if name.endswith(("bias", "beta", "moving_mean")) else 1.0 / np.sqrt(max(shape[-1], 4))
    )
    return (rng.standard_normal(shape) * scale).astype("float32")


def values(seed, *shape):
    """Return input values."""
    return np.random.RandomState(seed).standard_normal(shape).astype("float32")


def every_layer_kind(mx):
    """A CNN with one of everything."""
    s = mx.sym
    x = s.Variable("data")
    x = s.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=8, name="conv1")
    x = s.BatchNorm(x, fix_gamma=False, name="bn1")
    x = s.Activation(x, act_type="relu", name="relu1")
    x = s.Pooling(
        x, kernel=(3, 3), stride=(2, 2), pool_type="max", pooling_convention="full", name="pool1"
    )
    x = s.Convolution(
        x,
        kernel=(3, 3),
        pad=(2, 2),
        dilate=(2, 2),
        num_filter=8,
        num_group=2,
        no_bias=True,
        name="conv2",
    )
    x = s.BatchNorm(x, fix_gamma=True, name="bn2")
    x = s.LeakyReLU(x, act_type="leaky", slope=0.1, name="leaky")
    x = s.LRN(x, nsize=3, name="lrn")
    y = s.Deconvolution(x, kernel=(2, 2), stride=(2, 2), num_filter=4, name="deconv")
    y = s.UpSampling(
        s.Pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="avg"),
        scale=1,
        sample_type="nearest",
        num_args=1,
    )
    x = s.Concat(x, y, dim=1, name="concat")
    x = s.InstanceNorm(x, name="inorm")
    x = s.LeakyReLU(x, act_type="elu", slope=0.3)
    parts = s.SliceChannel(x, num_outputs=2, name="parts")
    x = s.elemwise_mul(parts[0], s.sigmoid(parts[1]), name="gate")
    x = s.Pooling(x, global_pool=True, kernel=(1, 1), pool_type="avg", name="gap")
    x = s.Flatten(x)
    x = s.L2Normalization(x, name="l2")
    x = s.FullyConnected(x, num_hidden=16, name="fc1")
    x = s.LayerNorm(x, name="ln")
    x = s.Activation(x, act_type="softrelu")
    x = s.Dropout(x, p=0.0)
    x = s.FullyConnected(x, num_hidden=5, no_bias=True, name="fc2")
    x = s.broadcast_add(x, s.Variable("shift", shape=(1, 5)))
    return s.SoftmaxOutput(x, name="softmax"), {
        "data": values(1, 2, 3, 13, 13),
        "softmax_label": np.array([1, 4], "float32"),
    }


def unrolled_lstm(mx):
    """An LSTM unrolled over six steps by the symbolic cells."""
    cell = mx.rnn.SequentialRNNCell()
    cell.add(mx.rnn.LSTMCell(7, prefix="l0_"))
    cell.add(mx.rnn.GRUCell(6, prefix="l1_"))
    embed = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=11, output_dim=5, name="embed")
    outputs, _ = cell.unroll(6, inputs=embed, layout="NTC", merge_outputs=True)
    x = mx.sym.Reshape(outputs, shape=(-1, 6))
    x = mx.sym.FullyConnected(x, num_hidden=11, name="pred")
    label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
    net = mx.sym.SoftmaxOutput(
        x, label, use_ignore=True, ignore_label=0, normalization="valid", name="softmax"
    )
    rng = np.random.RandomState(2)
    return net, {
        "data": rng.randint(0, 11, (3, 6)).astype("float32"),
        "softmax_label": rng.randint(0, 11, (3, 6)).astype("float32"),
    }


def fused_bidirectional(mx):
    """Fused LSTM in both directions and two layers, then a GRU."""
    s = mx.sym
    x = s.Variable("data")
    x = s.RNN(
        x,
        s.Variable("lstm_parameters"),
        s.Variable("h0"),
        s.Variable("c0"),
        state_size=4,
        num_layers=2,
        bidirectional=True,
        mode="lstm",
        name="lstm",
    )
    x = s.RNN(
        x,
        s.Variable("gru_parameters"),
        s.Variable("g0"),
        state_size=3,
        num_layers=1,
        mode="gru",
        name="gru",
    )
    x = s.SequenceLast(x, s.Variable("lengths"), use_sequence_length=True)
    return s.LinearRegressionOutput(s.FullyConnected(x, num_hidden=2, name="fc"), name="out"), {
        "data": values(3, 5, 2, 6),
        "h0": values(4, 4, 2, 4),
        "c0": values(5, 4, 2, 4),
        "g0": values(6, 1, 2, 3),
        "lengths": np.array([5, 3], "float32"),
        "out_label": values(7, 2, 2),
    }


def ssd_head(mx):
    """Anchors, targets and losses of a single-shot detector."""
    s = mx.sym
    x = s.Activation(
        s.Convolution(s.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=8, name="body"),
        act_type="relu",
    )
    anchors = s.contrib.MultiBoxPrior(x, sizes=(0.3, 0.5), ratios=(1, 2), name="anchors")
    cls = s.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=3 * 3, name="cls")
    cls = s.Reshape(s.transpose(cls, axes=(0, 2, 3, 1)), shape=(0, -1, 3))
    cls = s.transpose(cls, axes=(0, 2, 1))
    loc = s.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=3 * 4, name="loc")
    loc = s.Flatten(s.transpose(loc, axes=(0, 2, 3, 1)))
    target = s.contrib.MultiBoxTarget(
        anchors,
        s.Variable("label"),
        cls,
        overlap_threshold=0.4,
        negative_mining_ratio=3,
        negative_mining_thresh=0.5,
        name="target",
    )
    prob = s.SoftmaxOutput(
        cls,
        target[2],
        multi_output=True,
        use_ignore=True,
        ignore_label=-1,
        normalization="valid",
        name="prob",
    )
    loss = s.MakeLoss(
        s.smooth_l1(target[1] * (loc - target[0]), scalar=1.0),
        normalization="valid",
        name="loc_loss",
    )
    found = s.contrib.MultiBoxDetection(prob, loc, anchors, nms_threshold=0.5, name="detection")
    label = np.array(
        [[[0, 0.1, 0.1, 0.5, 0.6], [1, 0.4, 0.3, 0.9, 0.8]], [[1, 0.2, 0.2, 0.7, 0.7], [-1] * 5]],
        "float32",
    )
    return s.Group([prob, loss, s.BlockGrad(found)]), {
        "data": values(8, 2, 3, 6, 6),
        "label": label,
    }


def rcnn_head(mx):
    """Proposals from a region network, pooled and classified."""
    s = mx.sym
    x = s.Activation(
        s.Convolution(s.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=8, name="body"),
        act_type="relu",
    )
    score = s.Convolution(x, kernel=(1, 1), num_filter=2 * 3, name="score")
    prob = s.SoftmaxActivation(s.Reshape(score, shape=(0, 2, -1, 0)), mode="channel")
    prob = s.Reshape(prob, shape=(0, 6, -1, 0))
    delta = s.Convolution(x, kernel=(1, 1), num_filter=4 * 3, name="delta") * 0.1
    rois = s.contrib.Proposal(
        s.BlockGrad(prob),
        s.BlockGrad(delta),
        s.Variable("im_info"),
        feature_stride=8,
        scales=(2,),
        ratios=(0.5, 1, 2),
        rpn_pre_nms_top_n=40,
        rpn_post_nms_top_n=6,
        rpn_min_size=4,
        threshold=0.7,
        name="rois",
    )
    pooled = s.ROIPooling(
        x, s.BlockGrad(rois), pooled_size=(3, 3), spatial_scale=0.125, name="pooled"
    )
    aligned = s.contrib.ROIAlign(
        x, s.BlockGrad(rois), pooled_size=(3, 3), spatial_scale=0.125, sample_ratio=2
    )
    y = s.FullyConnected(
        s.Concat(s.Flatten(pooled), s.Flatten(aligned), dim=1), num_hidden=4, name="head"
    )
    return s.Group([s.softmax(y), s.BlockGrad(rois)]), {
        "data": values(9, 1, 3, 8, 10),
        "im_info": np.array([[64, 80, 1.0]], "float32"),
    }


def deformable_block(mx):
    """A deformable convolution and a spatial transformer."""
    s = mx.sym
    x = s.Variable("data")
    offset = s.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=18, name="offset") * 0.3
    x = s.contrib.DeformableConvolution(
        x, offset, kernel=(3, 3), pad=(1, 1), num_filter=6, name="deform"
    )
    theta = s.FullyConnected(x, num_hidden=6, name="theta") * 0.1 + s.Reshape(
        s.Variable("identity"), shape=(1, 6)
    ).broadcast_to((2, 6))
    x = s.SpatialTransformer(
        x, theta, target_shape=(5, 5), transform_type="affine", sampler_type="bilinear", name="st"
    )
    return s.sum(s.square(x), axis=(1, 2, 3)), {
        "data": values(10, 2, 4, 7, 7),
        "identity": np.array([1, 0, 0, 0, 1, 0], "float32"),
    }


def ctc(mx):
    """A connectionist loss over a small network."""
    s = mx.sym
    x = s.FullyConnected(s.Variable("data"), num_hidden=5, flatten=False, name="fc")
    loss = s.CTCLoss(x, s.Variable("label"), name="ctc")
    return s.Group([s.MakeLoss(loss), s.BlockGrad(s.log_softmax(x))]), {
        "data": values(11, 7, 2, 4),
        "label": np.array([[1, 2, 0], [3, 3, 4]], "float32"),
    }


PROGRAMS = {
    f.__name__: f
    for f in (
        every_layer_kind,
        unrolled_lstm,
        fused_bidirectional,
        ssd_head,
        rcnn_head,
        deformable_block,
        ctc,
    )
}
