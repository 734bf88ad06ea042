"""The environment variables of MXNext: name, type, default and description."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ..error import MXNetError


class Variable(NamedTuple):
    """An environment variable."""

    name: str
    kind: type
    default: Any
    meaning: str


VARIABLES = {
    v.name: v
    for v in (
        Variable(
            "MXNET_KEEP_FREED_MEMORY",
            bool,
            True,
            "Linux with glibc: keep the memory of freed arrays for the next ones instead of "
            "returning it to the system, so that large arrays do not fault in new pages.",
        ),
        Variable(
            "MXNET_SYNC_FILES",
            bool,
            True,
            "Whether saving waits until the disk has the file. With 0 it is faster, and a file is "
            "still whole or absent if the process is killed, but after a crash of the machine or a "
            "loss of power a saved file may be empty or damaged, and the one it replaced is gone.",
        ),
        Variable(
            "MXNET_IMAGE_MAX_PIXELS",
            int,
            178_956_970,
            "The largest image that is decoded, in pixels (width times height). The size in the "
            "header is checked before memory is allocated. 0 means no limit.",
        ),
        Variable(
            "MXNET_WITHOUT_TORCH_PRIVATE",
            str,
            "",
            "Parts of torch's private API that are not to be used, separated by commas, or 'all'. "
            "Public functions take their place, with the same results. `mx doctor` names the parts "
            "that this torch lacks.",
        ),
        Variable("MXNET_HOME", str, "~/.mxnet", "Folder of models and data sets."),
        Variable(
            "MXNET_GLUON_REPO",
            str,
            "",
            "Mirrors of MXNet's models and data sets: addresses or folders, separated by commas.",
        ),
        Variable(
            "MXNET_OPTIMIZER_AGGREGATION_SIZE",
            int,
            4,
            "Custom optimizers that take lists get this number of parameters per call; MXNext's "
            "own get all.",
        ),
        Variable(
            "MXNET_UPDATE_ON_KVSTORE",
            bool,
            True,
            "Whether a Trainer or Module on several devices lets the key-value store update the "
            "weights, unless specified otherwise; else the store only sums gradients.",
        ),
        Variable(
            "MXNET_SUBGRAPH_BACKEND",
            str,
            "",
            "The engine that runs bound symbols and Modules in inference: onednn_graph, "
            "onnxruntime, openvino, inductor, auto (the fastest of those that are installed) or "
            "a name of mx.executor.register_backend. NONE and MXNet's own names mean our own "
            "kernels.",
        ),
        Variable(
            "MXNET_GRAPH_PASSES",
            str,
            "1",
            "What rewrites executors and hybridized blocks before they run: 1 everything, 0 "
            "nothing, or names with commas (see mxnet/graph). Read when a graph is prepared. "
            "Prediction keeps prepared copies of weights, and sees changes of them that go through "
            "arrays.",
        ),
        Variable(
            "MXNET_ELIMINATE_COMMON_EXPR",
            bool,
            True,
            "Whether `Executor.get_optimized_symbol` merges nodes that compute the same.",
        ),
        Variable(
            "MXNET_BACKWARD_DO_MIRROR",
            bool,
            False,
            "Whether training keeps few results for backward and computes the others again: less "
            "memory, slower steps (ResNet-50: 0.57 of the memory, 1.3 times the time). Read when "
            "a graph is prepared.",
        ),
        Variable(
            "MXNET_STORAGE_FALLBACK_LOG_VERBOSE",
            bool,
            True,
            "Warn, once for each case, if a sparse array is converted to dense.",
        ),
        Variable(
            "MXNET_KVSTORE_TIMEOUT",
            float,
            300.0,
            "Distributed stores: seconds for which a collective waits for a worker that is alive "
            "but does not take part; then every worker ends with an error that names it.",
        ),
        Variable(
            "MXNET_KVSTORE_HEARTBEAT",
            float,
            20.0,
            "Distributed stores: seconds of silence after which a worker is considered lost. A "
            "broken connection is detected immediately.",
        ),
        Variable(
            "MXNET_KVSTORE_CONNECT_TIMEOUT",
            float,
            120.0,
            "Distributed stores: seconds for which a worker waits at the start for all others.",
        ),
        Variable(
            "MXNET_KVSTORE_BUCKET_MB",
            float,
            8.0,
            "Distributed stores: size of the messages in which gradients are combined.",
        ),
        Variable(
            "MXNET_KVSTORE_SHARD_MB",
            float,
            64.0,
            "Synchronous distributed stores that update: from this size of all weights on, each "
            "worker keeps the optimizer states of its part of them only. 0: always, -1: never.",
        ),
        Variable(
            "MXNET_CUDNN_AUTOTUNE_DEFAULT",
            int,
            1,
            "CUDA: whether cuDNN tries its convolution algorithms for each new shape and keeps the "
            "fastest (1 and 2), or takes its guess (0). Read when a GPU is first used, as are the "
            "other variables of GPUs.",
        ),
        Variable(
            "MXNET_ENFORCE_DETERMINISM",
            bool,
            False,
            "CUDA: only algorithms of cuDNN that give the same numbers each time; no autotuning.",
        ),
        Variable(
            "MXNET_CUDA_ALLOW_TENSOR_CORE",
            bool,
            True,
            "CUDA: whether convolutions of float32 may use tensor cores, which round their inputs "
            "to TF32. Without it and the next one, torch's own settings hold.",
        ),
        Variable(
            "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION",
            bool,
            False,
            "CUDA: whether matrix products of float32 may use tensor cores as well.",
        ),
        Variable(
            "MXNET_GPU_MEM_POOL_TYPE",
            str,
            "Naive",
            "CUDA: Naive is torch's own pool, Round rounds sizes up to powers of two, Unpooled "
            "asks the driver for each array.",
        ),
        Variable(
            "MXNET_GPU_MEM_POOL_RESERVE",
            float,
            0.0,
            "CUDA: percentage of each GPU's memory that arrays of this process leave alone.",
        ),
        Variable(
            "MXNET_KVSTORE_MAX_STALENESS",
            int,
            -1,
            "Asynchronous distributed stores: how many pushes of a key a worker may be ahead of "
            "the slowest one; then it waits. -1: any number. The servers' value counts.",
        ),
        Variable(
            "PS_HEARTBEAT_TIMEOUT",
            float,
            0.0,
            "MXNet's name of MXNET_KVSTORE_HEARTBEAT, which takes precedence.",
        ),
        Variable(
            "MXNET_JOB_SECRET",
            str,
            "",
            "A secret that only the processes of a job share, the same text for all of "
            "them; `mx launch` makes one. They prove it to each other on every connection.",
        ),
        Variable(
            "MXNET_ALLOW_UNSIGNED_JOBS",
            bool,
            False,
            "Let a job on several machines that has no secret run without a warning, and "
            "exchange pickled objects.",
        ),
        Variable(
            "MXNET_CHECK_FINITE",
            bool,
            False,
            "Raise at the first operator whose result has a NaN or an infinity while its inputs "
            "have none. For debugging: it is slow.",
        ),
        Variable(
            "MXNET_CHECK_LABELS",
            bool,
            True,
            "Whether `SoftmaxCrossEntropyLoss`, `Embedding` and Modules with `SoftmaxOutput` look "
            "at the integers of their first two batches, and warn of those that are out of range.",
        ),
        Variable(
            "MXNET_PROGRESS",
            str,
            "auto",
            "How `fit`, `mx.progress`, downloads and tools show progress on stderr: auto is a bar "
            "on a terminal or in a notebook and a line per minute in a file; bar, lines, off.",
        ),
        Variable(
            "MXNET_FULL_TRACEBACK",
            bool,
            False,
            "Show the frames of MXNext and PyTorch, and the original errors of kernels, in "
            "tracebacks. Otherwise only the user's lines are shown.",
        ),
        Variable(
            "MXNET_SAFE_ACCUMULATION",
            bool,
            False,
            "Accepted for compatibility: sums of float16 are always accumulated in float32.",
        ),
    )
}


def get(name: str) -> Any:
    """Return the typed value of a documented variable.

    >>> get("MXNET_SAFE_ACCUMULATION")
    False
    """
    variable = VARIABLES[name]
    text = os.environ.get(name)
    if text is None or text == "":
        return variable.default
    if variable.kind is bool:
        return text.strip().lower() not in ("0", "false", "off", "no")
    try:
        return variable.kind(text)
    except ValueError:
        raise MXNetError(
            f"Environment variable {name}={text!r} is not of type {variable.kind.__name__}."
        ) from None
