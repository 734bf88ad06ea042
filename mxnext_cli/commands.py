"""The command line of `mx`: one function declares each command, its help and its arguments.

Scripts that complete the command line are generated from these declarations. Nothing here imports
torch, so help, wrong arguments and completion respond immediately.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of descriptions, and adds defaults that the help does not mention."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help or ""
        is_plain = action.default in (None, False, True, argparse.SUPPRESS) or action.default == []
        if is_plain or "default" in text or not action.option_strings:
            return action.help
        default = action.default
        shown = " ".join(map(str, default)) if isinstance(default, list | tuple) else default
        return f"{text}{'; ' if text else ''}default: {str(shown).replace('%', '%%')}"


class Parser(argparse.ArgumentParser):
    """A parser whose messages propose the nearest command, option or choice."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        choices = [str(choice) for choice in action.choices or ()]
        if choices and str(value) not in choices:
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r} (choose from {', '.join(choices)})"
                f"{_propose(str(value), choices)}",
            )

    def parse(self, argv: Sequence[str] | None) -> argparse.Namespace:
        """Parse a command line; exit with 2 and a proposal for an unknown option."""
        parsed, unknown = self.parse_known_args(argv)
        if unknown:
            options = [o for a in self._actions for o in a.option_strings]
            options += [o for a in _actions(parsed.mx_command) for o in a.option_strings]
            wrong = unknown[0].partition("=")[0]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{_propose(wrong, options)}")
        return parsed


def _propose(wrong: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(wrong, known, 1)
    return f"\nDid you mean {nearest[0]!r}?" if nearest else ""


Runner = Callable[[argparse.Namespace], int | None]
Declare = Callable[[Parser], None]


class Command(NamedTuple):
    """A command: its line in the help of `mx`, its runner, and the function that adds arguments.

    The docstring of `declare` is the description in the command's own help.
    """

    summary: str
    runner: str  # "module:function"
    declare: Declare


COMMANDS: dict[str, Command] = {}


def command(summary: str, runner: str) -> Callable[[Declare], Declare]:
    """Register a command under the name of the function that adds its arguments."""

    def register(declare: Declare) -> Declare:
        COMMANDS[declare.__name__] = Command(summary, runner, declare)
        return declare

    return register


def build_parser() -> Parser:
    """Return the parser of `mx`."""
    parser = Parser(
        prog="mx",
        description="Inspect, run, convert and serve models, and run old programs.",
        epilog="MODEL is a prefix of PREFIX-symbol.json and PREFIX-0000.params, one of these "
        "files, or an .onnx\nfile. Exit codes: 0 success, 1 failure or problems found, 2 wrong "
        "usage.",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the versions")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    commands = parser.add_subparsers(dest="mx_command", metavar="command")
    for name, (summary, runner, declare) in COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=summary,
            description=(inspect.getdoc(declare) or "").replace("`", ""),
            formatter_class=HelpFormatter,
        )
        subparser.set_defaults(runner=runner)
        declare(subparser)
    return parser


def load_runner(args: argparse.Namespace) -> Runner:
    """Import the module of the chosen command and return its function."""
    module, _, function = args.runner.partition(":")
    return getattr(importlib.import_module(module), function)


class _PrintVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import importlib.metadata

        try:
            version = importlib.metadata.version("mxnext")
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed, run from its sources)"
        print(f"MXNext {version}, Python {sys.version.split()[0]}")
        parser.exit()


# -- arguments of several commands -----------------------------------------------------------------

SAMPLE_SHAPE = "shape of an input without its batch, such as data=3,224,224"


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def _mebibytes(text: str) -> int:
    return _positive(text) << 20


def _amount(text: str) -> float:
    number = float(text)
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return number


def _truth(text: str) -> bool:
    return text.lower() not in ("0", "false", "no")


