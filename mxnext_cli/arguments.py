"""The arguments of each command. A function's docstring is the description in its help."""

from __future__ import annotations

import argparse

Parser = argparse.ArgumentParser

SHELLS = ("bash", "zsh", "fish")
TARGETS = ("onnx", "torch", "safetensors", "mxnet", "int8")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def _amount(text: str) -> float:
    number = float(text)
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return number


def _json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _model(parser: Parser, *, shape_help: str = "") -> None:
    parser.add_argument("model", help="prefix, -symbol.json, .params or .onnx file of the model")
    parser.add_argument("--epoch", type=int, help="which PREFIX-NNNN.params; default: the last")
    parser.add_argument("--params", help="the parameter file, if it is not beside the model")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="[NAME=]N,N,...",
        help=shape_help or "shape of an input, such as data=1,3,224,224; once for each input",
    )


def info(parser: Parser) -> None:
    """Say what files are, which MXNet wrote them, what they hold, and what is wrong with them.

    mx info model-symbol.json model-0010.params
    mx info train.rec
    """
    parser.add_argument("files", nargs="*", metavar="FILE", help="none: versions and devices")
    parser.add_argument("--all", action="store_true", help="list every layer or array")
    _json(parser)


def summary(parser: Parser) -> None:
    """Print a table of the layers of a model.

    mx summary model --shape data=1,3,224,224 --time
    """
    _model(parser)
    parser.add_argument("--time", action="store_true", help="run it, and measure each layer")
    parser.add_argument("--runs", type=_positive, default=10, help="how often, with --time")
    _json(parser)


def view(parser: Parser) -> None:
    """Write a model as one HTML page: zoom, search, fold blocks, click a node for its details.

    mx view model --shape data=1,3,224,224 --output model.html
    """
    _model(parser)
    parser.add_argument("--output", "-o", help="the page to write; default: MODEL.html")
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def _preparation(parser: Parser) -> None:
    """Add how images become arrays."""
    images = parser.add_argument_group("images")
    images.add_argument("--resize", type=_positive, help="length of the shorter edge, first")
    images.add_argument("--crop", type=_positive, help="cut a square from the center, then")
    images.add_argument("--mean", help="subtracted from each channel: 123.68,116.78,103.94")
    images.add_argument("--std", help="by which each channel is divided, then: 58.4,57.1,57.4")
    images.add_argument("--scale", type=float, help="multiplies pixels first; 1/255 is 0.00392157")
    images.add_argument(
        "--imagenet",
        action="store_true",
        help="what the models of the Gluon zoo expect: resize 256, crop 224, scale 1/255, mean "
        "0.485,0.456,0.406, std 0.229,0.224,0.225",
    )
    images.add_argument("--bgr", action="store_true", help="channels in the order of OpenCV")
    images.add_argument("--gray", action="store_true", help="one channel")
    images.add_argument("--layout", choices=("NCHW", "NHWC"), default="NCHW")


def predict(parser: Parser) -> None:
    """Run a model on images (.jpg, .png ...) or arrays (.npy, .npz, .csv).

    mx predict resnet --input cat.jpg dog.jpg --imagenet --labels synset.txt --softmax
    mx predict mlp --input rows.csv --output scores.npy
    """
    _model(parser, shape_help="shape of an input without its batch, such as data=3,224,224")
    parser.add_argument("--input", "-i", nargs="+", required=True, metavar="[NAME=]FILE")
    parser.add_argument("--output", "-o", help="write the outputs: .npy, .npz or .csv")
    parser.add_argument("--labels", help="file with the name of a class in each line")
    parser.add_argument("--top", type=_positive, default=5, help="how many classes to show")
    parser.add_argument("--softmax", action="store_true", help="turn scores into probabilities")
    parser.add_argument("--batch", type=_positive, default=32, help="how many inputs at once")
    _preparation(parser)
    _json(parser)


def convert(parser: Parser) -> None:
    """Convert a model, run both on random and edge inputs, and write it if they agree.

    mx convert model --to onnx --shape data=1,3,224,224 --output model.onnx
    mx convert model --to int8 --input images.npy
    """
    _model(parser)
    parser.add_argument("--to", required=True, choices=TARGETS, help="what to write")
    parser.add_argument("--output", "-o", help="file or prefix to write; default: beside the model")
    parser.add_argument(
        "--input",
        "-i",
        nargs="*",
        default=[],
        metavar="[NAME=]FILE",
        help="arrays (.npy) to compare on, besides random and edge ones; they calibrate int8",
    )
    parser.add_argument(
        "--tolerance",
        type=_amount,
        help="largest error of an output, relative to its largest number: 1e-4, for int8 0.1",
    )
    parser.add_argument(
        "--calibration",
        choices=("naive", "entropy"),
        default="naive",
        help="how ranges for int8 are chosen: smallest and largest values, or least divergence",
    )
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    _json(parser)


def serve(parser: Parser) -> None:
    """Answer HTTP requests: POST /predict with JSON or .npy; GET /health, /metrics and /model.

    mx serve model --shape data=3,224,224 --port 8080
    curl -d '{"inputs": {"data": [[...]]}}' localhost:8080/predict
    """
    _model(parser, shape_help="shape of an input without its batch, such as data=3,224,224")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one")
    batching = parser.add_argument_group("batching")
    batching.add_argument("--max-batch", type=_positive, default=32, help="1 switches it off")
    batching.add_argument(
        "--max-delay", type=_amount, default=2.0, help="milliseconds to wait for more requests"
    )
    batching.add_argument("--workers", type=_positive, default=1, help="threads that run the model")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--max-body", type=_positive, default=32, help="MiB of a request")
    limits.add_argument("--max-queue", type=_positive, default=256, help="requests that wait")
    limits.add_argument(
        "--timeout", type=_amount, default=30.0, help="seconds for a body, and for an answer"
    )
    _preparation(parser)


def run(parser: Parser) -> None:
    """Run an old program unchanged: names that newer libraries removed are put back for it alone.

    At the end it reports what it put back, where, and what to write instead.

    mx run train.py --epochs 10
    """
    parser.add_argument("--report", help="write what was put back to this file, as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not print the report")
    parser.add_argument("script", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")


def check(parser: Parser) -> None:
    """Read the programs and model files below a path and report what is not covered.

    mx check my_project/
    """
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders, .py and model files")
    parser.add_argument("--all", action="store_true", help="list the names that are covered too")
    _json(parser)


def doctor(parser: Parser) -> None:
    """Report versions, devices, features and settings, and find common problems."""
    _json(parser)


def completion(parser: Parser) -> None:
    """Print the completion script of a shell.

    bash: mx completion bash > ~/.local/share/bash-completion/completions/mx
    zsh:  mx completion zsh > a folder of $fpath, as _mx
    fish: mx completion fish > ~/.config/fish/completions/mx.fish
    """
    parser.add_argument("shell", choices=SHELLS)
