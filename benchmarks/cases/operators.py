"""Heavy operators compared with torch's own kernels."""

# ruff: noqa: E501 (programs as text)

from __future__ import annotations

from benchmarks.cases import Case

_MX = "import mxnet as mx; from mxnet import nd; r = nd.random.normal; "
_TORCH = "import torch, torch.nn.functional as F; r = torch.randn; "
_GOALS = "torch 1.1, mxnet 1"


def case(name: str, mx_setup: str, mx: str, torch_setup: str, torch: str, number: int = 10) -> Case:
    """Return a case whose statement is one operator."""
    return Case(name, (_MX + mx_setup, f"o = {mx}; nd.waitall()"), (_TORCH + torch_setup, f"o = {torch}"), number, _GOALS)  # fmt: skip


def only_mx(name: str, setup: str, statement: str, number: int = 5) -> Case:
    """Return a case that torch has no operator for."""
    return Case(name, (_MX + setup, f"o = {statement}; nd.waitall()"), None, number, "mxnet 1")


CASES = [
    case("conv 1-d", "x, w = r(shape=(16, 64, 256)), r(shape=(64, 64, 3))",
         "nd.Convolution(x, w, kernel=(3,), num_filter=64, no_bias=True)",
         "x, w = r(16, 64, 256), r(64, 64, 3)", "F.conv1d(x, w)"),
    case("conv 2-d", "x, w = r(shape=(8, 64, 56, 56)), r(shape=(64, 64, 3, 3))",
         "nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)",
         "x, w = r(8, 64, 56, 56), r(64, 64, 3, 3)", "F.conv2d(x, w, padding=1)"),
    case("conv 3-d", "x, w = r(shape=(2, 16, 8, 28, 28)), r(shape=(16, 16, 3, 3, 3))",
         "nd.Convolution(x, w, kernel=(3, 3, 3), num_filter=16, no_bias=True)",
         "x, w = r(2, 16, 8, 28, 28), r(16, 16, 3, 3, 3)", "F.conv3d(x, w)"),
    case("conv grouped", "x, w = r(shape=(8, 64, 28, 28)), r(shape=(64, 16, 3, 3))",
         "nd.Convolution(x, w, kernel=(3, 3), num_filter=64, num_group=4, no_bias=True)",
         "x, w = r(8, 64, 28, 28), r(64, 16, 3, 3)", "F.conv2d(x, w, groups=4)"),
    case("conv depthwise", "x, w = r(shape=(8, 64, 56, 56)), r(shape=(64, 1, 3, 3))",
         "nd.Convolution(x, w, kernel=(3, 3), num_filter=64, num_group=64, no_bias=True)",
         "x, w = r(8, 64, 56, 56), r(64, 1, 3, 3)", "F.conv2d(x, w, groups=64)"),
    case("deconvolution", "x, w = r(shape=(8, 64, 28, 28)), r(shape=(64, 32, 4, 4))",
         "nd.Deconvolution(x, w, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=32)",
         "x, w = r(8, 64, 28, 28), r(64, 32, 4, 4)", "F.conv_transpose2d(x, w, stride=2, padding=1)"),
    case("max pooling", "x = r(shape=(16, 64, 56, 56))",
         "nd.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type='max')",
         "x = r(16, 64, 56, 56)", "F.max_pool2d(x, 3, 2)"),
    case("average pooling", "x = r(shape=(16, 64, 56, 56))",
         "nd.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type='avg')",
         "x = r(16, 64, 56, 56)", "F.avg_pool2d(x, 3, 2)"),
    case("batch norm", "x = r(shape=(16, 64, 56, 56)); g = nd.ones(64); b = nd.zeros(64); m = nd.zeros(64); v = nd.ones(64)",
         "nd.BatchNorm(x, g, b, m, v, fix_gamma=False)",
         "x = r(16, 64, 56, 56); g = torch.ones(64); b = torch.zeros(64); m = torch.zeros(64); v = torch.ones(64)",
         "F.batch_norm(x, m, v, g, b)"),
    case("layer norm", "x = r(shape=(64, 128, 512)); g = nd.ones(512); b = nd.zeros(512)", "nd.LayerNorm(x, g, b)",
         "x = r(64, 128, 512); g = torch.ones(512); b = torch.zeros(512)", "F.layer_norm(x, (512,), g, b)"),
    case("softmax", "x = r(shape=(1000, 1000))", "nd.softmax(x)", "x = r(1000, 1000)", "F.softmax(x, -1)"),
    case("dense", "x, w, b = r(shape=(256, 1024)), r(shape=(1024, 1024)), r(shape=(1024,))",
         "nd.FullyConnected(x, w, b, num_hidden=1024)", "x, w, b = r(256, 1024), r(1024, 1024), r(1024)", "F.linear(x, w, b)"),
    case("LSTM", "x = r(shape=(35, 32, 200)); p = r(shape=(4 * 200 * 402,)) * 0.1; h = nd.zeros((1, 32, 200)); c = nd.zeros((1, 32, 200))",
         "nd.RNN(x, p, h, c, state_size=200, num_layers=1, mode='lstm')",
         "x = r(35, 32, 200); net = torch.nn.LSTM(200, 200)\nfor q in net.parameters(): q.requires_grad_(False)", "net(x)", 3),
    case("embedding", "i = nd.random.randint(0, 10000, shape=(64, 128)).astype('float32'); w = r(shape=(10000, 256))",
         "nd.Embedding(i, w, input_dim=10000, output_dim=256)",
         "i = torch.randint(0, 10000, (64, 128)); w = r(10000, 256)", "F.embedding(i, w)"),
    case("topk", "x = r(shape=(128, 10000))", "nd.topk(x, k=10, ret_typ='both')", "x = r(128, 10000)", "torch.topk(x, 10)"),
    case("CTC loss", "x = r(shape=(100, 16, 30)); l = nd.random.randint(1, 30, shape=(16, 20)).astype('float32')",
         "nd.CTCLoss(x, l)",
         "x = r(100, 16, 30); l = torch.randint(1, 30, (16, 20)); n = torch.full((16,), 100); m = torch.full((16,), 20)",
         "F.ctc_loss(F.log_softmax(x, -1), l, n, m, reduction='none')"),
    only_mx("box_nms of 10,000", "x = nd.random.uniform(shape=(1, 10000, 6)); x[:, :, 4:] += x[:, :, 2:4]",
            "nd.contrib.box_nms(x, overlap_thresh=0.5)", 1),
    only_mx("MultiBoxTarget", "a = nd.random.uniform(shape=(1, 8732, 4)); a[:, :, 2:] += a[:, :, :2]; "
            "l = nd.random.uniform(shape=(8, 10, 5)); l[:, :, 0] = 1; l[:, :, 3:] += l[:, :, 1:3]; p = r(shape=(8, 21, 8732))",
            "nd.contrib.MultiBoxTarget(a, l, p)", 2),
    only_mx("MultiBoxDetection", "a = nd.random.uniform(0, 0.7, shape=(1, 8732, 4)); a[:, :, 2:] = a[:, :, :2] + 0.3; "
            "p = nd.softmax(r(shape=(8, 21, 8732)) * 3, axis=1); l = r(shape=(8, 4 * 8732)) * 0.3",
            "nd.contrib.MultiBoxDetection(p, l, a, nms_threshold=0.45, nms_topk=400)", 3),
    only_mx("Proposal", "p = nd.softmax(r(shape=(1, 2, 12, 38, 50)), axis=1).reshape((1, 24, 38, 50)); "
            "b = r(shape=(1, 48, 38, 50)) * 0.3; i = nd.array([[600, 800, 1]])",
            "nd.contrib.Proposal(p, b, i)", 3),
    only_mx("ROIAlign", "x = r(shape=(1, 256, 50, 50)); b = nd.random.uniform(0, 400, shape=(128, 5)); b[:, 0] = 0; b[:, 3:] += b[:, 1:3]",
            "nd.contrib.ROIAlign(x, b, pooled_size=(7, 7), spatial_scale=0.0625, sample_ratio=2)", 3),
    only_mx("PSROIPooling", "x = r(shape=(1, 392, 38, 50)); b = nd.random.uniform(0, 300, shape=(300, 5)); b[:, 0] = 0; b[:, 3:] += b[:, 1:3]",
            "nd.contrib.PSROIPooling(x, b, spatial_scale=0.0625, output_dim=8, pooled_size=7)", 3),
    only_mx("BilinearResize2D", "x = r(shape=(2, 256, 25, 25))", "nd.contrib.BilinearResize2D(x, height=50, width=50)"),
    only_mx("UpSampling", "x = r(shape=(2, 256, 25, 25))", "nd.UpSampling(x, scale=2, sample_type='nearest')"),
]  # fmt: skip