def _add_outputs(parser: Parser) -> None:
    parser.add_argument(
        "--outputs", metavar="NAME,...", help="cut the network: convert what these nodes need"
    )


def _add_inputs(parser: Parser, help: str) -> None:
    parser.add_argument("--input", "-i", nargs="*", default=[], metavar="[NAME=]FILE", help=help)


def _add_force(parser: Parser) -> None:
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def _add_shapes(parser: Parser, help: str) -> None:
    parser.add_argument("--shape", action="append", default=[], metavar="[NAME=]N,N,...", help=help)


def _add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_model(
    parser: Parser,
    shape_help: str = "shape of an input, such as data=1,3,224,224; once for each input",
) -> None:
    add = parser.add_argument
    add("model", help="prefix, -symbol.json, .params or .onnx file of the model")
    _add_files(parser, shape_help)


def _add_files(parser: Parser, shape_help: str) -> None:
    add = parser.add_argument
    add("--epoch", type=int, help="which PREFIX-NNNN.params; default: the last")
    add("--params", help="the parameter file, if it is not beside the model")
    _add_shapes(parser, shape_help)


def _add_model_of_samples(parser: Parser) -> None:
    _add_model(parser, SAMPLE_SHAPE)
    parser.add_argument("--device", help="where it runs: cpu, gpu or gpu:1", metavar="DEVICE")


def _add_preparation(parser: Parser) -> None:
    add = parser.add_argument_group("images").add_argument
    add("--resize", type=_positive, help="scale images so that the shorter edge has this length")
    add("--crop", type=_positive, help="then cut a square of this size from the center")
    add("--scale", type=float, help="then multiply pixels by this; 1/255 is 0.00392157")
    add("--mean", help="then subtract this from each channel: 123.68,116.78,103.94")
    add("--std", help="then divide each channel by this: 58.4,57.1,57.4")
    add(
        "--imagenet",
        action="store_true",
        help="what the models of the Gluon zoo expect: resize 256, crop 224, scale 1/255, mean "
        "0.485,0.456,0.406, std 0.229,0.224,0.225",
    )
    add("--bgr", action="store_true", help="channels in the order of OpenCV")
    add("--gray", action="store_true", help="read images as gray, with one channel")
    add("--layout", choices=("NCHW", "NHWC"), default="NCHW", help="axes of the model's input")


# -- the commands ----------------------------------------------------------------------------------


@command("describe files: models, parameters, records, ONNX ...", "mxnext_cli.info:run")
def info(parser: Parser) -> None:
    """Describe files: their kind, the MXNet that wrote them, their contents and their problems.

    mx info model                         model-symbol.json and its last parameters
    mx info model-0010.params train.rec
    """
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: versions and devices")
    parser.add_argument("--all", action="store_true", help="list every layer or array")
    _add_json(parser)


@command(
    "print the layers of a model: shapes, parameters, multiply-adds, memory, time",
    "mxnext_cli.summary:run",
)
def summary(parser: Parser) -> None:
    """Print a table of the layers of a model.

    mx summary model --shape data=1,3,224,224 --time
    """
    _add_model(parser)
    parser.add_argument("--time", action="store_true", help="run it, and measure each layer")
    parser.add_argument("--runs", type=_positive, default=10, help="how often, with --time")
    _add_json(parser)


@command("write a model as an HTML page to explore it in a browser", "mxnext_cli.summary:view")
def view(parser: Parser) -> None:
    """Write a model as one HTML page: zoom, search, fold blocks, click a node for its details.

    mx view model --shape data=1,3,224,224 --output model.html
    """
    _add_model(parser)
    parser.add_argument("--output", "-o", help="the page to write; default: MODEL.html")
    parser.add_argument("--open", action="store_true", help="open it in the browser")


@command("run a model on images or arrays", "mxnext_cli.predict:run")
def predict(parser: Parser) -> None:
    """Run a model on images (.jpg, .png ...) or arrays (.npy, .npz, .csv).

    mx predict resnet --input cat.jpg dog.jpg --imagenet --labels synset.txt --softmax
    mx predict mlp --input rows.csv --output scores.npy
    """
    _add_model_of_samples(parser)
    add = parser.add_argument
    add("--input", "-i", nargs="+", required=True, metavar="[NAME=]FILE",
        help="images or arrays; NAME= chooses one of several inputs")  # fmt: skip
    add("--output", "-o", help="write the outputs: .npy, .npz or .csv")
    add("--labels", help="file with the name of one class per line")
    add("--top", type=_positive, default=5, help="how many classes to show")
    add("--softmax", action="store_true", help="turn scores into probabilities")
    add("--batch", type=_positive, default=32, help="number of inputs per batch")
    _add_preparation(parser)
    _add_json(parser)


@command(
    "convert a model to another format, and check that both compute the same",
    "mxnext_cli.convert:run",
)
def convert(parser: Parser) -> None:
    """Convert a model, run both on random and edge inputs, and write it if they agree.

    mx convert model --to onnx --shape data=1,3,224,224 --output model.onnx
    mx convert model --to torch --shape data=1,3,224,224 --dynamic data:2=height,3=width
    mx convert ssd --to onnx --shape 1,3,300,300 --outputs multibox_loc_pred,cls_prob
    mx convert model --to int8 --input images.npy
    mx convert model --to web --shape data=1,3,224,224 --output site

    web, cpp, libtorch and executorch write a folder that runs the model without MXNext: a page
    for browsers, C++ programs on ONNX Runtime (with MXNet's C predict API) or on libtorch, and a
    file for phones.
    """
    _add_model(parser)
    add = parser.add_argument
    targets = ("onnx", "torch", "safetensors", "mxnet", "int8")
    targets += ("web", "cpp", "libtorch", "executorch")
    add("--to", required=True, choices=targets, help="what to write")
    add("--output", "-o", help="file or prefix to write; default: beside the model")
    _add_inputs(
        parser, "arrays (.npy) to compare on, besides random and edge ones; they calibrate int8"
    )
    add(
        "--tolerance",
        type=_amount,
        help="largest error of an output, relative to its largest number: 1e-4, for int8 0.1",
    )
    add(
        "--calibration",
        choices=("naive", "entropy"),
        default="naive",
        help="how ranges for int8 are chosen: smallest and largest values, or least divergence",
    )
    add(
        "--dynamic-batch",
        type=int,
        nargs="?",
        const=0,
        metavar="AXIS",
        help="fail unless this axis of all inputs, by default the first, is free (onnx, torch)",
    )
    add(
        "--dynamic",
        action="append",
        default=[],
        metavar="NAME:AXIS=SIZE,...",
        help="leave sizes free, such as data:2=height,3=width, besides the batch, which is free "
        "where the model allows it; none: freeze all (onnx, torch)",
    )
    _add_outputs(parser)
    add("--opset", type=_positive, help="version of ONNX's operators to write; default: 13")
    add(
        "--runtime",
        metavar="FOLDER",
        help="node_modules/onnxruntime-web for web to copy; by default pages load it from a CDN",
    )
    _add_force(parser)
    _add_json(parser)


@command(
    "write a model as PyTorch source code that can be read, edited and trained",
    "mxnext_cli.port:run",
)
def port(parser: Parser) -> None:
    """Write model.py, model.safetensors and report.md: readable PyTorch code with its weights.

    Outputs, gradients, running statistics and five training steps are compared in a process
    without MXNext. If anything disagrees, nothing is written. model.py needs torch and safetensors.

    mx port model --shape data=1,3,224,224 --output ported/
    mx port ssd --shape data=1,3,300,300 --outputs multibox_loc_pred,multibox_conf_pred
    """
    _add_model(parser)
    add = parser.add_argument
    add("--output", "-o", metavar="FOLDER", help="folder to write; default: MODEL-torch")
    add("--name", metavar="CLASS", help="name of the model's class; default: from the file")
    _add_outputs(parser)
    _add_inputs(parser, "arrays (.npy) to compare outputs on, besides random and edge ones")
    add("--tolerance", type=_amount, help="largest relative error of outputs: 1e-5")
    _add_force(parser)
    _add_json(parser)


@command("list sources of trained weights for the model zoo", "mxnext_cli.weights:run")
def weights(parser: Parser) -> None:
    """List sources of trained weights for the networks of the zoo, or convert a file of them.

    mx weights
    mx weights resnet50_v1
    mx weights resnet50_v1 --from resnet50-0676ba61.pth --output resnet50
    mx weights resnet50_v1 --to torchvision --output resnet50.pth
    """
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="a network of the zoo; without it all are listed")
    add(
        "--from",
        dest="source",
        metavar="FILE",
        help="weights to convert: .params, .pth, .safetensors, .onnx, a folder or hf://owner/name",
    )
    add(
        "--to",
        choices=("torchvision",),
        help="write the zoo's weights, or those of --from, under torchvision's names",
    )
    add(
        "--output",
        "-o",
        metavar="PREFIX",
        help="prefix of the files to write, or the .pth or .safetensors file for torchvision",
    )
    add("--classes", type=_positive, default=1000, help="outputs of the network; default: 1000")
    _add_force(parser)
    _add_json(parser)


@command("answer HTTP requests with models", "mxnext_cli.serve:run")
def serve(parser: Parser) -> None:
    """Answer HTTP requests: JSON, arrays and images; a page; the open inference protocol.

    mx serve model --shape data=3,224,224 --labels classes.txt --softmax
    mx serve cats=cats-symbol.json dogs=dogs.onnx        several models
    mx serve models/                                     folders of models, and of versions
    curl -F image=@cat.jpg localhost:8080/predict
    """
    add = parser.add_argument
    add("model", nargs="+", metavar="[NAME=]MODEL", help="prefix, file, or folder of models")
    _add_files(parser, SAMPLE_SHAPE)
    add("--labels", help="file with the name of one class per line")
    add("--top", type=int, help="how many classes the answer names; default: 5 with --labels")
    add("--softmax", action="store_true", help="turn scores into probabilities")
    add("--device", metavar="DEVICE", help="where models run: cpu, gpu or gpu:1; default: cpu")
    add("--versions", type=_positive, default=1,
        help="how many versions of a model are served, newest first")  # fmt: skip
    add = parser.add_argument_group("network").add_argument
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=8080, help="port to listen on; 0 takes a free one")
    add("--allow-host", action="append", default=[], metavar="NAME",
        help="name of this server in the Host header; * allows all")  # fmt: skip
    add("--token", help="token that requests must carry, or @FILE; default: $MX_SERVE_TOKEN")
    add("--certfile", help="certificate file, for HTTPS")
    add("--keyfile", help="key of the certificate")
    add = parser.add_argument_group("speed").add_argument
    add("--workers", type=_positive, default=1, help="processes, each with its own models")
    add("--max-batch", type=_positive, default=32, help="largest batch; 1 switches batching off")
    add("--max-delay", type=_amount, default=2.0, help="milliseconds to wait for more requests")
    add("--target-latency-ms", type=_amount, help="limit batches to stay below this latency")
    _add_serving_limits(parser)
    add = parser.add_argument_group("operation").add_argument
    add("--watch", type=_amount, default=0.0, metavar="SECONDS",
        help="how often to look for changed files; SIGHUP looks at once")  # fmt: skip
    add("--control", action="store_true", help="allow POST /v2/repository/models/NAME/load")
    add("--access-log", metavar="FILE", help="write one line of JSON per request; - is stderr")
    _add_preparation(parser)


def _add_serving_limits(parser: Parser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add("--max-rows", type=_positive, default=1024, help="samples in one request")
    mebibytes: dict[str, Any] = {"type": _mebibytes, "metavar": "MIB"}
    add("--max-body", **mebibytes, default="32", help="size of one request")
    add("--max-json", **mebibytes, default="8", help="size of one request of JSON")
    add("--max-pixels", type=_positive, default=16 << 20, help="pixels of an image")
    add("--max-in-flight", **mebibytes, default="256", help="size of all requests together")
    add("--max-queue", type=_positive, default=256, help="requests waiting for a model")
    add("--max-connections", type=_positive, default=16384, help="open connections")
    add("--header-timeout", type=_amount, default=30.0,
        help="seconds to wait for headers, and for the next request")  # fmt: skip
    add(
        "--timeout",
        type=_amount,
        default=30.0,
        help="seconds to wait for a body, and for an answer",
    )


@command("run an old program: translate Python 2, restore removed names", "mxnext_cli.run:run")
def run(parser: Parser) -> None:
    """Run an old program unchanged: translate Python 2 and restore names that libraries removed.

    At the end it reports what it replaced, where, and what to write instead.

    mx run train.py --epochs 10
    """
    parser.add_argument("--report", help="write the report to this file, as JSON")
    parser.add_argument("--quiet", action="store_true", help="do not print the report")
    parser.add_argument("script", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")


@command("list what an old project needs to run", "mxnext_cli.check:run")
def check(parser: Parser) -> None:
    """Read the programs and model files below a path and report what they need to run.

    First comes what stops the program, then what changes a value, then what only needs rewriting,
    which mx run does on the fly and mx fix in the files. Exit code 1: something stops the program
    even under mx run.

    mx check my_project/
    mx check --run my_project/            also runs each network forward and backward once
    mx check --network net.py:get_symbol --shape data=1,3,224,224 my_project/
    """
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="folders, .py, .ipynb and model files")
    add("--all", action="store_true", help="show every line, including names that exist")
    add("--run", action="store_true", help="run each network once: this runs code of the project")
    add(
        "--network",
        action="append",
        default=[],
        metavar="FILE[:FUNCTION]",
        help="run this network: a -symbol.json, or a function or class without arguments",
    )
    _add_shapes(parser, "shape of an input, for --run and --network")
    add("--timeout", type=_amount, default=120.0, help="seconds for each network")
    _add_json(parser)


@command("change old programs to today's Python and libraries", "mxnext_cli.check.fix:run")
def fix(parser: Parser) -> None:
    """Print the changes that old programs need as a patch, each line explained.

    Python 2 becomes Python 3, removed names their successors, and / becomes // where only an
    integer fits. What MXNext itself lacks is not changed; mx check names it.

    mx fix my_project/ > changes.patch
    mx fix my_project/ --apply
    """
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders and .py files")
    parser.add_argument("--apply", action="store_true", help="change the files")


@command("report on this installation and find common problems", "mxnext_cli.doctor:run")
def doctor(parser: Parser) -> None:
    """Report versions, devices, features and settings, and find common problems."""
    _add_json(parser)
    parser.add_argument(
        "--bench", action="store_true", help="compare the speed with plain torch, on each device"
    )


@command("start a program as the workers of a distributed job", "mxnet.launch:run")
def launch(parser: Parser) -> None:
    """Start a program as the workers of a distributed job: ``mx launch -n 4 python train.py``.

    ``python -m mxnet.launch`` is the same. The launcher serves the rendezvous, so no port has to be
    chosen, and the job survives the loss of any worker.
    """
    parser.epilog = """\
examples:
  mx launch -n 4 python train.py --kv-store dist_sync
  mx launch -n 8 -H hosts --launcher ssh --sync-dst-dir /tmp/job python train.py
  mx launch -n 4 --max-restarts 3 python train.py      (with fit(resume=...) or mx.checkpoint)
"""
    add = parser.add_argument
    add("-n", "--num-workers", type=int, required=True, help="number of workers")
    add("-s", "--num-servers", type=int, default=0, help="servers of dist_async; default: none")
    add("-H", "--hostfile", help="file with one host a line, for ssh and mpi")
    add(
        "--launcher",
        choices=("local", "ssh", "mpi", "slurm"),
        default="local",
        help="how processes are started; default: local",
    )
    add("--sync-dst-dir", help="ssh: copy the current folder there on every host, and run there")
    add("--env", action="append", default=[], help="NAME=VALUE, or NAME to pass on")
    add("--env-worker", action="append", default=[], help="likewise, for workers only")
    add("--env-server", action="append", default=[], help="likewise, for servers only")
    add("--max-restarts", type=int, default=0, help="how often to restart after a failure")
    add("--min-workers", type=int, help="restart with as few workers as this")
    add("--join-timeout", type=float, help="seconds that workers wait for each other")
    add("--log-dir", help="also keep the output of each process there")
    add("--dry-run", action="store_true", help="show the commands of a remote launcher only")
    add("program", nargs=argparse.REMAINDER, help="the program and its arguments")


@command("make lists and record files of images", "mxnet.io.im2rec:run")
def im2rec(parser: Parser) -> None:
    """Make lists of images (`.lst`) and pack the listed images into record files.

    mx im2rec --list --recursive train images/     writes train.lst
    mx im2rec --resize 256 train images/           writes train.rec and train.idx, and the list if
                                                   there is none
    """
    parser.add_argument("prefix", help="beginning of the names of the .lst and .rec files")
    parser.add_argument("root", nargs="?", help="folder of the images")
    parser.add_argument("--root", dest="root_option", help="the same as an option")
    add = parser.add_argument_group("lists").add_argument
    add("--list", action="store_true", help="make lists, not records")
    add("--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], help="accepted extensions")
    add("--chunks", type=int, default=1, help="number of lists")
    add("--train-ratio", type=float, default=1.0, help="fraction for training")
    add("--test-ratio", type=float, default=0.0, help="fraction for testing")
    add("--recursive", action="store_true", help="look into folders below; each is a class")
    add("--shuffle", nargs="?", type=_truth, const=True, default=True, help="shuffle (the default)")
    add("--no-shuffle", dest="shuffle", action="store_false", help="keep the order")
    add = parser.add_argument_group("records").add_argument
    add("--pass-through", action="store_true", help="pack the files unchanged, without decoding")
    add("--resize", type=int, default=0, help="new length of the shorter edge")
    add("--center-crop", action="store_true", help="cut to a square first")
    add("--quality", type=int, default=95, help="JPEG: 1 to 100; PNG: compression 1 to 9")
    add("--num-thread", type=int, default=1, help="threads; the order is kept")
    add("--color", type=int, default=1, choices=[-1, 0, 1], help="1 color, 0 gray, -1 as stored")
    add("--encoding", default=".jpg", choices=[".jpg", ".png"], help="format of the images")
    add("--pack-label", action="store_true", help="pack all labels of a line, not only the first")


@command("look into record files, check and index them", "mxnext_cli.rec:run")
def rec(parser: Parser) -> None:
    """Look into record files, take images out, check them, make their index.

    mx rec info train.rec      mx rec check --decode train.rec      mx rec index train.rec
    mx rec cat train.rec       mx rec extract train.rec folder/
    """
    actions = parser.add_subparsers(dest="action", required=True, metavar="command")

    def action(name: str, summary: str) -> Callable[..., argparse.Action]:
        subparser = actions.add_parser(name, help=summary, formatter_class=HelpFormatter)
        subparser.add_argument("file", help="the record file")
        return subparser.add_argument

    add = action("info", "Print how many records there are, of which kinds and sizes")
    add("--json", action="store_true", help="print JSON")
    add = action("cat", "Print a line for each record, or the bytes of one")
    add("number", nargs="?", type=int, help="write the bytes of this record only")
    add("--whole", action="store_true", help="with the header of the image record")
    add = action("extract", "Write the images as files, and a list of them")
    add("folder", help="folder to write")
    add = action("check", "Print the problems of a file and its index")
    add("--decode", action="store_true", help="decode every image too")
    add("--index", help="the index, if it is not beside the file")
    add = action(
        "index", "Write the index of a file: by the ids of image records, or counted with --count"
    )
    add("--out", help="the index to write; default: beside the file")
    add("--count", action="store_true", help="keys are 0, 1, 2 ..., not ids")
    add("--force", action="store_true", help="replace an index that is there")
    add("--skip-damaged", action="store_true", help="leave out damaged records, and report them")


@command("print the completion script of a shell", "mxnext_cli.commands:print_completion")
def completion(parser: Parser) -> None:
    """Print the completion script of a shell.

    bash: mx completion bash > ~/.local/share/bash-completion/completions/mx
    zsh:  mx completion zsh > a folder of $fpath, as _mx
    fish: mx completion fish > ~/.config/fish/completions/mx.fish
    """
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


# -- completion: scripts that do not run `mx` ------------------------------------------------------


def print_completion(args: argparse.Namespace) -> int:
    """Print the script of the chosen shell."""
    print(SCRIPTS[args.shell](), end="")
    return 0


def _actions(name: str) -> list[argparse.Action]:
    parser = Parser(prog=f"mx {name}")
    COMMANDS[name].declare(parser)
    return parser._actions


def _long_options(action: argparse.Action) -> list[str]:
    return [option for option in action.option_strings if option.startswith("--")]


def _choices(action: argparse.Action) -> str:
    return " ".join(map(str, action.choices or ()))


def _words(name: str) -> str:
    words: list[str] = []
    for action in _actions(name):
        words += _long_options(action)
        if not action.option_strings and action.choices:
            words.append(_choices(action))
    return " ".join(words)


def bash_script() -> str:
    """Return the completion script of bash."""
    values = "\n".join(
        f'    {name}:{option}) COMPREPLY=($(compgen -W "{_choices(action)}" -- "$word"))'
        " && return ;;"
        for name in COMMANDS
        for action in _actions(name)
        if action.choices
        for option in action.option_strings
    )
    words = "\n".join(f'    {name}) words="{_words(name)}" ;;' for name in COMMANDS)
    return f"""\
_mx() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="${{COMP_WORDS[1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(COMMANDS)} --help --version" -- "$word"))
    return
  fi
  case "$command:$previous" in
{values}
  esac
  case "$command" in
{words}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}}
complete -o filenames -F _mx mx
"""


def zsh_script() -> str:
    """Return the completion script of zsh."""
    names = "\n".join(f"    '{n}:{_quote(c.summary)}'" for n, c in COMMANDS.items())
    words = "\n".join(f"    {name}) compadd -- {_words(name)} ;;" for name in COMMANDS)
    return f"""\
#compdef mx
_mx() {{
  local -a commands
  commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "$words[2]" in
{words}
  esac
  _files
}}
compdef _mx mx
"""


def fish_script() -> str:
    """Return the completion script of fish."""
    lines = []
    for name, command in COMMANDS.items():
        summary = _quote(command.summary)
        lines.append(f"complete -c mx -n __fish_use_subcommand -f -a {name} -d '{summary}'")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for action in _actions(name):
            about = _quote((action.help or "").split(";")[0])
            values = f" -x -a '{_choices(action)}'" if action.choices else ""
            for option in _long_options(action):
                lines.append(f"complete -c mx {seen} -l {option[2:]}{values} -d '{about}'")
            if not action.option_strings and action.choices:
                lines.append(f"complete -c mx {seen} -a '{_choices(action)}'")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return text.replace("'", "").replace(":", " ").replace("%%", "%")


SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
